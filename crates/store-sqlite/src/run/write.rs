//! How a run's row is written: the one way, for workers, operators and the store itself.

use std::borrow::Cow;

use serde_json::Value;
use sqlx::SqliteConnection;

use surefoot_kernel_core::{
    Audit, Commit, JournalText, OpenEffect, Phase, Run, RunState, StepKey, TASK_SIGNAL, Timestamp,
    VersionId, Wake,
};

use super::row::{Head, detail_of, int, json_opt};
use crate::child::settle::settle;
use crate::error::Fault;
use crate::sql::{self, Statement, pieces};

/// One row to write, its stamp checked already.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) head: Head,
    pub(crate) after: Cow<'a, Run>,
    pub(crate) journal: Option<&'a JournalText>,
    /// The steps whose outcome it records.
    pub(crate) outcomes: &'a [StepKey],
    pub(crate) audit: Option<&'a Audit>,
    /// Names the claim that led to `after`, if it is one.
    pub(crate) claim_nonce: Option<i64>,
    /// The signal that woke the run into `after`, if that is what happened.
    pub(crate) woken_by: Option<i64>,
}

impl<'a> Write<'a> {
    /// What was decided on a row that was read before this transaction.
    pub(crate) fn of(head: Head, commit: &'a Commit) -> Self {
        let mut after = Cow::Borrowed(&commit.after);
        // A renewal since the run was read is no write of the run: the commit must not undo it.
        if let (Some(stored), Phase::Running { lease, .. }) = (&head.lease, &commit.after.phase)
            && lease != stored
            && let Phase::Running { lease, .. } = &mut after.to_mut().phase
        {
            *lease = stored.clone();
        }
        Self { after, ..Self::decided(head, commit) }
    }

    /// What was decided on the row as it stands in this transaction.
    pub(crate) fn decided(head: Head, commit: &'a Commit) -> Self {
        Self {
            head,
            after: Cow::Borrowed(&commit.after),
            journal: commit.journal.as_ref(),
            outcomes: &commit.outcomes,
            audit: commit.audit.as_ref(),
            claim_nonce: None,
            woken_by: None,
        }
    }

    /// Whether cancel of the run is requested by it.
    pub(crate) fn asks_to_cancel(&self) -> bool {
        !self.head.canceled && self.after.cancel.is_some()
    }

    /// Whether it is no more than a step of a running run: then no indexed column changes.
    fn is_step(&self) -> bool {
        let (head, after) = (&self.head, &*self.after);
        head.state == RunState::Running
            && after.lease() == head.lease.as_ref()
            && head.generation == after.generation
            && self.claim_nonce.is_none()
            && !head.has_effect
            && after.effect().is_none()
            && head.canceled == after.cancel.is_some()
            && head.resume_step.is_none()
            && after.resume.is_none()
    }

    /// Whether an operator has a failed run tried again: it is left in no other way.
    fn is_retry(&self) -> bool {
        self.head.state == RunState::Failed && self.after.state() == RunState::Queued
    }

    /// What the run ended with, if this is its end.
    fn result(&self) -> Option<&Value> {
        match &self.after.phase {
            Phase::Succeeded { result, .. } => {
                Some(result).filter(|it| !it.is_null() && self.head.state != RunState::Succeeded)
            }
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        }
    }

    /// The claim that the run is held by, if it is still the one that claimed it.
    fn nonce(&self) -> Option<i64> {
        self.after.lease()?;
        let kept = self.head.generation == self.after.generation;
        self.claim_nonce.or(self.head.claim_nonce.filter(|_| kept))
    }

    /// The signal that the open step was woken by.
    fn signal(&self) -> Option<i64> {
        let resume = self.after.resume.as_ref()?;
        match &resume.wake {
            Wake::Deadline | Wake::Children => None,
            Wake::Signal(_) => {
                let kept = self.head.resume_step.as_ref() == Some(&resume.step);
                self.woken_by.or(self.head.signal.filter(|_| kept))
            }
        }
    }

