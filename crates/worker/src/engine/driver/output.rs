//! What an output must keep to, whatever its action promises.

use serde_json::Value;
use surefoot_kernel_core::payload::{self, STORED_TEXT_MAX_BYTES};
use surefoot_kernel_core::{Code, Failure, OUTPUT_MAX_BYTES};
use surefoot_language::{Action, SchemaFinding};

use crate::engine::panics::caught_call;

/// An output that cannot be kept: why, and its first 8 KiB.
#[derive(Debug)]
pub(crate) struct Unkept {
    pub(crate) error: Failure,
    pub(crate) evidence: String,
}

/// Judges an output by size, nesting and schema. A schema is foreign code too, in a way: a defect in judging must not
/// end the worker. And the effect has happened: that its output cannot be judged is no failure of it.
pub(super) fn judged<Tx>(action: &Action<Tx>, output: &Value) -> Result<(), Box<Unkept>> {
    judged_by(|output| action.validate_output(output), output)
}

/// The same by what judges the schema.
pub(crate) fn judged_by(
    validate: impl Fn(&Value) -> Result<(), Vec<SchemaFinding>>,
    output: &Value,
) -> Result<(), Box<Unkept>> {
    unless_broken(output, || judge(validate, output))
}

fn unless_broken(
    output: &Value,
    judge: impl FnOnce() -> Result<(), Box<Unkept>>,
) -> Result<(), Box<Unkept>> {
    caught_call(judge).unwrap_or_else(|broken| {
        let text = format!("the output cannot be judged: {}", broken.0);
        let error = Failure::new(Code::OUTPUT_INVALID, text);
        Err(Box::new(Unkept { error, evidence: evidence(output) }))
    })
}

fn judge(
    validate: impl Fn(&Value) -> Result<(), Vec<SchemaFinding>>,
    output: &Value,
) -> Result<(), Box<Unkept>> {
    let unkept = |code, text: String| {
        Box::new(Unkept { error: Failure::new(code, text), evidence: evidence(output) })
    };
    // An escape makes six bytes of one at most: what is far below the limit is not written just to be measured.
    let bytes = if weight(output) > OUTPUT_MAX_BYTES / 6 { json_len(output) } else { 0 };
    if bytes > OUTPUT_MAX_BYTES {
        let text = format!("the output has {bytes} bytes of JSON, the limit is {OUTPUT_MAX_BYTES}");
        return Err(unkept(Code::OUTPUT_TOO_LARGE, text));
    }
    if let Err(error) = payload::check(output) {
        let place = if error.pointer.is_empty() { "/" } else { &*error.pointer };
        let text = format!("the output cannot be kept: at `{place}`, {}", error.rule);
        return Err(unkept(Code::OUTPUT_INVALID, text));
    }
    validate(output).map_err(|findings| {
        let text = format!("the output does not fit the action's schema: {}", listed(&findings));
        unkept(Code::OUTPUT_INVALID, text)
    })
}

/// Findings of a schema as one sentence.
pub(super) fn listed(findings: &[SchemaFinding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The first 8 KiB of a value's JSON, without writing the rest.
pub(super) fn evidence(value: &Value) -> String {
    let mut start = Start(Vec::new());
    // The writer refuses what is over its limit, which ends the writing.
    let _ = serde_json::to_writer(&mut start, value);
    match String::from_utf8(start.0) {
        Ok(text) => text,
        Err(cut) => {
            let valid = cut.utf8_error().valid_up_to();
            let mut bytes = cut.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }
    }
}

/// Bytes of compact JSON, without keeping them.
fn json_len(value: &Value) -> usize {
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// About how many bytes of JSON a value is, its escapes not counted. Much cheaper than to write it.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 20,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| key.len() + weight(value) + 4;
            members.iter().map(member).sum::<usize>() + 2
        }
    }
}

struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Start(Vec<u8>);

impl std::io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = STORED_TEXT_MAX_BYTES.saturating_sub(self.0.len());
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn evidence_is_the_start_cut_between_characters() {
        assert_eq!(evidence(&json!({"a": [1, "x"]})), r#"{"a":[1,"x"]}"#);
        let long = evidence(&json!("ä".repeat(1_000_000)));
        assert!(long.len() <= STORED_TEXT_MAX_BYTES && long.len() > STORED_TEXT_MAX_BYTES - 2);
        assert!(long.starts_with("\"ä") && long.ends_with('ä'));
    }

    #[test]
    fn an_output_that_cannot_be_judged_is_refused_and_kept_as_evidence() {
        let unkept = unless_broken(&json!("receipt 7"), || panic!("odd schema")).unwrap_err();
        assert_eq!(unkept.error.code, Code::OUTPUT_INVALID);
        assert!(unkept.error.message.contains("odd schema"), "{}", unkept.error.message);
        assert_eq!(unkept.evidence, r#""receipt 7""#);
    }

    #[test]
    fn an_output_that_could_not_be_read_back_is_refused_with_its_place() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let odd = json!({ "a": { "$serde_json::private::RawValue": "[1]" } });
        for (output, says) in [(deep, "nested deeper than"), (odd, "at `/a/$serde_json")] {
            let unkept = judge(|_| Ok(()), &output).unwrap_err();
            assert_eq!(unkept.error.code, Code::OUTPUT_INVALID);
            assert!(unkept.error.message.contains(says), "{}", unkept.error.message);
        }
    }

    #[test]
    fn a_weight_is_never_far_below_the_length() {
        for value in [json!(null), json!({"a": [1, 2.5, true], "b": {}}), json!("x".repeat(1_000))]
        {
            let (weight, length) = (weight(&value), value.to_string().len());
            assert!(weight >= length && weight <= 6 * length, "{weight} {length}");
        }
    }

    #[test]
    fn lengths_are_those_of_compact_json() {
        for value in [json!(null), json!({"a": [1, 2.5, "ä\n"]}), json!("x")] {
            assert_eq!(json_len(&value), value.to_string().len());
        }
    }
}
