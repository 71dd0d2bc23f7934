//! Dead letters: one message each, on the subject of its work.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot_sync_core::{DeadLetter, DeadPage, Delivery, Key, SyncError, WorkId};

use super::NatsWork;
use crate::api::{Expect, Publish, Pulled, Stored};

/// What stands in a dead letter.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    key: Option<Key>,
    data: Value,
    attempts: u32,
    reason: String,
}

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
        };
        self.put_dead(&delivery.id, &body).await
    }

    /// What cannot be read is kept as it is, for people.
    pub(super) async fn bury_unread(
        &self,
        pulled: &Pulled,
        error: &SyncError,
    ) -> Result<(), SyncError> {
        let data = String::from_utf8_lossy(&pulled.data).into_owned();
        let body =
            Body { key: None, data: Value::String(data), attempts: 0, reason: error.to_string() };
        let id = super::Subjects::parts(&pulled.subject).map(|(_, id)| id);
        self.put_dead(&id.unwrap_or_else(|| WorkId::new(pulled.seq.to_string())), &body).await?;
        self.api.acknowledge(&pulled.reply, "+ACK").await;
        Ok(())
    }

    async fn put_dead(&self, id: &WorkId, body: &Body) -> Result<(), SyncError> {
        let bytes = serde_json::to_vec(body).map_err(|error| SyncError::Corrupt {
            what: format!("the dead letter of {id}"),
            why: error.to_string(),
        })?;
        let publish = Publish {
            subject: &self.subjects.dead(id),
            headers: Vec::new(),
            body: bytes.into(),
            expect: Some(Expect::NONE),
            msg_id: None,
            resource: &self.resource,
        };
        self.api.publish(&publish).await.map(|_| ())
    }

    pub(super) async fn list_dead(&self, page: DeadPage) -> Result<Vec<DeadLetter>, SyncError> {
        let (mut letters, mut from) = (Vec::new(), page.after.saturating_add(1));
        let all = self.subjects.dead_all();
        while letters.len() < page.limit {
            let Some(stored) = self.api.next(&self.dead_stream, from, &all).await? else { break };
            from = stored.seq.saturating_add(1);
            letters.push(letter(&stored)?);
        }
        Ok(letters)
    }

    pub(super) async fn load_dead(&self, id: &WorkId) -> Result<Option<DeadLetter>, SyncError> {
        let stored = self.api.last(&self.dead_stream, &self.subjects.dead(id)).await?;
        stored.as_ref().map(letter).transpose()
    }

    pub(super) async fn requeue_dead(&self, id: &WorkId, key: &Key) -> Result<WorkId, SyncError> {
        let stored = self.api.last(&self.dead_stream, &self.subjects.dead(id)).await?;
        let what = || format!("dead letter {id} of {}", self.resource);
        let stored = stored.ok_or_else(|| SyncError::NotFound { what: what() })?;
        let letter = letter(&stored)?;
        let sent = self.store_again(id, key, letter.key, letter.data).await?;
        self.api.delete(&self.dead_stream, stored.seq).await?;
        Ok(sent)
    }

    pub(super) async fn delete_dead(&self, id: &WorkId) -> Result<bool, SyncError> {
        match self.api.last(&self.dead_stream, &self.subjects.dead(id)).await? {
            Some(stored) => self.api.delete(&self.dead_stream, stored.seq).await,
            None => Ok(false),
        }
    }
}

fn letter(stored: &Stored) -> Result<DeadLetter, SyncError> {
    let body: Body = serde_json::from_slice(&stored.data).map_err(|error| SyncError::Corrupt {
        what: format!("the dead letter {}", stored.subject),
        why: error.to_string(),
    })?;
    let Body { key, data, attempts, reason } = body;
    let id = WorkId::new(stored.last_token());
    Ok(DeadLetter { id, key, data, attempts, reason, since: stored.time, place: stored.seq })
}
