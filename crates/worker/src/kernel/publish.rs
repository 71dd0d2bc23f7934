//! Publishes workflows: compiles, binds and stores an immutable version.

use serde_json::Value;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Amounts, PlanStore, Publish, PublishError, Published, Scope, StoreError, TxStore, VersionId,
    WorkflowKey,
};
use surefoot_language::{Bindings, Manifest, compile_and_bind};

use super::Kernel;
use crate::engine::pace::Pause;

/// How often a version is looked for whose publication is in doubt.
const LOOKS: u32 = 6;

/// A workflow to publish.
///
/// Every call of [`Scoped::publish`](super::Scoped::publish) writes a new version, also of a source that is stored
/// already: publish when the source has changed, not at each start of the program.
///
/// ```
/// use surefoot_worker::Publication;
/// let draft = Publication::new("reorder", "steps: [{ succeed: { message: Done } }]").draft().author("ann");
/// ```
#[derive(Debug, Clone)]
#[must_use = "a publication does nothing until it is given to `publish`"]
pub struct Publication {
    workflow: WorkflowKey,
    source: String,
    bindings: Bindings,
    budget: Vec<(String, f64)>,
    activate: bool,
    authorization: Option<Value>,
    author: Option<String>,
}

impl Publication {
    /// The workflow's key in its scope, 1 to 200 characters without white space, and its source.
    pub fn new(workflow: impl Into<WorkflowKey>, source: impl Into<String>) -> Self {
        Self {
            workflow: workflow.into(),
            source: source.into(),
            bindings: Bindings::new(),
            budget: Vec::new(),
            activate: true,
            authorization: None,
            author: None,
        }
    }

    /// Stores a version and changes nothing live.
    pub fn draft(mut self) -> Self {
        self.activate = false;
        self
    }

    /// The catalog that the source's names are bound against.
    pub fn bindings(mut self, bindings: Bindings) -> Self {
        self.bindings = bindings;
        self
    }

    /// Caps what each run of it, with all its children, may charge of one dimension. Of the same dimension the last cap
    /// counts; a dimension without one is counted only. A cap that is negative, not finite or over
    /// [`AMOUNT_MAX`](surefoot_kernel_core::AMOUNT_MAX) is refused by `publish`.
    ///
    /// ```
    /// use surefoot_worker::Publication;
    /// let capped = Publication::new("reorder", "steps: []").budget("payments", 3).budget("eur", 99.5);
    /// ```
    pub fn budget(mut self, dimension: impl Into<String>, cap: impl Into<f64>) -> Self {
        let dimension = dimension.into();
        self.budget.retain(|(known, _)| *known != dimension);
        self.budget.push((dimension, cap.into()));
        self
    }

    /// The permission context of runs whose emitter brings none.
    pub fn authorization(mut self, authorization: Value) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Who publishes it, for the audit; by default the application.
    pub fn author(mut self, author: impl Into<String>) -> Self {
        self.author = Some(author.into());
        self
    }
}

/// Compiles and binds.
pub(super) fn compiled<S: TxStore>(
    kernel: &Kernel<S>,
    scope: &Scope,
    manifest: &Manifest,
    publication: Publication,
) -> Result<Publish, PublishError> {
    let budget = Amounts::of(publication.budget)?;
    let plan = compile_and_bind(&publication.source, manifest, &publication.bindings);
    let plan = plan.map_err(|findings| PublishError::Compile {
        rendered: findings.to_string(),
        findings: findings.iter().filter_map(|one| serde_json::to_value(one).ok()).collect(),
    })?;
    let app = kernel.app().clone();
    let publish = Publish {
        author: publication.author.unwrap_or_else(|| format!("app:{app}")),
        app,
        scope: scope.clone(),
        workflow: publication.workflow,
        version: kernel.ids().version(),
        plan,
        source: publication.source,
        budget,
        activate: publication.activate,
        authorization: publication.authorization,
    };
    publish.check_names()?;
    Ok(publish)
}

/// Stores a version. One whose answer was lost is looked for by its id, since publishing it again would make two.
pub(super) async fn store<S: TxStore>(
    kernel: &Kernel<S>,
    publish: Publish,
) -> Result<Published, PublishError> {
    let footprint: Footprint = publish.plan.footprint.clone();
    let version = publish.version;
    let published = match kernel.store().version_publish(publish).await {
        Err(PublishError::Store(StoreError::UnknownOutcome(source))) => {
            let found = look_for(kernel.store(), version).await;
            found.ok_or(PublishError::Store(StoreError::UnknownOutcome(source)))?
        }
        known => known?,
    };
    kernel.local().learn(&footprint);
    Ok(published)
}

async fn look_for<S: PlanStore>(store: &S, version: VersionId) -> Option<Published> {
    let mut pause = Pause::store();
    for _ in 0..LOOKS {
        if let Ok(Some(stored)) = store.version_load(version).await {
            return Some(Published::of(version, stored.revision));
        }
        tokio::time::sleep(pause.length()).await;
    }
    None
}
