//! What a task asks of a model, pinned when its step first ran, and what comes back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of a pinned request, as JSON.
pub const AI_REQUEST_MAX_BYTES: usize = 100_000;

/// What a model is asked. Stored as the task's request: what is here is what every attempt sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AiRequest {
    /// Which model.
    pub model: String,
    /// What it is told, in order.
    pub messages: Vec<AiMessage>,
    /// The JSON Schema of its answer; without one, the answer is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Tokens of its answer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How freely it chooses its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// One thing that it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AiMessage {
    /// By whom.
    pub role: AiRole,
    /// What.
    pub content: String,
}

impl AiMessage {
    pub(super) fn system(content: impl Into<String>) -> Self {
        Self { role: AiRole::System, content: content.into() }
    }

    pub(super) fn user(content: impl Into<String>) -> Self {
        Self { role: AiRole::User, content: content.into() }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AiRole {
    /// The application.
    System,
    /// Whoever asks.
    User,
}

/// What a provider says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiAnswer {
    /// The model's words.
    pub text: String,
    /// The model that spoke, as the provider names it.
    pub model: String,
    /// What was used.
    pub usage: AiUsage,
}

/// Tokens that a call used, as the provider counts them; 0 where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AiUsage {
    /// Of the request.
    pub input_tokens: u64,
    /// Of the answer.
    pub output_tokens: u64,
}

/// What a task that succeeded keeps for its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AiOutput {
    pub(super) text: String,
    /// The text as JSON, if a schema was given: it fits.
    #[serde(default)]
    pub(super) value: Value,
    pub(super) model: String,
    pub(super) usage: AiUsage,
}
