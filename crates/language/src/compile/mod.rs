//! From the tree of a source to a plan without bindings, or to everything that is wrong with it.

mod action;
mod builtin;
mod children;
mod control;
mod expression;
mod fields;
mod inputs;
mod place;
mod retry;
mod schedule;
mod scope;
mod steps;
mod template;
mod triggers;

use std::collections::{BTreeMap, BTreeSet};

use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{Input, Step, TriggerPlan};

use crate::check::schema::Validators;
use crate::check::shape::Shape;
use crate::diagnostic::{Findings, Path, Report, Severity};
use crate::manifest::{ActionDecl, Limits, Manifest};
use crate::source::Span;
use crate::yaml::{self, Entry, Node};
pub(crate) use fields::quoting;
pub use schedule::next_due;
use scope::Scope;

/// What came of a source.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Everything there is to say about it.
    pub findings: Findings,
    /// Absent if a finding is an error.
    pub ir: Option<Ir>,
}

/// Says of a config what the schema of its action cannot. Asked for each config that fits the schema, whatever its
/// expressions yield.
pub type JudgeConfig<'a> = &'a dyn Fn(&ActionDecl, &Template) -> Vec<ConfigRemark>;

/// What there is to say about a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRemark {
    /// The JSON pointer of the place in the config; empty for the whole.
    pub pointer: String,
    /// What, in a sentence.
    pub message: String,
    /// Whether the action refuses it. Otherwise it hardly means what it looks like.
    pub is_refused: bool,
}

/// A checked workflow that is not bound yet. Opaque: [`crate::bind`] makes a plan of it.
#[derive(Debug, Clone)]
pub struct Ir {
    pub(crate) source: String,
    /// Absent if it was compiled without one; such a workflow can never be bound.
    pub(crate) manifest_hash: Option<String>,
    pub(crate) inputs: BTreeMap<String, Input>,
    pub(crate) triggers: BTreeMap<String, TriggerPlan>,
    pub(crate) steps: Vec<Step>,
    /// `action/loadItem`, `trigger/itemChanged`.
    pub(crate) uses: BTreeSet<String>,
    pub(crate) bindings: BTreeMap<(String, String), BindingUse>,
}

/// The first place that names a binding.
#[derive(Debug, Clone)]
pub(crate) struct BindingUse {
    pub(crate) span: Span,
    pub(crate) path: String,
}

/// Compiles a source.
///
/// Without a manifest everything is checked but the names of actions, triggers and inputs and what depends on
/// them; a note says so once, and the result cannot be bound. Pure: the same arguments give the same answer.
///
/// ```
/// use surefoot_language::compile;
/// let compiled = compile("steps:\n  - succeed: { mesage: Done }\n", None);
/// let first = &compiled.findings.as_slice()[0];
/// assert_eq!((first.line, first.column, first.code), (2, 5, "MISSING_KEY"));
/// assert!(compiled.ir.is_none());
/// println!("{}", compiled.findings);
/// ```
#[must_use]
pub fn compile(source: &str, manifest: Option<&Manifest>) -> Compiled {
    compiled(Compiler::new(source, manifest))
}

/// The same, and the configs that fit the schemas of their actions are judged by whoever knows more about them.
#[must_use]
pub fn compile_judged(source: &str, manifest: &Manifest, judge: JudgeConfig<'_>) -> Compiled {
    let mut compiler = Compiler::new(source, Some(manifest));
    compiler.judge = Some(judge);
    compiled(compiler)
}

/// Checks a source of which only a part of the module is known: what the manifest has is checked against it, and of
/// everything else a warning says that it was not. The result cannot be bound.
#[must_use]
pub fn check_beside(source: &str, known: &Manifest, judge: JudgeConfig<'_>) -> Compiled {
    let mut compiler = Compiler::new(source, Some(known));
    compiler.is_open = true;
    compiler.judge = Some(judge);
    compiled(compiler)
}

fn compiled(mut compiler: Compiler<'_>) -> Compiled {
    compiler.check_manifest();
    let before = compiler.report.count();
    let root = yaml::load(&mut compiler.report);
    if let Some(root) = root.filter(|_| compiler.report.count() == before) {
        compiler.root(&root);
    }
    compiler.finish()
}

