//! What the last run of the tests says: the report that cargo-nextest writes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A test that passed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Passed {
    /// Its package and binary: `surefoot-worker::it`, or the package alone for the tests in a library.
    pub(super) suite: String,
    /// Its path in there: `leases::a_lease_is_renewed`.
    pub(super) name: String,
}

impl Passed {
    /// The package of its binary.
    pub(super) fn package(&self) -> &str {
        self.suite.split("::").next().unwrap_or_default()
    }
}

/// Where the report of the profile that is in use now is written.
pub(super) fn place(target: &Path) -> PathBuf {
    let profile = if std::env::var_os("CI").is_some() { "ci" } else { "default" };
    target.join("nextest").join(profile).join("junit.xml")
}

/// The tests that passed.
pub(super) fn read(place: &Path) -> Result<Vec<Passed>, Failure> {
    let text = fs::read_to_string(place).map_err(|error| {
        let place = place.display();
        Failure::new(format!(
            "there is no report of the tests ({place}: {error}); run `cargo xtask test` first"
        ))
    })?;
    Ok(parse(&text))
}

/// The report is XML of one known writer: a `testcase` has its names as attributes, and what did not pass a child that
/// says so.
fn parse(text: &str) -> Vec<Passed> {
    let mut passed = Vec::new();
    for case in text.split("<testcase ").skip(1) {
        let Some((head, rest)) = case.split_once('>') else { continue };
        let inside = if head.ends_with('/') { "" } else { rest };
        let inside = inside.split("</testcase>").next().unwrap_or_default();
        let failed = ["<failure", "<error", "<skipped"].iter().any(|tag| inside.contains(tag));
        if let (Some(suite), Some(name), false) =
            (attribute(head, "classname"), attribute(head, "name"), failed)
        {
            passed.push(Passed { suite, name });
        }
    }
    passed
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let (_, rest) = format!(" {head}").split_once(&format!(" {name}=\"")).map(own)?;
    let value = rest.split('"').next()?;
    Some(value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

fn own((before, after): (&str, &str)) -> (String, String) {
    (before.to_owned(), after.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_told_from_what_failed() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0">
    <testsuite name="surefoot-worker::it" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="leases::one" classname="surefoot-worker::it" timestamp="t" time="0.1">
        </testcase>
        <testcase name="leases::two" classname="surefoot-worker::it" timestamp="t" time="0.1">
            <failure type="test failure">panicked</failure>
        </testcase>
        <testcase name="pace::three" classname="surefoot-worker" timestamp="t" time="0.1"/>
    </testsuite>
</testsuites>"#;
        let passed = parse(text);
        let shown: Vec<_> =
            passed.iter().map(|test| (test.suite.as_str(), test.name.as_str())).collect();
        assert_eq!(
            shown,
            [("surefoot-worker::it", "leases::one"), ("surefoot-worker", "pace::three")]
        );
        assert_eq!(passed[0].package(), "surefoot-worker");
    }

    #[test]
    fn without_a_run_it_says_what_to_do() {
        let failure = read(Path::new("no-such-report.xml")).unwrap_err().to_string();
        assert!(failure.ends_with("run `cargo xtask test` first"), "{failure}");
    }
}
