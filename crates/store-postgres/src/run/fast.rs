//! Plain commits of a worker: many runs in one statement, which is a transaction of its own.
//!
//! The statement locks what is free, checks the stamps, writes rows, journals and results, and answers for each entry
//! by what it really wrote.

use std::collections::HashMap;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    Commit, Committed, Micros, Phase, Run, RunId, StoreError, Timestamp, Todo,
};

use super::commit::written;
use super::entry::{After, Ended, Facts};
use crate::error::{Fault, commit_error};
use crate::keys::Key;
use crate::sql;

/// How a commit is written, by what it means; cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// A step of a running run: no indexed column changes.
    Step,
    /// It moves, and that means nothing to anybody else.
    Move,
    /// In a transaction with others: budgets, signals or families are concerned.
    Group,
    /// In a transaction of its own.
    Alone,
}

impl Way {
    /// By what the commit says. What the row says besides, such as a signal to spend, the statement finds out.
    pub(crate) fn of(commit: &Commit) -> Self {
        let after = &commit.after;
        if commit.audit.is_some() || after.generation != commit.before.generation {
            return Self::Alone;
        }
        if commit.charge.is_some() || after.cancel.is_some() || after.resume.is_some() {
            return Self::Group;
        }
        match &after.phase {
            Phase::Running { todo: Todo::Steps, .. } if !commit.before.has_effect => Self::Step,
            Phase::Running { .. } | Phase::Queued { .. } | Phase::NeedsAttention(_) => Self::Move,
            Phase::Waiting(wait) if wait.on.is_none() => Self::Move,
            Phase::Waiting(_) => Self::Group,
            Phase::Succeeded { .. } | Phase::Failed { .. } | Phase::Canceled { .. } => {
                if after.origin.parent.is_none() { Self::Move } else { Self::Group }
            }
        }
    }
}

/// What the statement says of one entry.
#[derive(Debug)]
pub(crate) enum Said {
    Written(Kept),
    /// Nothing of it was written.
    Refused(StoreError),
    /// Somebody has its row, or it was changed just now to what the commit was decided on.
    Busy,
    /// The row has what the statement does not look after: a transaction does.
    NotPlain,
}

/// What a commit left of the row as it was.
#[derive(Debug)]
pub(crate) struct Kept {
    now: Timestamp,
    until: Option<i64>,
    length: Option<i64>,
}

impl Kept {
    /// Reads what [`commit_in`] answers.
    pub(crate) fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        let now = Timestamp::from_micros(row.try_get("now")?);
        Ok(Self { now, until: row.try_get("until")?, length: row.try_get("length")? })
    }

    /// What was written.
    pub(crate) fn committed(self, mut run: Run) -> Committed {
        // A renewal since the run was read is no write of the run: the row kept it.
        if let (Phase::Running { lease, .. }, Some(until), Some(length)) =
            (&mut run.phase, self.until, self.length)
        {
            lease.until = Timestamp::from_micros(until);
            lease.length = Micros::new(length);
        }
        written(run, self.now)
    }
}

/// Writes steps and moves, in order of their runs' ids, at most one a run.
///
/// # Errors
/// `UnknownOutcome` if nobody knows whether they were written; else they were not.
pub(crate) async fn commit_plain(
    conn: &mut PgConnection,
    commits: &[&Commit],
    offset: i64,
) -> Result<Vec<Said>, StoreError> {
    let row = statement(commits, offset)?.fetch_one(conn).await.map_err(commit_error)?;
    // Whatever it says, it has been committed.
    answers(&row, commits).map_err(|error| StoreError::UnknownOutcome(Box::new(error)))
}

/// Writes a step or a move inside the transaction with this number, which has the run's row locked. No row comes of it if
/// nothing was written: it is another transaction, or the row has what the statement does not look after.
pub(crate) fn commit_in<'q>(
    commit: &'q Commit,
    transaction: &'q str,
    offset: i64,
) -> Result<Statement<'q>, Fault> {
    Ok(sqlx::query(sql::RUN_COMMIT_ONE)
        .bind(After::of(commit)?)
        .bind(offset)
        .bind(Facts::of(1, commit))
        .bind(Ended::of(1, commit))
        .bind(transaction))
}

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

