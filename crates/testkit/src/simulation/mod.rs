//! Simulation: a whole fleet under a bad sky, in virtual time, the same way each time.
//!
//! Workers with clocks of their own run an application's workflow on one store, while calls to the store get lost,
//! come late, take longer than a lease or kill their process, workers are killed, stand still or are cut off, and the
//! provider loses requests and answers or acts late. Then all becomes calm, and what the provider did is compared with
//! what was promised:
//!
//! - no effect of an ambiguous action is carried out twice, none is without its outcome, also in a run that was canceled,
//!   and none with an outcome is missing;
//! - every event that was emitted has one run, and it comes to its end with all its children (a person who tells the truth
//!   helps where nobody else can know): well, or declined by the provider, or canceled where somebody asked for that;
//! - a transactional step's write is there where its outcome is, once; every effect key is that of a step; the store's
//!   invariants hold.
//!
//! What happens is a [`Script`], made of a seed. It can be kept in a file and played again.
//!
//! Needs a runtime with one thread and paused time (`#[tokio::test(start_paused = true)]`).

mod judge;
mod life;
mod person;
mod play;
mod script;
mod shop;
mod sky;

use crate::matrix::Entry;
use crate::suite::StoreFactory;
pub use script::{Move, Script};

/// What happened in a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Played {
    /// What is not as promised. Empty if all is well.
    pub failures: Vec<String>,
    /// What actions and provider did, in order.
    pub log: Vec<Entry>,
    /// Calls to the store, of all processes.
    pub calls: u64,
    /// How often a person had to say what is true.
    pub verdicts: u64,
    /// Runs that the process of their event started at once.
    pub eager: u64,
    /// Runs that were canceled.
    pub canceled: u64,
    /// Runs that failed, since the provider declined.
    pub declined: u64,
    /// Virtual milliseconds.
    pub took_ms: i64,
}

/// Plays a script on a new store.
pub async fn simulate<F: StoreFactory>(script: &Script) -> Played {
    play::Stage::<F>::new(script.clone()).await.play().await
}
