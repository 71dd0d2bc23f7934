//! Findings: what is wrong with a source, exactly where, and what cures it.

mod codes;
mod render;
mod report;
mod suggest;

use std::fmt;

use serde::Serialize;

use crate::source::Span;

pub use codes::FINDING_CODES;
pub(crate) use report::{Path, Report, split_advice};
pub(crate) use suggest::closest;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// No plan comes of it.
    Error,
    /// A plan comes of it that hardly does what its author meant.
    Warning,
    /// Good to know.
    Note,
}

/// A second place that belongs to a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Where.
    pub span: Span,
    /// What is there.
    pub message: String,
}

/// One thing that is wrong with a source. As JSON it has the shape that `surefoot check --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Stable, in capitals.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What, in a sentence.
    pub message: String,
    /// Where in the tree, as in `steps.0.then.1.chargeCard.amount`; empty for the whole file.
    pub path: String,
    /// Where in the source, in bytes.
    #[serde(skip)]
    pub span: Span,
    /// The first line, from 1.
    pub line: usize,
    /// The first column, from 1, in characters.
    pub column: usize,
    /// The last line, from 1.
    pub end_line: usize,
    /// The column after the last character, from 1, in characters.
    pub end_column: usize,
    /// Other places that belong to it, such as the first of two equal keys.
    #[serde(skip)]
    pub related: Vec<Related>,
    /// What cures it.
    pub help: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.line, self.column, self.code, self.message)
    }
}

/// All findings of one source, in its order, together with the source: as an error it shows excerpts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    source: String,
    list: Vec<Finding>,
}

impl Findings {
    pub(crate) fn new(source: &str, list: Vec<Finding>) -> Self {
        Self { source: source.to_owned(), list }
    }

    /// Whether no finding is an error.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.list.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// Whether there is nothing to say at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The findings in the order of the source.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// The findings in the order of the source.
    #[must_use]
    pub fn as_slice(&self) -> &[Finding] {
        &self.list
    }

    /// Without the source.
    #[must_use]
    pub fn into_vec(self) -> Vec<Finding> {
        self.list
    }

    /// `{"ok": bool, "findings": [...]}`: what `surefoot check --json` prints.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "ok": self.is_ok(), "findings": self.list })
    }

    /// Each finding as an excerpt of the source. `file` stands before line and column; `colour` adds terminal
    /// colours.
    #[must_use]
    pub fn render(&self, file: &str, colour: bool) -> String {
        render::render(&self.source, &self.list, file, colour)
    }
}

impl<'f> IntoIterator for &'f Findings {
    type Item = &'f Finding;
    type IntoIter = std::slice::Iter<'f, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render("workflow.yaml", false))
    }
}

impl std::error::Error for Findings {}
