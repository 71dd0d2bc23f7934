//! Steps: lists of them, which kind each is, and what all kinds share.

use surefoot_kernel_core::plan::{STEP_KEY_MAX_BYTES, Step, StepKind};

use super::Compiler;
use super::fields::Fields;
use super::scope::{LITERALS, RESERVED_ROOTS};
use crate::check::shape::Shape;
use crate::diagnostic::Path;
use crate::manifest::is_name;
use crate::source::Span;
use crate::yaml::{Entry, Node};

/// Keys beside a step's own.
const OPTIONS: &[&str] = &["saveAs", "label", "timeout", "retry", "catch"];
/// Keys of control steps that cannot stand alone.
const PARTS: &[&str] = &["then", "else", "cases", "default", "as", "do"];
/// Steps of the language itself.
pub(super) const BUILT_IN: &[&str] = &[
    "if",
    "switch",
    "forEach",
    "setVariable",
    "succeed",
    "fail",
    "delay",
    "waitFor",
    "runWorkflow",
    "runWorkflows",
];

/// A step that is being compiled.
#[derive(Clone, Copy)]
pub(super) struct Site<'n, 'p> {
    pub(super) fields: Fields<'n>,
    /// The key that says what the step is.
    pub(super) head: &'n Entry,
    pub(super) path: &'p Path<'p>,
    pub(super) nesting: Nesting,
}

/// How deep a step is.
#[derive(Clone, Copy)]
pub(super) struct Nesting {
    /// The top level is 1.
    depth: u32,
    /// Loops around it.
    loops: u32,
    /// Whether it is inside a `catch`, however deep.
    in_catch: bool,
}

impl Nesting {
    pub(super) const fn in_catch(self) -> bool {
        self.in_catch
    }
}

/// What came of a step.
pub(super) struct Outcome<'a> {
    /// Absent if something in it was reported.
    pub(super) kind: Option<StepKind>,
    /// What its `saveAs` binds.
    pub(super) output: Shape<'a>,
}

impl<'a> Compiler<'a> {
    pub(super) fn compile_root_steps(&mut self, entry: &Entry) -> Vec<Step> {
        let path = Path::ROOT;
        let path = path.key("steps");
        let nesting = Nesting { depth: 1, loops: 0, in_catch: false };
        self.step_list(entry, &path, nesting).unwrap_or_default()
    }

    /// The steps of a branch, in a scope of its own.
    pub(super) fn branch(
        &mut self,
        entry: &Entry,
        path: &Path<'_>,
        outer: Nesting,
    ) -> Option<Vec<Step>> {
        let mark = self.scope.enter();
        let nesting = Nesting { depth: outer.depth.saturating_add(1), ..outer };
        let steps = self.step_list(entry, path, nesting);
        self.scope.leave(mark);
        steps
    }

    /// The body of a loop; the caller keeps the scope.
    pub(super) fn loop_body(
        &mut self,
        entry: &Entry,
        path: &Path<'_>,
        outer: Nesting,
    ) -> Option<Vec<Step>> {
        let (depth, loops) = (outer.depth.saturating_add(1), outer.loops.saturating_add(1));
        self.step_list(entry, path, Nesting { depth, loops, ..outer })
    }

    /// The steps of a `catch`; the caller keeps the scope.
    pub(super) fn catch_body(
        &mut self,
        entry: &Entry,
        path: &Path<'_>,
        outer: Nesting,
    ) -> Option<Vec<Step>> {
        let depth = outer.depth.saturating_add(1);
        self.step_list(entry, path, Nesting { depth, in_catch: true, ..outer })
    }

