//! Keeps leases: renews all runs of the session in one call, and fires tokens before a lease ends.
//!
//! By default it has an operating system thread and a runtime of its own, so that actions that block the
//! application's runtime do not cost them their leases. How far that helps depends on the store: its renewals need a
//! connection that does not live on the blocked runtime.

use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::{
    BoxFuture, Micros, RenewRequest, Renewed, RunId, Stamp, StoreError, TxStore,
};

use super::Engine;
use super::hold::{Hold, Pulse};
use super::pace::{Pause, minus, part, plus};
use super::panics::caught;
use super::shift::{Look, Phase, Shift};

/// Renewals that actions ask for, `heartbeat()`, come at most this often.
const HEARTBEAT_EVERY: Micros = Micros::from_millis(500);
/// How long a heartbeat waits for an answer of the store before the keeper's knowledge has to do.
const HEARTBEAT_PATIENCE: Duration = Duration::from_secs(5);

const NEVER: Micros = Micros::new(i64::MAX);

/// What the keeper asks of a store, whatever its type.
pub(crate) trait KeeperStore: Send + Sync {
    fn renew(
        &self,
        request: RenewRequest,
    ) -> BoxFuture<'_, Result<Vec<(RunId, Renewed)>, StoreError>>;

    /// Those whose cancel was requested.
    fn canceled(&self, held: Vec<Stamp>) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>>;
}

impl<S: TxStore> KeeperStore for Engine<S> {
    fn renew(
        &self,
        request: RenewRequest,
    ) -> BoxFuture<'_, Result<Vec<(RunId, Renewed)>, StoreError>> {
        Box::pin(async move { self.kernel.store().lease_renew(request).await })
    }

    fn canceled(&self, held: Vec<Stamp>) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        Box::pin(async move { self.kernel.store().cancel_list(&held).await })
    }
}

/// The rhythm of a keeper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rhythm {
    pub(crate) lease: Micros,
    /// How often it looks whether cancel was requested.
    pub(crate) scan: Micros,
}

/// Keeps the leases of a session until it is over.
pub(crate) async fn keep(store: Arc<dyn KeeperStore>, shift: Arc<Shift>, rhythm: Rhythm) {
    let life = &shift.lives.leases;
    let renewing = life.keep(|| renew_in_time(&*store, &shift, rhythm.lease));
    let watching = life.keep(|| fire_in_time(&shift, rhythm.lease));
    let hearing = life.keep(|| hear_of_cancels(&*store, &shift, rhythm.scan));
    tokio::select! {
        biased;
        () = async { tokio::join!(renewing, watching, hearing); } => {}
        () = shift.reached(Phase::Over) => {}
    }
}

async fn renew_in_time(store: &dyn KeeperStore, shift: &Shift, lease: Micros) {
    let third = part(lease, 3);
    let mut last = shift.now();
    let mut pause = retry_pause(lease);
    let mut next = plus(last, shift.jitter.shorten(third).into());
    loop {
        let due = Duration::from(minus(next, shift.now()));
        tokio::select! {
            biased;
            () = tokio::time::sleep(due) => {}
            () = shift.renew.notified() => {
                let rest = minus(plus(last, HEARTBEAT_EVERY), shift.now());
                tokio::time::sleep(rest.into()).await;
            }
        }
        last = shift.now();
        next = match renew_once(store, shift, lease).await {
            Ok(()) => {
                shift.lives.leases.well();
                pause = retry_pause(lease);
                plus(last, shift.jitter.shorten(third).into())
            }
            Err(why) => {
                shift.lives.leases.failed(&why);
                plus(shift.now(), pause.length().into())
            }
        };
        shift.renewed.notify_waiters();
    }
}

/// A failed renewal is tried again several times before the lease ends.
fn retry_pause(lease: Micros) -> Pause {
    Pause::new(part(lease, 60).into(), part(lease, 12).into())
}

