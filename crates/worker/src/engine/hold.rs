//! One run that this process holds, as the lease keeper and the driver see it together.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surefoot_kernel_core::{Cancel, CancelSource, Clock, Micros, RunId};
use tokio::sync::Notify;

use super::pace::{minus, plus};

/// How long a hook may go on after its token fired, before its future is dropped.
pub(crate) const HOOK_GRACE: Micros = Micros::from_secs(5);

/// A run's lease in this process. Time is monotonic: a lease is taken to end a lease's length after the question
/// that brought it was asked, so never later than the store thinks.
pub(crate) struct Hold {
    run: RunId,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    generation: u64,
    ends: Micros,
    /// When the store last said that the run is held, or that a fence of its own action is.
    heard: Micros,
    /// Another generation holds the run.
    lost: bool,
    /// The lease ends soon and nobody renews it.
    ending: bool,
    /// Somebody wants the run canceled.
    canceled: bool,
    /// The worker stops.
    stopping: bool,
    hook: Option<Hook>,
}

/// The hook that runs right now.
struct Hook {
    token: CancelSource,
    heeds_cancel: bool,
    /// When its time is up: the step's timeout.
    limit: Option<Micros>,
    fired_at: Option<Micros>,
}

/// What the keeper's knowledge says to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// Go on; heard that long ago.
    Held(Micros),
    /// Another worker has it, or may have by now.
    Lost,
    /// Stop: cancel was requested.
    Canceled,
}

impl Hold {
    /// `asked` is when the claim was asked for that brought the lease.
    pub(crate) fn new(
        run: RunId,
        generation: u64,
        (asked, ends): (Micros, Micros),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let state = State {
            generation,
            ends,
            heard: asked,
            lost: false,
            ending: false,
            canceled: false,
            stopping: false,
            hook: None,
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Self { run, clock, state, changed }
    }

    pub(crate) const fn run(&self) -> RunId {
        self.run
    }

    pub(crate) fn generation(&self) -> u64 {
        self.state().generation
    }

    /// What is left of the lease.
    pub(crate) fn remaining(&self) -> Micros {
        let now = self.clock.monotonic();
        minus(self.state().ends, now)
    }

    pub(crate) fn ends(&self) -> Micros {
        self.state().ends
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state().lost
    }

    pub(crate) fn is_canceled(&self) -> bool {
        self.state().canceled
    }

    /// Whether hooks were told to stop for the worker's sake: it stops, or its lease ends.
    pub(crate) fn is_leaving(&self) -> bool {
        let state = self.state();
        state.stopping || state.ending || state.lost
    }

    /// Whether the store may still be written to in good faith.
    pub(crate) fn is_alive(&self) -> bool {
        let now = self.clock.monotonic();
        let state = self.state();
        !state.lost && state.ends > now
    }

    pub(crate) fn pulse(&self, heeds_cancel: bool) -> Pulse {
        let now = self.clock.monotonic();
        let state = self.state();
        if state.lost || state.ends <= now {
            Pulse::Lost
        } else if state.canceled && heeds_cancel {
            Pulse::Canceled
        } else {
            Pulse::Held(minus(now, state.heard))
        }
    }

    /// The store answered a renewal that was asked for this generation.
    pub(crate) fn renewed(&self, generation: u64, ends: Micros, canceled: bool) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        // A takeover in the meantime brought a newer lease.
        if state.generation == generation && !state.lost {
            state.ends = state.ends.max(ends);
            state.heard = now;
            state.ending = false;
            state.canceled |= canceled;
            state.fire_what_is_due(now);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The store could not look, since the run's own action holds a fence.
    pub(crate) fn fence_held(&self, generation: u64) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        if state.generation == generation {
            state.heard = now;
        }
    }

    /// When the running hook's token is to be fired for its timeout, if it has not been.
    pub(crate) fn hook_limit(&self) -> Option<Micros> {
        let state = self.state();
        state.hook.as_ref().filter(|hook| hook.fired_at.is_none())?.limit
    }

    /// Fires the token of a hook whose time is up. Its driver does the same, unless the hook blocks its thread.
    pub(crate) fn fire_if_up(&self) {
        let now = self.clock.monotonic();
        if let Some(hook) = &mut self.state().hook
            && hook.limit.is_some_and(|limit| limit <= now)
        {
            hook.fire(now);
        }
    }

    /// Another generation holds the run.
    pub(crate) fn lose(&self, generation: u64) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        if state.generation != generation {
            return;
        }
        state.lost = true;
        state.fire_what_is_due(now);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The lease ends soon: fires the token while it still lives.
    pub(crate) fn end_soon(&self) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.ending = true;
        state.fire_what_is_due(now);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Somebody wants the run canceled.
    pub(crate) fn cancel(&self) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.canceled = true;
        state.fire_what_is_due(now);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The worker stops: hooks get their token, now and from now on.
    pub(crate) fn stop(&self) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.stopping = true;
        state.fire_what_is_due(now);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Taken over from ourselves: a new generation, a new lease.
    pub(crate) fn taken_over(&self, generation: u64, ends: Micros) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.generation = generation;
        state.ends = ends;
        state.heard = now;
        state.ending = false;
    }

    /// A hook begins; it ends when the guard is dropped.
    pub(crate) fn begin_hook(self: &Arc<Self>, heeds_cancel: bool) -> HookGuard {
        let token = CancelSource::default();
        let observer = token.observer();
        let mut state = self.state();
        state.hook = Some(Hook { token, heeds_cancel, limit: None, fired_at: None });
        // Nearly always there is nothing to fire, and no need to ask what time it is.
        if state.stops_hook() {
            state.fire_what_is_due(self.clock.monotonic());
        }
        drop(state);
        HookGuard { hold: self.clone(), token: observer }
    }

    /// Whether a hook does not return though its time is over.
    pub(crate) fn is_stuck(&self) -> bool {
        let now = self.clock.monotonic();
        let state = self.state();
        state.hook.as_ref().is_some_and(|hook| {
            let told = [hook.limit, hook.fired_at].into_iter().flatten().min();
            told.is_some_and(|at| plus(at, HOOK_GRACE) < now)
        })
    }

    /// Completes once the run is lost, or its lease is about to end. Cancel safe.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + Send + '_ {
        self.until(|state| state.lost || state.ending)
    }

    async fn until(&self, holds: impl Fn(&State) -> bool + Send) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fire_what_is_due(&mut self, now: Micros) {
        if self.stops_hook()
            && let Some(hook) = &mut self.hook
        {
            hook.fire(now);
        }
    }

    /// Whether the hook that runs is to stop.
    fn stops_hook(&self) -> bool {
        let stops = self.lost || self.ending || self.stopping;
        self.hook.as_ref().is_some_and(|hook| stops || self.canceled && hook.heeds_cancel)
    }
}

impl Hook {
    fn fire(&mut self, now: Micros) {
        self.fired_at.get_or_insert(now);
        self.token.fire();
    }
}

/// A hook that runs.
pub(crate) struct HookGuard {
    hold: Arc<Hold>,
    token: Cancel,
}

impl HookGuard {
    pub(crate) fn token(&self) -> Cancel {
        self.token.clone()
    }

    /// When the hook's time will be up.
    pub(crate) fn limit(&self, at: Micros) {
        if let Some(hook) = &mut self.hold.state().hook {
            hook.limit = Some(at);
        }
    }

    /// The hook's time is up.
    pub(crate) fn fire(&self) {
        let now = self.hold.clock.monotonic();
        if let Some(hook) = &mut self.hold.state().hook {
            hook.fire(now);
        }
    }
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        self.hold.state().hook = None;
    }
}
