//! JetStream's own API, as far as it is needed here: documented JSON over request and reply.
//!
//! It is spoken directly rather than through the client library's objects, because the adapter has to know every
//! code the server answers with, and compares a resource with what it declared field by field.

mod list;
mod message;
mod publish;
mod pull;

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Request};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use surefoot_sync_core::SyncError;
use tokio::time::Instant;

pub(crate) use list::ASK_AT_ONCE;
pub(crate) use message::{Headers, Stored};
pub(crate) use publish::{Expect, Publish, Published};
pub(crate) use pull::{Pull, Pulled, Reply, pull};

/// What one answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long something is asked again and again: longer than a cluster takes to elect a leader.
const PERSIST_FOR: Duration = Duration::from_secs(15);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Codes of the server that mean something to us.
pub(crate) mod code {
    pub(crate) const UNAVAILABLE: u64 = 10008;
    pub(crate) const INSUFFICIENT_RESOURCES: u64 = 10023;
    pub(crate) const MEMORY_EXCEEDED: u64 = 10028;
    pub(crate) const NO_MESSAGE: u64 = 10037;
    pub(crate) const SEQUENCE_NOT_FOUND: u64 = 10043;
    pub(crate) const STORAGE_EXCEEDED: u64 = 10047;
    pub(crate) const DELETE_FAILED: u64 = 10057;
    pub(crate) const STREAM_EXISTS: u64 = 10058;
    pub(crate) const NO_STREAM: u64 = 10059;
    pub(crate) const WRONG_LAST_SEQUENCE: u64 = 10071;
    pub(crate) const STORE_FAILED: u64 = 10077;
    pub(crate) const CONSUMER_EXISTS: u64 = 10148;
    pub(crate) const WRONG_LAST_SEQUENCE_IN_FLIGHT: u64 = 10164;
}

/// Why a request has no answer that could be used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server said no.
    Refused(ServerError),
    /// Nobody answered; it may have happened.
    Unanswered(Box<dyn std::error::Error + Send + Sync>),
}

/// A refusal, as the server writes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ServerError {
    #[serde(default, rename = "err_code")]
    pub(crate) code: u64,
    #[serde(default)]
    pub(crate) description: String,
}

impl Failure {
    pub(crate) fn code(&self) -> Option<u64> {
        match self {
            Self::Refused(error) => Some(error.code),
            Self::Unanswered(_) => None,
        }
    }

    /// Whether asking again may help.
    fn may_pass(&self) -> bool {
        match self {
            Self::Unanswered(_) => true,
            Self::Refused(error) => error.code == code::UNAVAILABLE,
        }
    }

    pub(crate) fn into_error(self, operation: &'static str) -> SyncError {
        match self {
            Self::Unanswered(source) => SyncError::Unavailable { operation, source },
            Self::Refused(ServerError { code, description: message }) => {
                SyncError::Refused { operation, code, message }
            }
        }
    }
}

/// The connection, and what is asked over it.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    client: Client,
}

