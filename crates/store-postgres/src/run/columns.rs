//! A run as a value of its table's row type.

use uuid::Uuid;

use surefoot_kernel_core::{Dependency, Phase, Run, Timestamp};

use super::row::{detail_of, int, json_opt};
use super::write::place;
use crate::composite::composite;
use crate::error::Fault;
use crate::keys::Key;

composite! {
    /// Every column, in the order of the table.
    pub(crate) struct RunRow<'a> as "surefoot.run" {
        id: Uuid,
        app: &'a str,
        scope: &'a str,
        workflow: &'a str,
        version: Uuid,
        footprint: &'a str,
        mode: &'static str,
        event: Option<Uuid>,
        trigger_kind: Option<&'a str>,
        occurred_at: i64,
        root: Uuid,
        parent_run: Option<Uuid>,
        parent_step: Option<&'a str>,
        parent_index: Option<i64>,
        parent_depth: Option<i64>,
        created_at: i64,
        generation: i64,
        revision: i64,
        seq: i64,
        journal_bytes: i64,
        failures: i64,
        step_attempt: i64,
        deadline: Option<String>,
        charged: Option<String>,
        last_failure: Option<String>,
        lease_until: Option<i64>,
        lease_length: Option<i64>,
        attempt: i64,
        started_at: Option<i64>,
        ended_at: Option<i64>,
        state: &'static str,
        claimable_at: Option<i64>,
        lease_owner: Option<Uuid>,
        claim_nonce: Option<i64>,
        wake_at: Option<i64>,
        wait_app_wide: Option<bool>,
        wait_scope: Option<&'a str>,
        wait_kind: Option<&'a str>,
        wait_key: Option<&'a str>,
        effect_step: Option<&'a str>,
        effect_action: Option<&'a str>,
        effect_state: Option<&'static str>,
        effect_since: Option<i64>,
        effect_evidence: Option<&'a str>,
        effectful: bool,
        cancel: Option<String>,
        detail: Option<String>,
        signal: Option<i64>,
        resume: Option<String>,
    }
}

impl<'a> RunRow<'a> {
    /// A run that was just created.
    pub(crate) fn new(run: &'a Run) -> Result<Self, Fault> {
        Self::of(run, None, None)
    }

    /// With the name of the claim that holds it, and the signal that woke it.
    pub(crate) fn of(
        run: &'a Run,
        claim_nonce: Option<i64>,
        signal: Option<i64>,
    ) -> Result<Self, Fault> {
        let origin = &*run.origin;
        let parent = origin.parent.as_ref();
        let lease = run.lease();
        let on = signal_of(&run.phase);
        let effect = run.effect();
        Ok(Self {
            id: run.id.key(),
            app: origin.app.as_str(),
            scope: origin.scope.as_str(),
            workflow: origin.workflow.as_str(),
            version: origin.version.key(),
            footprint: &origin.footprint,
            mode: origin.mode.as_str(),
            event: origin.event.map(Key::key),
            trigger_kind: origin.trigger.as_deref(),
            occurred_at: origin.occurred_at.micros(),
            root: origin.root.key(),
            parent_run: parent.map(|parent| parent.run.key()),
            parent_step: parent.map(|parent| parent.step.as_str()),
            parent_index: parent.map(|parent| i64::from(parent.index)),
            parent_depth: parent.map(|parent| i64::from(parent.depth)),
            created_at: origin.created_at.micros(),
            generation: int(run.generation),
            revision: int(run.revision),
            seq: int(run.seq),
            journal_bytes: int(run.journal_bytes),
            failures: i64::from(run.failures),
            step_attempt: i64::from(run.step_attempt),
            deadline: json_opt(run.deadline.as_ref())?,
            charged: json_opt(run.charged.as_ref())?,
            last_failure: json_opt(run.last_failure.as_ref())?,
            lease_until: lease.map(|lease| lease.until.micros()),
            lease_length: lease.map(|lease| lease.length.get()),
            attempt: int(run.attempt),
            started_at: run.started_at.map(Timestamp::micros),
            ended_at: run.ended_at.map(Timestamp::micros),
            state: run.state().as_str(),
            claimable_at: run.claimable_at().map(Timestamp::micros),
            lease_owner: lease.map(|lease| lease.owner.key()),
            claim_nonce,
            wake_at: wake_at(&run.phase),
            wait_app_wide: on.map(Dependency::is_app_wide),
            wait_scope: on.map(|on| place(on.is_app_wide(), run)),
            wait_kind: on.map(Dependency::kind),
            wait_key: on.map(Dependency::key),
            effect_step: effect.map(|effect| effect.step.as_str()),
            effect_action: effect.map(|effect| &*effect.action),
            effect_state: effect.map(|effect| effect.state.as_str()),
            effect_since: effect.map(|effect| effect.since.micros()),
            effect_evidence: effect.and_then(|effect| effect.evidence.as_deref()),
            effectful: effect.is_some(),
            cancel: json_opt(run.cancel.as_ref())?,
            detail: detail_of(&run.phase)?,
            signal,
            resume: json_opt(run.resume.as_ref())?,
        })
    }
}

/// The signal that is waited for.
fn signal_of(phase: &Phase) -> Option<&Dependency> {
    match phase {
        Phase::Waiting(wait) => wait.on.as_ref().filter(|on| on.is_signal()),
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => None,
    }
}

/// The deadline of a wait.
pub(super) fn wake_at(phase: &Phase) -> Option<i64> {
    let deadline = match phase {
        Phase::Waiting(wait) => wait.deadline,
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => None,
    };
    deadline.map(Timestamp::micros)
}
