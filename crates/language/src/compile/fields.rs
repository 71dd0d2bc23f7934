//! Reading the keys of a mapping that has a fixed set of them.

use super::Compiler;
use crate::diagnostic::Path;
use crate::source::Span;
use crate::yaml::{Entry, Node};

/// A mapping whose keys are known.
#[derive(Clone, Copy)]
pub(super) struct Fields<'n> {
    pub(super) span: Span,
    entries: &'n [Entry],
}

impl<'n> Fields<'n> {
    pub(super) const fn new(span: Span, entries: &'n [Entry]) -> Self {
        Self { span, entries }
    }

    pub(super) const fn entries(&self) -> &'n [Entry] {
        self.entries
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Compiler<'_> {
    /// The node as a mapping; `what` names it in the finding if it is none.
    pub(super) fn mapping<'n>(
        &mut self,
        node: &'n Node,
        path: &Path<'_>,
        what: &str,
    ) -> Option<Fields<'n>> {
        let entries = node.as_map();
        if entries.is_none() {
            let message = format!("{what} is a mapping; this is {}", node.describe());
            let found = self.report.error("NOT_A_MAPPING", node.span, path, message);
            if node.describe() == "nothing" {
                found.help("write `{}` for an empty mapping");
            }
        }
        entries.map(|entries| Fields::new(node.span, entries))
    }

    /// Reports every key that is not among `known`.
    pub(super) fn refuse_unknown(&mut self, fields: &Fields<'_>, known: &[&str], path: &Path<'_>) {
        for entry in fields.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            self.unknown_key(entry, known, path);
        }
    }

    pub(super) fn unknown_key(&mut self, entry: &Entry, known: &[&str], path: &Path<'_>) {
        let help = self.report.suggest(&entry.key, known.iter().copied());
        let message = format!("unknown key `{}`", entry.key);
        let path = path.key(&entry.key);
        self.report.error("UNKNOWN_KEY", entry.key_span, &path, message).maybe_help(help);
    }

    /// A key that has to be there; reported at `at`, the nearest place that exists.
    pub(super) fn required<'n>(
        &mut self,
        fields: &Fields<'n>,
        key: &str,
        at: Span,
        path: &Path<'_>,
    ) -> Option<&'n Node> {
        let found = fields.get(key).map(|entry| &entry.value);
        if found.is_none() {
            self.report.error("MISSING_KEY", at, path, format!("the key `{key}` is missing"));
        }
        found
    }

    /// A plain text without expressions.
    pub(super) fn text<'n>(
        &mut self,
        node: &'n Node,
        path: &Path<'_>,
        what: &str,
    ) -> Option<&'n str> {
        let text = node.as_scalar().filter(|scalar| scalar.value.is_string());
        let Some(scalar) = text else {
            let message = format!("{what} is a text; this is {}", node.describe());
            let help = quoting(node);
            self.report.error("NOT_A_TEXT", node.span, path, message).maybe_help(help);
            return None;
        };
        if scalar.text.contains("${{") {
            let message = format!("{what} cannot be computed");
            self.report
                .error("EXPRESSION_NOT_ALLOWED", node.span, path, message)
                .help("write it out: it has to be known before any run");
            return None;
        }
        Some(&scalar.text)
    }

    /// `true` or `false`, without expressions.
    pub(super) fn bool(&mut self, node: &Node, path: &Path<'_>, what: &str) -> Option<bool> {
        let value = node.as_scalar().and_then(|scalar| scalar.value.as_bool());
        if value.is_none() {
            let message = format!("{what} is `true` or `false`; this is {}", node.describe());
            self.report.error("NOT_A_BOOL", node.span, path, message);
        }
        value
    }
}

/// "write it in quotes", for a scalar that reads as something other than a text.
pub(crate) fn quoting(node: &Node) -> Option<String> {
    let scalar =
        node.as_scalar().filter(|scalar| !scalar.value.is_string() && !scalar.text.is_empty())?;
    Some(format!("write \"{}\" in quotes if it is a text", scalar.text))
}