#[derive(Deserialize)]
struct Refusal {
    error: Option<ServerError>,
}

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Asks once.
    pub(crate) async fn request(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        body: Bytes,
    ) -> Result<Bytes, Failure> {
        let mut request = Request::new().payload(body).timeout(Some(ANSWER_WITHIN));
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        let answer = self.client.send_request(subject.to_owned(), request).await;
        Ok(answer.map_err(|error| Failure::Unanswered(error.into()))?.payload)
    }

    /// Asks once, in JSON.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        subject: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::Unanswered(error.into()))?;
        read(&self.request(subject, None, body.into()).await?)
    }

    /// Asks until there is an answer, for the time in which a server comes back. For what may be asked twice.
    pub(crate) async fn insist<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        subject: &str,
        body: &impl Serialize,
    ) -> Result<Result<T, ServerError>, SyncError> {
        let deadline = Instant::now() + PERSIST_FOR;
        loop {
            match self.ask(subject, body).await {
                Ok(answer) => return Ok(Ok(answer)),
                Err(failure) if failure.may_pass() && Instant::now() < deadline => {}
                Err(Failure::Refused(error)) => return Ok(Err(error)),
                Err(failure @ Failure::Unanswered(_)) => return Err(failure.into_error(operation)),
            }
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
    }

    /// Settles a delivery by its reply subject, and waits until the server has taken note; `false` if nobody said so.
    pub(crate) async fn acknowledge(&self, reply: &str, body: &'static str) -> bool {
        self.acknowledge_with(reply, Bytes::from_static(body.as_bytes())).await
    }

    pub(crate) async fn acknowledge_with(&self, reply: &str, body: Bytes) -> bool {
        for _ in 0..2 {
            let request = Request::new().payload(body.clone()).timeout(Some(ANSWER_WITHIN));
            match self.client.send_request(reply.to_owned(), request).await {
                Ok(_) => return true,
                Err(error) if error.kind() == RequestErrorKind::NoResponders => return false,
                Err(error) => tracing::debug!(%error, "an acknowledgement was not confirmed"),
            }
        }
        false
    }

    /// The last message of a subject, which may have wildcards. Read from the leader: it decides who owns what.
    pub(crate) async fn last(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, SyncError> {
        self.message(stream, &json!({ "last_by_subj": subject })).await
    }

    /// The first message of a subject from a place on.
    pub(crate) async fn next(
        &self,
        stream: &str,
        from: u64,
        subject: &str,
    ) -> Result<Option<Stored>, SyncError> {
        self.message(stream, &json!({ "seq": from, "next_by_subj": subject })).await
    }

    /// A message by its place.
    pub(crate) async fn at(&self, stream: &str, seq: u64) -> Result<Option<Stored>, SyncError> {
        self.message(stream, &json!({ "seq": seq })).await
    }

    async fn message(
        &self,
        stream: &str,
        which: &serde_json::Value,
    ) -> Result<Option<Stored>, SyncError> {
        #[derive(Deserialize)]
        struct Answer {
            message: message::Raw,
        }
        let operation = "read a message";
        let subject = format!("$JS.API.STREAM.MSG.GET.{stream}");
        match self.insist::<Answer>(operation, &subject, which).await? {
            Ok(answer) => answer.message.read().map(Some),
            Err(error) if [code::NO_MESSAGE, code::SEQUENCE_NOT_FOUND].contains(&error.code) => {
                Ok(None)
            }
            Err(error) if error.code == code::NO_STREAM => Err(lost(stream)),
            Err(error) => Err(Failure::Refused(error).into_error(operation)),
        }
    }

    /// Removes a message by its place; `false` if it is not there.
    pub(crate) async fn delete(&self, stream: &str, seq: u64) -> Result<bool, SyncError> {
        #[derive(Deserialize)]
        struct Answer {
            success: bool,
        }
        let operation = "delete a message";
        let subject = format!("$JS.API.STREAM.MSG.DELETE.{stream}");
        let gone = [code::NO_MESSAGE, code::SEQUENCE_NOT_FOUND, code::DELETE_FAILED];
        match self.insist::<Answer>(operation, &subject, &json!({ "seq": seq })).await? {
            Ok(answer) => Ok(answer.success),
            Err(error) if gone.contains(&error.code) => Ok(false),
            Err(error) if error.code == code::NO_STREAM => Err(lost(stream)),
            Err(error) => Err(Failure::Refused(error).into_error(operation)),
        }
    }
}

/// Of a stream that was there when its resource was opened, or belongs to one that is.
pub(crate) fn lost(stream: &str) -> SyncError {
    let why = "somebody deleted it with all it held; a process that declares its resource makes it anew, empty";
    SyncError::Corrupt { what: format!("the stream `{stream}`"), why: why.to_owned() }
}

/// An answer, or the refusal that stands in its place.
pub(crate) fn read<T: DeserializeOwned>(payload: &Bytes) -> Result<T, Failure> {
    if let Ok(Refusal { error: Some(error) }) = serde_json::from_slice(payload) {
        return Err(Failure::Refused(error));
    }
    serde_json::from_slice(payload).map_err(|error| Failure::Unanswered(error.into()))
}
