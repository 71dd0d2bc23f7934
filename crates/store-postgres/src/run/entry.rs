//! What a commit of a batch is sent as.

use uuid::Uuid;

use surefoot_kernel_core::{Commit, JournalText, Phase, Run, Timestamp};

use super::columns::wake_at;
use super::row::{detail_of, int, json_opt};
use crate::composite::composite;
use crate::error::Fault;
use crate::keys::Key;

composite! {
    /// The run as the commit leaves it, under the stamp that it was decided on.
    pub(super) struct After<'a> as "surefoot.after" {
        id: Uuid,
        generation: i64,
        revision: i64,
        seq: i64,
        journal_bytes: i64,
        failures: i64,
        step_attempt: i64,
        deadline: Option<String>,
        charged: Option<String>,
        last_failure: Option<String>,
        ended_at: Option<i64>,
        state: &'static str,
        claimable_at: Option<i64>,
        wake_at: Option<i64>,
        detail: Option<String>,
        effect_step: Option<&'a str>,
        effect_action: Option<&'a str>,
        effect_state: Option<&'static str>,
        effect_since: Option<i64>,
        effect_evidence: Option<&'a str>,
    }
}

impl<'a> After<'a> {
    pub(super) fn of(commit: &'a Commit) -> Result<Self, Fault> {
        let (before, run) = (&commit.before, &commit.after);
        let effect = run.effect();
        Ok(Self {
            id: before.run.key(),
            generation: int(before.generation),
            revision: int(before.revision),
            seq: int(run.seq),
            journal_bytes: int(run.journal_bytes),
            failures: i64::from(run.failures),
            step_attempt: i64::from(run.step_attempt),
            deadline: json_opt(run.deadline.as_ref())?,
            charged: json_opt(run.charged.as_ref())?,
            last_failure: json_opt(run.last_failure.as_ref())?,
            ended_at: run.ended_at.map(Timestamp::micros),
            state: run.state().as_str(),
            claimable_at: run.claimable_at().map(Timestamp::micros),
            wake_at: wake_at(&run.phase),
            detail: detail_of(&run.phase)?,
            effect_step: effect.map(|effect| effect.step.as_str()),
            effect_action: effect.map(|effect| &*effect.action),
            effect_state: effect.map(|effect| effect.state.as_str()),
            effect_since: effect.map(|effect| effect.since.micros()),
            effect_evidence: effect.and_then(|effect| effect.evidence.as_deref()),
        })
    }
}

composite! {
    /// What the commit of that place in the batch appends to the journal, or the event.
    pub(crate) struct Facts<'a> as "surefoot.facts" {
        entry: i64,
        run: Uuid,
        seq: i64,
        count: i64,
        generation: i64,
        facts: &'a str,
    }
}

impl<'a> Facts<'a> {
    /// Of a run as it is then.
    pub(crate) fn new(entry: i64, run: &Run, journal: &'a JournalText) -> Self {
        let (generation, facts) = (int(run.generation), &*journal.facts);
        let (seq, count) = (int(journal.seq), int(journal.count));
        Self { entry, run: run.id.key(), seq, count, generation, facts }
    }

    pub(super) fn of(entry: i64, commit: &'a Commit) -> Option<Self> {
        Some(Self::new(entry, &commit.after, commit.journal.as_ref()?))
    }
}

composite! {
    /// What the run ended with, if that is more than null.
    pub(super) struct Ended as "surefoot.result" {
        entry: i64,
        run: Uuid,
        result: String,
    }
}

impl Ended {
    pub(super) fn of(entry: i64, commit: &Commit) -> Option<Self> {
        match &commit.after.phase {
            Phase::Succeeded { result, .. } if !result.is_null() => {
                Some(Self { entry, run: commit.before.run.key(), result: result.to_string() })
            }
            Phase::Succeeded { .. }
            | Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        }
    }
}
