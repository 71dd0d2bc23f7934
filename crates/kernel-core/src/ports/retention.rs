//! What ends: payloads that expire, runs that are pruned, workflows and scopes that are deleted.
//!
//! Each method does one bounded part in one transaction, so that it can be killed at any point: what is left is found
//! by the next call. What may go is said by [`retention`](crate::retention).

use async_trait::async_trait;

use super::{Audit, StoreError};
use crate::retention::Force;
use crate::{
    App, Code, EffectState, EventId, RowInput, RunId, RunState, Scope, StepKey, Timestamp,
    WorkflowKey,
};

/// Empties, redrives, prunes and deletes.
#[async_trait]
pub trait RetentionStore: Send + Sync {
    /// Empties at most `limit` events of an app that were done with [`EVENT_RETENTION_DAYS`] ago and that no living
    /// run refers to: deliveries, data, context and authorization go; type, key, times, run ids and hash stay.
    ///
    /// [`EVENT_RETENTION_DAYS`]: crate::retention::EVENT_RETENTION_DAYS
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError>;

    /// Has the runs of a dead-lettered event created after all. A delivery whose workflow is gone is dropped, with an
    /// audit row.
    ///
    /// # Errors
    /// [`RetentionError::Expired`], [`RetentionError::NotDeadLettered`], [`RetentionError::NotFound`].
    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError>;

    /// Deletes at most `limit` runs, spent signals or audit rows by a policy; whole trees only.
    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError>;

    /// Marks a workflow, or a scope with all its workflows, as being deleted: from then on nothing is published or
    /// emitted there. To mark it again changes nothing, except that it may be forced from then on.
    ///
    /// # Errors
    /// [`RetentionError::Unexplained`] with the list, unless forced; [`RetentionError::Shared`];
    /// [`RetentionError::NotFound`].
    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError>;

    /// Deletes a bounded part of what is marked: cancels first, then deletes events, runs, signals, and last of all
    /// the workflows, the versions and the mark.
    ///
    /// # Errors
    /// [`RetentionError::NotFound`] if nothing of that name is marked.
    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError>;
}

/// What one call emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expired {
    /// Events.
    pub emptied: u32,
    /// Whether there may be more.
    pub more: bool,
}

/// A dead-lettered event to dispatch after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// Which.
    pub event: EventId,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What became of a redriven event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redriven {
    /// Runs that its dispatch will create.
    pub deliveries: u32,
    /// Workflows that are gone, whose deliveries were dropped.
    pub dropped: Vec<WorkflowKey>,
}

impl Redrive {
    /// The audit rows of what became of it: one for the redrive, one for each delivery that was dropped.
    #[must_use]
    pub fn audit(&self, redriven: &Redriven) -> Vec<Audit> {
        let row = |verb: &str, details: serde_json::Value| Audit {
            actor: self.actor.clone(),
            verb: verb.to_owned(),
            reason: self.reason.clone(),
            details: details.to_string(),
        };
        let event = self.event;
        let deliveries = redriven.deliveries;
        let redrive =
            row("redrive", serde_json::json!({ "event": event, "deliveries": deliveries }));
        let dropped = redriven.dropped.iter().map(|workflow| {
            row("drop_delivery", serde_json::json!({ "event": event, "workflow": workflow }))
        });
        std::iter::once(redrive).chain(dropped).collect()
    }
}

/// What an operator wants pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// Whose.
    pub app: App,
    /// Only there.
    pub scope: Option<Scope>,
    /// What.
    pub what: Prunable,
    /// Only what ended, was spent or was written before this instant of the store's time.
    pub before: Timestamp,
    /// At most so many in this call; a tree counts by its runs.
    pub limit: u32,
    /// Written with it, if it deletes anything.
    pub audit: Option<Audit>,
}

/// What can be pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prunable {
    /// Trees of runs whose root ended in one of these states; those that are no end have no effect.
    Runs {
        /// Of the root.
        states: Vec<RunState>,
    },
    /// Signals on which a run recorded an outcome.
    SpentSignals,
    /// Payloads of events that nobody listened to; the events themselves stay, with their keys.
    UnmatchedPayloads,
    /// Audit rows.
    Audit,
}

/// What one call pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Runs, signals or audit rows.
    pub deleted: u32,
    /// Whether there may be more.
    pub more: bool,
}

