//! The strict loader: one pass over the parser's events that builds the tree and reports everything on its way.
//!
//! It keeps its own stack, so that no input can exhaust the thread's.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::event::{Event, Events, Failure, FailureKind, Style};
use super::scalar::{self, Reading};
use super::{
    Entry, KEY_MAX_CHARS, Node, NodeKind, SOURCE_MAX_CHARS, SOURCE_MAX_DEPTH, SOURCE_MAX_NODES,
    Scalar,
};
use crate::diagnostic::{Path, Report};
use crate::source::Span;

/// Loads a source. `None` if anything was reported.
pub(crate) fn load(report: &mut Report<'_>) -> Option<Node> {
    let source = report.source();
    let before = report.count();
    if source.chars().nth(SOURCE_MAX_CHARS).is_some() {
        let message = format!("a workflow has at most {SOURCE_MAX_CHARS} characters");
        let at = source.char_indices().nth(SOURCE_MAX_CHARS).map_or(0, |(at, _)| at);
        report
            .error("YAML_TOO_LONG", Span::new(at, source.len()), &Path::ROOT, message)
            .help("move long texts into the application");
        return None;
    }
    let mut loader = Loader::new(report);
    loader.run(source);
    let (root, documents, failed) = (loader.root.take(), loader.documents, loader.failed);
    let root = check_root(report, root, documents, failed, before);
    if report.count() == before { root } else { None }
}

/// A root that is no mapping makes everything else that was found beside the point.
fn check_root(
    report: &mut Report<'_>,
    root: Option<Node>,
    documents: usize,
    failed: bool,
    before: usize,
) -> Option<Node> {
    let is_mapping = root.as_ref().is_some_and(|root| root.as_map().is_some());
    if is_mapping || failed || documents > 1 {
        return root;
    }
    report.forget_since(before);
    let (span, what) =
        root.as_ref().map_or((Span::default(), "empty"), |root| (root.span, root.describe()));
    let message = format!("a workflow is a mapping; this file is {what}");
    report
        .error("YAML_ROOT", span, &Path::ROOT, message)
        .help("begin with `steps:` and list the steps below it");
    None
}

/// A list or mapping that is still open.
enum Frame {
    List { span: Span, items: Vec<Node> },
    Map { span: Span, entries: Vec<Entry>, keys: BTreeMap<String, Span>, key: Key },
}

/// What stands before the next value of a mapping.
enum Key {
    Absent,
    Present(String, Span),
    /// It was reported; its value is read and forgotten.
    Refused,
}

struct Loader<'r, 's> {
    report: &'r mut Report<'s>,
    stack: Vec<Frame>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    /// Open collections below the depth limit: read over.
    too_deep: usize,
    depth_reported: bool,
    failed: bool,
}

impl<'r, 's> Loader<'r, 's> {
    fn new(report: &'r mut Report<'s>) -> Self {
        Self {
            report,
            stack: Vec::new(),
            root: None,
            documents: 0,
            nodes: 0,
            too_deep: 0,
            depth_reported: false,
            failed: false,
        }
    }

    fn run(&mut self, source: &'s str) {
        for next in Events::new(source) {
            let goes_on = match next {
                Ok((event, span)) => self.meet(event, span),
                Err(failure) => {
                    self.fail(&failure);
                    false
                }
            };
            if !goes_on {
                self.failed = true;
                return;
            }
        }
    }

    fn fail(&mut self, failure: &Failure) {
        let source = self.report.source();
        let next = source[failure.at..].chars().next().map_or(0, char::len_utf8);
        let span = Span::new(failure.at, failure.at + next);
        match &failure.kind {
            FailureKind::TooDeep => self.report_depth(span),
            FailureKind::Directive => {
                let message = "YAML directives are not allowed";
                self.report
                    .error("YAML_DIRECTIVE", span, &Path::ROOT, message)
                    .help("remove the line: workflows are always YAML 1.2");
            }
            FailureKind::Syntax(info) => {
                let help = syntax_help(source, failure.at);
                let message = format!("this is not YAML: {info}");
                self.report.error("YAML_SYNTAX", span, &Path::ROOT, message).maybe_help(help);
            }
        }
    }

