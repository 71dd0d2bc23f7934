//! Publishing, with conditions, until there is an answer.

use async_nats::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;
use surefoot_sync_core::SyncError;
use tokio::time::Instant;

use super::{ASK_AGAIN_AFTER, Api, Failure, PERSIST_FOR, code, read};

const OPERATION: &str = "store a message";

/// What must be true for a message to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expect {
    /// The last message of this subject, which may have wildcards, has this place; 0 is none.
    pub(crate) seq: u64,
    /// `None` is the subject that is published to.
    pub(crate) subject: Option<String>,
}

impl Expect {
    /// There is none on the subject that is published to.
    pub(crate) const NONE: Self = Self { seq: 0, subject: None };
}

/// A message to store.
#[derive(Debug, Clone)]
pub(crate) struct Publish<'a> {
    pub(crate) subject: &'a str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    pub(crate) expect: Option<Expect>,
    /// What the server recognises a repetition by.
    pub(crate) msg_id: Option<&'a str>,
    pub(crate) resource: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    Stored {
        seq: u64,
        duplicate: bool,
    },
    /// The condition does not hold. If an answer was lost before, it may be because of this very message.
    Conflict {
        after_lost_answer: bool,
    },
}

#[derive(Deserialize)]
struct Ack {
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

impl Publish<'_> {
    fn header_map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            map.insert(*name, value.as_str());
        }
        if let Some(id) = self.msg_id {
            map.insert("Nats-Msg-Id", id);
        }
        if let Some(expect) = &self.expect {
            map.insert("Nats-Expected-Last-Subject-Sequence", expect.seq.to_string().as_str());
            if let Some(subject) = &expect.subject {
                map.insert("Nats-Expected-Last-Subject-Sequence-Subject", subject.as_str());
            }
        }
        map
    }

    /// What it takes up on the wire.
    pub(crate) fn size_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4);
        headers.sum::<usize>() + self.body.len()
    }
}

impl Api {
    /// Stores a message. What is not answered is repeated with the same ids, for the time in which a server comes back.
    pub(crate) async fn publish(&self, publish: &Publish<'_>) -> Result<Published, SyncError> {
        let (limit_bytes, bytes) = (self.client().max_payload(), publish.size_bytes());
        // What the server adds itself needs room too.
        if limit_bytes > 0 && bytes + 1_024 > limit_bytes {
            return Err(SyncError::PayloadTooLarge { bytes, limit_bytes });
        }
        let deadline = Instant::now() + PERSIST_FOR;
        let mut after_lost_answer = false;
        loop {
            let headers = Some(publish.header_map());
            let answer = self.request(publish.subject, headers, publish.body.clone()).await;
            let failure = match answer.and_then(|payload| read::<Ack>(&payload)) {
                Ok(Ack { seq, duplicate }) => return Ok(Published::Stored { seq, duplicate }),
                Err(failure) => failure,
            };
            match failure.code() {
                Some(code::WRONG_LAST_SEQUENCE | code::WRONG_LAST_SEQUENCE_IN_FLIGHT) => {
                    return Ok(Published::Conflict { after_lost_answer });
                }
                Some(
                    code::STORE_FAILED
                    | code::STORAGE_EXCEEDED
                    | code::MEMORY_EXCEEDED
                    | code::INSUFFICIENT_RESOURCES,
                ) => return Err(SyncError::StoreFull { resource: publish.resource.to_owned() }),
                Some(_) | None => {}
            }
            if !failure.may_pass() || Instant::now() >= deadline {
                return Err(failure.into_error(OPERATION));
            }
            after_lost_answer |= matches!(failure, Failure::Unanswered(_));
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
    }
}
