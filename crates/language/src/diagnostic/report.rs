//! Collecting findings while a source is walked.

use std::fmt;

use super::{Finding, Related, Severity, closest};
use crate::source::{Lines, Span};

/// More findings than this help nobody, and a hostile file could ask for a hundred thousand.
const MAX_FINDINGS: usize = 1_000;
/// Looking for similar names costs; only so many findings get a "did you mean".
const MAX_SUGGESTIONS: usize = 200;
/// Names that a help lists.
const MAX_LISTED: usize = 12;

/// A path into the tree, built on the stack while it is walked and written out only for a finding.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy)]
enum Segment<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    pub(crate) const ROOT: Path<'static> = Path { parent: None, segment: Segment::Root };

    pub(crate) const fn key(&'p self, key: &'p str) -> Path<'p> {
        Path { parent: Some(self), segment: Segment::Key(key) }
    }

    pub(crate) const fn index(&'p self, index: usize) -> Path<'p> {
        Path { parent: Some(self), segment: Segment::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            if !matches!(parent.segment, Segment::Root) {
                f.write_str(".")?;
            }
        }
        match self.segment {
            Segment::Root => Ok(()),
            Segment::Key(key) => f.write_str(key),
            Segment::Index(index) => write!(f, "{index}"),
        }
    }
}

/// The findings so far.
pub(crate) struct Report<'s> {
    pub(crate) lines: Lines<'s>,
    findings: Vec<Finding>,
    dropped: usize,
    /// Whether something that was dropped is an error.
    dropped_error: bool,
    suggestions: usize,
    /// Takes what is said about a finding that was dropped.
    overflow: Finding,
}

impl<'s> Report<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        let lines = Lines::new(source);
        let overflow = finding(&lines, "", Severity::Note, Span::default(), String::new());
        Self {
            lines,
            findings: Vec::new(),
            dropped: 0,
            dropped_error: false,
            suggestions: 0,
            overflow,
        }
    }

    pub(crate) const fn source(&self) -> &'s str {
        self.lines.text()
    }

    pub(crate) fn has_errors(&self) -> bool {
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        self.dropped_error || self.findings.iter().any(is_error)
    }

    pub(crate) const fn count(&self) -> usize {
        self.findings.len() + self.dropped
    }

    /// Forgets what was found since there were so many.
    pub(crate) fn forget_since(&mut self, count: usize) {
        self.findings.truncate(count);
        (self.dropped, self.dropped_error) = (0, false);
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: Span,
        path: &Path<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(code, Severity::Error, span, path, message.into())
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        path: &Path<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(code, Severity::Warning, span, path, message.into())
    }

    pub(crate) fn note(
        &mut self,
        code: &'static str,
        span: Span,
        path: &Path<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(code, Severity::Note, span, path, message.into())
    }

    fn add(
        &mut self,
        code: &'static str,
        severity: Severity,
        span: Span,
        path: &Path<'_>,
        message: String,
    ) -> &mut Finding {
        if self.findings.len() >= MAX_FINDINGS {
            self.dropped += 1;
            self.dropped_error |= severity == Severity::Error;
            return &mut self.overflow;
        }
        let mut found = finding(&self.lines, code, severity, span, message);
        found.path = path.to_string();
        self.findings.push(found);
        self.findings.last_mut().unwrap_or(&mut self.overflow)
    }

    /// The name among `known` that `name` may have been meant to be, as a sentence.
    pub(crate) fn did_you_mean<'n>(
        &mut self,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        self.suggestions += 1;
        if self.suggestions > MAX_SUGGESTIONS {
            return None;
        }
        closest(name, known).map(|found| format!("did you mean `{found}`?"))
    }

    /// What `name` may have been meant to be, or what there is instead.
    pub(crate) fn suggest<'n>(
        &mut self,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        let known: Vec<&str> = known.into_iter().collect();
        if let Some(meant) = self.did_you_mean(name, known.iter().copied()) {
            return Some(meant);
        }
        if known.is_empty() || self.suggestions > MAX_SUGGESTIONS {
            return None;
        }
        let listed: Vec<String> =
            known.iter().take(MAX_LISTED).map(|name| format!("`{name}`")).collect();
        let more = if known.len() > MAX_LISTED { ", …" } else { "" };
        Some(format!("known here: {}{more}", listed.join(", ")))
    }

    /// Everything, in the order of the source, notes last.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        if self.dropped > 0 {
            let message = format!("{} more findings are not shown", self.dropped);
            let span = Span::default();
            let severity = if self.dropped_error { Severity::Error } else { Severity::Note };
            let rest = finding(&self.lines, "TOO_MANY_FINDINGS", severity, span, message);
            self.findings.push(rest);
        }
        self.findings.sort_by_key(|found| {
            let is_last = found.severity == Severity::Note || found.code == "TOO_MANY_FINDINGS";
            (is_last, found.span.start, found.span.end, found.code)
        });
        self.findings
    }
}

fn finding(
    lines: &Lines<'_>,
    code: &'static str,
    severity: Severity,
    span: Span,
    message: String,
) -> Finding {
    let start = lines.clamp(span.start);
    let span = Span::new(start, lines.clamp(span.end).max(start));
    let ((line, column), (end_line, end_column)) = (lines.place(span.start), lines.place(span.end));
    let (related, help) = (Vec::new(), None);
    let path = String::new();
    Finding {
        code,
        severity,
        message,
        path,
        span,
        line,
        column,
        end_line,
        end_column,
        related,
        help,
    }
}

/// The two halves of an error that says what is wrong and, behind a colon, how to write it.
pub(crate) fn split_advice(error: &str) -> (&str, Option<&str>) {
    error.find(": write it").map_or((error, None), |colon| {
        let (wrong, advice) = error.split_at(colon);
        (wrong, advice.strip_prefix(": "))
    })
}

impl Finding {
    pub(crate) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(&mut self, help: Option<String>) -> &mut Self {
        if help.is_some() {
            self.help = help;
        }
        self
    }

    pub(crate) fn related(&mut self, span: Span, message: impl Into<String>) -> &mut Self {
        self.related.push(Related { span, message: message.into() });
        self
    }
}