    fn step_list(&mut self, entry: &Entry, path: &Path<'_>, nesting: Nesting) -> Option<Vec<Step>> {
        let Some(nodes) = entry.value.as_list() else {
            let what = entry.value.describe();
            let message = format!("`{}` is a list of steps; this is {what}", entry.key);
            let span = if what == "nothing" { entry.key_span } else { entry.value.span };
            self.report
                .error("NOT_A_LIST", span, path, message)
                .help("write each step on a line of its own that begins with `- `");
            return None;
        };
        if nodes.is_empty() {
            let message = format!("`{}` has no steps", entry.key);
            let found = self.report.error("STEPS_EMPTY", entry.value.span, path, message);
            match entry.key.as_str() {
                "steps" => {}
                "catch" => {
                    found.help("to go on whatever happened, say so: `- setVariable: { name: failed, value: true }`");
                }
                _ => {
                    found.help("a branch that does nothing is left out");
                }
            }
            return None;
        }
        self.check_depth(nodes, path, nesting);
        let mut ended = false;
        let mut steps = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let path = path.index(index);
            if std::mem::take(&mut ended) {
                let message = "this step is never reached: the run has ended before it";
                self.report.warning("UNREACHABLE", node.span, &path, message);
            }
            let step = self.step(node, &path, nesting);
            ended = step.as_ref().is_some_and(|step| ends_run(&step.kind));
            steps.push(step);
        }
        steps.into_iter().collect()
    }

    fn check_depth(&mut self, nodes: &[Node], path: &Path<'_>, nesting: Nesting) {
        let first = nodes.first().filter(|_| nesting.depth > self.limits.depth);
        let Some(first) = first.filter(|_| !self.counts.depth_reported) else { return };
        self.counts.depth_reported = true;
        let message = format!("steps may be nested {} deep", self.limits.depth);
        self.report.error("LIMIT_DEPTH", first.span, &path.index(0), message);
    }

    fn step(&mut self, node: &Node, path: &Path<'_>, nesting: Nesting) -> Option<Step> {
        self.count_step(node.span, path);
        self.check_key_length(node.span, path, nesting);
        let fields = self.mapping(node, path, "a step")?;
        let head = self.head(&fields, path)?;
        let site = Site { fields, head, path, nesting };
        let label = self.label(&site);
        let outcome = self.outcome(&site);
        let output = outcome.as_ref().map_or(Shape::ANY, |outcome| outcome.output.clone());
        let save_as = fields.get("saveAs").and_then(|entry| {
            let path = path.key("saveAs");
            self.bind_name(&entry.value, &path, "`saveAs`", output)
        });
        let (line, _) = self.report.lines.place(head.key_span.start);
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        Some(Step { kind: outcome?.kind?, save_as, label, line })
    }

    fn count_step(&mut self, span: Span, path: &Path<'_>) {
        self.counts.steps = self.counts.steps.saturating_add(1);
        if self.counts.steps == self.limits.steps.saturating_add(1) {
            let message = format!("a workflow has at most {} steps", self.limits.steps);
            self.report.error("LIMIT_STEPS", span, path, message);
        }
    }

    /// A step's key is its path and the index of each loop around it; stores keep a bounded number of bytes.
    fn check_key_length(&mut self, span: Span, path: &Path<'_>, nesting: Nesting) {
        let longest = key_bytes(path.to_string().len(), nesting.loops, self.limits.loop_items);
        if longest > STEP_KEY_MAX_BYTES {
            let message =
                format!("the key of this step would be longer than {STEP_KEY_MAX_BYTES} bytes");
            self.report
                .error("STEP_KEY_TOO_LONG", span, path, message)
                .help("nest the steps less deeply");
        }
    }

    /// The key that says what the step is; further ones are reported.
    fn head<'n>(&mut self, fields: &Fields<'n>, path: &Path<'_>) -> Option<&'n Entry> {
        let is_head = |key: &str| !OPTIONS.contains(&key) && !PARTS.contains(&key);
        let mut heads: Vec<&Entry> =
            fields.entries().iter().filter(|entry| is_head(&entry.key)).collect();
        let built_in = heads.iter().position(|entry| BUILT_IN.contains(&entry.key.as_str()));
        let best = built_in.or_else(|| heads.iter().position(|entry| self.declares(&entry.key)));
        if heads.is_empty() {
            let message = "the step says nothing to do: it has no action";
            self.report
                .error("STEP_SHAPE", fields.span, path, message)
                .help("a step has exactly one action, such as `- sendEmail: { to: ... }`");
            return None;
        }
        let head = heads.remove(best.unwrap_or(0));
        for extra in heads {
            self.extra_head(head, extra, path);
        }
        Some(head)
    }

    fn declares(&self, name: &str) -> bool {
        self.manifest.is_some_and(|manifest| manifest.action(name).is_some())
    }

    fn extra_head(&mut self, head: &Entry, extra: &Entry, path: &Path<'_>) {
        let is_step = BUILT_IN.contains(&extra.key.as_str()) || self.declares(&extra.key);
        let is_control = BUILT_IN.contains(&head.key.as_str());
        let similar = self.report.did_you_mean(&extra.key, OPTIONS.iter().chain(PARTS).copied());
        if !is_step && (is_control || similar.is_some()) {
            let message = format!("unknown key `{}` beside `{}`", extra.key, head.key);
            let path = path.key(&extra.key);
            self.report.error("UNKNOWN_KEY", extra.key_span, &path, message).maybe_help(similar);
            return;
        }
        let message = format!(
            "a step does exactly one thing; this one names `{}` and `{}`",
            head.key, extra.key
        );
        self.report
            .error("STEP_SHAPE", extra.key_span, path, message)
            .related(head.key_span, "the step's first action")
            .help("begin a step of its own with `- `");
    }

    fn outcome(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        match site.head.key.as_str() {
            "if" => self.if_step(site),
            "switch" => self.switch_step(site),
            "forEach" => self.for_each_step(site),
            "setVariable" => self.set_variable_step(site),
            "succeed" => self.succeed_step(site),
            "fail" => self.fail_step(site),
            "delay" => self.delay_step(site),
            "waitFor" => self.wait_for_step(site),
            "runWorkflow" => self.run_workflow_step(site),
            "runWorkflows" => self.run_workflows_step(site),
            _ => self.action_step(site),
        }
    }

    /// Reports keys that do not belong to this kind of step.
    pub(super) fn refuse_options(&mut self, site: &Site<'_, '_>, own: &[&str]) {
        for entry in site.fields.entries() {
            let key = entry.key.as_str();
            let is_other_head = !OPTIONS.contains(&key) && !PARTS.contains(&key);
            if is_other_head || own.contains(&key) {
                continue;
            }
            self.misplaced(entry, site);
        }
    }

    fn misplaced(&mut self, entry: &Entry, site: &Site<'_, '_>) {
        let (key, head) = (&entry.key, &site.head.key);
        let message = format!("`{key}` does not belong to `{head}`");
        let help = match (key.as_str(), head.as_str()) {
            ("timeout", "waitFor") => Some("write it inside: `waitFor: { ..., timeout: 2d }`"),
            ("saveAs", "setVariable") => Some("`setVariable` binds its own `name`"),
            ("retry" | "catch", _) => {
                Some("it stands beside an action: nothing else is tried again or caught")
            }
            ("saveAs", "succeed" | "fail") => Some("the run ends here: nothing could read it"),
            _ => None,
        };
        let path = site.path.key(key);
        self.report
            .error("UNKNOWN_KEY", entry.key_span, &path, message)
            .maybe_help(help.map(str::to_owned));
    }

    fn label(&mut self, site: &Site<'_, '_>) -> Option<String> {
        let entry = site.fields.get("label")?;
        let text = self.text(&entry.value, &site.path.key("label"), "`label`")?;
        Some(text.to_owned())
    }

    /// Binds a name that an author chose, if it may be bound.
    pub(super) fn bind_name(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        what: &str,
        shape: Shape<'a>,
    ) -> Option<String> {
        let name = self.text(node, path, what)?;
        if !is_name(name) {
            let message = format!("`{name}` is no name");
            self.report
                .error("NAME_INVALID", node.span, path, message)
                .help("a name has letters, digits and `_`, and does not start with a digit");
            return None;
        }
        if RESERVED_ROOTS.contains(&name) || LITERALS.contains(&name) {
            let message = format!("`{name}` is reserved: it has a meaning of its own");
            self.report.error("NAME_RESERVED", node.span, path, message);
            return None;
        }
        if self.input_shapes.contains_key(name) {
            let message = format!("`{name}` is the name of an input");
            self.report
                .error("NAME_TAKEN", node.span, path, message)
                .help("choose another name: the two are easily mistaken for each other");
            return None;
        }
        if let Some(first) = self.scope.bound_at(name) {
            let message = format!("`{name}` is visible here already");
            self.report
                .error("NAME_TAKEN", node.span, path, message)
                .related(first, "bound here")
                .help("choose another name: a name keeps its value");
            return None;
        }
        self.scope.bind(name, shape, node.span);
        Some(name.to_owned())
    }
}

