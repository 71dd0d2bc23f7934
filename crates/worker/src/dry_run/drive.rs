//! Drives one dry run from its claim to wherever it stops.

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Commit, DryCommand, DryHeld, DryInput, LoadRequest, RenewRequest, Renewed, RowInput, Run,
    RunState, RunStore, SessionId, Stamp, StoreError, Timestamp, decide_dry_run, decide_row,
};

use super::{Inner, LEASE, preview};

/// How a lease is.
pub(super) enum Pulse {
    Held,
    Canceled,
    Lost,
}

/// Renews the lease of one dry run.
pub(super) async fn renew(
    runs: &dyn RunStore,
    session: SessionId,
    stamp: Stamp,
) -> Result<Pulse, StoreError> {
    let request = RenewRequest { session, runs: vec![stamp], lease: LEASE };
    let renewed = runs.lease_renew(request).await?;
    Ok(match renewed.first() {
        Some((_, Renewed::Held { canceled: false, .. })) => Pulse::Held,
        Some((_, Renewed::Held { canceled: true, .. })) => Pulse::Canceled,
        Some((_, Renewed::Lost | Renewed::FenceHeld)) | None => Pulse::Lost,
    })
}

/// What is held of a dry run in memory.
struct Book {
    plan: Plan,
    held: DryHeld,
    now: Timestamp,
}

pub(super) async fn drive(inner: &Inner, claimed: Run) -> Result<(), StoreError> {
    let (run, generation) = (claimed.id, claimed.generation);
    // A conflict means that somebody asked to cancel: it is read again, and decided again.
    while let Some(book) = load(inner, run, generation).await? {
        match work(inner, book).await {
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

async fn work(inner: &Inner, mut book: Book) -> Result<(), StoreError> {
    let mut input = DryInput::Advance;
    loop {
        let Ok(decision) = decide_dry_run(&book.held, &book.plan, input, book.now) else {
            return Ok(());
        };
        if !decision.facts.is_empty() {
            let commit = Commit::new(&book.held.run, &decision.facts);
            let committed = inner.runs.run_commit(commit).await?;
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
            Some(command) => match renew(&*inner.runs, inner.session, book.held.run.stamp()).await?
            {
                Pulse::Held => carry_out(inner, &book, command).await,
                Pulse::Canceled => return Err(StoreError::Conflict),
                Pulse::Lost => return Err(StoreError::LeaseLost),
            },
        };
    }
}

async fn carry_out(inner: &Inner, book: &Book, command: DryCommand) -> DryInput {
    match command {
        DryCommand::Run(call) => {
            let answer = preview::run(inner, &book.held, &book.plan, &call).await;
            DryInput::Ran { step: call.step, answer }
        }
        DryCommand::Preview(call) => {
            let previewed = preview::preview(inner, &book.held, &book.plan, &call).await;
            DryInput::Previewed { step: call.step, previewed }
        }
    }
}
