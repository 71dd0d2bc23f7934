//! The steps of the language that call nothing: `setVariable`, `succeed`, `fail`, `delay`, `waitFor`.

use std::collections::BTreeMap;

use serde_json::Value;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{Delay, StepKind};
use surefoot_kernel_core::{Code, Micros, Timestamp};

use super::Compiler;
use super::fields::{Fields, quoting};
use super::steps::{Outcome, Site};
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::{Path, split_advice};
use crate::yaml::Node;

/// Characters of a message, as it is written.
pub(super) const MESSAGE_MAX_CHARS: usize = 1_000;

/// The two ways to write a delay.
const DELAY_SHAPES: &str =
    "write `delay: { for: 2h }` or `delay: { until: \"2026-11-29T16:00:00Z\" }`";

impl<'a> Compiler<'a> {
    /// The mapping below a step's key, with the keys that it may have.
    pub(super) fn own_fields<'n>(
        &mut self,
        site: &Site<'n, '_>,
        known: &[&str],
        path: &Path<'_>,
    ) -> Option<Fields<'n>> {
        let what = format!("the value of `{}`", site.head.key);
        let node = &site.head.value;
        if let Some(help) = meant(&site.head.key, node) {
            let message = format!("{what} is a mapping; this is {}", node.describe());
            self.report.error("NOT_A_MAPPING", node.span, path, message).help(help);
            return None;
        }
        let fields = self.mapping(node, path, &what)?;
        self.refuse_unknown(&fields, known, path);
        Some(fields)
    }

    pub(super) fn set_variable_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label"]);
        let path = site.path.key("setVariable");
        let fields = self.own_fields(site, &["name", "value"], &path)?;
        let at = site.head.key_span;
        let value = self.required(&fields, "value", at, &path);
        let value = value.and_then(|node| self.slot(node, &path.key("value")));
        let shape = value.as_ref().map_or(Shape::ANY, |value| value.shape.clone());
        let name = self.required(&fields, "name", at, &path);
        let name = name.and_then(|node| {
            let path = path.key("name");
            self.bind_name(node, &path, "`name`", shape)
        });
        let (name, value) = (name?, value?.template);
        Some(Outcome { kind: Some(StepKind::SetVariable { name, value }), output: Shape::ANY })
    }

    pub(super) fn succeed_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label"]);
        let path = site.path.key("succeed");
        let fields = self.own_fields(site, &["message"], &path)?;
        let message = self.message(site, &fields, &path)?;
        Some(Outcome { kind: Some(StepKind::Succeed { message }), output: Shape::ANY })
    }

    pub(super) fn fail_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label"]);
        let path = site.path.key("fail");
        let fields = self.own_fields(site, &["message", "code"], &path)?;
        let message = self.message(site, &fields, &path);
        let code = fields.get("code").map(|entry| self.code(&entry.value, &path.key("code")));
        let (message, code) = (message?, code.map_or(Some(None), |code| code.map(Some))?);
        Some(Outcome { kind: Some(StepKind::Fail { message, code }), output: Shape::ANY })
    }

    fn message(
        &mut self,
        site: &Site<'_, '_>,
        fields: &Fields<'_>,
        path: &Path<'_>,
    ) -> Option<Template> {
        let node = self.required(fields, "message", site.head.key_span, path)?;
        let path = path.key("message");
        let written = node.as_scalar().map_or(0, |scalar| scalar.text.chars().count());
        if written > MESSAGE_MAX_CHARS {
            let message =
                format!("a message has at most {MESSAGE_MAX_CHARS} characters; this has {written}");
            self.report.error("MESSAGE_TOO_LONG", node.span, &path, message);
        }
        self.text_slot(node, &path, "a message")
    }

    fn code(&mut self, node: &Node, path: &Path<'_>) -> Option<Code> {
        let text = self.text(node, path, "`code`")?;
        if !Code::is_well_formed(text) {
            let message = "a code has letters, digits, `_`, `-` and `.`, and at most 100 of them";
            self.report
                .error("CODE_INVALID", node.span, path, message)
                .help("write it like `OUT_OF_STOCK`");
            return None;
        }
        Some(Code::from(text.to_owned()))
    }

    pub(super) fn delay_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label", "saveAs"]);
        let path = site.path.key("delay");
        let fields = self.own_fields(site, &["for", "until"], &path)?;
        let delay = match (fields.get("for"), fields.get("until")) {
            (Some(span), None) => Delay::For(self.duration(&span.value, &path.key("for"), true)?),
            (None, Some(until)) => Delay::Until(self.until(&until.value, &path.key("until"))?),
            (Some(_), Some(_)) | (None, None) => {
                let message = "`delay` has either `for` or `until`";
                self.report
                    .error("DELAY_SHAPE", site.head.key_span, &path, message)
                    .help(DELAY_SHAPES);
                return None;
            }
        };
        Some(Outcome { kind: Some(StepKind::Delay(delay)), output: Shape::Kinds(Kinds::NULL) })
    }

    fn until(&mut self, node: &Node, path: &Path<'_>) -> Option<Template> {
        let until = self.text_slot(node, path, "`until`")?;
        if let Template::Literal(Value::String(text)) = &until
            && let Err(error) = text.parse::<Timestamp>()
        {
            let error = error.to_string();
            let (message, help) = split_advice(&error);
            let help = help.map(str::to_owned);
            self.report.error("NOT_A_TIME", node.span, path, message).maybe_help(help);
            return None;
        }
        Some(until)
    }

    pub(super) fn wait_for_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label", "saveAs"]);
        let path = site.path.key("waitFor");
        let fields = self.own_fields(site, &["kind", "key", "timeout"], &path)?;
        let signal = self.signal_part(site, &fields, "kind", &path);
        let key = self.signal_part(site, &fields, "key", &path);
        let timeout = fields
            .get("timeout")
            .map(|entry| self.duration(&entry.value, &path.key("timeout"), false));
        let timeout = timeout.map_or(Some(None), |timeout| timeout.map(Some));
        let (signal, key, timeout) = (signal?, key?, timeout?);
        let members = [("signaled", Kinds::BOOL), ("data", Kinds::ANY)];
        let members = members.map(|(name, kinds)| (name.to_owned(), Shape::Kinds(kinds)));
        let output = Shape::Members(BTreeMap::from(members));
        Some(Outcome { kind: Some(StepKind::WaitFor { signal, key, timeout }), output })
    }

    fn signal_part(
        &mut self,
        site: &Site<'_, '_>,
        fields: &Fields<'_>,
        key: &str,
        path: &Path<'_>,
    ) -> Option<Template> {
        let node = self.required(fields, key, site.head.key_span, path)?;
        let path = path.key(key);
        let template = self.text_slot(node, &path, &format!("`{key}`"))?;
        if matches!(&template, Template::Literal(Value::String(text)) if text.trim().is_empty()) {
            let message = format!("`{key}` may not be blank");
            self.report.error("BLANK", node.span, &path, message);
            return None;
        }
        Some(template)
    }

    /// A slot whose value has to be a text.
    pub(super) fn text_slot(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        what: &str,
    ) -> Option<Template> {
        let slot = self.slot(node, path)?;
        if !slot.shape.kinds().overlaps(Kinds::TEXT) {
            let message = format!("{what} is a text; this is {}", slot.shape.kinds());
            let is_literal = matches!(slot.template, Template::Literal(_));
            let help = quoting(node).filter(|_| is_literal);
            let help = help.or_else(|| (!is_literal).then(|| "use `string(x)`".to_owned()));
            self.report.error("WRONG_TYPE", node.span, path, message).maybe_help(help);
            return None;
        }
        Some(slot.template)
    }

    /// A duration; zero only where it means something.
    pub(super) fn duration(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        may_be_zero: bool,
    ) -> Option<Micros> {
        let help = "write it like `500ms`, `30s`, `5m`, `2h` or `7d`";
        let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
        if text.contains("${{") {
            let message = "a duration cannot be computed";
            self.report.error("EXPRESSION_NOT_ALLOWED", node.span, path, message).help(help);
            return None;
        }
        let parsed = match text.parse::<Micros>() {
            Ok(zero) if zero == Micros::ZERO && !may_be_zero => {
                Err("a timeout of nothing would always pass".to_owned())
            }
            parsed => parsed.map_err(|error| error.to_string()),
        };
        match parsed {
            Ok(span) => Some(span),
            Err(message) => {
                let (message, help) = split_advice(&message);
                let help = help.map(str::to_owned);
                self.report.error("DURATION", node.span, path, message).maybe_help(help);
                None
            }
        }
    }
}

/// How to write what stands there without its key, as in `delay: 5s`.
fn meant(step: &str, node: &Node) -> Option<String> {
    let text = node.as_scalar().map(|scalar| scalar.text.as_str()).filter(|it| !it.is_empty())?;
    let key = match step {
        "delay" if text.parse::<Micros>().is_ok() => "for",
        "delay" if text.parse::<Timestamp>().is_ok() => "until",
        "delay" => return Some(DELAY_SHAPES.to_owned()),
        "succeed" | "fail" => "message",
        _ => return None,
    };
    let shown: String = text.chars().take(80).collect();
    let quoted = if key == "for" { shown } else { format!("{shown:?}") };
    Some(format!("write `{step}: {{ {key}: {quoted} }}`"))
}
