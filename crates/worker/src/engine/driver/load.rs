//! Brings a claimed run into memory.

use std::sync::{Arc, PoisonError};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::{PLAN_SCHEMA, Plan};
use surefoot_kernel_core::{
    Commit, Held, LoadRequest, Micros, RestoreInvalid, RowInput, Run, RunState, StoreError, Stored,
    TxStore, VersionId, decide_row,
};

use super::book::{Book, LoadedPlan, StoreTime};
use super::commit::{Trouble, trouble};
use super::{Driver, Left};
use crate::engine::keeper::heartbeat;
use crate::engine::life::with_causes;
use crate::engine::pace::{Pause, part};
use crate::engine::{Cached, Taken};

impl<S: TxStore> Driver<S> {
    /// Folds the run. What cannot be read is put before a person, never guessed.
    pub(super) async fn open(&self, taken: Taken) -> Result<Book<S::Tx>, Left> {
        self.refresh_lease().await?;
        let Taken { stored, asked } = taken;
        let plan = match self.plan(stored.run.origin.version).await? {
            Ok(plan) => plan,
            Err(what) => return Err(self.unreadable(stored.run, &what).await),
        };
        if plan.footprint != stored.run.origin.footprint {
            let what = "the plan's footprint is not the one that the run was created with";
            return Err(self.unreadable(stored.run, what).await);
        }
        // What did not come with it, or could not be decoded, is read.
        if stored.invocation.is_some() {
            return self.open_stored(*stored, asked, plan).await;
        }
        let claimed = stored.run;
        match self.cached(&claimed).await? {
            Some(book) => Ok(book),
            None => self.open_all(claimed, plan).await,
        }
    }

    /// A claim whose answer was slow brings a lease that is half over: it is renewed before anything begins.
    async fn refresh_lease(&self) -> Result<(), Left> {
        let third = part(self.engine.settings.lease, 3);
        if self.hold.remaining() < third.max(part(self.engine.settings.lease, 2)) {
            heartbeat(&self.shift, &self.hold, false).await;
        }
        if self.hold.is_alive() && self.hold.remaining() >= third {
            Ok(())
        } else {
            Err(Left::LetGo("the lease was nearly over before the run could begin".to_owned()))
        }
    }

    /// The run as it was left here, with what the journal got since.
    async fn cached(&self, claimed: &Run) -> Result<Option<Book<S::Tx>>, Left> {
        let cached = {
            let mut held = self.engine.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.take(claimed.id)
        };
        let Some(Cached { held, plan }) = cached else { return Ok(None) };
        let after = Some(held.run.seq);
        let asked = self.shift.now();
        let stored = match self.read(LoadRequest { run: claimed.id, after }).await {
            Ok(Some(stored)) => stored,
            // The whole is read next, and says what is wrong.
            Ok(None) | Err(_) => return Ok(None),
        };
        self.check_held(&stored)?;
        let time = StoreTime::new(stored.now, (asked, self.shift.now()));
        let receipt = stored.receipt;
        let caught_up =
            stored.journal.and_then(|journal| held.catch_up(stored.run, &plan.plan, &journal));
        Ok(caught_up.ok().map(|held| Book::new(plan, held, receipt, time)))
    }