    /// Whether the pass goes on.
    fn meet(&mut self, event: Event<'s>, span: Span) -> bool {
        match event {
            Event::Document => return self.begin_document(span),
            Event::Anchor => {
                let message = "anchors are not allowed";
                self.report
                    .error("YAML_ANCHOR", span, &Path::ROOT, message)
                    .help("write the value out in each place where it is wanted");
            }
            Event::Alias => {
                let message = "aliases are not allowed";
                self.report
                    .error("YAML_ALIAS", span, &Path::ROOT, message)
                    .help("write the value out in each place where it is wanted");
                if self.expects_key() {
                    self.set_key(Key::Refused);
                    return true;
                }
                return self.scalar(span, Cow::Borrowed(""), Style::Quoted);
            }
            Event::Scalar { text, style, tag } => {
                self.refuse_tag(tag);
                return self.scalar(self.trimmed(span), text, style);
            }
            Event::ListStart { tag } => {
                self.refuse_tag(tag);
                return self.open(span, Frame::List { span, items: Vec::new() });
            }
            Event::MapStart { tag } => {
                self.refuse_tag(tag);
                let (entries, keys) = (Vec::new(), BTreeMap::new());
                return self.open(span, Frame::Map { span, entries, keys, key: Key::Absent });
            }
            Event::ListEnd | Event::MapEnd => self.close(span),
            Event::Other => {}
        }
        true
    }

    fn begin_document(&mut self, span: Span) -> bool {
        self.documents += 1;
        if self.documents > 1 {
            let message = "a file holds one workflow; this begins a second YAML document";
            self.report
                .error("YAML_DOCUMENTS", span, &Path::ROOT, message)
                .help("put each workflow into a file of its own");
        }
        self.documents == 1
    }

    fn refuse_tag(&mut self, tag: Option<Span>) {
        let Some(span) = tag else { return };
        let tag = &self.report.source()[span.range()];
        let message = format!("tags are not allowed: `{tag}`");
        let help = "`!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into \"${{ }}\"";
        self.report.error("YAML_TAG", span, &Path::ROOT, message).help(help);
    }

    /// Block scalars reach to where the next token begins; people see them end with their last line.
    fn trimmed(&self, span: Span) -> Span {
        let text = &self.report.source()[span.range()];
        Span::new(span.start, span.start + text.trim_end().len())
    }

    /// Counts a node. Whether there may be more.
    fn count(&mut self, span: Span) -> bool {
        self.nodes += 1;
        if self.nodes > SOURCE_MAX_NODES {
            let message = format!("a workflow has at most {SOURCE_MAX_NODES} values");
            self.report.error("YAML_TOO_MANY_NODES", span, &Path::ROOT, message);
        }
        self.nodes <= SOURCE_MAX_NODES
    }

    fn report_depth(&mut self, span: Span) {
        if self.depth_reported {
            return;
        }
        self.depth_reported = true;
        let message = format!("lists and mappings may be nested {SOURCE_MAX_DEPTH} deep");
        self.report.error("YAML_TOO_DEEP", span, &Path::ROOT, message);
    }

    fn open(&mut self, span: Span, frame: Frame) -> bool {
        if !self.count(span) {
            return false;
        }
        if self.too_deep > 0 || self.stack.len() >= SOURCE_MAX_DEPTH {
            self.report_depth(span);
            self.too_deep += 1;
            return true;
        }
        if self.expects_key() {
            self.refuse_key(span, "a list or mapping");
            // The key is read as a value of its own and forgotten; its value then follows.
        }
        self.stack.push(frame);
        true
    }