/// A scope, or one workflow of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Only this workflow; none is the whole scope.
    pub workflow: Option<WorkflowKey>,
}

impl Place {
    /// Whether the other place is this one, or inside it.
    #[must_use]
    pub fn holds(&self, app: &App, scope: &Scope, workflow: Option<&WorkflowKey>) -> bool {
        self.app == *app
            && self.scope == *scope
            && (self.workflow.is_none() || self.workflow.as_ref() == workflow)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.workflow {
            Some(workflow) => write!(f, "workflow `{workflow}` in {}/{}", self.app, self.scope),
            None => write!(f, "scope {}/{}", self.app, self.scope),
        }
    }
}

/// A workflow or a scope to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// What.
    pub place: Place,
    /// Whether effects that nobody can explain may go with it.
    pub force: Force,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

impl Delete {
    /// The audit row of the beginning.
    #[must_use]
    pub fn audit_begun(&self) -> Audit {
        self.audit("delete")
    }

    /// The audit row of the end.
    #[must_use]
    pub fn audit_ended(&self) -> Audit {
        self.audit("deleted")
    }

    /// What the runs of the place are told first.
    #[must_use]
    pub fn cancel(&self) -> RowInput {
        RowInput::Cancel { actor: self.actor.clone(), reason: self.reason.clone() }
    }

    fn audit(&self, verb: &str) -> Audit {
        let forced = self.force == Force::Unexplained;
        let workflow = self.place.workflow.as_ref();
        Audit {
            actor: self.actor.clone(),
            verb: verb.to_owned(),
            reason: self.reason.clone(),
            details: serde_json::json!({ "workflow": workflow, "forced": forced }).to_string(),
        }
    }
}

/// What one call deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deleted {
    /// Runs that were canceled, or asked to end.
    pub canceled: u32,
    /// Events.
    pub events: u32,
    /// Runs.
    pub runs: u32,
    /// Signals.
    pub signals: u32,
    /// Workflows.
    pub workflows: u32,
    /// Effects that hold it up now, at most 100; the deletion is not done before they are explained, or it is forced.
    pub unexplained: Vec<OpenEffectRow>,
    /// Runs that are still on their way to their end: a worker has to see the cancel, or its lease has to run out.
    pub ending: u64,
    /// Whether nothing is left.
    pub done: bool,
}

impl Deleted {
    /// Whether this call changed anything.
    #[must_use]
    pub const fn did_something(&self) -> bool {
        self.canceled + self.events + self.runs + self.signals + self.workflows > 0
    }
}

/// An effect that nobody can explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenEffectRow {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepKey,
    /// What is known.
    pub state: EffectState,
}

/// Why something is not redriven or deleted. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// Nothing of that name.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The event's payload is gone.
    #[error("the payload of event {event} was emptied: emit what happened anew, under a new key")]
    Expired {
        /// Which.
        event: EventId,
    },
    /// Only dead-lettered events are redriven.
    #[error("event {event} is {status}, not dead-lettered: there is nothing to redrive")]
    NotDeadLettered {
        /// Which.
        event: EventId,
        /// Where it stands.
        status: &'static str,
    },
    /// Effects of it are unexplained.
    #[error(
        "nobody knows what became of {} there ({}): resolve {}, or force the deletion with a reason",
        counted(.effects.len(), "effect"),
        listed(.effects),
        if .effects.len() == 1 { "it" } else { "them" }
    )]
    Unexplained {
        /// At most 100 of them.
        effects: Vec<OpenEffectRow>,
    },
    /// Runs of the workflow are children of other workflows' runs.
    #[error(
        "runs of other workflows have children of it ({}): prune those first, or delete the scope",
        .roots.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Shared {
        /// At most 100 of the runs that they belong to.
        roots: Vec<RunId>,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RetentionError {
    /// The kernel's code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Expired { .. } => Some(Code::EVENT_EXPIRED),
            Self::Unexplained { .. } => Some(Code::EFFECT_OUTCOME_UNKNOWN),
            Self::NotFound { .. }
            | Self::NotDeadLettered { .. }
            | Self::Shared { .. }
            | Self::Store(_) => None,
        }
    }
}

fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

fn listed(effects: &[OpenEffectRow]) -> String {
    let one = |row: &OpenEffectRow| format!("{} {} {}", row.run, row.step, row.state.as_str());
    effects.iter().map(one).collect::<Vec<_>>().join("; ")
}
