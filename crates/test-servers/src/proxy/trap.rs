//! What happens to a statement that a test waits for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a test waits for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The connection is cut before the server has it.
    LoseRequest,
    /// The server carries it out; the connection is cut before the client hears of it.
    LoseAnswer,
    /// The client's connection is cut. The server gets the statement when the trap is released; its session lives until
    /// it has carried it out.
    ComeLate,
    /// The server gets it when the trap is released. The client waits.
    Delay,
    /// The client hears of it when the trap is released.
    DelayAnswer,
    /// The server does not carry it out: it fails with this SQLSTATE, and so does the transaction that it is in.
    Fail(&'static str),
}

/// A trap for one statement, or for all of a kind. Clones are the same trap.
#[derive(Debug, Clone)]
pub struct Trap(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fate: Fate,
    text: String,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug)]
struct State {
    /// The first that are let through.
    skip: u64,
    /// How many are caught after that.
    left: u64,
    caught: u64,
    settled: u64,
    is_released: bool,
}

impl Trap {
    pub(super) fn new(fate: Fate, text: &str, skip: u64, times: u64) -> Self {
        let state = State { skip, left: times, caught: 0, settled: 0, is_released: false };
        let state = Mutex::new(state);
        Self(Arc::new(Inner { fate, text: text.to_owned(), state, news: Condvar::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fate(&self) -> Fate {
        self.0.fate
    }

    /// Whether this one is caught.
    pub(super) fn catches(&self, statements: &[String]) -> bool {
        if !statements.iter().any(|statement| statement.contains(&self.0.text)) {
            return false;
        }
        let mut state = self.state();
        if state.skip > 0 {
            state.skip -= 1;
            return false;
        }
        if state.left == 0 {
            return false;
        }
        state.left -= 1;
        state.caught += 1;
        self.0.news.notify_all();
        true
    }

    /// The server has answered what was caught.
    pub(super) fn settle(&self) {
        self.state().settled += 1;
        self.0.news.notify_all();
    }

    /// Until it is released, for ever if need be.
    pub(super) fn until_released(&self) {
        let state = self.0.news.wait_while(self.state(), |state| !state.is_released);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    fn wait(&self, is_over: impl Fn(&State) -> bool) -> bool {
        let waiting = self.0.news.wait_timeout_while(self.state(), PATIENCE, |it| !is_over(it));
        let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        is_over(&state)
    }

    /// Waits until a statement was caught; for a minute at most, and says whether one was. Blocks the thread.
    #[must_use]
    pub fn is_caught(&self) -> bool {
        self.wait(|state| state.caught > 0)
    }

    /// Waits until the server has answered every statement that was caught and that it gets; for a minute at most, and
    /// says whether it has. Blocks the thread.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.wait(|state| state.caught > 0 && state.settled >= state.caught)
    }

    /// How many statements were caught so far.
    #[must_use]
    pub fn caught(&self) -> u64 {
        self.state().caught
    }

    /// Lets go on what waits, and what would.
    pub fn release(&self) {
        self.state().is_released = true;
        self.0.news.notify_all();
    }

    /// Catches nothing more, and lets go on what waits.
    pub fn disarm(&self) {
        self.state().left = 0;
        self.release();
    }
}
