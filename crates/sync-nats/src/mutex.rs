//! Locks: one subject each, one message on it while it is held, which the server removes when its time is over.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use surefoot_sync_core::{Key, Lock, Mutex, MutexSettings, SyncError};

use crate::api::{Api, Expect, Publish, Published, Stored};
use crate::connect::Nats;
use crate::declare::{self, Stream};
use crate::{clock, names, settings};

#[derive(Debug)]
pub(crate) struct NatsMutex {
    api: Api,
    settings: MutexSettings,
    resource: String,
    stream: String,
    subjects: String,
}

/// What stands on the subject of a lock that is held.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    token: String,
    /// That of the holder; a lock that was just taken has its own place as fence.
    fence: Option<u64>,
}

impl NatsMutex {
    pub(crate) async fn declare(nats: &Nats, settings: MutexSettings) -> Result<Self, SyncError> {
        let stream = names::stream(&nats.namespace, "MUTEX", &settings.id);
        let subjects = format!("{}.mutex.{}", nats.namespace, names::token(settings.id.as_str()));
        let resource = format!("mutex {}", settings.id);
        let mut config = settings::base(nats, &stream, "mutex", settings.id.as_str());
        settings::set(
            &mut config,
            json!({
                "subjects": [format!("{subjects}.l.*")],
                "retention": "limits",
                "discard": "new",
                "max_msgs_per_subject": 1,
                "allow_msg_ttl": true,
            }),
        );
        if let Some(Value::Object(metadata)) = config.get_mut("metadata") {
            metadata.insert("sync.ttl".to_owned(), json!(settings.ttl.as_secs().to_string()));
        }
        let api = nats.api.clone();
        // A stream that is made anew begins behind every fence that one before can have given.
        let mut creation = Map::new();
        creation.insert("first_seq".to_owned(), json!(clock::local_now_us()));
        declare::stream(&api, &Stream { resource: &resource, config, creation }).await?;
        Ok(Self { api, settings, resource, stream, subjects })
    }

    fn subject(&self, resource: &Key) -> String {
        format!("{}.l.{}", self.subjects, names::token(resource.as_str()))
    }

    /// Writes the state of a lock, if its last state is the expected one; the new revision.
    async fn write(&self, resource: &Key, body: &Body, seq: u64) -> Result<Option<u64>, SyncError> {
        let subject = self.subject(resource);
        let bytes = serde_json::to_vec(body).map_err(|error| SyncError::Corrupt {
            what: format!("the lock on {resource}"),
            why: error.to_string(),
        })?;
        let publish = Publish {
            subject: &subject,
            headers: vec![("Nats-TTL", self.settings.ttl.as_secs().to_string())],
            body: bytes.into(),
            expect: Some(Expect { seq, subject: None }),
            msg_id: None,
            resource: &self.resource,
        };
        match self.api.publish(&publish).await? {
            Published::Stored { seq, .. } => Ok(Some(seq)),
            Published::Conflict { after_lost_answer: false } => Ok(None),
            // It may be this very write that stands there.
            Published::Conflict { after_lost_answer: true } => {
                let last = self.api.last(&self.stream, &subject).await?;
                let mine = last
                    .filter(|last| last.seq > seq && token_of(last).as_ref() == Some(&body.token));
                Ok(mine.map(|last| last.seq))
            }
        }
    }
}

fn token_of(stored: &Stored) -> Option<String> {
    serde_json::from_slice::<Body>(&stored.data).ok().map(|body| body.token)
}

#[async_trait]
impl Mutex for NatsMutex {
    fn settings(&self) -> &MutexSettings {
        &self.settings
    }

    async fn try_acquire(&self, resource: &Key) -> Result<Option<Lock>, SyncError> {
        let token = nuid::next().to_string();
        let body = Body { token: token.clone(), fence: None };
        let taken = self.write(resource, &body, 0).await?;
        let resource = resource.clone();
        Ok(taken.map(|seq| Lock { resource, fence: seq, revision: seq, token }))
    }

    async fn extend(&self, lock: &Lock) -> Result<Option<Lock>, SyncError> {
        let body = Body { token: lock.token.clone(), fence: Some(lock.fence) };
        let extended = self.write(&lock.resource, &body, lock.revision).await?;
        Ok(extended.map(|revision| Lock { revision, ..lock.clone() }))
    }

    async fn release(&self, lock: &Lock) -> Result<bool, SyncError> {
        self.api.delete(&self.stream, lock.revision).await
    }
}