    fn close(&mut self, end: Span) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            if self.too_deep == 0 {
                self.put(Node { span: end, kind: NodeKind::List(Vec::new()) });
            }
            return;
        }
        let node = match self.stack.pop() {
            None => return,
            Some(Frame::List { span, items }) => {
                let last = items.last().map_or(span.end, |item| item.span.end);
                Node { span: closed(span, last, end), kind: NodeKind::List(items) }
            }
            Some(Frame::Map { span, entries, .. }) => {
                let last = entries.last().map_or(span.end, |entry| entry.value.span.end);
                let start = entries.first().map_or(span.start, |entry| entry.key_span.start);
                let span = Span::new(span.start.min(start), span.end);
                Node { span: closed(span, last, end), kind: NodeKind::Map(entries) }
            }
        };
        self.put(node);
    }

    fn scalar(&mut self, span: Span, text: Cow<'s, str>, style: Style) -> bool {
        if !self.count(span) {
            return false;
        }
        if self.too_deep > 0 {
            return true;
        }
        if self.expects_key() {
            self.key(span, text.into_owned(), style);
            return true;
        }
        let value = match style {
            Style::Quoted | Style::Block => serde_json::Value::String(text.clone().into_owned()),
            Style::Plain => self.plain(span, &text),
        };
        let scalar = Scalar { text: text.into_owned(), value };
        self.put(Node { span, kind: NodeKind::Scalar(scalar) });
        true
    }

    fn plain(&mut self, span: Span, text: &str) -> serde_json::Value {
        match scalar::read(text) {
            Reading::Clear(value) => return value,
            Reading::Ambiguous { message, help } => {
                self.report.error("YAML_AMBIGUOUS", span, &Path::ROOT, message).help(help);
            }
            Reading::Unusable { message, help } => {
                self.report.error("YAML_NUMBER", span, &Path::ROOT, message).help(help);
            }
        }
        serde_json::Value::Null
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame::Map { key: Key::Absent, .. }))
    }

    fn key(&mut self, span: Span, text: String, style: Style) {
        if text.chars().nth(KEY_MAX_CHARS).is_some() {
            let message = format!("a key has at most {KEY_MAX_CHARS} characters");
            self.report.error("YAML_KEY_TOO_LONG", span, &Path::ROOT, message);
            self.set_key(Key::Refused);
        } else if style == Style::Plain && text == "<<" {
            let message = "merge keys are not allowed";
            self.report
                .error("YAML_MERGE", span, &Path::ROOT, message)
                .help("write the keys out in each place where they are wanted");
            self.set_key(Key::Refused);
        } else if style == Style::Plain && scalar::is_no_text_key(&text) {
            let what = if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") };
            self.refuse_key(span, &what);
            self.set_key(Key::Refused);
        } else if surefoot_kernel_core::payload::is_reserved_key(&text) {
            let message = format!("no value can be kept under the key `{text}`");
            self.report
                .error("YAML_RESERVED_KEY", span, &Path::ROOT, message)
                .help("name it otherwise: readers of JSON take such an object for something else");
            self.set_key(Key::Refused);
        } else if let Some(first) = self.first_of(&text, span) {
            let message = format!("the key `{text}` is there twice");
            self.report
                .error("YAML_DUPLICATE_KEY", span, &Path::ROOT, message)
                .related(first, "first defined here")
                .help("remove one of the two");
            self.set_key(Key::Refused);
        } else {
            self.set_key(Key::Present(text, span));
        }
    }

    /// Where the key stood before, if it did; remembers it otherwise.
    fn first_of(&mut self, text: &str, span: Span) -> Option<Span> {
        let Some(Frame::Map { keys, .. }) = self.stack.last_mut() else { return None };
        if let Some(first) = keys.get(text) {
            return Some(*first);
        }
        keys.insert(text.to_owned(), span);
        None
    }

    fn refuse_key(&mut self, span: Span, what: &str) {
        let message = format!("a key is a text; this is {what}");
        self.report
            .error("YAML_KEY", span, &Path::ROOT, message)
            .help("put the key in quotes if it is a text");
        self.set_key(Key::Absent);
    }

    fn set_key(&mut self, new: Key) {
        if let Some(Frame::Map { key, .. }) = self.stack.last_mut() {
            *key = new;
        }
    }

    /// Puts a finished node where it belongs.
    fn put(&mut self, node: Node) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::List { items, .. }) => items.push(node),
            Some(Frame::Map { entries, key, .. }) => {
                match std::mem::replace(key, Key::Absent) {
                    Key::Present(name, key_span) => {
                        entries.push(Entry { key: name, key_span, value: node });
                    }
                    Key::Refused => {}
                    // A list or mapping as key, reported when it was opened: now its value follows.
                    Key::Absent => *key = Key::Refused,
                }
            }
        }
    }
}

/// A flow collection ends with its bracket; a block collection ends with its last item.
fn closed(start: Span, last: usize, end: Span) -> Span {
    let is_flow = end.end > end.start;
    Span::new(start.start, if is_flow { end.end } else { last.max(start.start) })
}

/// Most syntax errors of authors come from expressions that a plain scalar cannot hold.
fn syntax_help(source: &str, at: usize) -> Option<String> {
    let line_start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = source[at..].find('\n').map_or(source.len(), |newline| at + newline);
    let line = &source[line_start..line_end];
    if line.contains("${{") {
        return Some("put the value in quotes: \"${{ ... }}\"".to_owned());
    }
    line.starts_with('\t').then(|| "indent with spaces, not with tabs".to_owned())
}
