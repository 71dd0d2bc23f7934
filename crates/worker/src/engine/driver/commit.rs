//! Makes facts durable, and finds out what became of a write whose answer was lost.

use surefoot_kernel_core::{
    Commit, Committed, Exceeded, Fact, LoadRequest, Measure, Micros, NotWritten, Run, RunState,
    StoreError, Stored, TakeOverRequest, TxStore,
};
use tracing::Instrument as _;

use super::book::{Book, StoreTime};
use super::load::fold;
use super::{Driver, Left, defect};
use crate::engine::life::with_causes;
use crate::engine::pace::{Pause, minus, plus};
use crate::spans;

/// What became of a commit.
pub(super) enum Written {
    /// The facts are durable and applied.
    Stored,
    /// Somebody else wrote meanwhile: the run was read again, and is decided on again.
    Changed,
    /// Nobody knew, so the run was taken over and read again: what is there now is final.
    TakenOver,
    /// The charge would pass a cap: nothing was written.
    OverBudget(Exceeded),
    /// The store takes no such facts.
    Refused(String),
}

/// What a store's error asks of the driver.
pub(super) enum Trouble {
    /// Read again, decide again.
    Changed,
    /// Stop, write nothing more.
    Lost,
    /// Take over before anything.
    Unknown,
    /// The same again later.
    Later,
    /// Not at this cost.
    OverBudget(Exceeded),
    /// Not this write.
    Refused,
    /// This driver can do nothing about it.
    Hopeless,
}

impl Trouble {
    /// What it is counted as.
    const fn not_written(&self) -> Option<NotWritten> {
        match self {
            Self::Changed => Some(NotWritten::Raced),
            Self::Lost => Some(NotWritten::Fenced),
            Self::Unknown => Some(NotWritten::InDoubt),
            Self::Later | Self::OverBudget(_) | Self::Refused | Self::Hopeless => None,
        }
    }
}

pub(super) fn trouble(error: &StoreError) -> Trouble {
    match error {
        StoreError::Conflict | StoreError::Canceled => Trouble::Changed,
        StoreError::LeaseLost => Trouble::Lost,
        StoreError::UnknownOutcome(_) => Trouble::Unknown,
        StoreError::Unavailable(_)
        | StoreError::FenceHeld
        | StoreError::TransactionConflict(_)
        | StoreError::TransactionTimeout { .. } => Trouble::Later,
        StoreError::BudgetExceeded(exceeded) => Trouble::OverBudget(exceeded.clone()),
        StoreError::Refused(_) => Trouble::Refused,
        StoreError::Corrupt { .. }
        | StoreError::BeingDeleted
        | StoreError::NotInTransaction
        | StoreError::ParentMovedOn { .. }
        | StoreError::SchemaTooNew { .. } => Trouble::Hopeless,
        // Non-exhaustive: what this build does not know is not tried again.
        _ => Trouble::Hopeless,
    }
}

impl<S: TxStore> Driver<S> {
    /// Writes what is pending.
    pub(super) async fn flush(&self, book: &mut Book<S::Tx>) -> Result<(), Left> {
        while !book.pending.is_empty() {
            match self.commit(book, book.pending.facts.len()).await? {
                Written::Stored => break,
                Written::Changed | Written::TakenOver => {}
                Written::OverBudget(exceeded) => return Err(defect(exceeded)),
                Written::Refused(why) => return Err(Left::LetGo(why)),
            }
        }
        Ok(())
    }

    /// Writes everything pending in one commit. If that fails, only the first `lazy` facts stay pending: the others are
    /// decided again. Once they are stored and the run is not this worker's any more, that is how the driver leaves it.
    pub(super) async fn commit(
        &self,
        book: &mut Book<S::Tx>,
        lazy: usize,
    ) -> Result<Written, Left> {
        // The keeper has heard it already: not even an attempt is made.
        if self.hold.is_lost() {
            return Err(Left::Lost);
        }
        let mut all = std::mem::take(&mut book.pending.facts);
        let asked = self.shift.now();
        let (before, after) = (book.before, &book.held.run);
        let writing = self.write(|| Commit::of(before, after.clone(), &all));
        let answer = writing.instrument(spans::commit(all.len())).await;
        match answer {
            Ok(committed) => {
                self.stored(book, (committed, asked), &all, &[])?;
                Ok(Written::Stored)
            }
            Err(error) => {
                all.truncate(lazy);
                book.pending.facts = all;
                let written = Box::pin(self.overcome(book, &error)).await?;
                // What others wrote was read; what the store took nothing of is put back here.
                if let Written::OverBudget(_) | Written::Refused(_) = written {
                    Box::pin(self.reload(book)).await?;
                }
                Ok(written)
            }
        }
    }

    /// The facts are durable: `new` ones move the position, all are told to observers.
    pub(super) fn stored(
        &self,
        book: &mut Book<S::Tx>,
        (committed, asked): (Committed, Micros),
        all: &[Fact],
        new: &[Fact],
    ) -> Result<(), Left> {
        let span = (asked, self.shift.now());
        let now = committed.now;
        self.engine.measure(Measure::Committed { facts: all.len(), took: minus(span.1, span.0) });
        book.committed(committed, new, span).map_err(defect)?;
        for fact in all {
            self.tell(&book.held.run, fact);
        }
        if book.held.run.state() == RunState::Running {
            Ok(())
        } else {
            Err(Left::Stored(Box::new(book.held.run.clone()), now))
        }
    }

