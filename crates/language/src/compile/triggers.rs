//! The section `triggers`.

use std::collections::BTreeMap;

use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::TriggerPlan;

use super::Compiler;
use super::fields::Fields;
use super::inputs::describe;
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::Path;
use crate::yaml::{Entry, Node};

impl<'a> Compiler<'a> {
    pub(super) fn compile_triggers(&mut self, section: &Entry) {
        let path = Path::ROOT;
        let path = path.key("triggers");
        let Some(fields) = self.mapping(&section.value, &path, "`triggers`") else { return };
        if fields.entries().is_empty() {
            let message = "`triggers` is empty";
            self.report
                .error("TRIGGERS_EMPTY", section.key_span, &path, message)
                .help("leave the key out: a workflow without triggers is started by its key");
        }
        for entry in fields.entries() {
            self.compile_trigger(entry, &path.key(&entry.key));
        }
    }

    fn compile_trigger(&mut self, entry: &Entry, path: &Path<'_>) {
        if entry.key == "schedule" {
            self.compile_schedules(entry, path);
            return;
        }
        let (event, shape) = self.trigger_declaration(entry, path);
        let Some(fields) = self.mapping(&entry.value, path, "a trigger") else { return };
        self.refuse_unknown(&fields, &["with"], path);
        let with = self.compile_bindings(entry, &fields, shape, path);
        if let Some(event) = event {
            self.triggers.insert(entry.key.clone(), TriggerPlan { event, with, schedule: None });
        }
    }

    /// A trigger's `with`, where only `trigger` of this shape is visible.
    pub(super) fn compile_bindings(
        &mut self,
        entry: &Entry,
        fields: &Fields<'_>,
        shape: Shape<'a>,
        path: &Path<'_>,
    ) -> BTreeMap<String, Template> {
        self.trigger = Some(shape);
        let with = fields.get("with").map(|with| self.compile_with(with, &path.key("with")));
        self.trigger = None;
        self.check_required_inputs(entry, fields.get("with"), path);
        with.unwrap_or_default()
    }

    /// The event type and the shape of its data.
    fn trigger_declaration(
        &mut self,
        entry: &Entry,
        path: &Path<'_>,
    ) -> (Option<String>, Shape<'a>) {
        let Some(manifest) = self.manifest else { return (None, Shape::ANY) };
        if let Some(declared) = manifest.trigger(&entry.key) {
            self.uses.insert(format!("trigger/{}", entry.key));
            return (Some(declared.event.clone()), Shape::schema(&declared.schema));
        }
        if self.is_open {
            self.not_checked("trigger", entry, path, None);
            return (None, Shape::ANY);
        }
        let known = manifest.triggers.iter().map(|trigger| trigger.kind.as_str());
        let known = known.chain(["schedule"]);
        let help = self.report.suggest(&entry.key, known);
        let message = format!("there is no trigger `{}`", entry.key);
        self.report.error("UNKNOWN_TRIGGER", entry.key_span, path, message).maybe_help(help);
        (None, Shape::ANY)
    }

    fn compile_with(&mut self, with: &Entry, path: &Path<'_>) -> BTreeMap<String, Template> {
        let mut bound = BTreeMap::new();
        let Some(fields) = self.mapping(&with.value, path, "`with`") else { return bound };
        for entry in fields.entries() {
            let path = path.key(&entry.key);
            if !self.input_shapes.contains_key(&entry.key) {
                self.unknown_input(entry, &path);
            }
            if let Some(template) = self.compile_binding(&entry.key, &entry.value, &path) {
                bound.insert(entry.key.clone(), template);
            }
        }
        bound
    }

    fn unknown_input(&mut self, entry: &Entry, path: &Path<'_>) {
        let known: Vec<String> = self.input_shapes.keys().cloned().collect();
        let help = self.report.did_you_mean(&entry.key, known.iter().map(String::as_str));
        let message = format!("there is no input `{}`", entry.key);
        self.report
            .error("UNKNOWN_INPUT", entry.key_span, path, message)
            .help(help.unwrap_or_else(|| "declare it under `inputs`".to_owned()));
    }

    fn compile_binding(&mut self, name: &str, node: &Node, path: &Path<'_>) -> Option<Template> {
        let slot = self.slot(node, path)?;
        let Some(kind) = self.inputs.get(name).map(|input| input.kind) else {
            return Some(slot.template);
        };
        if let Template::Literal(value) = &slot.template {
            self.check_input_value(node, value, kind, path);
        } else if !slot.shape.kinds().overlaps(Kinds::of_input(kind)) {
            let (wanted, kinds) = (describe(kind), slot.shape.kinds());
            let message = format!("the input `{name}` wants {wanted}; this is {kinds}");
            self.report.error("WRONG_TYPE", node.span, path, message);
        }
        Some(slot.template)
    }

    /// Every required input has to be bound, or no run could ever start.
    fn check_required_inputs(&mut self, entry: &Entry, with: Option<&Entry>, path: &Path<'_>) {
        let bound = with.and_then(|with| with.value.as_map()).unwrap_or_default();
        let is_bound = |name: &str| bound.iter().any(|entry| entry.key == name);
        let missing: Vec<String> = self
            .inputs
            .iter()
            .filter(|(name, input)| input.required && !is_bound(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in missing {
            let at = with.map_or(entry.key_span, |with| with.key_span);
            let message = format!("the trigger does not bind the required input `{name}`");
            self.report
                .error("INPUT_NOT_BOUND", at, path, message)
                .help(format!("add `{name}:` to the trigger's `with`"));
        }
    }
}
