//! What cargo-mutants found, out of its `outcomes.json`.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;

/// A change that was tried: where, by file and function so that it stays valid while lines move, and what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mutant {
    pub(super) place: String,
    pub(super) mutation: String,
}

impl Mutant {
    pub(super) fn new(file: &str, function: Option<&str>, mutation: &str) -> Self {
        let place = function.map_or_else(|| file.to_owned(), |name| format!("{file}: {name}"));
        Self { place, mutation: mutation.to_owned() }
    }

    /// The file alone.
    pub(super) fn file(&self) -> &str {
        self.place.split_once(": ").map_or(&self.place, |(file, _)| file)
    }
}

/// The result of a pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcomes {
    pub(super) caught: usize,
    pub(super) missed: Vec<Mutant>,
    /// Tests that did not end: noticed, but not by an assertion.
    pub(super) timed_out: usize,
    /// Changes that do not compile.
    pub(super) unviable: usize,
    /// Every file in which something was changed.
    pub(super) files: BTreeSet<String>,
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caught, missed, timed_out, unviable, files } = self;
        write!(
            f,
            "{caught} of {} mutants caught in {} files; besides, {timed_out} ran out of time and \
             {unviable} did not compile",
            caught + missed.len(),
            files.len()
        )
    }
}

pub(super) fn read(path: &Path) -> Result<Outcomes, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))?;
    parse(&text).map_err(|problem| Failure::new(format!("{}: {problem}", path.display())))
}

fn parse(text: &str) -> Result<Outcomes, String> {
    let report: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let listed = report["outcomes"].as_array().ok_or("no list of outcomes")?;
    let mut outcomes = Outcomes::default();
    for outcome in listed {
        // The first one is the unchanged core, which is a text and no object.
        let Some(change) = outcome["scenario"].get("Mutant") else { continue };
        let mutant = mutant(change).ok_or_else(|| format!("no mutant: {change}"))?;
        outcomes.files.insert(mutant.file().to_owned());
        match outcome["summary"].as_str() {
            Some("CaughtMutant") => outcomes.caught += 1,
            Some("MissedMutant") => outcomes.missed.push(mutant),
            Some("Timeout") => outcomes.timed_out += 1,
            Some("Unviable") => outcomes.unviable += 1,
            other => return Err(format!("`{}` ended as {other:?}", mutant.mutation)),
        }
    }
    outcomes.missed.sort_unstable();
    Ok(outcomes)
}

/// The name is `FILE:LINE:COLUMN: MUTATION`.
fn mutant(change: &Value) -> Option<Mutant> {
    let file = change["file"].as_str()?;
    let place = change["name"].as_str()?.strip_prefix(file)?.strip_prefix(':')?;
    let (_, mutation) = place.split_once(": ")?;
    Some(Mutant::new(file, change["function"]["function_name"].as_str(), mutation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(line: u32, function: &str, summary: &str) -> Value {
        serde_json::json!({
            "scenario": { "Mutant": {
                "name": format!("src/a.rs:{line}:9: replace || with && in f"),
                "file": "src/a.rs",
                "function": serde_json::from_str::<Value>(function).unwrap(),
            } },
            "summary": summary,
        })
    }

    #[test]
    fn each_outcome_is_counted_as_what_it_is() {
        let f = r#"{ "function_name": "f" }"#;
        let report = serde_json::json!({ "outcomes": [
            { "scenario": "Baseline", "summary": "Success" },
            outcome(1, f, "CaughtMutant"),
            outcome(2, f, "MissedMutant"),
            outcome(3, "null", "MissedMutant"),
            outcome(4, f, "Timeout"),
            outcome(5, f, "Unviable"),
        ] });
        let expected = Outcomes {
            caught: 1,
            missed: vec![
                Mutant::new("src/a.rs", None, "replace || with && in f"),
                Mutant::new("src/a.rs", Some("f"), "replace || with && in f"),
            ],
            timed_out: 1,
            unviable: 1,
            files: BTreeSet::from(["src/a.rs".to_owned()]),
        };
        assert_eq!(parse(&report.to_string()), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_not_counted_as_caught() {
        let report = serde_json::json!({ "outcomes": [outcome(1, "null", "Failure")] });
        assert!(parse(&report.to_string()).is_err());
        assert!(parse("{}").is_err());
    }
}