    fn tell(&self, run: &Run, fact: &Fact) {
        let Some((step, code)) = fact.ended_step() else { return };
        self.engine.observe(|trace| {
            trace.step_finished(run.id, step, code.map(surefoot_kernel_core::Code::as_str));
        });
    }

    /// Does what an error of a write asks for.
    pub(super) async fn overcome(
        &self,
        book: &mut Book<S::Tx>,
        error: &StoreError,
    ) -> Result<Written, Left> {
        let trouble = trouble(error);
        if let Some(why) = trouble.not_written() {
            self.engine.measure(Measure::NotWritten(why));
        }
        match trouble {
            Trouble::Changed => self.reload(book).await.map(|()| Written::Changed),
            Trouble::Lost => {
                self.hold.lose(self.hold.generation());
                Err(Left::Lost)
            }
            Trouble::Unknown => self.take_over(book).await.map(|()| Written::TakenOver),
            Trouble::OverBudget(exceeded) => Ok(Written::OverBudget(exceeded)),
            Trouble::Refused => Ok(Written::Refused(with_causes(error))),
            Trouble::Later | Trouble::Hopeless => Err(Left::LetGo(with_causes(error))),
        }
    }

    /// Writes; what may go through later is tried again as long as the lease lives.
    pub(super) async fn write(
        &self,
        commit: impl Fn() -> Commit + Send,
    ) -> Result<Committed, StoreError> {
        let mut pause = Pause::store();
        loop {
            let error = match self.engine.kernel.store().run_commit(commit()).await {
                Ok(committed) => return Ok(committed),
                Err(error) => error,
            };
            if !matches!(trouble(&error), Trouble::Later) || !self.may_wait(&mut pause).await {
                return Err(error);
            }
        }
    }

    /// Reads a run; an unreachable store is asked again as long as the lease lives.
    pub(super) async fn read(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        let mut pause = Pause::store();
        loop {
            let error = match self.engine.kernel.store().run_load(request).await {
                Ok(stored) => return Ok(stored),
                Err(error) => error,
            };
            let is_transient = matches!(trouble(&error), Trouble::Later | Trouble::Unknown);
            if !is_transient || !self.may_wait(&mut pause).await {
                return Err(error);
            }
        }
    }

    /// Rests before another try; `false` if the lease is over.
    pub(super) async fn may_wait(&self, pause: &mut Pause) -> bool {
        if !self.hold.is_alive() || self.shift.phase() >= crate::engine::Phase::Abandoning {
            return false;
        }
        tokio::time::sleep(pause.length()).await;
        self.hold.is_alive()
    }

    /// Reads the run again and puts what is pending on top: it is decided already, by this same driver.
    pub(super) async fn reload(&self, book: &mut Book<S::Tx>) -> Result<(), Left> {
        let request = LoadRequest { run: self.hold.run(), after: None };
        let asked = self.shift.now();
        let stored = self.read(request).await.map_err(|error| Left::LetGo(with_causes(&error)))?;
        let Some(stored) = stored else {
            return Err(Left::LetGo("the run is gone".to_owned()));
        };
        if stored.run.generation != self.hold.generation() {
            self.hold.lose(self.hold.generation());
            return Err(Left::Lost);
        }
        if stored.run.state() != RunState::Running {
            return Err(Left::Stored(Box::new(stored.run), stored.now));
        }
        let time = StoreTime::new(stored.now, (asked, self.shift.now()));
        let (plan, row, receipt) = (book.plan.clone(), stored.run.clone(), stored.receipt);
        let held = match fold(stored, &plan.plan) {
            Ok(held) => held,
            Err(invalid) => return Err(self.unreadable(row, &invalid.what).await),
        };
        let pending = std::mem::take(&mut book.pending.facts);
        let rejections = book.rejections;
        *book = Book::new(plan, held, receipt, time);
        book.rejections = rejections;
        book.accept(pending, self.shift.now()).map_err(defect)
    }

    /// After a commit in doubt: raises the generation under our own lease. The store's answer waits for the doubtful
    /// transaction to end, and a late one is fenced out; what the journal says after that is final.
    pub(super) async fn take_over(&self, book: &mut Book<S::Tx>) -> Result<(), Left> {
        let mut pause = Pause::store();
        let lease = self.engine.settings.lease;
        let (run, session) = (self.hold.run(), self.shift.session);
        let generation = book.before.generation;
        let (taken, asked) = loop {
            let asked = self.shift.now();
            let request = TakeOverRequest { run, generation, session, lease };
            match self.engine.kernel.store().run_take_over(request).await {
                Ok(Some(taken)) => break (taken, asked),
                Ok(None) => return Err(Left::LetGo("the run is gone".to_owned())),
                Err(error) => {
                    if !self.may_wait(&mut pause).await {
                        return Err(Left::LetGo(with_causes(&error)));
                    }
                }
            }
        };
        let is_ours = taken.lease().is_none_or(|lease| lease.owner == session);
        if self.hold.is_lost() || !is_ours {
            // Whoever claimed the run since has fenced the commit in doubt out, or seen it.
            return Err(Left::Lost);
        }
        let ends = plus(asked, lease);
        self.hold.taken_over(taken.generation, ends);
        self.shift.lease_ends(ends);
        // Facts that were pending were part of the commit in doubt: they are in the journal now, or they still fit.
        if taken.seq != book.before.seq {
            book.pending.facts.clear();
        }
        self.reload(book).await
    }
}
