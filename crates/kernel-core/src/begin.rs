//! How a run begins at a worker: it is claimed, and a new one has its inputs from the same commit on.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::interpreter::compute_inputs;
use crate::plan::Plan;
use crate::{
    CLAIM_MAX_BYTES, Commit, Fact, Invocation, JournalEntry, Lease, Receipt, Rejection,
    RestoreInvalid, RowInput, Run, RunId, Stored, Timestamp, VersionId, decide_row,
};

/// Plans that a worker has read, by version: a store that knows the plan of a new run records its inputs together with
/// the claim, which saves a commit. A clone is cheap.
///
/// ```
/// use surefoot_kernel_core::Plans;
/// // A worker that has read no plan yet claims all the same, and computes the inputs itself.
/// assert!(Plans::default().is_empty());
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Plans(Arc<BTreeMap<VersionId, Arc<Plan>>>);

impl Plans {
    /// These and one more.
    #[must_use]
    pub fn with(&self, version: VersionId, plan: Arc<Plan>) -> Self {
        let mut plans = BTreeMap::clone(&self.0);
        plans.insert(version, plan);
        Self(Arc::new(plans))
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Claims a run for a worker. A new one whose plan is known here has its inputs with it, if they can be computed:
    /// what is wrong with them is for the worker to say.
    ///
    /// # Errors
    /// [`Rejection`] if it cannot be claimed.
    pub fn begin(
        &self,
        coming: Coming<'_>,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Begun, Rejection> {
        let claimed = decide_row(coming.run, RowInput::Claim { lease }, now)?;
        let inputs = self.inputs(coming);
        let facts: Vec<Fact> = claimed.into_iter().chain(inputs.clone()).collect();
        Ok(Begun { commit: Commit::new(coming.run, &facts), inputs })
    }

    fn inputs(&self, Coming { run, invocation, is_dated }: Coming<'_>) -> Option<Fact> {
        let is_new = run.attempt == 0 && run.seq == 0;
        let (plan, invocation) = (self.0.get(&run.origin.version)?, invocation.filter(|_| is_new)?);
        let asks_for_time = Cell::new(false);
        let now = || {
            asks_for_time.set(true);
            run.origin.occurred_at
        };
        let inputs = compute_inputs(plan, run.origin.trigger.as_deref(), invocation, &now).ok()?;
        (is_dated || !asks_for_time.get()).then_some(Fact::InputsComputed { inputs })
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A run that is about to come to a worker.
#[derive(Debug, Clone, Copy)]
pub struct Coming<'a> {
    /// As it is before.
    pub run: &'a Run,
    /// What started it, if it is at hand.
    pub invocation: Option<&'a Invocation>,
    /// Whether it is known when its event occurred. An event without a time of its own occurs when it is recorded: inputs
    /// that ask for the time are computed after that.
    pub is_dated: bool,
}

impl<'a> Coming<'a> {
    /// A run that is in the store already.
    #[must_use]
    pub const fn of(run: &'a Run, invocation: Option<&'a Invocation>) -> Self {
        Self { run, invocation, is_dated: true }
    }
}

/// What claimed runs have behind them, as far as a claim brings it: of those with little that can be read. The others are
/// read one by one, and say what is wrong.
#[derive(Debug, Default)]
pub struct Behind {
    started_with: BTreeMap<RunId, Invocation>,
    journals: BTreeMap<RunId, Result<Vec<JournalEntry>, RestoreInvalid>>,
}

impl Behind {
    /// Whether a claim asks for the journal of a run, and for what started it if that is no larger.
    #[must_use]
    pub const fn is_asked_for(run: &Run) -> bool {
        run.journal_bytes <= CLAIM_MAX_BYTES
    }

    /// What started a run.
    pub fn started_with(&mut self, run: RunId, invocation: Invocation) {
        self.started_with.insert(run, invocation);
    }

    /// The next row of the journal of a run.
    pub fn journaled(&mut self, run: RunId, row: Result<JournalEntry, RestoreInvalid>) {
        let rows = self.journals.entry(run).or_insert_with(|| Ok(Vec::new()));
        match (row, &mut *rows) {
            (Ok(row), Ok(rows)) => rows.push(row),
            (Ok(_), Err(_)) => {}
            (Err(invalid), _) => *rows = Err(invalid),
        }
    }

    /// What started a run.
    #[must_use]
    pub fn invocation(&self, run: RunId) -> Option<&Invocation> {
        self.started_with.get(&run)
    }

    /// What started a run, and what of its journal its row counts: a journal only grows.
    #[must_use]
    pub fn take(&mut self, run: RunId, seq: u64) -> (Option<Invocation>, Vec<JournalEntry>) {
        let journal = self.journals.remove(&run).and_then(Result::ok);
        let invocation = self.started_with.remove(&run);
        if seq > 0 && journal.is_none() {
            return (None, Vec::new());
        }
        let mut journal = journal.unwrap_or_default();
        journal.retain(|row| row.seq < seq);
        (invocation, journal)
    }
}

/// A run as it comes to a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// What is written.
    pub commit: Commit,
    /// The fact in it.
    inputs: Option<Fact>,
}

impl Begun {
    /// The run as reading it would bring it once this is written, which the receipt says. Without an invocation at hand
    /// it has to be read.
    #[must_use]
    pub fn stored(
        self,
        receipt: Receipt,
        (invocation, mut journal): (Option<Invocation>, Vec<JournalEntry>),
        now: Timestamp,
    ) -> Stored {
        let Self { commit, inputs } = self;
        journal.extend(inputs.map(|inputs| JournalEntry {
            seq: commit.before.seq,
            generation: commit.after.generation,
            at: now,
            facts: vec![inputs],
        }));
        Stored { run: commit.after, invocation, journal: Ok(journal), receipt, now }
    }
}
