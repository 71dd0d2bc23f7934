//! A driver without slots, timers and threads: the least that moves a run as a worker does.
//!
//! The first half needs no store, for tests of the core; the second half brings one in. What a worker does at its
//! leisure happens here when the test says so, so that any moment of it can be looked at.

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Amounts, Answer, BoxFuture, Call, ChildrenCreated, ChildrenError, ChildrenRequest, Collect,
    Command, Commit, Committed, CreateChildren, Decision, Durability, Fact, Held, Input, Join,
    LoadRequest, Locked, Prepared, Receipt, ReconcileAnswer, Rejection, RestoreInvalid, Run, RunId,
    RunState, Spawn, Stamp, StepKey, StoreError, Stored, Timestamp, TxStore, TxWork, Unopened,
    Work, decide,
};

/// One run as a worker holds it.
#[derive(Debug, Clone)]
pub struct Drive {
    plan: Plan,
    held: Held,
    stored: Stamp,
    receipt: Receipt,
    pending: Vec<Fact>,
    now: Timestamp,
    cost: Amounts,
}

/// What a script answers to a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// To a preparation: refused or waiting. (Other preparations succeed by themselves.)
    Stopped(Answer),
    /// To a call.
    Answer(Answer),
    /// To a question about an effect.
    Reconciled(ReconcileAnswer),
}

/// Why a run could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store said no to children.
    #[error(transparent)]
    Children(#[from] ChildrenError),
    /// The core said no.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The journal does not fit the plan.
    #[error(transparent)]
    Restore(#[from] RestoreInvalid),
    /// A command was to be opened before its facts were durable.
    #[error(transparent)]
    Unopened(#[from] Unopened),
    /// There is no such run or version, or its plan cannot be read.
    #[error("{0}")]
    Missing(String),
}

impl Drive {
    /// A run as a store gave it.
    ///
    /// # Errors
    /// The journal cannot be read, or does not fit the plan.
    pub fn of(stored: Stored, plan: Plan) -> Result<Self, RestoreInvalid> {
        let invocation = stored.invocation.unwrap_or_default();
        let (stamp, receipt) = (stored.run.stamp(), Receipt::attest(&stored.run));
        let held = Held::restore(stored.run, &plan, invocation, &stored.journal?)?;
        let (pending, now, cost) = (Vec::new(), stored.now, Amounts::default());
        Ok(Self { plan, held, stored: stamp, receipt, pending, now, cost })
    }

    /// The run, with everything decided so far.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.held.run
    }

    /// The run and its position.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the next commit is decided on.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.stored
    }

    /// Facts that are decided and not durable yet.
    #[must_use]
    pub fn pending(&self) -> &[Fact] {
        &self.pending
    }

    /// What each call costs from here on; nothing at first.
    pub fn set_cost(&mut self, cost: Amounts) {
        self.cost = cost;
    }

    /// The store's time, as known.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Decides about an input and moves by its facts.
    ///
    /// # Errors
    /// The core rejects the input; nothing has changed.
    pub fn decide(&mut self, input: Input) -> Result<Decision, DriveError> {
        let decision = decide(&self.held, &self.plan, input, self.now)?;
        self.held = self.held.clone().apply(&self.plan, &decision.facts)?;
        self.pending.extend(decision.facts.iter().cloned());
        Ok(decision)
    }

    /// The commit of everything that is pending.
    #[must_use]
    pub fn commit(&self) -> Option<Commit> {
        let commit = || Commit::of(self.stored, self.held.run.clone(), &self.pending);
        (!self.pending.is_empty()).then(commit)
    }

    /// Takes what the store answered to the commit.
    pub fn committed(&mut self, committed: Committed) {
        self.stored = committed.run.stamp();
        self.receipt = committed.receipt;
        self.now = committed.now;
        self.held.run = committed.run;
        self.pending.clear();
    }

    /// The input that a reply is.
    #[must_use]
    pub fn input(call: &Call, reply: Reply) -> Input {
        let step = call.step.clone();
        match reply {
            Reply::Stopped(answer) => Input::Prepared { step, result: Prepared::Stopped(answer) },
            Reply::Answer(answer) => Input::Answer { step, answer },
            Reply::Reconciled(answer) => Input::Reconciled { step, answer },
        }
    }
}

