//! The section `inputs`.

use serde_json::Value;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{Input, InputType};

use super::Compiler;
use super::fields::{Fields, quoting};
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::Path;
use crate::manifest::is_name;
use crate::source::Span;
use crate::yaml::{Entry, Node};

const INPUT_KEYS: &[&str] = &["type", "required", "default", "label"];

impl Compiler<'_> {
    pub(super) fn compile_inputs(&mut self, section: &Entry) {
        let path = Path::ROOT;
        let path = path.key("inputs");
        let Some(fields) = self.mapping(&section.value, &path, "`inputs`") else { return };
        let limit = usize::try_from(self.limits.inputs).unwrap_or(usize::MAX);
        if let Some(over) = fields.entries().get(limit) {
            let message = format!("a workflow has at most {limit} inputs");
            self.report.error("LIMIT_INPUTS", over.key_span, &path, message);
        }
        for entry in fields.entries() {
            self.compile_input(entry, &path.key(&entry.key));
        }
    }

    fn compile_input(&mut self, entry: &Entry, path: &Path<'_>) {
        if !is_name(&entry.key) {
            let message = format!("`{}` is no name for an input", entry.key);
            self.report
                .error("NAME_INVALID", entry.key_span, path, message)
                .help("a name has letters, digits and `_`, and does not start with a digit");
        }
        // A reference to an input that is defined wrongly is not another mistake.
        self.input_shapes.insert(entry.key.clone(), Shape::ANY);
        let Some(fields) = self.mapping(&entry.value, path, "an input") else { return };
        let kind = self.input_type(&fields, entry.key_span, path);
        if let Some(kind) = kind {
            let shape = Shape::Kinds(Kinds::of_input(kind));
            self.input_shapes.insert(entry.key.clone(), shape);
        }
        let required = fields
            .get("required")
            .and_then(|required| self.bool(&required.value, &path.key("required"), "`required`"));
        let default = fields
            .get("default")
            .and_then(|default| self.default_value(&default.value, kind, &path.key("default")));
        let label = fields
            .get("label")
            .and_then(|label| self.text(&label.value, &path.key("label"), "`label`"));
        if let (Some(true), Some(default)) = (required, fields.get("default")) {
            let message = "an input that is required has no use for a default";
            self.report
                .error("REQUIRED_AND_DEFAULT", default.key_span, path, message)
                .help("remove `required` or `default`");
        }
        if let Some(kind) = kind {
            let (required, label) = (required.unwrap_or(false), label.map(str::to_owned));
            self.inputs.insert(entry.key.clone(), Input { kind, required, default, label });
        }
    }

    fn input_type(&mut self, fields: &Fields<'_>, at: Span, path: &Path<'_>) -> Option<InputType> {
        let node = self.required(fields, "type", at, path);
        let name = node.and_then(|node| {
            let path = path.key("type");
            let name = self.text(node, &path, "`type`");
            name.map(|name| (name, node))
        });
        let built_in = |name: &str| InputType::ALL.iter().find(|known| known.as_str() == name);
        let found = name.and_then(|(name, _)| built_in(name)).copied();
        // An application's own kind brings keys of its own.
        if found.is_some() || name.is_none() {
            self.refuse_unknown(fields, INPUT_KEYS, path);
        }
        if let (None, Some((name, node))) = (found, name) {
            self.other_type(name, node, &path.key("type"));
        }
        found
    }

    fn other_type(&mut self, name: &str, node: &Node, path: &Path<'_>) {
        let Some(manifest) = self.manifest.filter(|_| !self.is_open) else { return };
        if manifest.input(name).is_some() {
            let message = format!("the application's input kind `{name}` is not supported yet");
            self.report
                .error("NOT_SUPPORTED_YET", node.span, path, message)
                .help("use one of the built-in types, such as `text` or `object`");
            return;
        }
        let built_in = InputType::ALL.iter().map(|known| known.as_str());
        let help = self.report.did_you_mean(name, built_in);
        let known: Vec<&str> = InputType::ALL.iter().map(|known| known.as_str()).collect();
        let help = help.unwrap_or_else(|| format!("the types are {}", known.join(", ")));
        let message = format!("there is no input type `{name}`");
        self.report.error("UNKNOWN_INPUT_TYPE", node.span, path, message).help(help);
    }

    fn default_value(
        &mut self,
        node: &Node,
        kind: Option<InputType>,
        path: &Path<'_>,
    ) -> Option<Value> {
        let Template::Literal(value) = self.slot(node, path)?.template else {
            let message = "a default cannot be computed";
            self.report
                .error("EXPRESSION_NOT_ALLOWED", node.span, path, message)
                .help("leave the default out and use `inputs.name ?? ...` where it is wanted");
            return None;
        };
        self.check_input_value(node, &value, kind?, path);
        Some(value)
    }

    /// Reports a literal that is not of an input's type.
    pub(super) fn check_input_value(
        &mut self,
        node: &Node,
        value: &Value,
        kind: InputType,
        path: &Path<'_>,
    ) {
        if kind.accepts(value) {
            return;
        }
        let wanted = describe(kind);
        let message = format!("the input wants {wanted}; this is {}", node.describe());
        let wants_text = matches!(kind, InputType::Text | InputType::Time);
        let help = quoting(node).filter(|_| wants_text);
        self.report.error("WRONG_TYPE", node.span, path, message).maybe_help(help);
    }
}

/// An input's type, for people.
pub(super) const fn describe(kind: InputType) -> &'static str {
    match kind {
        InputType::Text => "a text",
        InputType::Number => "a number",
        InputType::Integer => "a whole number",
        InputType::Bool => "a bool",
        InputType::Time => "a time such as \"2026-11-29T16:00:00Z\"",
        InputType::List => "a list",
        InputType::Object => "an object",
    }
}
