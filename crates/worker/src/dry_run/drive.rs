//! Drives one dry run from its claim to wherever it stops.

use std::sync::Arc;

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Commit, DryCommand, DryHeld, DryInput, LoadRequest, RowInput, Run, RunState, StoreError,
    Timestamp, decide_dry_run, decide_row,
};

use super::preview;
use super::worker::Inner;
use crate::engine::hold::{Hold, Pulse};
use crate::engine::shift::Shift;

/// What drives one dry run.
pub(super) struct Driver<'d> {
    pub(super) inner: &'d Inner,
    pub(super) shift: &'d Arc<Shift>,
    pub(super) hold: &'d Arc<Hold>,
}

/// What is held of a dry run in memory.
struct Book {
    plan: Plan,
    held: DryHeld,
    now: Timestamp,
}

pub(super) async fn drive(
    inner: &Inner,
    shift: &Arc<Shift>,
    hold: &Arc<Hold>,
    claimed: Run,
) -> Result<(), StoreError> {
    let driver = Driver { inner, shift, hold };
    let (run, generation) = (claimed.id, claimed.generation);
    // A conflict means that somebody asked to cancel: it is read again, and decided again.
    while let Some(book) = load(inner, run, generation).await? {
        match work(&driver, book).await {
            Err(StoreError::Conflict) => {}
            // Whoever claims it next finds what was recorded.
            Err(StoreError::LeaseLost) => return Ok(()),
            done => return done,
        }
    }
    Ok(())
}

/// Reads and folds it; what cannot be read is put before a person.
async fn load(
    inner: &Inner,
    run: surefoot_kernel_core::RunId,
    generation: u64,
) -> Result<Option<Book>, StoreError> {
    let stored = inner.runs.run_load(LoadRequest { run, after: None }).await?;
    let Some(stored) = stored else { return Ok(None) };
    let row = stored.run.clone();
    if row.generation != generation || row.state() != RunState::Running {
        return Ok(None);
    }
    let version = inner.plans.version_load(row.origin.version).await?;
    let plan = version.ok_or_else(|| "its version is gone".to_owned());
    let plan = plan.and_then(|it| from_stored::<Plan>(&it.plan).map_err(|why| why.to_string()));
    let read = plan.and_then(|plan| {
        let journal = stored.journal.map_err(|why| why.to_string())?;
        let invocation = stored.invocation.unwrap_or_default();
        let held = DryHeld::restore(stored.run, &plan, invocation, &journal);
        Ok((held.map_err(|why| why.to_string())?, plan))
    });
    match read {
        Ok((held, plan)) => Ok(Some(Book { plan, held, now: stored.now })),
        Err(what) => {
            if let Ok(facts) = decide_row(&row, RowInput::Unreadable { what }, stored.now) {
                inner.runs.run_commit(Commit::new(&row, &facts)).await?;
            }
            Ok(None)
        }
    }
}

async fn work(driver: &Driver<'_>, mut book: Book) -> Result<(), StoreError> {
    let mut input = DryInput::Advance;
    loop {
        let Ok(decision) = decide_dry_run(&book.held, &book.plan, input, book.now) else {
            return Ok(());
        };
        if !decision.facts.is_empty() {
            let commit = Commit::new(&book.held.run, &decision.facts);
            let committed = driver.inner.runs.run_commit(commit).await?;
            for fact in &decision.facts {
                if book.held.survey.advance(&book.plan, fact).is_err() {
                    return Ok(());
                }
            }
            book.held.run = committed.run;
            book.now = committed.now;
            if book.held.run.state() != RunState::Running {
                return Ok(());
            }
        }
        input = match decision.command {
            None => DryInput::Advance,
            Some(command) => match driver.hold.pulse(true) {
                Pulse::Held(_) if driver.hold.is_leaving() => {
                    return hand_over(driver, &book).await;
                }
                Pulse::Held(_) => carry_out(driver, &book, command).await,
                Pulse::Canceled => return Err(StoreError::Conflict),
                Pulse::Lost => return Err(StoreError::LeaseLost),
            },
        };
    }
}

/// The worker stops: another one goes on behind what is recorded.
async fn hand_over(driver: &Driver<'_>, book: &Book) -> Result<(), StoreError> {
    let run = &book.held.run;
    let Ok(facts) = decide_row(run, RowInput::HandOver, book.now) else { return Ok(()) };
    driver.inner.runs.run_commit(Commit::new(run, &facts)).await.map(drop)
}

async fn carry_out(driver: &Driver<'_>, book: &Book, command: DryCommand) -> DryInput {
    match command {
        DryCommand::Run(call) => {
            let answer = preview::run(driver, &book.held, &book.plan, &call).await;
            DryInput::Ran { step: call.step, answer }
        }
        DryCommand::Preview(call) => {
            let previewed = preview::preview(driver, &book.held, &book.plan, &call).await;
            DryInput::Previewed { step: call.step, previewed }
        }
    }
}
