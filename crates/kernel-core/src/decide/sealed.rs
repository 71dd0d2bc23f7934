//! A command is sealed until the store has said that the facts before it are durable.
//!
//! "Call the provider, then mark it" does not compile: the call is inside a [`Sealed`], and what opens it is the
//! store's [`Receipt`] for the same run, generation and sequence.

use super::{Command, Durability};
use crate::{Fact, Run, RunId};

/// A store's word that a run's facts up to a sequence number are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    run: RunId,
    generation: u64,
    seq: u64,
}

impl Receipt {
    /// For stores only, after a commit or a read of committed data: what they attest, drivers act on.
    #[must_use]
    pub const fn attest(run: &Run) -> Self {
        Self { run: run.id, generation: run.generation, seq: run.seq }
    }
}

/// A command that cannot be read before it may be carried out.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a sealed command does nothing until it is opened"]
pub struct Sealed {
    run: RunId,
    generation: u64,
    seq: u64,
    lazy: bool,
    command: Option<Box<Command>>,
}

/// Why a seal holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// The receipt is of another run or generation.
    #[error("the receipt is not for this run and generation")]
    OtherRun,
    /// Facts before the command are not durable yet.
    #[error("facts up to {needed} must be durable, the receipt is for {durable}")]
    NotDurable {
        /// Sequence number that the command needs.
        needed: u64,
        /// Sequence number of the receipt.
        durable: u64,
    },
}

impl Sealed {
    pub(super) const fn none(run: &Run) -> Self {
        Self { run: run.id, generation: run.generation, seq: run.seq, lazy: true, command: None }
    }

    pub(super) fn new(run: &Run, facts: &[Fact], command: Command, durability: Durability) -> Self {
        let journaled = facts.iter().filter(|fact| fact.is_journaled()).count();
        let seq = run.seq.saturating_add(journaled as u64);
        let lazy = matches!(durability, Durability::Lazy);
        let command = Some(Box::new(command));
        Self { run: run.id, generation: run.generation, seq, lazy, command }
    }

    /// Whether it opens before earlier facts are durable: calls of pure actions, and transactions, which write those
    /// facts themselves.
    #[must_use]
    pub const fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// What is inside, for showing a person what would be done; nothing can be carried out with it.
    pub(crate) fn peek(&self) -> Option<&Command> {
        self.command.as_deref()
    }

    /// Opens with the store's receipt.
    ///
    /// # Errors
    /// [`Unopened`] if the receipt does not cover what the command needs.
    pub fn open(self, receipt: &Receipt) -> Result<Option<Command>, Unopened> {
        let Some(command) = self.command else { return Ok(None) };
        if receipt.run != self.run || receipt.generation != self.generation {
            return Err(Unopened::OtherRun);
        }
        if receipt.seq < self.seq && !self.lazy {
            return Err(Unopened::NotDurable { needed: self.seq, durable: receipt.seq });
        }
        Ok(Some(*command))
    }
}
