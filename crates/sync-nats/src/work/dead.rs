//! Dead letters: one message each, on the subject of its work.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot_sync_core::{DeadLetter, DeadPage, Delivery, Key, SyncError, WorkId};

use super::NatsWork;
use crate::api::{Expect, Publish, Published, Pulled, Stored};

/// What stands in a dead letter.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    key: Option<Key>,
    data: Value,
    attempts: u32,
    reason: String,
    /// The key under which it is being sent again: whoever wrote this first does it, and who continues it keeps to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent_as: Option<Key>,
}

/// How often a letter is looked at again that somebody else has written.
const TRIES: usize = 5;

/// Reasons are for people.
const REASON_MAX_CHARS: usize = 4_000;

impl NatsWork {
    /// Keeps a letter. That it is kept already is as good.
    pub(super) async fn keep_dead(
        &self,
        delivery: &Delivery,
        reason: &str,
    ) -> Result<(), SyncError> {
        let body = Body {
            key: delivery.key.clone(),
            data: delivery.data.clone(),
            attempts: delivery.attempt,
            reason: reason.chars().take(REASON_MAX_CHARS).collect(),
            sent_as: None,
        };
        self.put_dead(&delivery.id, &body, Expect::NONE).await.map(drop)
    }

    /// What cannot be read is kept as it is, for people.
    pub(super) async fn bury_unread(
        &self,
        pulled: &Pulled,
        error: &SyncError,
    ) -> Result<(), SyncError> {
        let data = String::from_utf8_lossy(&pulled.data).into_owned();
        let reason = error.to_string();
        let body =
            Body { key: None, data: Value::String(data), attempts: 0, reason, sent_as: None };
        let id = super::Subjects::parts(&pulled.subject).map(|(_, id)| id);
        let id = id.unwrap_or_else(|| WorkId::new(pulled.seq.to_string()));
        self.put_dead(&id, &body, Expect::NONE).await?;
        self.api.acknowledge(&pulled.reply, "+ACK").await;
        Ok(())
    }

    /// Writes a letter where nobody else has written since.
    async fn put_dead(
        &self,
        id: &WorkId,
        body: &Body,
        expect: Expect,
    ) -> Result<Published, SyncError> {
        let bytes = serde_json::to_vec(body).map_err(|error| SyncError::Corrupt {
            what: format!("the dead letter of {id}"),
            why: error.to_string(),
        })?;
        let publish = Publish {
            subject: &self.subjects.dead(id),
            headers: Vec::new(),
            body: bytes.into(),
            expect: Some(expect),
            msg_id: None,
            resource: &self.resource,
        };
        self.api.publish(&publish).await
    }

    pub(super) async fn list_dead(&self, page: DeadPage) -> Result<Vec<DeadLetter>, SyncError> {
        let (mut letters, mut from) = (Vec::new(), page.after.saturating_add(1));
        let all = self.subjects.dead_all();
        while letters.len() < page.limit {
            let Some(stored) = self.api.next(&self.dead_stream, from, &all).await? else { break };
            from = stored.seq.saturating_add(1);
            letters.push(letter(&stored));
        }
        Ok(letters)
    }

    pub(super) async fn load_dead(&self, id: &WorkId) -> Result<Option<DeadLetter>, SyncError> {
        let stored = self.api.last(&self.dead_stream, &self.subjects.dead(id)).await?;
        Ok(stored.as_ref().map(letter))
    }

    /// Of several who want a letter sent again, or removed, one does it: the letter says so before anything is sent.
    pub(super) async fn requeue_dead(&self, id: &WorkId, key: &Key) -> Result<WorkId, SyncError> {
        for _ in 0..TRIES {
            let stored = self.api.last(&self.dead_stream, &self.subjects.dead(id)).await?;
            let what = || format!("dead letter {id} of {}", self.resource);
            let stored = stored.ok_or_else(|| SyncError::NotFound { what: what() })?;
            let mut body = body(&stored)?;
            match &body.sent_as {
                Some(known) if known == key => return self.send_dead(id, &stored, key, body).await,
                Some(known) => return Err(is_sent_as(id, known)),
                None => body.sent_as = Some(key.clone()),
            }
            let expect = Expect { seq: stored.seq, subject: None };
            // Whoever was faster is seen with the next look.
            self.put_dead(id, &body, expect).await?;
        }
        Err(SyncError::Conflict { what: format!("dead letter {id}") })
    }

    async fn send_dead(
        &self,
        id: &WorkId,
        stored: &Stored,
        key: &Key,
        body: Body,
    ) -> Result<WorkId, SyncError> {
        let sent = self.store_again(id, key, body.key, body.data).await?;
        self.api.delete(&self.dead_stream, stored.seq).await?;
        Ok(sent)
    }

    pub(super) async fn delete_dead(&self, id: &WorkId) -> Result<bool, SyncError> {
        let stored = self.api.last(&self.dead_stream, &self.subjects.dead(id)).await?;
        let Some(stored) = stored else { return Ok(false) };
        // What cannot be read is nobody's work any more.
        if let Ok(Body { sent_as: Some(known), .. }) = body(&stored) {
            return Err(is_sent_as(id, &known));
        }
        self.api.delete(&self.dead_stream, stored.seq).await
    }
}

fn is_sent_as(id: &WorkId, key: &Key) -> SyncError {
    SyncError::Conflict { what: format!("a redrive of {id} under key `{key}`") }
}

/// What stands in a letter, or that it cannot be read.
fn body(stored: &Stored) -> Result<Body, SyncError> {
    serde_json::from_slice(&stored.data).map_err(|error| SyncError::Corrupt {
        what: format!("the dead letter {}", stored.subject),
        why: error.to_string(),
    })
}

/// As people see it: one that cannot be read hides no other, and can be removed.
fn letter(stored: &Stored) -> DeadLetter {
    let body = body(stored).unwrap_or_else(|error| Body {
        key: None,
        data: Value::String(String::from_utf8_lossy(&stored.data).into_owned()),
        attempts: 0,
        reason: error.to_string(),
        sent_as: None,
    });
    let Body { key, data, attempts, reason, sent_as: _ } = body;
    let id = WorkId::new(stored.last_token());
    DeadLetter { id, key, data, attempts, reason, since: stored.time, place: stored.seq }
}
