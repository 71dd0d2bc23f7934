//! Time and trouble: what all processes of a simulation are under.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use surefoot_kernel_core::{BoxFuture, Clock, Micros, Timestamp};
use tokio::time::Instant;

use super::script::Script;
use crate::dice::{Dice, roll};
use crate::fault::Weather;
use crate::suite::StoreFactory;
use crate::{Fault, Method};

/// The process of the application, which has no worker.
pub(super) const FRONT: usize = usize::MAX;
/// One way of most calls is shorter, and that of a third takes no time at all.
const QUICK: u64 = 3;
/// One way of some takes as long as a lease.
const SLOW: (u64, u64) = (20_000, 45_000);

/// The one time, the script, and who stands still or is cut off until when.
pub(super) struct Sky<F> {
    pub(super) script: Script,
    factory: F,
    began: Instant,
    told: Mutex<Micros>,
    until: Mutex<BTreeMap<(Trouble, usize), Micros>>,
}

/// Something that ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    Pause,
    Cut,
}

impl<F: StoreFactory> Sky<F> {
    pub(super) fn new(script: Script, factory: F) -> Self {
        let (told, until) = (Mutex::new(Micros::ZERO), Mutex::default());
        Self { script, factory, began: Instant::now(), told, until }
    }

    pub(super) fn factory(&self) -> &F {
        &self.factory
    }

    pub(super) fn now(&self) -> Micros {
        Micros::from(self.began.elapsed())
    }

    pub(super) fn is_calm(&self) -> bool {
        Duration::from(self.now()) >= Duration::from_millis(self.script.calm_after)
    }

    /// Sleeps until a millisecond of the script.
    pub(super) async fn reach(&self, at: u64) {
        tokio::time::sleep_until(self.began + Duration::from_millis(at)).await;
    }

    /// Tells the store what time it is.
    pub(super) async fn tell(&self) {
        let gained = {
            let mut told = lock(&self.told);
            let now = self.now();
            let gained = Micros::new(now.get().saturating_sub(told.get()));
            *told = now;
            gained
        };
        if gained > Micros::ZERO {
            self.factory.pass_time(gained).await;
        }
    }

    pub(super) fn trouble(&self, trouble: Trouble, process: usize, for_ms: u64) {
        let end = Micros::from(Duration::from_millis(for_ms));
        let end = Micros::new(self.now().get().saturating_add(end.get()));
        lock(&self.until).insert((trouble, process), end);
    }

    fn is_in(&self, trouble: Trouble, process: usize) -> Option<Duration> {
        let end = lock(&self.until).get(&(trouble, process)).copied()?;
        let left = Micros::new(end.get().saturating_sub(self.now().get()));
        (left > Micros::ZERO && !self.is_calm()).then(|| left.into())
    }

    /// Completes when the process does not stand still.
    pub(super) async fn thaw(&self, process: usize) {
        if let Some(left) = self.is_in(Trouble::Pause, process) {
            tokio::time::sleep(left).await;
        }
    }

    pub(super) fn dice(&self, place: &[u64]) -> Dice {
        Dice(roll(self.script.seed, place))
    }
}

impl<F> fmt::Debug for Sky<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sky").field("seed", &self.script.seed).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls of one life of one process.
pub(super) struct Line<F> {
    pub(super) sky: Arc<Sky<F>>,
    pub(super) process: usize,
    pub(super) life: u64,
}

impl<F> fmt::Debug for Line<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("process", &self.process).finish_non_exhaustive()
    }
}

impl<F: StoreFactory> Line<F> {
    fn dice(&self, method: Method, nth: u64, side: u64) -> Dice {
        let method = Method::ALL.iter().position(|known| *known == method).unwrap_or_default();
        self.sky.dice(&[self.process as u64, self.life, method as u64, nth, side])
    }

    async fn travel(&self, dice: &mut Dice, method: Method) {
        // Whoever has a transaction open holds what the others wait for.
        let may_be_slow = !matches!(
            method,
            Method::TransactCommit | Method::FenceHold | Method::Commit | Method::Begin
        );
        let is_slow = dice.below(1_000) < self.sky.script.store_slow;
        let ms = if is_slow && may_be_slow && !self.sky.is_calm() {
            SLOW.0 + dice.below(SLOW.1 - SLOW.0)
        } else {
            dice.below(QUICK)
        };
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    fn fault(&self, dice: &mut Dice, method: Method) -> Option<Fault> {
        if self.sky.is_calm() {
            return None;
        }
        if self.sky.is_in(Trouble::Cut, self.process).is_some() {
            return Some(Fault::Unavailable);
        }
        let happens = dice.below(1_000) < self.sky.script.store_faults;
        let fault = match dice.below(10) {
            0 | 1 => Fault::LostRequest,
            2 | 3 => Fault::LostAnswer,
            4 | 5 if method == Method::RunCommit => Fault::ComesLate,
            6 if method.is_write() => Fault::Refused,
            7 if self.process != FRONT => Fault::DiesBefore,
            8 if self.process != FRONT => Fault::DiesAfter,
            _ => Fault::Unavailable,
        };
        happens.then_some(fault)
    }
}

impl<F: StoreFactory> Weather for Line<F> {
    fn before(&self, method: Method, nth: u64) -> BoxFuture<'_, Option<Fault>> {
        Box::pin(async move {
            let mut dice = self.dice(method, nth, 0);
            self.sky.thaw(self.process).await;
            self.travel(&mut dice, method).await;
            self.sky.tell().await;
            self.fault(&mut dice, method)
        })
    }

    fn after(&self, method: Method, nth: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut dice = self.dice(method, nth, 1);
            self.travel(&mut dice, method).await;
            self.sky.thaw(self.process).await;
        })
    }
}

/// A clock of one process: its wall time is wrong, and its rate is a little.
#[derive(Debug)]
pub(super) struct SkewedClock {
    pub(super) began: Instant,
    pub(super) skew_ms: i64,
    pub(super) rate: i64,
}

impl Clock for SkewedClock {
    fn wall(&self) -> Timestamp {
        let start = Timestamp::from_micros(1_767_225_600_000_000);
        start.plus(self.monotonic()).plus(Micros::from_millis(self.skew_ms))
    }

    fn monotonic(&self) -> Micros {
        let elapsed = Micros::from(self.began.elapsed()).get();
        Micros::new(elapsed.saturating_add(elapsed.saturating_mul(self.rate) / 1_000))
    }
}