fn statement<'q>(commits: &[&'q Commit], offset: i64) -> Result<Statement<'q>, Fault> {
    let has_moves = commits.iter().any(|commit| Way::of(commit) != Way::Step);
    let batch = Batch::of(commits)?;
    let statement = if has_moves { sql::RUN_COMMIT_MOVES } else { sql::RUN_COMMIT_STEPS };
    let query = sqlx::query(statement).bind(batch.ids).bind(offset);
    let query = query.bind(batch.after).bind(batch.facts);
    Ok(if has_moves { query.bind(batch.results) } else { query })
}

/// Commits as the statements take them, in their order.
#[derive(Default)]
struct Batch<'a> {
    ids: Vec<Uuid>,
    after: Vec<After<'a>>,
    facts: Vec<Facts<'a>>,
    results: Vec<Ended>,
}

impl<'a> Batch<'a> {
    fn of(commits: &[&'a Commit]) -> Result<Self, Fault> {
        let mut batch = Self::default();
        for (entry, commit) in (1_i64..).zip(commits) {
            let run = commit.before.run.key();
            batch.ids.push(run);
            batch.after.push(After::of(commit)?);
            batch.facts.extend(Facts::of(entry, commit));
            batch.results.extend(Ended::of(entry, commit));
        }
        Ok(batch)
    }
}

/// A row as the statement found it, where not all entries were written.
struct Found {
    generation: u64,
    revision: u64,
    plain: bool,
}

fn answers(row: &PgRow, commits: &[&Commit]) -> Result<Vec<Said>, sqlx::Error> {
    let now = Timestamp::from_micros(row.try_get("now")?);
    let applied: Vec<i64> = row.try_get("applied")?;
    let untils: Vec<Option<i64>> = row.try_get("untils")?;
    let lengths: Vec<Option<i64>> = row.try_get("lengths")?;
    let mut said: Vec<Option<Said>> = commits.iter().map(|_| None).collect();
    for ((ord, until), length) in applied.into_iter().zip(untils).zip(lengths) {
        let index = usize::try_from(ord).unwrap_or(0).wrapping_sub(1);
        if let Some(slot) = said.get_mut(index) {
            *slot = Some(Said::Written(Kept { now, until, length }));
        }
    }
    if said.iter().all(Option::is_some) {
        return Ok(said.into_iter().flatten().collect());
    }
    let found = found(row)?;
    let rest = said.into_iter().zip(commits).map(|(said, commit)| {
        said.unwrap_or_else(|| refused(commit, found.get(&commit.before.run)))
    });
    Ok(rest.collect())
}

fn found(row: &PgRow) -> Result<HashMap<RunId, Found>, sqlx::Error> {
    let locked: Vec<Uuid> = row.try_get("locked")?;
    let generations: Vec<i64> = row.try_get("generations")?;
    let revisions: Vec<i64> = row.try_get("revisions")?;
    let plain: Vec<bool> = row.try_get("plain")?;
    let counts = generations.into_iter().zip(revisions).zip(plain);
    let found = counts.map(|((generation, revision), plain)| Found {
        generation: u64::try_from(generation).unwrap_or(0),
        revision: u64::try_from(revision).unwrap_or(0),
        plain,
    });
    Ok(locked.into_iter().map(RunId::of_key).zip(found).collect())
}

/// Why an entry was not written.
fn refused(commit: &Commit, found: Option<&Found>) -> Said {
    // Locked by somebody, or deleted: whoever waits for it finds out.
    let Some(found) = found else { return Said::Busy };
    match commit.before.check_counters(found.generation, found.revision) {
        Err(fenced) => Said::Refused(fenced.into()),
        Ok(()) if !found.plain => Said::NotPlain,
        // It was changed between the snapshot and the lock, to what the commit was decided on.
        Ok(()) => Said::Busy,
    }
}
