//! Emits events and signals in transactions of their own: a lost answer is asked for again.

use std::time::Duration;

use surefoot_kernel_core::{
    Dispatch, Emission, Emit, EmitError, EventStore, LoadRequest, RunId, SendSignal, SignalError,
    SignalSent, StoreError, Stored, TxStore,
};

use super::Kernel;
use super::after_commit::Tell;
use crate::engine::Reserved;
use crate::engine::pace::Pause;

/// How often an answer that was lost is asked for again.
const TRIES: u32 = 10;

fn pause() -> Pause {
    Pause::new(Duration::from_millis(20), Duration::from_secs(2))
}

/// Records an event. Where a local worker is idle, its runs are born running and start on that worker.
pub(super) async fn event<S: TxStore>(
    kernel: &Kernel<S>,
    emit: Emit,
) -> Result<Emission, EmitError> {
    let reserved = match emit.event.dispatch {
        Dispatch::Now => kernel.local().reserve(),
        Dispatch::Deferred => None,
    };
    let Some(reserved) = reserved else { return emit_and_tell(kernel, emit, None).await };
    // A caller that goes away must not leave runs behind that are born running and that nobody drives: this goes on
    // without it.
    let owned = kernel.clone();
    let emitting = tokio::spawn(async move { emit_and_tell(&owned, emit, Some(reserved)).await });
    match emitting.await {
        Ok(answer) => answer,
        Err(gone) => Err(EmitError::Store(StoreError::UnknownOutcome(Box::new(gone)))),
    }
}

async fn emit_and_tell<S: TxStore>(
    kernel: &Kernel<S>,
    mut emit: Emit,
    reserved: Option<Reserved<S>>,
) -> Result<Emission, EmitError> {
    emit.eager = reserved.as_ref().map(|reserved| reserved.eager().clone());
    let (emission, was_lost) = emit_until_known(kernel.store(), &emit).await?;
    let mut started = emission.started.clone();
    if let Some(reserved) = reserved {
        if was_lost && started.is_empty() {
            started = orphans(kernel, &reserved, &emission.runs).await;
        }
        let run_elsewhere = emission.runs.len() > started.len();
        reserved.start(started);
        if run_elsewhere {
            kernel.tell(&Tell::Claimers);
        }
        return Ok(emission);
    }
    kernel.tell(&tell(emit.event.dispatch, &emission));
    Ok(emission)
}

/// Who has something to do about an event.
pub(super) fn tell(dispatch: Dispatch, emission: &Emission) -> Tell {
    match dispatch {
        Dispatch::Deferred if emission.matched > 0 => Tell::Recovery,
        Dispatch::Now if !emission.runs.is_empty() => Tell::Claimers,
        Dispatch::Deferred | Dispatch::Now => Tell::Nobody,
    }
}

/// An emit in doubt is found again by its id. The second value says whether an answer was lost on the way.
async fn emit_until_known<S: EventStore>(
    store: &S,
    emit: &Emit,
) -> Result<(Emission, bool), EmitError> {
    let mut pause = pause();
    let mut lost = 0;
    loop {
        let error = match store.event_emit(emit.clone()).await {
            Ok(mut emission) => {
                // Found again by its id: this call recorded it, in a try whose answer was lost.
                emission.new |= lost > 0 && emission.event == emit.id;
                return Ok((emission, lost > 0));
            }
            Err(error) => error,
        };
        let is_unknown = matches!(error, EmitError::Store(StoreError::UnknownOutcome(_)));
        // Once an answer was lost, only an answer will do: a store that is away for a moment is no answer.
        let is_away = lost > 0 && matches!(error, EmitError::Store(StoreError::Unavailable(_)));
        if !(is_unknown || is_away) || lost >= TRIES {
            return Err(error);
        }
        lost += 1;
        tokio::time::sleep(pause.length()).await;
    }
}

/// Runs that were started for a reservation by a try whose answer was lost.
async fn orphans<S: TxStore>(
    kernel: &Kernel<S>,
    reserved: &Reserved<S>,
    runs: &[RunId],
) -> Vec<Stored> {
    let mut found = Vec::new();
    for run in runs {
        let request = LoadRequest { run: *run, after: None };
        if let Ok(Some(stored)) = kernel.store().run_load(request).await
            && reserved.is_orphan(&stored.run)
        {
            found.push(stored);
        }
    }
    found
}

/// Records a signal. Sending it again changes nothing, so a lost answer is simply asked for again.
pub(super) async fn signal<S: TxStore>(
    kernel: &Kernel<S>,
    send: SendSignal,
) -> Result<SignalSent, SignalError> {
    let mut pause = pause();
    let mut lost = 0;
    loop {
        let error = match kernel.store().signal_send(send.clone()).await {
            Ok(sent) => {
                if lost > 0 {
                    // Whom the lost try woke is not known.
                    kernel.tell(&Tell::Claimers);
                }
                return Ok(sent);
            }
            Err(error) => error,
        };
        let is_unknown = matches!(error, SignalError::Store(StoreError::UnknownOutcome(_)));
        let is_away = lost > 0 && matches!(error, SignalError::Store(StoreError::Unavailable(_)));
        if !(is_unknown || is_away) || lost >= TRIES {
            return Err(error);
        }
        lost += 1;
        tokio::time::sleep(pause.length()).await;
    }
}
