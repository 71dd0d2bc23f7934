//! Versions and activations.

use async_trait::async_trait;
use serde_json::Value;

use super::{Audit, PublishError, StoreError};
use crate::plan::{Footprint, Plan, SchedulePlan};
use crate::{Amounts, App, BadName, Scope, Timestamp, VersionId, WorkflowKey};

/// Stores immutable versions and what connects events to them.
#[async_trait]
pub trait PlanStore: Send + Sync {
    /// Writes a version with revision = last + 1 and, unless it is a draft, replaces the activations by key and
    /// sets the active version, in one transaction. What an operator disabled stays disabled.
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError>;

    /// Makes a stored version live. One that is live already stays so, and nothing is written.
    ///
    /// # Errors
    /// `NotExpected` if the active revision is not `expected` (where that is given); nothing is changed.
    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError>;

    /// Switches one activation of a workflow on or off: it stays so, whatever is published later.
    ///
    /// # Errors
    /// `NotFound` if the workflow has, or had, no activation of that key.
    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError>;

    /// Reads a version.
    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError>;

    /// The workflows of an app, or of one scope of it, by (scope, key).
    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError>;

    /// The schedules of the active versions of an app, enabled or not, with the store's time: what a worker fires.
    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError>;

    /// The versions of a workflow, newest first, without their plans.
    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError>;
}

/// A version to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Publish {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Which workflow.
    pub workflow: WorkflowKey,
    /// Made by the caller.
    pub version: VersionId,
    /// Compiled and bound.
    pub plan: Plan,
    /// As authored.
    pub source: String,
    /// Caps of its effect budget; a dimension without one is counted only.
    pub budget: Amounts,
    /// Whether it becomes live.
    pub activate: bool,
    /// The fallback authorization of its activations.
    pub authorization: Option<Value>,
    /// Who, for the audit.
    pub author: String,
}

impl Publish {
    /// Whether app, scope and workflow may be names.
    ///
    /// # Errors
    /// [`BadName`].
    pub fn check_names(&self) -> Result<(), BadName> {
        self.app.check()?;
        self.scope.check()?;
        self.workflow.check()
    }

    /// What the version's activations are: one per trigger, and `start`.
    #[must_use]
    pub fn activations(&self) -> Vec<Activation> {
        Activation::of_plan(&self.plan)
    }
}

/// What connects an event type to a version. Its key is stable for the same logical trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// Unique within its workflow.
    pub key: String,
    /// The event type.
    pub event: String,
    /// The trigger kind whose `with` computes the inputs; none takes the event's data.
    pub trigger: Option<String>,
    /// Of a schedule, when it is due.
    pub schedule: Option<SchedulePlan>,
}

/// The schedules of an app.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedules {
    /// The store's time.
    pub now: Timestamp,
    /// By scope, workflow and key.
    pub rows: Vec<ScheduleRow>,
}

/// A schedule that is live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    /// Where.
    pub scope: Scope,
    /// Whose runs it starts.
    pub workflow: WorkflowKey,
    /// Its name: the key of its activation.
    pub key: String,
    /// When it is due.
    pub schedule: SchedulePlan,
    /// Since when it stands like this. A new version with an equal schedule of the same name keeps it.
    pub since: Timestamp,
    /// Whether it starts runs.
    pub enabled: bool,
}

impl Activation {
    /// What a plan's version is activated by: its triggers, and `start`.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Vec<Self> {
        let start = Self {
            key: "start".to_owned(),
            event: crate::START_EVENT.to_owned(),
            trigger: None,
            schedule: None,
        };
        let triggers = plan.triggers.iter().map(|(kind, trigger)| Self {
            key: kind.clone(),
            event: trigger.event.clone(),
            trigger: Some(kind.clone()),
            schedule: trigger.schedule.clone(),
        });
        std::iter::once(start).chain(triggers).collect()
    }
}

/// What was published or activated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its id.
    pub version: VersionId,
    /// From 1, per workflow.
    pub revision: u64,
}

impl Published {
    /// For stores.
    #[must_use]
    pub const fn of(version: VersionId, revision: u64) -> Self {
        Self { version, revision }
    }
}

/// A stored version to make live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activate {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Which workflow.
    pub workflow: WorkflowKey,
    /// Which of its revisions.
    pub revision: u64,
    /// The revision that the caller saw active; `None` does not look.
    pub expected: Option<u64>,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// An activation to switch on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetActivation {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// Its key; none is every activation of the workflow.
    pub activation: Option<String>,
    /// On or off.
    pub enabled: bool,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

impl SetActivation {
    /// The audit row of the activations that changed.
    #[must_use]
    pub fn audit(&self, changed: &[String]) -> Audit {
        let verb = if self.enabled { "enable" } else { "disable" };
        let (workflow, activations) = (&self.workflow, changed);
        let details = serde_json::json!({ "workflow": workflow, "activations": activations });
        Audit {
            actor: self.actor.clone(),
            verb: verb.to_owned(),
            reason: self.reason.clone(),
            details: details.to_string(),
        }
    }
}

/// What became of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationSet {
    /// The activations that changed; those that stood so already are left out.
    pub changed: Vec<String>,
}

/// A version as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVersion {
    /// Its id.
    pub version: VersionId,
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// From 1.
    pub revision: u64,
    /// Store time.
    pub created_at: Timestamp,
    /// Who.
    pub author: String,
    /// Whether it is the live one.
    pub active: bool,
    /// SHA-256 of the plan.
    pub plan_hash: String,
    /// What a worker must offer.
    pub footprint: Footprint,
    /// Caps of its effect budget.
    pub budget: Amounts,
    /// The plan as JSON text; empty in lists.
    pub plan: String,
    /// As authored; empty in lists.
    pub source: String,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRow {
    /// Where.
    pub scope: Scope,
    /// Its key.
    pub workflow: WorkflowKey,
    /// The live revision, if any.
    pub active: Option<u64>,
    /// The newest revision.
    pub latest: u64,
    /// Activation key, event type, whether enabled.
    pub activations: Vec<(String, String, bool)>,
}
