//! From a checked workflow and an application's catalog to an immutable plan.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use surefoot_kernel_core::canonical;
use surefoot_kernel_core::plan::{
    ActionPolicy, Hashes, LANGUAGE_VERSION, PLAN_SCHEMA, Plan, PlanLimits,
};

use crate::compile::{BindingUse, Ir, compile};
use crate::diagnostic::{Findings, Path, Report};
use crate::manifest::{ActionDecl, Manifest};
use crate::source::Span;

/// The application's catalog: names that authors use, and the stable ids behind them, as one author sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bindings {
    kinds: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Bindings {
    /// No names at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name. Two ids under one name make the name ambiguous: it is refused where it is used.
    #[must_use]
    pub fn with(
        mut self,
        kind: impl Into<String>,
        name: impl Into<String>,
        id: impl Into<String>,
    ) -> Self {
        let names = self.kinds.entry(kind.into()).or_default();
        names.entry(name.into()).or_default().insert(id.into());
        self
    }

    /// Lower-case hexadecimal SHA-256; the order in which names were added carries no meaning.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash(&serde_json::to_value(&self.kinds).unwrap_or(Value::Null))
    }
}

impl From<BTreeMap<String, BTreeMap<String, String>>> for Bindings {
    fn from(kinds: BTreeMap<String, BTreeMap<String, String>>) -> Self {
        let one = |(name, id)| (name, BTreeSet::from([id]));
        let kinds =
            kinds.into_iter().map(|(kind, names)| (kind, names.into_iter().map(one).collect()));
        Self { kinds: kinds.collect() }
    }
}

/// Compiles and binds in one go.
///
/// # Errors
/// Everything that is wrong with the source, as excerpts when displayed.
pub fn compile_and_bind(
    source: &str,
    manifest: &Manifest,
    bindings: &Bindings,
) -> Result<Plan, Findings> {
    let compiled = compile(source, Some(manifest));
    match compiled.ir {
        Some(ir) => bind(&ir, manifest, bindings),
        None => Err(compiled.findings),
    }
}

/// Makes a plan. The same arguments give the same bytes.
///
/// # Errors
/// The workflow was compiled against no manifest or another one, or names something that the catalog lacks.
pub fn bind(ir: &Ir, manifest: &Manifest, bindings: &Bindings) -> Result<Plan, Findings> {
    let mut report = Report::new(&ir.source);
    let manifest_hash = manifest.hash();
    if ir.manifest_hash.as_ref() != Some(&manifest_hash) {
        let message = "the workflow was not compiled against this manifest";
        report
            .error("MANIFEST_MISMATCH", Span::default(), &Path::ROOT, message)
            .help("compile it again");
        return Err(Findings::new(&ir.source, report.finish()));
    }
    let mut pinned: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for ((kind, name), place) in &ir.bindings {
        if let Some(id) = pin(kind, name, place, bindings, &mut report) {
            pinned.entry(kind.clone()).or_default().insert(name.clone(), id);
        }
    }
    if report.has_errors() {
        return Err(Findings::new(&ir.source, report.finish()));
    }
    let hashes = Hashes {
        source: canonical::hash_text(&ir.source),
        manifest: manifest_hash,
        catalog: bindings.hash(),
    };
    Ok(plan(ir, manifest, hashes, pinned))
}

fn plan(
    ir: &Ir,
    manifest: &Manifest,
    hashes: Hashes,
    bindings: BTreeMap<String, BTreeMap<String, String>>,
) -> Plan {
    let used =
        manifest.actions.iter().filter(|it| ir.uses.contains(&format!("action/{}", it.name)));
    Plan {
        schema: PLAN_SCHEMA,
        language: LANGUAGE_VERSION,
        module: manifest.module(),
        hashes,
        footprint: manifest.footprint_of(&ir.uses),
        policies: used.map(|action| (action.name.clone(), policy(action))).collect(),
        inputs: ir.inputs.clone(),
        triggers: ir.triggers.clone(),
        steps: ir.steps.clone(),
        bindings,
        limits: PlanLimits { loop_items: manifest.limits.loop_items },
    }
}

fn policy(action: &ActionDecl) -> ActionPolicy {
    let is_pure = action.class.may_run_ahead();
    ActionPolicy {
        class: action.class,
        retry: action.retry.clone(),
        settle_after: action.settle_after,
        output: (!is_pure).then(|| action.output.clone()),
    }
}

/// The one id behind a name. A name that does not exist and one that the author may not see read the same.
fn pin(
    kind: &str,
    name: &str,
    place: &BindingUse,
    bindings: &Bindings,
    report: &mut Report<'_>,
) -> Option<String> {
    let names = bindings.kinds.get(kind);
    let ids = names.and_then(|names| names.get(name)).map(|ids| ids.iter().collect::<Vec<_>>());
    let (code, message, help) = match ids.as_deref() {
        Some([id]) => return Some((*id).clone()),
        Some(_) => {
            let message = format!("`{name}` is ambiguous: there are several {kind} of this name");
            let help = Some("rename one of them".to_owned());
            ("BINDING_AMBIGUOUS", message, help)
        }
        None => {
            let known = names.into_iter().flat_map(BTreeMap::keys).map(String::as_str);
            let help = report.did_you_mean(name, known);
            ("BINDING_UNKNOWN", format!("there is no {kind} called `{name}`"), help)
        }
    };
    let found = report.error(code, place.span, &Path::ROOT, message);
    found.path.clone_from(&place.path);
    found.maybe_help(help);
    None
}
