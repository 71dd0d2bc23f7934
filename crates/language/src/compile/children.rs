//! The steps that run other workflows: `runWorkflow`, `runWorkflows`.

use serde_json::Value;
use surefoot_kernel_core::CHILDREN_MAX;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::StepKind;

use super::Compiler;
use super::fields::Fields;
use super::steps::{Outcome, Site};
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::Path;
use crate::yaml::{Entry, Node};

/// The name of the current item of `runWorkflows`, if the author gives it no other.
const ITEM: &str = "item";

impl<'a> Compiler<'a> {
    pub(super) fn run_workflow_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label", "saveAs"]);
        let path = site.path.key("runWorkflow");
        let fields = self.own_fields(site, &["workflow", "inputs"], &path)?;
        let workflow = self.workflow(site, &fields, &path);
        let inputs = self.child_inputs(&fields, &path);
        let (workflow, inputs) = (workflow?, inputs?);
        let kind = StepKind::RunWorkflow { workflow, inputs };
        Some(Outcome { kind: Some(kind), output: Shape::ANY })
    }

    pub(super) fn run_workflows_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["label", "saveAs"]);
        let path = site.path.key("runWorkflows");
        let known = ["workflow", "each", "as", "inputs", "parallel"];
        let fields = self.own_fields(site, &known, &path)?;
        let each = self.each(site, &fields, &path);
        let parallel = fields.get("parallel").map(|entry| self.parallel(entry, &path));
        let parallel = parallel.map_or(Some(None), |parallel| parallel.map(Some));
        let mark = self.scope.enter();
        let item = self.item(site, &fields, &path);
        let workflow = self.workflow(site, &fields, &path);
        let inputs = self.child_inputs(&fields, &path);
        self.scope.leave(mark);
        let (workflow, each, item) = (workflow?, each?, item?);
        let (inputs, parallel) = (inputs?, parallel?);
        let kind = StepKind::RunWorkflows { workflow, each, item, inputs, parallel };
        Some(Outcome { kind: Some(kind), output: Shape::Kinds(Kinds::LIST) })
    }

    fn workflow(
        &mut self,
        site: &Site<'_, '_>,
        fields: &Fields<'_>,
        path: &Path<'_>,
    ) -> Option<Template> {
        let node = self.required(fields, "workflow", site.head.key_span, path)?;
        let path = path.key("workflow");
        let template = self.text_slot(node, &path, "`workflow`")?;
        if matches!(&template, Template::Literal(Value::String(text)) if text.trim().is_empty()) {
            let message = "`workflow` may not be blank";
            self.report.error("BLANK", node.span, &path, message);
            return None;
        }
        Some(template)
    }

    /// What one child is started with: an object, and an empty one where nothing is written.
    fn child_inputs(&mut self, fields: &Fields<'_>, path: &Path<'_>) -> Option<Template> {
        let Some(entry) = fields.get("inputs") else {
            return Some(Template::Literal(Value::Object(serde_json::Map::new())));
        };
        let path = path.key("inputs");
        let slot = self.slot(&entry.value, &path)?;
        self.of_kind(&entry.value, &path, &slot.shape, Kinds::OBJECT, "`inputs` is a mapping")?;
        Some(slot.template)
    }

    fn each(
        &mut self,
        site: &Site<'_, '_>,
        fields: &Fields<'_>,
        path: &Path<'_>,
    ) -> Option<Template> {
        let node = self.required(fields, "each", site.head.key_span, path)?;
        let path = path.key("each");
        let slot = self.slot(node, &path)?;
        self.of_kind(node, &path, &slot.shape, Kinds::LIST, "`each` is a list")?;
        Some(slot.template)
    }

    fn of_kind(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        shape: &Shape<'_>,
        kind: Kinds,
        rule: &str,
    ) -> Option<()> {
        if shape.kinds().overlaps(kind) {
            return Some(());
        }
        let message = format!("{rule}; this is {}", shape.kinds());
        self.report.error("WRONG_TYPE", node.span, path, message);
        None
    }

    /// Binds the name of the current item.
    fn item(
        &mut self,
        site: &Site<'_, '_>,
        fields: &Fields<'_>,
        path: &Path<'_>,
    ) -> Option<String> {
        if let Some(entry) = fields.get("as") {
            return self.bind_name(&entry.value, &path.key("as"), "`as`", Shape::ANY);
        }
        let is_taken = self.input_shapes.contains_key(ITEM) || self.scope.bound_at(ITEM).is_some();
        if is_taken {
            let message = "the current item would be called `item`, and that name is taken";
            self.report
                .error("NAME_TAKEN", site.head.key_span, path, message)
                .help("give it another one: `runWorkflows: { ..., as: one }`");
            return None;
        }
        self.scope.bind(ITEM, Shape::ANY, site.head.key_span);
        Some(ITEM.to_owned())
    }

    fn parallel(&mut self, entry: &Entry, path: &Path<'_>) -> Option<u32> {
        let path = path.key("parallel");
        let number = entry.value.as_scalar().and_then(|scalar| scalar.value.as_u64());
        let parallel = number.and_then(|number| u32::try_from(number).ok());
        let most = u32::try_from(CHILDREN_MAX).unwrap_or(u32::MAX);
        let fits = parallel.filter(|parallel| (1..=most).contains(parallel));
        if fits.is_none() {
            let message = format!("`parallel` is a whole number from 1 to {most}, written out");
            self.report
                .error("NUMBER_RANGE", entry.value.span, &path, message)
                .help("leave it out to run all of them at once");
        }
        fits
    }
}
