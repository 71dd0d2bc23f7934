//! What an application gives: how a payload becomes the text that is kept, and how much of it a view shows.

use std::fmt;

use serde_json::Value;
use surefoot_kernel_core::{App, Scope, Source};

/// Turns payloads into the texts that are kept, and back.
///
/// Stored bytes stay for ever: a text that was kept once must be decoded for as long as its run is looked at. So a text
/// names the key, and the form, that it was made with.
///
/// The methods are called in the way of every read and write, and do not wait: have keys at hand in memory. They are
/// called from many threads.
pub trait PayloadCodec: Send + Sync + 'static {
    /// The text that is kept of a payload: of JSON text, or of a sentence for people. Any text without NUL will do, and
    /// two calls may give different texts.
    ///
    /// # Errors
    /// [`CodecError::Unavailable`] is tried again; any other refuses the write.
    fn encode(&self, place: &PayloadPlace<'_>, plain: &str) -> Result<String, CodecError>;

    /// What [`PayloadCodec::encode`] was given for the same place, byte for byte.
    ///
    /// # Errors
    /// [`CodecError::Unavailable`] is tried again; any other puts the run before a person, and no other run with it.
    fn decode(&self, place: &PayloadPlace<'_>, kept: &str) -> Result<String, CodecError>;

    /// What a view shows of a decoded value: a text stands for a sentence or for a value that is one. Called by
    /// [redacted](crate::CodecStore::redacted) handles only.
    fn redact(&self, place: &PayloadPlace<'_>, value: Value) -> Value;
}

/// Where a payload belongs: decoding is asked for the same place as encoding was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadPlace<'a> {
    /// Who owns it.
    pub app: &'a App,
    /// The boundary it stays in; absent for the data of an app-wide signal.
    pub scope: Option<&'a Scope>,
    /// What it is.
    pub kind: PayloadKind,
}

impl PayloadPlace<'_> {
    /// The place as one text, different for different places: associated data that binds a ciphertext to it.
    ///
    /// ```
    /// use surefoot_codec::{PayloadKind, PayloadPlace};
    /// use surefoot_kernel_core::{App, Scope};
    /// let (app, scope) = (App::from("shop"), Scope::from("north"));
    /// let place = PayloadPlace { app: &app, scope: Some(&scope), kind: PayloadKind::Output };
    /// assert_eq!(place.associated_data(), r#"["shop","north","output"]"#);
    /// ```
    #[must_use]
    pub fn associated_data(&self) -> String {
        let scope = self.scope.map(Scope::as_str);
        serde_json::json!([self.app.as_str(), scope, self.kind.as_str()]).to_string()
    }
}

/// What a payload is. Exhaustive on purpose: a codec that treats kinds differently has to answer for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// An event's data, or a child's inputs: what a run is started with. JSON.
    EventData,
    /// An event's context. JSON.
    EventContext,
    /// The authorization of an event or of a publication. JSON.
    Authorization,
    /// The actor in an authorization: what a run keeps of it. JSON.
    Actor,
    /// The inputs that step zero computed. JSON.
    Inputs,
    /// An item of a loop. JSON.
    Item,
    /// A step's output. JSON.
    Output,
    /// A value that the application's resolver gave to a step. JSON.
    ResolvedValue,
    /// The message of a failure, or of an outcome that nobody knows. A sentence.
    Message,
    /// The details of a failure. JSON.
    Details,
    /// What an action kept of an effect. Text.
    Evidence,
    /// The result of a run. JSON.
    Result,
    /// The sentence of a run that succeeded.
    ResultMessage,
    /// The data of a signal, also while a run resumes from it. JSON.
    SignalData,
    /// A sentence of a dry run: what a step would do, and what keeps the bill from being complete.
    Finding,
    /// What an operator's verb on a run was given. JSON.
    AuditDetails,
    /// What a task is to do, as it was pinned. JSON.
    TaskRequest,
    /// What came of a task, for its step. JSON.
    TaskOutput,
}

impl PayloadKind {
    /// A stable word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EventData => "event_data",
            Self::EventContext => "event_context",
            Self::Authorization => "authorization",
            Self::Actor => "actor",
            Self::Inputs => "inputs",
            Self::Item => "item",
            Self::Output => "output",
            Self::ResolvedValue => "resolved_value",
            Self::Message => "message",
            Self::Details => "details",
            Self::Evidence => "evidence",
            Self::Result => "result",
            Self::ResultMessage => "result_message",
            Self::SignalData => "signal_data",
            Self::Finding => "finding",
            Self::AuditDetails => "audit_details",
            Self::TaskRequest => "task_request",
            Self::TaskOutput => "task_output",
        }
    }
}

impl fmt::Display for PayloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a payload is not encoded or decoded. Messages are shown to operators and stored: they name keys, never payloads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// It was encoded with a key that the codec does not have.
    #[error("it needs the key `{key}`, which this program does not have: give the codec that key")]
    UnknownKey {
        /// The key's name.
        key: String,
    },
    /// The kept text is not what the codec wrote for this place, or was changed since.
    #[error("what is kept is damaged, or belongs to another place: {why}")]
    Damaged {
        /// What is wrong with it, without its content.
        why: String,
    },
    /// The codec does not take the payload.
    #[error("the codec refuses it: {why}")]
    Refused {
        /// Why.
        why: String,
    },
    /// It cannot be done right now, and is tried again.
    #[error("the codec is not available right now")]
    Unavailable(#[source] Source),
}