/// The longest key that a step can get: its path, `#`, and one index for each loop around it.
fn key_bytes(path: usize, loops: u32, items: u32) -> usize {
    let digits = items.saturating_sub(1).max(1).ilog10() as usize + 1;
    let loops = usize::try_from(loops).unwrap_or(usize::MAX);
    path.saturating_add(loops.saturating_mul(digits + 1))
}

/// Whether a list of steps ends the run.
pub(super) fn ends_list(steps: &[Step]) -> bool {
    steps.last().is_some_and(|step| ends_run(&step.kind))
}

/// Whether nothing after such a step can run.
fn ends_run(kind: &StepKind) -> bool {
    match kind {
        StepKind::Succeed { .. } | StepKind::Fail { .. } => true,
        StepKind::If { then, otherwise, .. } => {
            ends_list(then) && otherwise.as_deref().is_some_and(ends_list)
        }
        StepKind::Switch { cases, default, .. } => {
            cases.iter().all(|case| ends_list(&case.steps))
                && default.as_deref().is_some_and(ends_list)
        }
        StepKind::Action { .. }
        | StepKind::ForEach { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_key_of_a_step_counts_every_loop() {
        assert_eq!(key_bytes("steps.2.do.1".len(), 0, 100), "steps.2.do.1".len());
        assert_eq!(key_bytes("steps.2.do.1".len(), 1, 100), "steps.2.do.1#99".len());
        assert_eq!(key_bytes("steps.2.do.1.do.0".len(), 2, 101), "steps.2.do.1.do.0#100.100".len());
        assert_eq!(key_bytes(1, 1, 1), "x#0".len());
    }
}
