//! What authors write under `httpRequest` and `httpCall`.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// How long a request may take where the author says nothing.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(15);
/// How long one may take at most.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// One request.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct HttpInput {
    /// GET where nothing else is said.
    #[serde(default)]
    pub method: Method,
    /// Absolute, `https://` or `http://`, at most 8,192 characters.
    pub url: String,
    /// Names and values; a value may be `{ secret: NAME }`.
    #[serde(default)]
    pub headers: BTreeMap<String, Text>,
    /// Added to the URL, encoded; a value may be `{ secret: NAME }`.
    #[serde(default)]
    pub query: BTreeMap<String, Argument>,
    /// The body, as JSON; anywhere in it `{ secret: NAME }` stands for a secret. Not together with `text`.
    #[serde(default, deserialize_with = "given")]
    pub json: Option<Value>,
    /// The body, as it is. Not together with `json`.
    #[serde(default)]
    pub text: Option<String>,
    /// For the whole request, `1s` to `60s`; `15s` where nothing is said.
    #[serde(default)]
    #[schemars(regex(pattern = r"^([1-9]|[1-5][0-9]|60)s$"))]
    pub timeout: Option<String>,
    /// What the server's statuses mean, where it is not what they usually do.
    #[serde(default)]
    pub statuses: Statuses,
}

/// One request whose effect may have happened even if no answer came.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct HttpRequestInput {
    /// The request.
    #[serde(flatten)]
    pub request: HttpInput,
    /// How to find out what became of it.
    #[serde(default)]
    pub confirm: Option<Confirm>,
}

/// The methods that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Reads the head of an answer.
    Head,
    /// Whatever the server makes of it.
    Post,
    /// Writes a resource.
    Put,
    /// Changes a resource.
    Patch,
    /// Removes a resource.
    Delete,
}

impl Method {
    /// As it is sent.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether it has no body and no effect by its own meaning.
    pub(super) const fn is_reading(self) -> bool {
        match self {
            Self::Get | Self::Head => true,
            Self::Post | Self::Put | Self::Patch | Self::Delete => false,
        }
    }
}

/// A secret by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Its name.
    pub secret: String,
    /// What stands before it, such as `"Bearer "`.
    #[serde(default)]
    pub prefix: String,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Text {
    /// As it is.
    Plain(String),
    /// Resolved at the time of the call.
    Secret(SecretRef),
}

/// The value of an argument in a URL.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Argument {
    /// As it is.
    Plain(String),
    /// `true` or `false`.
    Flag(bool),
    /// In its shortest form.
    Number(Number),
    /// Resolved at the time of the call.
    Secret(SecretRef),
}

/// Which statuses mean what. A single one goes before a class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub struct Statuses {
    /// It was done.
    #[serde(default)]
    pub success: Vec<StatusRule>,
    /// It was not done, and will not be.
    #[serde(default)]
    pub refused: Vec<StatusRule>,
    /// It was not done; asking again may help.
    #[serde(default)]
    pub retry: Vec<StatusRule>,
}

/// One status, or a hundred of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StatusRule {
    /// `429`
    One(#[schemars(range(min = 100, max = 599))] u16),
    /// `"5xx"`
    Class(#[schemars(regex(pattern = "^[1-5]xx$"))] String),
}

/// A `GET` that tells what became of a request. `{effectKey}` in its URL and in its query is the key that was sent.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Confirm {
    /// Absolute.
    pub url: String,
    /// As for the request.
    #[serde(default)]
    pub headers: BTreeMap<String, Text>,
    /// As for the request.
    #[serde(default)]
    pub query: BTreeMap<String, Argument>,
    /// An expression over `status`, `headers` and `body` of the answer: it was done. By default, a status of 2xx.
    #[serde(default = "done")]
    #[schemars(extend("expressionOver" = ["status", "headers", "body"]))]
    pub succeeded: String,
    /// Another one: it was refused, and will not be done.
    #[serde(default)]
    #[schemars(extend("expressionOver" = ["status", "headers", "body"]))]
    pub failed: Option<String>,
    /// Another one: the server does not know of it yet. By default, status 404.
    #[serde(default = "unknown_yet", rename = "notFound")]
    #[schemars(extend("expressionOver" = ["status", "headers", "body"]))]
    pub not_found: String,
}

/// A null that is written is a body too.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// By what it was done, where the author does not say.
pub(super) const SUCCEEDED_DEFAULT: &str = "status >= 200 && status < 300";
/// By what the server does not know of it.
pub(super) const UNKNOWN_DEFAULT: &str = "status == 404";

fn done() -> String {
    SUCCEEDED_DEFAULT.to_owned()
}

fn unknown_yet() -> String {
    UNKNOWN_DEFAULT.to_owned()
}
