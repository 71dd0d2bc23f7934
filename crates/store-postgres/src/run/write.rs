//! How a run's row is written: the one way for whoever holds its lock, be it worker, operator or the store itself.
//! (`fast` is the other, for a worker's plain commits.)

use std::borrow::Cow;

use sqlx::PgConnection;
use sqlx::types::Uuid;

use surefoot_kernel_core::{
    Audit, Commit, JournalText, Phase, Run, RunState, StepKey, TASK_SIGNAL, Timestamp, VersionId,
    Wake,
};

use super::columns::RunRow;
use super::row::{Head, int};
use crate::child::settle::settle;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;

/// One row to write, its stamp checked already.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) head: Head,
    pub(crate) after: Cow<'a, Run>,
    pub(crate) journal: Option<&'a JournalText>,
    pub(crate) audit: Option<&'a Audit>,
    /// The steps whose outcome it records.
    pub(crate) outcomes: &'a [StepKey],
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
            audit: commit.audit.as_ref(),
            outcomes: &commit.outcomes,
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

    fn row(&self) -> Result<RunRow<'_>, Fault> {
        RunRow::of(&self.after, self.nonce(), self.signal())
    }

    /// Whether an operator has a failed run tried again: it is left in no other way.
    fn is_retry(&self) -> bool {
        self.head.state == RunState::Failed && self.after.state() == RunState::Queued
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

/// Writes rows of different runs, their journals and audits, and what they mean to their families. The caller has the
/// rows locked, and the groups of children that end.
pub(crate) async fn write_all(
    conn: &mut PgConnection,
    writes: &[Write<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    write_rows(conn, writes, now).await?;
    let moves: Vec<&Write<'_>> = writes.iter().filter(|write| !write.is_step()).collect();
    settle(conn, &moves, now).await
}

/// The same for rows that mean nothing to a family.
pub(crate) async fn write_rows(
    conn: &mut PgConnection,
    writes: &[Write<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    let (steps, moves): (Vec<&Write<'_>>, Vec<_>) = writes.iter().partition(|it| it.is_step());
    for (statement, writes) in [(sql::RUN_STEP, steps), (sql::RUN_MOVE, moves)] {
        if !writes.is_empty() {
            let rows = writes.into_iter().map(Write::row).collect::<Result<Vec<_>, _>>()?;
            sqlx::query(statement).bind(rows).execute(&mut *conn).await?;
        }
    }
    append(conn, writes, now).await?;
    results(conn, writes).await?;
    spend(conn, writes, now).await?;
    retry_tasks(conn, writes).await?;
    for write in writes {
        if let Some(audit) = write.audit {
            let origin = &write.after.origin;
            let about = About { app: origin.app.as_str(), scope: origin.scope.as_str() };
            let of = (Some(&*write.after), Some(origin.version));
            audit_write(conn, about, audit, of, now).await?;
        }
    }
    Ok(())
}

async fn append(
    conn: &mut PgConnection,
    writes: &[Write<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    let (mut runs, mut facts) = (Vec::new(), Vec::new());
    let (mut seqs, mut counts, mut generations) = (Vec::new(), Vec::new(), Vec::new());
    for (write, journal) in writes.iter().filter_map(|it| Some((it, it.journal?))) {
        runs.push(write.head.id.key());
        seqs.push(int(journal.seq));
        counts.push(int(journal.count));
        generations.push(int(write.after.generation));
        facts.push(&*journal.facts);
    }
    if runs.is_empty() {
        return Ok(());
    }
    sqlx::query(sql::JOURNAL_APPEND)
        .bind(runs)
        .bind(seqs)
        .bind(counts)
        .bind(generations)
        .bind(facts)
        .bind(now.micros())
        .execute(conn)
        .await?;
    Ok(())
}

async fn results(conn: &mut PgConnection, writes: &[Write<'_>]) -> Result<(), Fault> {
    let (mut runs, mut results) = (Vec::new(), Vec::new());
    for write in writes {
        if let Phase::Succeeded { result, .. } = &write.after.phase
            && !result.is_null()
            && write.head.state != RunState::Succeeded
        {
            runs.push(write.head.id.key());
            results.push(result.to_string());
        }
    }
    if !runs.is_empty() {
        sqlx::query(sql::RUN_RESULT_WRITE).bind(runs).bind(results).execute(conn).await?;
    }
    Ok(())
}

async fn spend(conn: &mut PgConnection, writes: &[Write<'_>], now: Timestamp) -> Result<(), Fault> {
    let mut spent: Vec<i64> = writes.iter().filter_map(Write::spent).collect();
    spent.sort_unstable();
    spent.dedup();
    if !spent.is_empty() {
        sqlx::query(sql::SIGNAL_SPEND).bind(spent).bind(now.micros()).execute(conn).await?;
    }
    Ok(())
}

/// What the steps of retried runs asked for and did not get is done afresh, should one of them ask again.
async fn retry_tasks(conn: &mut PgConnection, writes: &[Write<'_>]) -> Result<(), Fault> {
    let retried = writes.iter().filter(|write| write.is_retry());
    let retried: Vec<Uuid> = retried.map(|write| write.head.id.key()).collect();
    if !retried.is_empty() {
        sqlx::query(sql::TASK_RETRY).bind(retried.clone()).execute(&mut *conn).await?;
        sqlx::query(sql::TASK_UNSAY).bind(retried).bind(TASK_SIGNAL).execute(conn).await?;
    }
    Ok(())
}

/// Whose audit it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) app: &'a str,
    pub(crate) scope: &'a str,
}

pub(crate) async fn audit_write(
    conn: &mut PgConnection,
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
        .bind(run.map(|run| run.id.key()))
        .bind(version.map(Key::key))
        .bind(&*audit.details)
        .execute(conn)
        .await?;
    Ok(())
}

/// The scope column of what is waited for: empty outside every scope.
pub(crate) fn place(app_wide: bool, run: &Run) -> &str {
    if app_wide { "" } else { run.origin.scope.as_str() }
}
