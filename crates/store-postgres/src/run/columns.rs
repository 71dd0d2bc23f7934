//! Rows of runs as arrays, one per column: what `unnest` makes rows of again.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use uuid::Uuid;

use surefoot_kernel_core::{OpenEffect, Phase, Run, Timestamp};

use super::row::{detail_of, int, json_opt};
use super::write::place;
use crate::error::Fault;
use crate::keys::Key;

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// `run/step`: the columns that steps write, behind the id.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    ids: Vec<Uuid>,
    revisions: Vec<i64>,
    counters: Counters,
}

/// What every commit writes.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    seqs: Vec<i64>,
    journal_bytes: Vec<i64>,
    failures: Vec<i64>,
    step_attempts: Vec<i64>,
    deadlines: Vec<Option<String>>,
    charges: Vec<Option<String>>,
    last_failures: Vec<Option<String>>,
}

impl Counters {
    pub(crate) fn push(&mut self, run: &Run) -> Result<(), Fault> {
        self.seqs.push(int(run.seq));
        self.journal_bytes.push(int(run.journal_bytes));
        self.failures.push(i64::from(run.failures));
        self.step_attempts.push(i64::from(run.step_attempt));
        self.deadlines.push(json_opt(run.deadline.as_ref())?);
        self.charges.push(json_opt(run.charged.as_ref())?);
        self.last_failures.push(json_opt(run.last_failure.as_ref())?);
        Ok(())
    }

    pub(crate) fn bind(self, query: Statement<'_>) -> Statement<'_> {
        query
            .bind(self.seqs)
            .bind(self.journal_bytes)
            .bind(self.failures)
            .bind(self.step_attempts)
            .bind(self.deadlines)
            .bind(self.charges)
            .bind(self.last_failures)
    }
}

impl Steps {
    pub(crate) fn push(&mut self, run: &Run) -> Result<(), Fault> {
        self.ids.push(run.id.key());
        self.revisions.push(int(run.revision));
        self.counters.push(run)
    }

    pub(crate) fn bind(self, query: Statement<'_>) -> Statement<'_> {
        self.counters.bind(query.bind(self.ids).bind(self.revisions))
    }
}

/// `run/move` and `run/insert`: every column that can change, in the order of the table.
#[derive(Debug, Default)]
pub(crate) struct States {
    generations: Vec<i64>,
    revisions: Vec<i64>,
    counters: Counters,
    lease_untils: Vec<Option<i64>>,
    lease_lengths: Vec<Option<i64>>,
    attempts: Vec<i64>,
    started: Vec<Option<i64>>,
    ends: Ends,
    lease_owners: Vec<Option<Uuid>>,
    claim_nonces: Vec<Option<i64>>,
    wait_app_wide: Vec<Option<bool>>,
    wait_scopes: Vec<Option<String>>,
    wait_kinds: Vec<Option<String>>,
    wait_keys: Vec<Option<String>>,
    effects: Effects,
    cancels: Vec<Option<String>>,
    signals: Vec<Option<i64>>,
    resumes: Vec<Option<String>>,
}

impl States {
    pub(crate) fn push(
        &mut self,
        run: &Run,
        claim_nonce: Option<i64>,
        signal: Option<i64>,
    ) -> Result<(), Fault> {
        let lease = run.lease();
        let on = match &run.phase {
            Phase::Waiting(wait) => wait.on.as_ref().filter(|on| on.is_signal()),
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        };
        self.generations.push(int(run.generation));
        self.revisions.push(int(run.revision));
        self.counters.push(run)?;
        self.lease_untils.push(lease.map(|lease| lease.until.micros()));
        self.lease_lengths.push(lease.map(|lease| lease.length.get()));
        self.attempts.push(int(run.attempt));
        self.started.push(run.started_at.map(Timestamp::micros));
        self.ends.push(run)?;
        self.lease_owners.push(lease.map(|lease| lease.owner.key()));
        self.claim_nonces.push(claim_nonce);
        self.wait_app_wide.push(on.map(|on| on.is_app_wide()));
        self.wait_scopes.push(on.map(|on| place(on.is_app_wide(), run).to_owned()));
        self.wait_kinds.push(on.map(|on| on.kind().to_owned()));
        self.wait_keys.push(on.map(|on| on.key().to_owned()));
        self.effects.push(run.effect());
        self.cancels.push(json_opt(run.cancel.as_ref())?);
        self.signals.push(signal);
        self.resumes.push(json_opt(run.resume.as_ref())?);
        Ok(())
    }

    pub(crate) fn bind(self, query: Statement<'_>) -> Statement<'_> {
        let query = query.bind(self.generations).bind(self.revisions);
        let query = self
            .counters
            .bind(query)
            .bind(self.lease_untils)
            .bind(self.lease_lengths)
            .bind(self.attempts)
            .bind(self.started);
        let query = self
            .ends
            .bind(query)
            .bind(self.lease_owners)
            .bind(self.claim_nonces)
            .bind(self.wait_app_wide)
            .bind(self.wait_scopes)
            .bind(self.wait_kinds)
            .bind(self.wait_keys);
        self.effects.bind(query).bind(self.cancels).bind(self.signals).bind(self.resumes)
    }
}

/// Where a run stands.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    ended: Vec<Option<i64>>,
    states: Vec<&'static str>,
    claimable: Vec<Option<i64>>,
    wakes: Vec<Option<i64>>,
    details: Vec<Option<String>>,
}

impl Ends {
    pub(crate) fn push(&mut self, run: &Run) -> Result<(), Fault> {
        let wake = match &run.phase {
            Phase::Waiting(wait) => wait.deadline,
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        };
        self.ended.push(run.ended_at.map(Timestamp::micros));
        self.states.push(run.state().as_str());
        self.claimable.push(run.claimable_at().map(Timestamp::micros));
        self.wakes.push(wake.map(Timestamp::micros));
        self.details.push(detail_of(&run.phase)?);
        Ok(())
    }

    pub(crate) fn bind(self, query: Statement<'_>) -> Statement<'_> {
        query
            .bind(self.ended)
            .bind(self.states)
            .bind(self.claimable)
            .bind(self.wakes)
            .bind(self.details)
    }
}

/// Open effects.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    steps: Vec<Option<String>>,
    actions: Vec<Option<String>>,
    states: Vec<Option<&'static str>>,
    since: Vec<Option<i64>>,
    evidence: Vec<Option<String>>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Option<&OpenEffect>) {
        self.steps.push(effect.map(|effect| effect.step.as_str().to_owned()));
        self.actions.push(effect.map(|effect| effect.action.clone()));
        self.states.push(effect.map(|effect| effect.state.as_str()));
        self.since.push(effect.map(|effect| effect.since.micros()));
        self.evidence.push(effect.and_then(|effect| effect.evidence.clone()));
    }

    pub(crate) fn bind(self, query: Statement<'_>) -> Statement<'_> {
        query
            .bind(self.steps)
            .bind(self.actions)
            .bind(self.states)
            .bind(self.since)
            .bind(self.evidence)
    }
}
