//! Commits of runs: checked by their stamps, written together.

use std::borrow::Cow;

use sqlx::SqliteConnection;

use surefoot_kernel_core::{
    Commit, Committed, Receipt, RowInput, Run, RunId, StoreError, Timestamp, apply, decide_row,
};

use super::plain::{self, Plain};
use super::read::heads;
use super::wake::occurred;
use super::write::{Write, write_all};
use crate::budget::Charges;
use crate::child::cancel;
use crate::child::settle::{Revived, check_revival};
use crate::error::Fault;
use crate::retention::is_doomed;
use crate::sql::pieces;

/// Commits of different runs, each with an answer of its own: an error costs all of them, a verdict only one.
pub(crate) async fn commit_group(
    conn: &mut SqliteConnection,
    commits: &[&Commit],
    now: Timestamp,
) -> Result<Vec<Result<Committed, StoreError>>, Fault> {
    let steps = commits.iter().enumerate();
    let steps = steps.filter_map(|(index, commit)| Some((index, Plain::of(commit)?)));
    let (indexes, steps): (Vec<usize>, Vec<Plain<'_>>) = steps.unzip();
    let mut answers: Vec<Option<Committed>> = commits.iter().map(|_| None).collect();
    let mut indexes = indexes.into_iter();
    for piece in pieces(&steps) {
        let is_written = plain::write(conn, piece, now).await?;
        for index in indexes.by_ref().take(piece.len()).filter(|_| is_written) {
            if let (Some(commit), Some(answer)) = (commits.get(index), answers.get_mut(index)) {
                *answer = Some(committed(commit.after.clone(), now));
            }
        }
    }
    let rest = commits.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
    let rest: Vec<&Commit> = rest.map(|(commit, _)| *commit).collect();
    let mut rest = commit_rest(conn, &rest, now).await?.into_iter();
    let lost = || Err(StoreError::Conflict);
    let answers = answers.into_iter();
    Ok(answers.map(|it| it.map_or_else(|| rest.next().unwrap_or_else(lost), Ok)).collect())
}

/// Those of which more is to be known before they are written.
async fn commit_rest(
    conn: &mut SqliteConnection,
    commits: &[&Commit],
    now: Timestamp,
) -> Result<Vec<Result<Committed, StoreError>>, Fault> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<RunId> = commits.iter().map(|commit| commit.before.run).collect();
    let mut heads = heads(conn, &ids).await?;
    let mut verdicts = Vec::with_capacity(commits.len());
    let mut writes = Vec::with_capacity(commits.len());
    let mut charges = Charges::default();
    let mut revived = Revived::default();
    for commit in commits {
        let head = match heads.remove(&commit.before.run) {
            // A run that was deleted has no holder any more.
            None => Err(StoreError::LeaseLost),
            Some(Err(Fault(error))) => Err(error),
            Some(Ok(head)) => match commit.before.check_counters(head.generation, head.revision) {
                // Only a retry leaves an end; it must not bring back a tree that is half gone.
                Ok(()) if head.state.is_terminal() && is_doomed(conn, head.no).await? => {
                    Err(StoreError::BeingDeleted)
                }
                Ok(()) => {
                    let before = (head.state, head.held);
                    match check_revival(conn, before, &commit.after).await {
                        Ok(()) => Ok(head),
                        Err(Fault(error @ StoreError::ParentMovedOn { .. })) => Err(error),
                        Err(fault) => return Err(fault),
                    }
                }
                Err(fenced) => Err(fenced.into()),
            },
        };
        match head {
            Ok(head) => {
                let mut write = Write::of(head, commit);
                revived.place(conn, &mut write).await?;
                match wake_at_once(conn, &mut write, now).await {
                    Ok(()) => match charges.take(conn, commit).await? {
                        Ok(()) => {
                            writes.push(write);
                            verdicts.push(None);
                        }
                        Err(exceeded) => verdicts.push(Some(exceeded)),
                    },
                    Err(Fault(error @ StoreError::Corrupt { .. })) => verdicts.push(Some(error)),
                    Err(fault) => return Err(fault),
                }
            }
            Err(error) => verdicts.push(Some(error)),
        }
    }
    charges.write(conn).await?;
    write_all(conn, &writes, now).await?;
    for write in writes.iter().filter(|write| write.asks_to_cancel()) {
        let (app, run) = (&write.after.origin.app, write.after.id);
        cancel::carry_on(conn, app, Some(run), cancel::AT_ONCE, now).await?;
    }
    let mut written = writes.into_iter().map(|write| committed(write.after.into_owned(), now));
    let lost = || StoreError::Conflict;
    Ok(verdicts
        .into_iter()
        .map(|verdict| match verdict {
            Some(error) => Err(error),
            None => written.next().ok_or_else(lost),
        })
        .collect())
}

/// One commit alone, on a transaction of its own.
pub(crate) async fn commit_one(
    conn: &mut SqliteConnection,
    commit: &Commit,
    now: Timestamp,
) -> Result<Committed, StoreError> {
    let mut answers = commit_group(conn, &[commit], now).await?;
    answers.pop().unwrap_or(Err(StoreError::Conflict))
}

/// A run that parks on a signal which exists already is awake again before anybody can see it wait.
async fn wake_at_once(
    conn: &mut SqliteConnection,
    write: &mut Write<'_>,
    now: Timestamp,
) -> Result<(), Fault> {
    let Some((signal, wake)) = occurred(conn, &write.after).await? else { return Ok(()) };
    let input = RowInput::Wake { wake, at_once: true };
    if let Ok(facts) = decide_row(&write.after, input, now) {
        let woken: Run = facts.iter().fold(write.after.clone().into_owned(), apply);
        write.after = Cow::Owned(woken);
        write.woken_by = signal;
    }
    Ok(())
}

fn committed(run: Run, now: Timestamp) -> Committed {
    Committed { receipt: Receipt::attest(&run), run, now }
}
