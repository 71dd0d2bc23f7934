//! What ends: activations that are switched off, events that are redriven, and what is pruned or deleted.

use std::collections::BTreeMap;

use serde_json::json;
use surefoot_kernel_core::payload::is_storable;
use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    App, Audit, Delete, EventId, Micros, Place, Prunable, Prune, Redrive, RunState, Scope,
    SetActivation, VersionId, WorkflowKey,
};

use crate::operator::Signed;
use crate::view::{AuditRowView, AuditView, DeletionView, PrunedView, RedrivenView, SwitchedView};
use crate::{Operator, OperatorError};

/// What one call to the store may delete.
const BATCH: u32 = 500;

/// An activation, or all of a workflow, to switch on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
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
    /// Why.
    pub why: String,
}

/// What is pruned, and how old it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunePolicy {
    /// Whose.
    pub app: App,
    /// Only there.
    pub scope: Option<Scope>,
    /// Ended, spent or written so long ago.
    pub older_than: Micros,
    /// Trees of runs whose root ended in one of these states; none prunes no runs.
    pub states: Vec<RunState>,
    /// Signals that a run has used.
    pub spent_signals: bool,
    /// Payloads of events that nobody listened to.
    pub unmatched_events: bool,
    /// Audit rows.
    pub audit: bool,
    /// Why.
    pub why: String,
}

/// A workflow or a scope to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletePlace {
    /// What.
    pub place: Place,
    /// Whether effects that nobody can explain may go with it.
    pub force: bool,
    /// Why.
    pub why: String,
}

impl PrunePolicy {
    /// What it names, in the order in which it is pruned.
    fn prunables(&self) -> Vec<Prunable> {
        let runs =
            (!self.states.is_empty()).then(|| Prunable::Runs { states: self.states.clone() });
        let signals = self.spent_signals.then_some(Prunable::SpentSignals);
        let unmatched = self.unmatched_events.then_some(Prunable::UnmatchedPayloads);
        let audit = self.audit.then_some(Prunable::Audit);
        [runs, signals, unmatched, audit].into_iter().flatten().collect()
    }

    fn audit(&self, what: &Prunable, signed: &Signed) -> Audit {
        let states: Vec<&str> = self.states.iter().map(|state| state.as_str()).collect();
        let what = match what {
            Prunable::Runs { .. } => json!({ "runs": states }),
            Prunable::SpentSignals => json!("spent signals"),
            Prunable::UnmatchedPayloads => json!("payloads of unmatched events"),
            Prunable::Audit => json!("audit rows"),
        };
        let older_than_s = self.older_than.get() / 1_000_000;
        Audit {
            actor: signed.actor.clone(),
            verb: "prune".to_owned(),
            reason: signed.reason.clone(),
            details: json!({ "what": what, "older_than_s": older_than_s }).to_string(),
        }
    }
}

impl Operator {
    /// Switches activations on or off; they stay so, whatever is published later.
    ///
    /// # Errors
    /// [`PublishError::NotFound`](surefoot_kernel_core::PublishError::NotFound).
    pub async fn switch(&self, switch: Switch) -> Result<SwitchedView, OperatorError> {
        let Switch { app, scope, workflow, activation, enabled, why } = switch;
        let Signed { actor, reason } = self.signed(&why)?;
        if activation.as_deref().is_some_and(|key| !is_storable(key)) {
            return Err(OperatorError::Nul { what: "activation" });
        }
        let set = workflow.clone();
        let set = SetActivation { app, scope, workflow: set, activation, enabled, actor, reason };
        let set = self.store.activation_set(set).await.map_err(|error| {
            let then = "look at the workflows; to switch it again is safe";
            OperatorError::from(error).unsure("it was switched", then)
        })?;
        Ok(SwitchedView { workflow, enabled, changed: set.changed })
    }

    /// Has the runs of a dead-lettered event created after all; a worker does that.
    ///
    /// # Errors
    /// [`OperatorError::Retention`]: the event is not dead-lettered, or its payload is gone.
    pub async fn redrive(&self, event: EventId, why: &str) -> Result<RedrivenView, OperatorError> {
        let Signed { actor, reason } = self.signed(why)?;
        let redriven = self.store.event_redrive(Redrive { event, actor, reason }).await;
        let redriven = redriven.map_err(|error| {
            let then = "look at the event; to redrive it again is refused if it was";
            OperatorError::from(error).unsure("the event is redriven", then)
        })?;
        let (deliveries, dropped) = (redriven.deliveries, redriven.dropped);
        Ok(RedrivenView { event, deliveries, dropped })
    }

