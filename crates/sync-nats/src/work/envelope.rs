//! What stands around the data of a message.

use serde_json::Value;
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{Key, SyncError, WorkId};

use super::{Kind, NatsWork, Subjects};
use crate::api::{Headers, Pulled};
use crate::names;

pub(super) const VERSION: &str = "Sync-V";
pub(super) const KEY: &str = "Sync-Key";
/// Attempts that were spent before this message.
pub(super) const ATTEMPT: &str = "Sync-Attempt";
pub(super) const GENERATION: &str = "Sync-Gen";
/// The place of the message that this one follows.
pub(super) const SUPERSEDES: &str = "Sync-Supersedes";
/// What that one is acknowledged by.
pub(super) const PREVIOUS: &str = "Sync-Prev-Ack";
/// Stored anew by a sweep.
pub(super) const REPAIRED: &str = "Sync-Repair";
/// What a copy has of its original.
pub(super) const COPIED: [&str; 6] = [VERSION, KEY, ATTEMPT, GENERATION, SUPERSEDES, PREVIOUS];

/// A piece of work as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Envelope {
    pub(super) id: WorkId,
    pub(super) lane: String,
    pub(super) key: Option<Key>,
    pub(super) data: Value,
    pub(super) spent: u32,
    pub(super) generation: u32,
}

impl Envelope {
    /// The headers that every copy of it has.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![(VERSION, crate::settings::SCHEMA.to_owned())];
        // What is not there is 0, as in nearly all work.
        let counts = [(ATTEMPT, self.spent), (GENERATION, self.generation)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        headers.extend(counts.map(|(name, count)| (name, count.to_string())));
        if let Some(key) = &self.key {
            headers.push((KEY, names::token(key.as_str())));
        }
        headers
    }

    pub(super) fn body(&self) -> bytes::Bytes {
        self.data.to_string().into()
    }

    /// Headers by which the server delivers it later.
    pub(super) fn schedule(at: Timestamp, target: String) -> [(&'static str, String); 2] {
        [("Nats-Schedule", format!("@at {at}")), ("Nats-Schedule-Target", target)]
    }

    pub(super) fn read(pulled: &Pulled) -> Result<Self, SyncError> {
        Self::parse(&pulled.subject, &pulled.headers, &pulled.data)
    }

    fn parse(subject: &str, headers: &Headers, data: &[u8]) -> Result<Self, SyncError> {
        let corrupt = |why: String| SyncError::Corrupt { what: format!("the work {subject}"), why };
        if headers.get(VERSION) != Some(crate::settings::SCHEMA) {
            return Err(corrupt("it was written by another version".to_owned()));
        }
        let (lane, id) = Subjects::parts(subject)
            .ok_or_else(|| corrupt("its subject is too short".to_owned()))?;
        let key = match headers.get(KEY) {
            Some(token) => {
                let text = names::text_of(token);
                let text = text.ok_or_else(|| corrupt(format!("its key is `{token}`")))?;
                Some(Key::new(text)?)
            }
            None => None,
        };
        Ok(Self {
            id,
            lane: lane.to_owned(),
            key,
            data: serde_json::from_slice(data).map_err(|error| corrupt(error.to_string()))?,
            spent: headers.number(ATTEMPT),
            generation: headers.number(GENERATION),
        })
    }
}

impl NatsWork {
    /// The lane of work under a key.
    pub(super) fn lane_of(&self, key: Option<&Key>) -> String {
        match (self.kind, key, self.settings.partitions) {
            (Kind::Jobs, Some(key), _) => names::token(key.as_str()),
            (Kind::Queue, Some(key), Some(partitions)) => partitions.of(key).to_string(),
            (Kind::Group, _, _)
            | (Kind::Jobs, None, _)
            | (Kind::Queue, None, _)
            | (Kind::Queue, Some(_), None) => "0".to_owned(),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.settings.partitions.is_some()
    }
}
