//! Waits for a hook, and ends the wait where it must end.

use std::future::Future;

use surefoot_kernel_core::{Micros, TxStore};

use super::answers::Told;
use super::{Driver, Left};
use crate::engine::hold::{HOOK_GRACE, HookGuard};
use crate::engine::pace::{minus, plus};
use crate::engine::panics::caught;
use crate::engine::shift::Phase;

/// What came of a hook.
pub(super) enum Heard<T> {
    /// It came back, after its token fired or not.
    Back { value: T, told: Told },
    /// It panicked.
    Panicked(String),
    /// Its time and its grace were up: its future was dropped.
    TimedOut,
}

/// Whether a hook's future can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Droppable {
    /// At any await.
    Yes,
    /// It runs on a thread of its own that nothing can stop: it keeps its slot, and health shows it as stuck.
    No,
}

impl<S: TxStore> Driver<S> {
    /// Waits for a hook. Its token fires when its time is up, and when lease, cancel or stop ask for it; after the
    /// grace its future is dropped.
    pub(super) async fn listen<T>(
        &self,
        guard: &HookGuard,
        limit: Option<Micros>,
        droppable: Droppable,
        hook: impl Future<Output = T> + Send,
    ) -> Result<Heard<T>, Left> {
        let time_is_up = limit.map(|limit| plus(self.shift.now(), limit));
        if let Some(at) = time_is_up {
            guard.limit(at);
            self.shift.hook_ends(at);
        }
        let mut late = false;
        let mut drop_at: Option<Micros> = None;
        let mut gone = false;
        let hook = caught(hook);
        tokio::pin!(hook);
        loop {
            tokio::select! {
                biased;
                back = &mut hook => {
                    return Ok(match back {
                        Ok(value) => Heard::Back { value, told: self.told(late) },
                        Err(panicked) => Heard::Panicked(panicked.0),
                    });
                }
                () = self.hold.gone(), if !gone => {
                    gone = true;
                    let rest = self.hold.remaining().min(HOOK_GRACE);
                    drop_at = Some(plus(self.shift.now(), rest));
                }
                () = self.shift.reached(Phase::Abandoning) => {
                    return Err(Left::LetGo("the worker stopped while a hook ran".to_owned()));
                }
                () = self.sleep_until(time_is_up), if time_is_up.is_some() && !late => {
                    late = true;
                    guard.fire();
                    if droppable == Droppable::Yes && drop_at.is_none() {
                        drop_at = Some(plus(self.shift.now(), HOOK_GRACE));
                    }
                }
                () = self.sleep_until(drop_at), if drop_at.is_some() => {
                    return if gone { Err(self.dropped()) } else { Ok(Heard::TimedOut) };
                }
            }
        }
    }

    fn told(&self, late: bool) -> Told {
        if self.hold.is_leaving() {
            Told::ToLeave
        } else if late {
            Told::TimeIsUp
        } else {
            Told::Nothing
        }
    }

    /// A hook was dropped since the lease is over, or was about to be.
    fn dropped(&self) -> Left {
        if self.hold.is_lost() {
            Left::Lost
        } else {
            Left::LetGo("the lease could not be renewed".to_owned())
        }
    }

    pub(super) async fn sleep_until(&self, at: Option<Micros>) {
        let wait = at.map_or(Micros::ZERO, |at| minus(at, self.shift.now()));
        tokio::time::sleep(wait.into()).await;
    }
}
