//! Publishing a workflow: compile, bind, store.

use serde_json::Value;
use surefoot_kernel_core::{Publish, PublishError, Published, TxStore, WorkflowKey};
use surefoot_language::{Bindings, Findings, Manifest, compile_and_bind};

use super::after_commit::{AfterCommit, Tell};
use super::scoped::Scoped;

/// A workflow to publish: its key and its source, and what to do with it.
///
/// ```
/// use surefoot_worker::Publication;
/// let reorder = Publication::new("reorder", "steps:\n  - succeed: { message: Done }\n").draft();
/// # let _ = reorder;
/// ```
#[derive(Debug, Clone)]
#[must_use = "a publication does nothing until it is published"]
pub struct Publication {
    workflow: WorkflowKey,
    source: String,
    bindings: Bindings,
    is_draft: bool,
    authorization: Option<Value>,
    author: Option<String>,
}

impl Publication {
    /// A workflow that is live once it is published. Its key has 1 to 200 characters.
    pub fn new(workflow: impl Into<WorkflowKey>, source: impl Into<String>) -> Self {
        Self {
            workflow: workflow.into(),
            source: source.into(),
            bindings: Bindings::new(),
            is_draft: false,
            authorization: None,
            author: None,
        }
    }

    /// Stored, and not live: it changes nothing until somebody activates it.
    pub fn draft(mut self) -> Self {
        self.is_draft = true;
        self
    }

    /// The application's names and the stable ids behind them.
    pub fn bindings(mut self, bindings: Bindings) -> Self {
        self.bindings = bindings;
        self
    }

    /// The permission context of events that bring none.
    pub fn authorization(mut self, authorization: Value) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Who published it, for the audit; by default the application.
    pub fn author(mut self, author: impl Into<String>) -> Self {
        self.author = Some(author.into());
        self
    }
}

impl<S: TxStore> Scoped<S> {
    /// Compiles a workflow against a module, binds it and stores it as an immutable version, with a revision of its
    /// own. The same source again is another version.
    ///
    /// Not cancel safe: it may have been stored when the future is dropped.
    ///
    /// # Errors
    /// `Compile` with every finding, before anything is written; the store's word.
    pub async fn publish(
        &self,
        manifest: &Manifest,
        publication: Publication,
    ) -> Result<Published, PublishError> {
        let (publish, tell) = self.compiled(manifest, publication)?;
        let published = self.kernel().store().version_publish(publish).await?;
        self.kernel().tell(&tell);
        Ok(published)
    }

    /// The same inside the application's transaction: both commit, or neither.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// `Compile` with every finding, before anything is written; the store's word.
    pub async fn publish_in(
        &self,
        tx: &mut S::Tx,
        manifest: &Manifest,
        publication: Publication,
    ) -> Result<AfterCommit<Published>, PublishError> {
        let (publish, tell) = self.compiled(manifest, publication)?;
        let published = self.kernel().store().version_publish_in(tx, publish).await?;
        Ok(self.kernel().after_commit(published, tell))
    }

    fn compiled(
        &self,
        manifest: &Manifest,
        publication: Publication,
    ) -> Result<(Publish, Tell), PublishError> {
        let Publication { workflow, source, bindings, is_draft, authorization, author } =
            publication;
        let plan = compile_and_bind(&source, manifest, &bindings);
        let plan = plan.map_err(|findings| refused(&workflow, &findings))?;
        let tell = if is_draft { Tell::Nobody } else { Tell::Footprint(plan.footprint.clone()) };
        let app = self.kernel().app().clone();
        let publish = Publish {
            author: author.unwrap_or_else(|| format!("app:{app}")),
            app,
            scope: self.scope().clone(),
            workflow,
            version: self.kernel().ids().version(),
            plan,
            source,
            activate: !is_draft,
            authorization,
        };
        Ok((publish, tell))
    }
}

fn refused(workflow: &WorkflowKey, findings: &Findings) -> PublishError {
    PublishError::Compile {
        rendered: findings.render(workflow.as_str(), false),
        findings: findings
            .iter()
            .filter_map(|finding| serde_json::to_value(finding).ok())
            .collect(),
    }
}