    /// The signal on which this write records an outcome: spent from now on.
    fn spent(&self) -> Option<i64> {
        let (signal, step) = (self.head.signal?, self.head.resume_step.as_ref()?);
        self.outcomes.contains(step).then_some(signal)
    }
}

/// Writes rows of different runs, their journals and audits, and what they mean to their families. The caller holds a
/// write transaction.
pub(crate) async fn write_all(
    conn: &mut SqliteConnection,
    writes: &[Write<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    write_rows(conn, writes, now).await?;
    let moves: Vec<&Write<'_>> = writes.iter().filter(|write| !write.is_step()).collect();
    settle(conn, &moves, now).await
}

/// The same for rows that mean nothing to a family.
pub(crate) async fn write_rows(
    conn: &mut SqliteConnection,
    writes: &[Write<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    let (steps, moves): (Vec<&Write<'_>>, Vec<_>) = writes.iter().partition(|it| it.is_step());
    for piece in pieces(&steps) {
        let mut query = sqlx::query(sql::RUN_STEPS.text(piece.len()));
        for write in piece {
            query = bind_step(query, write)?;
        }
        query = bind_journals(sql::RUN_STEP.blank(query, piece.len()), piece, now);
        query.execute(&mut *conn).await?;
    }
    for piece in pieces(&moves) {
        let mut query = sqlx::query(sql::RUN_MOVES.text(piece.len()));
        for write in piece {
            query = query.bind(write.head.no);
            query = bind_state(query, &write.after, write.nonce(), write.signal())?;
        }
        query = bind_journals(sql::RUN_MOVE.blank(query, piece.len()), piece, now);
        for write in piece {
            let result = write.result();
            query = query.bind(result.map(|_| write.head.no)).bind(result.map(ToString::to_string));
        }
        query = sql::RUN_RESULT_WRITE.blank(query, piece.len());
        query.execute(&mut *conn).await?;
    }
    for write in writes {
        write_rest(conn, write, now).await?;
    }
    Ok(())
}

/// What few writes have.
async fn write_rest(
    conn: &mut SqliteConnection,
    write: &Write<'_>,
    now: Timestamp,
) -> Result<(), Fault> {
    if let Some(signal) = write.spent() {
        let query = sqlx::query(sql::SIGNAL_SPEND);
        query.bind(now.micros()).bind(signal).execute(&mut *conn).await?;
    }
    if write.is_retry() {
        retry_tasks(conn, &write.after).await?;
    }
    if let Some(audit) = write.audit {
        let origin = &write.after.origin;
        let about = About { app: origin.app.as_str(), scope: origin.scope.as_str() };
        audit_write(conn, about, audit, (Some(&*write.after), Some(origin.version)), now).await?;
    }
    Ok(())
}

/// What its steps asked for and did not get is done afresh, should one of them ask again.
async fn retry_tasks(conn: &mut SqliteConnection, run: &Run) -> Result<(), Fault> {
    let id = run.id.to_bytes().to_vec();
    sqlx::query(sql::TASK_RETRY).bind(id.clone()).execute(&mut *conn).await?;
    let unsay = sqlx::query(sql::TASK_UNSAY).bind(id).bind(run.origin.app.as_str());
    unsay.bind(TASK_SIGNAL).execute(conn).await?;
    Ok(())
}

/// Whose audit it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) app: &'a str,
    pub(crate) scope: &'a str,
}

pub(crate) async fn audit_write(
    conn: &mut SqliteConnection,
    about: About<'_>,
    audit: &Audit,
    (run, version): (Option<&Run>, Option<VersionId>),
    now: Timestamp,
) -> Result<(), Fault> {
    sqlx::query(sql::AUDIT_WRITE)
        .bind(now.micros())
        .bind(about.app)
        .bind(about.scope)
        .bind(&*audit.actor)
        .bind(&*audit.verb)
        .bind(&*audit.reason)
        .bind(run.map(|run| run.id.to_bytes().to_vec()))
        .bind(version.map(|version| version.to_bytes().to_vec()))
        .bind(&*audit.details)
        .execute(conn)
        .await?;
    Ok(())
}

/// `run/journal_append`: a row for each, blank where nothing is journaled.
fn bind_journals<'q>(
    mut query: Statement<'q>,
    writes: &[&'q Write<'_>],
    now: Timestamp,
) -> Statement<'q> {
    for write in writes {
        let journal = write.journal;
        query = query
            .bind(journal.map(|_| write.head.no))
            .bind(journal.map(|journal| int(journal.seq)))
            .bind(journal.map(|journal| int(journal.count)))
            .bind(int(write.after.generation))
            .bind(now.micros())
            .bind(journal.map(|journal| &*journal.facts));
    }
    sql::JOURNAL_APPEND.blank(query, writes.len())
}