    async fn open_all(
        &self,
        claimed: Run,
        plan: Arc<LoadedPlan<S::Tx>>,
    ) -> Result<Book<S::Tx>, Left> {
        let asked = self.shift.now();
        let stored = match self.read(LoadRequest { run: claimed.id, after: None }).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return Err(Left::LetGo("the run is gone".to_owned())),
            Err(StoreError::Corrupt { what, .. }) => {
                return Err(self.unreadable(claimed, &what).await);
            }
            Err(error) => return Err(Left::LetGo(with_causes(&error))),
        };
        self.open_stored(stored, asked, plan).await
    }

    /// What the store said to a question that was asked then.
    async fn open_stored(
        &self,
        stored: Stored,
        asked: Micros,
        plan: Arc<LoadedPlan<S::Tx>>,
    ) -> Result<Book<S::Tx>, Left> {
        self.check_held(&stored)?;
        let time = StoreTime::new(stored.now, (asked, self.shift.now()));
        let (row, receipt) = (stored.run.clone(), stored.receipt);
        match fold(stored, &plan.plan) {
            Ok(held) => Ok(Book::new(plan, held, receipt, time)),
            Err(invalid) => Err(self.unreadable(row, &invalid.what).await),
        }
    }

    fn check_held(&self, stored: &Stored) -> Result<(), Left> {
        let run = &stored.run;
        if run.generation != self.hold.generation() || run.state() != RunState::Running {
            self.hold.lose(self.hold.generation());
            return Err(Left::Lost);
        }
        Ok(())
    }

    /// The plan of a version; the inner error says why it cannot be read.
    async fn plan(
        &self,
        version: VersionId,
    ) -> Result<Result<Arc<LoadedPlan<S::Tx>>, String>, Left> {
        let known = {
            let mut plans = self.engine.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.get(version).cloned()
        };
        if let Some(plan) = known {
            return Ok(Ok(plan));
        }
        let mut pause = Pause::store();
        let stored = loop {
            let error = match self.engine.kernel.store().version_load(version).await {
                Ok(Some(stored)) => break stored,
                Ok(None) => return Ok(Err(format!("version {version} is gone"))),
                Err(error) => error,
            };
            let is_transient = matches!(trouble(&error), Trouble::Later | Trouble::Unknown);
            if !is_transient || !self.may_wait(&mut pause).await {
                return Err(Left::LetGo(with_causes(&error)));
            }
        };
        let plan = match read_plan(&stored.plan) {
            Ok(plan) => plan,
            Err(what) => return Ok(Err(what)),
        };
        let Some(module) = self.engine.module_for(&plan.footprint) else {
            return Err(Left::LetGo("no loaded module can run the plan".to_owned()));
        };
        let plan = Arc::new(LoadedPlan::new(plan, module));
        self.engine.keep_plan(version, plan.clone());
        Ok(Ok(plan))
    }

    /// Puts a run before a person whose plan or journal cannot be read. Other runs are not affected.
    pub(super) async fn unreadable(&self, mut run: Run, what: &str) -> Left {
        loop {
            let now = run.lease().map_or_else(Default::default, |lease| lease.until);
            let input = RowInput::Unreadable { what: what.to_owned() };
            let facts = match decide_row(&run, input, now) {
                Ok(facts) => facts,
                Err(rejection) => return Left::LetGo(rejection.to_string()),
            };
            let error = match self.write(|| Commit::new(&run, &facts)).await {
                Ok(committed) => return Left::Stored(Box::new(committed.run), committed.now),
                Err(error) => error,
            };
            if !matches!(trouble(&error), Trouble::Changed) {
                return Left::LetGo(with_causes(&error));
            }
            match self.read(LoadRequest { run: run.id, after: Some(run.seq) }).await {
                Ok(Some(stored)) if stored.run.generation == run.generation => run = stored.run,
                Ok(_) => return Left::Lost,
                Err(error) => return Left::LetGo(with_causes(&error)),
            }
        }
    }
}

pub(super) fn fold(stored: Stored, plan: &Plan) -> Result<Held, RestoreInvalid> {
    let missing = || RestoreInvalid { what: "the run has no invocation".to_owned() };
    let journal = stored.journal?;
    let invocation = stored.invocation.ok_or_else(missing)?;
    Held::restore(stored.run, plan, invocation, &journal)
}

fn read_plan(text: &str) -> Result<Plan, String> {
    let plan: Plan =
        from_stored(text).map_err(|error| format!("the stored plan cannot be read: {error}"))?;
    if plan.schema > PLAN_SCHEMA {
        return Err(format!(
            "the plan has schema {}, this build knows up to {PLAN_SCHEMA}: upgrade this program",
            plan.schema
        ));
    }
    Ok(plan)
}