impl Drive {
    /// Reads a run, its journal and its plan.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn load<S: TxStore>(store: &S, run: RunId) -> Result<Self, DriveError> {
        let stored = store.run_load(LoadRequest { run, after: None }).await?;
        let stored = stored.ok_or_else(|| DriveError::Missing(format!("there is no run {run}")))?;
        let version = stored.run.origin.version;
        let text = store.version_load(version).await?.map(|version| version.plan);
        let plan = text.and_then(|text| from_stored(&text).ok());
        let plan = plan.ok_or_else(|| DriveError::Missing(format!("no plan in {version}")))?;
        Ok(Self::of(stored, plan)?)
    }

    /// Makes durable what is pending.
    ///
    /// # Errors
    /// The store's word; nothing that was pending is forgotten.
    pub async fn flush<S: TxStore>(&mut self, store: &S) -> Result<(), StoreError> {
        if let Some(commit) = self.commit() {
            let committed = store.run_commit(commit).await?;
            self.committed(committed);
        }
        Ok(())
    }

    /// Decides about an input, makes its facts as durable as they must be, and opens its command.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn take<S: TxStore>(
        &mut self,
        store: &S,
        input: Input,
    ) -> Result<Option<Command>, DriveError> {
        self.now = self.now.max(store.store_now().await?);
        let decision = self.decide(input)?;
        if decision.durability != Durability::Lazy {
            self.flush(store).await?;
        }
        Ok(decision.command.open(&self.receipt)?)
    }

    /// Goes on until there is a command, or the run has left.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn advance<S: TxStore>(&mut self, store: &S) -> Result<Option<Command>, DriveError> {
        while self.run().state() == RunState::Running {
            if let Some(command) = self.take(store, Input::Advance).await? {
                return Ok(Some(command));
            }
        }
        Ok(None)
    }

    /// Goes on until an action is to be called or a provider to be asked, or the run has left. Preparations succeed.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn to_call<S: TxStore>(&mut self, store: &S) -> Result<Option<Command>, DriveError> {
        match self.advance(store).await? {
            Some(Command::Prepare(call)) => {
                let result = Prepared::Ready { cost: self.cost.clone() };
                self.take(store, Input::Prepared { step: call.step, result }).await
            }
            other => Ok(other),
        }
    }

    /// Has the answer to a call recorded.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn answer<S: TxStore>(
        &mut self,
        store: &S,
        step: &StepKey,
        answer: Answer,
    ) -> Result<(), DriveError> {
        self.take(store, Input::Answer { step: step.clone(), answer }).await?;
        Ok(())
    }

    /// Creates the children that a built-in step wants, and goes on to wait for them.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn spawn<S: TxStore>(
        &mut self,
        store: &S,
        spawn: Spawn,
    ) -> Result<ChildrenCreated, DriveError> {
        let Spawn { step, children, parallel } = spawn;
        let create = CreateChildren { before: self.stored, step: step.clone(), children, parallel };
        let created = store.children_create(create).await?;
        self.take(store, Input::Spawned { step, result: Ok(()) }).await?;
        Ok(created)
    }

    /// Reads what the children of a built-in step came to, and records it.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn collect<S: TxStore>(
        &mut self,
        store: &S,
        collect: &Collect,
    ) -> Result<(), DriveError> {
        let mut request = ChildrenRequest {
            parent: self.stored.run,
            step: collect.step.clone(),
            from: 0,
            limit: 100,
        };
        let mut page = store.children_read(request.clone()).await?;
        let mut join = Join::new(collect.is_list, page.total);
        loop {
            page.children.into_iter().for_each(|child| join.add(child));
            let Some(from) = page.next else { break };
            request.from = from;
            page = store.children_read(request.clone()).await?;
        }
        let (step, joined) = (collect.step.clone(), join.end());
        self.take(store, Input::Joined { step, joined }).await?;
        Ok(())
    }

    /// Does a transactional step: the work and its answer are one transaction of the store.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn transact<S: TxStore>(
        &mut self,
        store: &S,
        call: &Call,
        work: impl FnMut(&mut S::Tx) -> BoxFuture<'_, Option<Answer>> + Send,
    ) -> Result<Option<Committed>, DriveError> {
        let before = self.stored;
        let (drive, call, cost) = (self.clone(), call.clone(), self.cost.clone());
        let mut step = Transact { drive, call, cost, work, refused: None };
        let committed = store.run_transact(before, &mut step).await?;
        if let Some(refused) = step.refused {
            return Err(refused);
        }
        if let Some(committed) = &committed {
            *self = step.drive;
            self.committed(committed.clone());
        }
        Ok(committed)
    }

    /// Goes on until the run has left, with a script for all that an application would do.
    ///
    /// # Errors
    /// See [`DriveError`].
    pub async fn to_end<S: TxStore>(
        &mut self,
        store: &S,
        mut script: impl FnMut(&Call) -> Reply + Send,
    ) -> Result<Run, DriveError> {
        while let Some(command) = self.to_call(store).await? {
            match command {
                Command::Transact(call) => {
                    let reply = script(&call);
                    let Reply::Answer(answer) = reply else {
                        return Err(DriveError::Missing("no answer to a transaction".to_owned()));
                    };
                    self.transact(store, &call, |_| {
                        Box::pin(std::future::ready(Some(answer.clone())))
                    })
                    .await?;
                }
                Command::Call(call) | Command::Prepare(call) | Command::Reconcile(call) => {
                    let input = Self::input(&call, script(&call));
                    self.take(store, input).await?;
                }
                Command::Spawn(spawn) => drop(self.spawn(store, spawn).await?),
                Command::Collect(collect) => self.collect(store, &collect).await?,
            }
        }
        self.flush(store).await?;
        Ok(self.run().clone())
    }
}

struct Transact<W> {
    drive: Drive,
    call: Call,
    cost: Amounts,
    work: W,
    refused: Option<DriveError>,
}

impl<Tx: Send, W> TxWork<Tx> for Transact<W>
where
    W: FnMut(&mut Tx) -> BoxFuture<'_, Option<Answer>> + Send,
{
    fn work<'a>(&'a mut self, tx: &'a mut Tx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(async move {
            let Some(answer) = (self.work)(tx).await else { return Work::Rollback };
            self.drive.set_now(locked.now);
            let (step, cost) = (self.call.step.clone(), self.cost.clone());
            let input = match answer {
                Answer::Succeeded { output } => Input::Worked { step, cost, output },
                answer @ (Answer::OutputRefused { .. }
                | Answer::Failed { .. }
                | Answer::Waiting { .. }
                | Answer::Unknown { .. }
                | Answer::NotCalled) => Input::Answer { step, answer },
            };
            if let Err(refused) = self.drive.decide(input) {
                self.refused = Some(refused);
                return Work::Rollback;
            }
            match self.drive.commit() {
                Some(commit) => Work::Commit(Box::new(commit)),
                None => Work::Rollback,
            }
        })
    }
}