    /// Prunes by a policy, in bounded batches; `progress` is told after each of them. Dropped, or killed, it has
    /// pruned a part, and the next call goes on.
    ///
    /// # Errors
    /// [`OperatorError::NothingToPrune`] if the policy names nothing; [`OperatorError::NotFound`] for a scope of which
    /// nothing is known; the store's.
    pub async fn prune(
        &self,
        policy: PrunePolicy,
        mut progress: impl FnMut(&PrunedView) + Send,
    ) -> Result<PrunedView, OperatorError> {
        let signed = self.signed(&policy.why)?;
        let prunables = policy.prunables();
        if prunables.is_empty() {
            return Err(OperatorError::NothingToPrune);
        }
        if let Some(scope) = &policy.scope {
            self.check_scope(&policy.app, scope).await?;
        }
        let now = self.store.store_now().await?;
        let micros = now.micros().saturating_sub(policy.older_than.get());
        let before = surefoot_kernel_core::Timestamp::from_micros(micros);
        let mut view = PrunedView::default();
        for what in prunables {
            let mut audit = Some(policy.audit(&what, &signed));
            loop {
                let (app, scope) = (policy.app.clone(), policy.scope.clone());
                let prune = Prune {
                    app,
                    scope,
                    what: what.clone(),
                    before,
                    limit: BATCH,
                    audit: audit.clone(),
                };
                let pruned = self.store.prune(prune).await.map_err(|error| {
                    let then = "prune again: it goes on where it stopped";
                    OperatorError::from(error).unsure("the last batch was deleted", then)
                })?;
                view.count(&what, pruned.deleted);
                if pruned.deleted > 0 {
                    // One row tells of it, not one for each batch.
                    audit = None;
                    progress(&view);
                }
                if !pruned.more {
                    break;
                }
            }
        }
        Ok(view)
    }

    /// Marks a workflow or a scope as being deleted, and deletes as much of it as can be deleted now, in bounded
    /// batches. What is left is deleted by the same call again.
    ///
    /// # Errors
    /// [`OperatorError::Retention`]: there is no such place, effects of it are unexplained and that is not forced, or
    /// runs of it belong to runs of other workflows.
    pub async fn delete(
        &self,
        delete: DeletePlace,
        mut progress: impl FnMut(&DeletionView) + Send,
    ) -> Result<DeletionView, OperatorError> {
        let DeletePlace { place, force, why } = delete;
        let force = if force { Force::Unexplained } else { Force::No };
        let Signed { actor, reason } = self.signed(&why)?;
        let begin = Delete { place: place.clone(), force, actor, reason };
        let unsure = |error: OperatorError| {
            error.unsure("the last batch was deleted", "delete again: it goes on where it stopped")
        };
        self.store.delete_begin(begin).await.map_err(|error| unsure(error.into()))?;
        let mut view = DeletionView::default();
        loop {
            let pass = self.store.delete_pass(place.clone(), BATCH).await;
            let pass = pass.map_err(|error| unsure(error.into()))?;
            view.add(&pass);
            if view.done || view.is_held() {
                return Ok(view);
            }
            progress(&view);
        }
    }

    /// Who did what in an app, or in one scope of it, newest first.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn audit(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<AuditView, OperatorError> {
        let rows = self.store.audit_list(app, scope, limit).await?;
        self.if_empty(rows.is_empty(), Some(app), scope).await?;
        let mut versions: BTreeMap<VersionId, Option<(WorkflowKey, u64)>> = BTreeMap::new();
        let mut audit = Vec::with_capacity(rows.len());
        for row in rows {
            let of = match row.version {
                None => None,
                Some(version) => match versions.get(&version) {
                    Some(known) => known.clone(),
                    None => {
                        let stored = self.store.version_load(version).await?;
                        let found = stored.map(|stored| (stored.workflow, stored.revision));
                        versions.insert(version, found.clone());
                        found
                    }
                },
            };
            audit.push(AuditRowView::of(row, of));
        }
        Ok(AuditView { audit })
    }
}
