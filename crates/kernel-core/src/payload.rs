//! Payloads: what can be kept exactly, and what is refused with its place.

use serde_json::Value;

/// PLACEHOLDER.
#[must_use]
pub fn text_for_storage(text: &str) -> String {
    text.to_owned()
}
/// PLACEHOLDER.
#[must_use]
pub fn json_len(value: &Value) -> usize {
    value.to_string().len()
}

/// PLACEHOLDER
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    text: String,
    value: Value,
}
/// PLACEHOLDER
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}")]
pub struct PayloadError {
    /// .
    pub pointer: String,
    /// .
    pub rule: String,
}
impl Payload {
    /// .
    pub fn from_value(value: Value) -> Result<Self, PayloadError> {
        Ok(Self { text: value.to_string(), value })
    }
    /// .
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
    /// .
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }
}