/// All runs in one call. Nothing is released by a failure: the lease's own end decides.
async fn renew_once(store: &dyn KeeperStore, shift: &Shift, lease: Micros) -> Result<(), String> {
    let holds: Vec<Arc<Hold>> = shift.holds().into_iter().filter(|hold| !hold.is_lost()).collect();
    if holds.is_empty() {
        return Ok(());
    }
    let asked: Vec<(Arc<Hold>, Stamp)> = holds.into_iter().map(with_stamp).collect();
    let runs = asked.iter().map(|(_, stamp)| *stamp).collect();
    let request = RenewRequest { session: shift.session, runs, lease };
    let ends = plus(shift.now(), lease);
    let answer = caught(store.renew(request));
    let answer = tokio::time::timeout(part(lease, 6).into(), answer).await;
    let renewed = match answer {
        Ok(Ok(Ok(renewed))) => renewed,
        Ok(Ok(Err(error))) => return Err(error.to_string()),
        Ok(Err(panicked)) => return Err(format!("renewing panicked: {}", panicked.0)),
        Err(_) => return Err("the store did not answer a renewal".to_owned()),
    };
    for (run, renewed) in renewed {
        for (hold, stamp) in asked.iter().filter(|(_, stamp)| stamp.run == run) {
            match renewed {
                Renewed::Held { canceled, .. } => hold.renewed(stamp.generation, ends, canceled),
                Renewed::Lost => hold.lose(stamp.generation),
                Renewed::FenceHeld => hold.fence_held(stamp.generation),
            }
        }
    }
    shift.is_due.notify_one();
    Ok(())
}

/// Fires tokens: while a tenth of a lease is left, so that the action hears of it before another worker can begin;
/// and when a step's time is up, for hooks that block the thread on which their driver would do it.
async fn fire_in_time(shift: &Shift, lease: Micros) {
    let margin = part(lease, 10);
    loop {
        shift.looks(None);
        let now = shift.now();
        let mut next: Option<Micros> = None;
        for hold in shift.holds().into_iter().filter(|hold| !hold.is_lost()) {
            let ends_soon = minus(hold.ends(), margin);
            if ends_soon <= now {
                tracing::debug!(run = %hold.run(), "the lease ends soon and was not renewed");
                hold.end_soon();
            }
            hold.fire_if_up();
            let later = [Some(ends_soon), hold.hook_limit()].into_iter().flatten();
            next = next.into_iter().chain(later.filter(|at| *at > now)).min();
        }
        shift.looks(Some(Look { at: next.unwrap_or(NEVER), margin }));
        let wait = async {
            match next {
                Some(next) => tokio::time::sleep(minus(next, now).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = wait => {}
            () = shift.is_due.notified() => {}
        }
    }
}

/// Asks, once for all, about runs whose hook has run for a while, so that their token fires within about a second of
/// the request. Others hear of it with their next commit.
async fn hear_of_cancels(store: &dyn KeeperStore, shift: &Shift, scan: Micros) {
    let is_long =
        |hold: &Arc<Hold>| matches!(hold.pulse(true), Pulse::Held(age) if age >= HEARTBEAT_EVERY);
    loop {
        tokio::time::sleep(shift.jitter.shorten(scan)).await;
        let asked: Vec<(Arc<Hold>, Stamp)> =
            shift.holds().into_iter().filter(is_long).map(with_stamp).collect();
        if asked.is_empty() {
            continue;
        }
        let stamps = asked.iter().map(|(_, stamp)| *stamp).collect();
        // A store that is away is the renewals' matter.
        let Ok(Ok(canceled)) = caught(store.canceled(stamps)).await else { continue };
        for (hold, stamp) in asked {
            if canceled.contains(&stamp.run) && hold.generation() == stamp.generation {
                hold.cancel();
            }
        }
    }
}

/// A hold with what the store is asked about it; neither question looks at the revision.
fn with_stamp(hold: Arc<Hold>) -> (Arc<Hold>, Stamp) {
    let (run, generation) = (hold.run(), hold.generation());
    let stamp = Stamp { run, generation, revision: 0, seq: 0, has_effect: false };
    (hold, stamp)
}

/// What `heartbeat()` of a context answers: the keeper's knowledge where it is fresh, else the store's word.
pub(crate) async fn heartbeat(shift: &Shift, hold: &Hold, heeds_cancel: bool) -> Pulse {
    let stale = |pulse| matches!(pulse, Pulse::Held(age) if age >= HEARTBEAT_EVERY);
    if !stale(hold.pulse(heeds_cancel)) {
        return hold.pulse(heeds_cancel);
    }
    let pass = shift.renewed.notified();
    shift.renew.notify_one();
    // A pass that ended before the wait began may have brought what is asked for. One that the store did not answer
    // ends the wait as well: what is known has to do.
    let fresh = async {
        if stale(hold.pulse(heeds_cancel)) {
            pass.await;
        }
    };
    let _ = tokio::time::timeout(HEARTBEAT_PATIENCE, fresh).await;
    hold.pulse(heeds_cancel)
}
