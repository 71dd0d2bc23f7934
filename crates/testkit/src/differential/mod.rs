//! The differential: one random script on two stores, whose answers, rows and journals are compared after each move.
//!
//! The core decides on both sides; what differs is the stores. Times are compared by how far they are from the beginning,
//! and not to the second, since the clocks of databases run on: a script moves them by much more than it takes.
//!
//! ```
//! use surefoot_testkit::{MemoryFactory, differential::differ};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // Any numbers are a script.
//! differ::<MemoryFactory, MemoryFactory>(&[1, 2, 3]).await.unwrap();
//! # }
//! ```

mod compare;
mod moves;
mod side;

use std::fmt;

use surefoot_kernel_core::Timestamp;

use compare::{Seen, difference};
use moves::Move;
use side::Side;

use crate::suite::StoreFactory;

/// Where two stores part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Difference {
    /// The moves up to there.
    pub moves: Vec<String>,
    /// What was looked at.
    pub what: String,
    /// What the first store has.
    pub first: String,
    /// What the second one has.
    pub second: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { moves, what, first, second } = self;
        writeln!(
            f,
            "after {moves:#?}: {what} differs\nthe first store:  {first}\nthe second store: {second}"
        )
    }
}

/// Plays a script on two new stores: each number is a move.
///
/// # Errors
/// The first difference.
pub async fn differ<A: StoreFactory, B: StoreFactory>(script: &[u64]) -> Result<(), Difference> {
    let mut first = Side::<A>::new().await;
    let mut second = Side::<B>::new().await;
    let mut moves = Vec::new();
    for word in script {
        let one = Move::of(*word);
        moves.push(format!("{one:?}"));
        let mut seen = (first.make(one).await, second.make(one).await);
        seen.0.extend(first.look().await);
        seen.1.extend(second.look().await);
        compare(&moves, (&seen.0, first.began()), (&seen.1, second.began()))?;
    }
    let seen = (first.look_at_all().await, second.look_at_all().await);
    compare(&moves, (&seen.0, first.began()), (&seen.1, second.began()))
}

fn compare(
    moves: &[String],
    first: (&Seen, Timestamp),
    second: (&Seen, Timestamp),
) -> Result<(), Difference> {
    match difference(first, second) {
        None => Ok(()),
        Some((what, first, second)) => {
            Err(Difference { moves: moves.to_vec(), what, first, second })
        }
    }
}
