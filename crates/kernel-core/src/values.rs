//! Values that the application's resolver gave to a step, so that every attempt sends the same request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::payload::{PAYLOAD_MAX_DEPTH, Rule, check};
use crate::{Code, Failure, interpreter::json_len};

/// Bytes of JSON of one resolved value.
pub const RESOLVED_VALUE_MAX_BYTES: usize = 64 * 1024;
/// Bytes of everything that is resolved for one step, references included.
pub const RESOLVED_STEP_MAX_BYTES: usize = 1024 * 1024;

/// What was resolved for one step: reference → value. The first value of a reference stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepValues(BTreeMap<String, Value>);

impl StepValues {
    /// What a reference stands for.
    #[must_use]
    pub fn get(&self, reference: &str) -> Option<&Value> {
        self.0.get(reference)
    }

    /// Whether nothing was resolved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each reference with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(reference, value)| (reference.as_str(), value))
    }

    /// Remembers a value, unless the reference has one.
    pub fn keep(&mut self, reference: impl Into<String>, value: Value) {
        self.0.entry(reference.into()).or_insert(value);
    }

    /// Remembers what is not known yet.
    pub fn keep_all(&mut self, values: &Self) {
        for (reference, value) in values.iter() {
            self.keep(reference, value.clone());
        }
    }

    /// What others do not know yet.
    #[must_use]
    pub fn unknown_to(mut self, known: &Self) -> Self {
        self.0.retain(|reference, _| known.get(reference).is_none());
        self
    }

    /// Whether one more value may be journaled with these.
    ///
    /// # Errors
    /// `VALUE_TOO_LARGE` or, for nesting that could not be read again, `VALUE_UNAVAILABLE`; the message names the
    /// reference and never the value, which may be a secret.
    pub fn admit(&self, reference: &str, value: &Value) -> Result<(), Failure> {
        if let Err(error) = check(value) {
            let text = if error.rule == Rule::TooDeep {
                format!(
                    "the value of `{reference}` is nested deeper than {PAYLOAD_MAX_DEPTH} levels: let the resolver give a flatter one"
                )
            } else {
                format!("the value of `{reference}` cannot be kept: {}", error.rule)
            };
            return Err(Failure::new(Code::VALUE_UNAVAILABLE, text));
        }
        let bytes = json_len(value);
        if bytes > RESOLVED_VALUE_MAX_BYTES {
            let text = format!(
                "the value of `{reference}` has {bytes} bytes of JSON, the limit is {RESOLVED_VALUE_MAX_BYTES}: let the resolver give a reference to it"
            );
            return Err(Failure::new(Code::VALUE_TOO_LARGE, text));
        }
        let total = self.bytes().saturating_add(reference.len()).saturating_add(bytes);
        if total > RESOLVED_STEP_MAX_BYTES {
            let text = format!(
                "with the value of `{reference}` the step has resolved {total} bytes, the limit is {RESOLVED_STEP_MAX_BYTES}: resolve less in one step"
            );
            return Err(Failure::new(Code::VALUE_TOO_LARGE, text));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.iter().map(|(reference, value)| reference.len() + json_len(value)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_value_of_a_reference_stays() {
        let mut values = StepValues::default();
        values.keep("a", json!(1));
        values.keep("a", json!(2));
        let mut more = values.clone();
        more.keep("b", json!(3));
        assert_eq!(values.get("a"), Some(&json!(1)));
        let new = more.clone().unknown_to(&values);
        assert_eq!(new.iter().collect::<Vec<_>>(), [("b", &json!(3))]);
        values.keep_all(&more);
        assert_eq!(values, more);
    }

    #[test]
    fn values_have_limits_to_the_byte() {
        let values = StepValues::default();
        let text = |bytes: usize| json!("x".repeat(bytes - 2));
        assert_eq!(values.admit("a", &text(RESOLVED_VALUE_MAX_BYTES)), Ok(()));
        let refused = values.admit("a", &text(RESOLVED_VALUE_MAX_BYTES + 1)).unwrap_err();
        assert_eq!(refused.code, Code::VALUE_TOO_LARGE);
        assert!(refused.message.contains("`a`") && !refused.message.contains("xx"));
    }

    #[test]
    fn a_step_has_a_limit_to_the_byte() {
        let mut values = StepValues::default();
        for index in 0..16_u32 {
            // Fifteen full ones, and one that leaves room for 34 bytes.
            let bytes = RESOLVED_VALUE_MAX_BYTES - if index == 15 { 64 } else { 0 };
            values.keep(format!("{index:02}"), json!("x".repeat(bytes - 2)));
        }
        let left = RESOLVED_STEP_MAX_BYTES - values.bytes();
        assert_eq!(left, 32);
        assert_eq!(values.admit("z", &json!("x".repeat(left - 3))), Ok(()));
        let refused = values.admit("z", &json!("x".repeat(left - 2))).unwrap_err();
        assert_eq!(refused.code, Code::VALUE_TOO_LARGE);
    }

    #[test]
    fn what_could_not_be_read_again_is_refused() {
        let deep = (0..PAYLOAD_MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        let refused = StepValues::default().admit("a", &deep).unwrap_err();
        assert_eq!(refused.code, Code::VALUE_UNAVAILABLE);
    }
}