/// `run/step`: the columns that steps write.
fn bind_step<'q>(query: Statement<'q>, write: &Write<'_>) -> Result<Statement<'q>, Fault> {
    let run = &*write.after;
    Ok(query
        .bind(write.head.no)
        .bind(int(run.revision))
        .bind(int(run.seq))
        .bind(int(run.journal_bytes))
        .bind(run.failures)
        .bind(run.step_attempt)
        .bind(json_opt(run.deadline.as_ref())?)
        .bind(json_opt(run.charged.as_ref())?)
        .bind(json_opt(run.last_failure.as_ref())?))
}

/// `run/move` and `run/insert`: every column that can change, in the order of the table.
pub(crate) fn bind_state<'q>(
    query: Statement<'q>,
    run: &Run,
    claim_nonce: Option<i64>,
    signal: Option<i64>,
) -> Result<Statement<'q>, Fault> {
    let lease = run.lease();
    let wait = match &run.phase {
        Phase::Waiting(wait) => Some(wait),
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => None,
    };
    let on = wait.and_then(|wait| wait.on.as_ref()).filter(|on| on.is_signal());
    let query = query
        .bind(int(run.generation))
        .bind(int(run.revision))
        .bind(int(run.seq))
        .bind(int(run.journal_bytes))
        .bind(run.failures)
        .bind(run.step_attempt)
        .bind(json_opt(run.deadline.as_ref())?)
        .bind(json_opt(run.charged.as_ref())?)
        .bind(json_opt(run.last_failure.as_ref())?)
        .bind(int(run.attempt))
        .bind(run.started_at.map(Timestamp::micros))
        .bind(run.ended_at.map(Timestamp::micros))
        .bind(run.state().as_str())
        .bind(run.claimable_at().map(Timestamp::micros))
        .bind(lease.map(|lease| lease.owner.to_bytes().to_vec()))
        .bind(lease.map(|lease| lease.length.get()))
        .bind(claim_nonce)
        .bind(wait.and_then(|wait| wait.deadline).map(Timestamp::micros))
        .bind(on.map(|on| on.is_app_wide()))
        .bind(on.map(|on| place(on.is_app_wide(), run).to_owned()))
        .bind(on.map(|on| on.kind().to_owned()))
        .bind(on.map(|on| on.key().to_owned()));
    Ok(bind_effect(query, run.effect())
        .bind(json_opt(run.cancel.as_ref())?)
        .bind(detail_of(&run.phase)?)
        .bind(signal)
        .bind(json_opt(run.resume.as_ref())?))
}

fn bind_effect<'q>(query: Statement<'q>, effect: Option<&OpenEffect>) -> Statement<'q> {
    query
        .bind(effect.map(|effect| effect.step.as_str().to_owned()))
        .bind(effect.map(|effect| effect.action.clone()))
        .bind(effect.map(|effect| effect.state.as_str()))
        .bind(effect.map(|effect| effect.since.micros()))
        .bind(effect.and_then(|effect| effect.evidence.clone()))
}

/// The scope column of what is waited for: empty outside every scope.
pub(crate) fn place(app_wide: bool, run: &Run) -> &str {
    if app_wide { "" } else { run.origin.scope.as_str() }
}