/// The state of one compilation.
struct Compiler<'a> {
    report: Report<'a>,
    manifest: Option<&'a Manifest>,
    judge: Option<JudgeConfig<'a>>,
    /// Whether there is more than the manifest has.
    is_open: bool,
    limits: Limits,
    counts: Counts,
    scope: Scope<'a>,
    /// Inputs that some expression so far looked for with `has`.
    looked_for: BTreeSet<String>,
    /// The members of `inputs`.
    input_shapes: BTreeMap<String, Shape<'a>>,
    /// The shape of `trigger` while a trigger's `with` is compiled: then nothing else is visible.
    trigger: Option<Shape<'a>>,
    validators: Validators,
    inputs: BTreeMap<String, Input>,
    triggers: BTreeMap<String, TriggerPlan>,
    steps: Vec<Step>,
    uses: BTreeSet<String>,
    bindings: BTreeMap<(String, String), BindingUse>,
}

/// What is counted against limits. Each limit is reported once, where it is passed.
#[derive(Default)]
struct Counts {
    steps: u32,
    expressions: u32,
    depth_reported: bool,
}

impl<'a> Compiler<'a> {
    fn new(source: &'a str, manifest: Option<&'a Manifest>) -> Self {
        Self {
            report: Report::new(source),
            manifest,
            judge: None,
            is_open: manifest.is_none(),
            limits: manifest.map_or_else(Limits::default, |manifest| manifest.limits),
            counts: Counts::default(),
            scope: Scope::default(),
            looked_for: BTreeSet::new(),
            input_shapes: BTreeMap::new(),
            trigger: None,
            validators: Validators::default(),
            inputs: BTreeMap::new(),
            triggers: BTreeMap::new(),
            steps: Vec::new(),
            uses: BTreeSet::new(),
            bindings: BTreeMap::new(),
        }
    }

    /// A module that contradicts itself would make every other finding doubtful.
    fn check_manifest(&mut self) {
        let findings = self.manifest.map(Manifest::findings).unwrap_or_default();
        for found in findings {
            let message = format!("the module is wrong: {} (at `{}`)", found.message, found.path);
            self.report.error(found.code, Span::default(), &Path::ROOT, message);
        }
    }

    fn root(&mut self, root: &Node) {
        let Some(fields) = self.mapping(root, &Path::ROOT, "a workflow") else { return };
        self.refuse_unknown(&fields, &["inputs", "triggers", "steps"], &Path::ROOT);
        if let Some(inputs) = fields.get("inputs") {
            self.compile_inputs(inputs);
        }
        if let Some(triggers) = fields.get("triggers") {
            self.compile_triggers(triggers);
        }
        match fields.get("steps") {
            Some(steps) => self.steps = self.compile_root_steps(steps),
            None => {
                let at = Span::new(fields.span.start, fields.span.start);
                let message = "the key `steps` is missing: a workflow has at least one step";
                self.report.error("STEPS_MISSING", at, &Path::ROOT, message);
            }
        }
        if self.manifest.is_none() {
            let message = "checked without a manifest: names of actions, triggers and input types, and the \
                           configs of actions, were not checked; the default limits were. The application's \
                           `manifest().to_json()` writes one";
            self.report.note("NO_MANIFEST", Span::default(), &Path::ROOT, message);
        }
    }

    fn finish(self) -> Compiled {
        let ok = !self.report.has_errors();
        let source = self.report.source();
        let ir = ok.then(|| Ir {
            source: source.to_owned(),
            manifest_hash: self.manifest.filter(|_| !self.is_open).map(Manifest::hash),
            inputs: self.inputs,
            triggers: self.triggers,
            steps: self.steps,
            uses: self.uses,
            bindings: self.bindings,
        });
        let findings = Findings::new(source, self.report.finish());
        debug_assert_eq!(ok, findings.iter().all(|found| found.severity != Severity::Error));
        Compiled { findings, ir }
    }

    /// Warns of a name that only a part of the module which is not known here could have.
    fn not_checked(&mut self, what: &str, entry: &Entry, path: &Path<'_>, help: Option<String>) {
        let message =
            format!("there is no ready-made {what} `{}`, so it was not checked", entry.key);
        let help = help.unwrap_or_else(|| {
            "if it is of your application, check with `--manifest` and what its module writes"
                .to_owned()
        });
        self.report.warning("NOT_CHECKED", entry.key_span, path, message).help(help);
    }

    /// Counts one of a limited kind; reports the first that is over its limit.
    fn count_expression(&mut self, span: Span, path: &Path<'_>) {
        self.counts.expressions = self.counts.expressions.saturating_add(1);
        if self.counts.expressions == self.limits.expressions.saturating_add(1) {
            let message = format!("a workflow has at most {} expressions", self.limits.expressions);
            self.report.error("LIMIT_EXPRESSIONS", span, path, message);
        }
    }
}
