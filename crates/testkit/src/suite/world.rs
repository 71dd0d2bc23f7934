//! What a rule starts from: an empty store, two processes, and short words for the usual moves.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions of the suite: a rule that fails panics"
)]

use crate::ClaimRows;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Answer, App, ClaimRequest, Command, Commit, Committed, Emission, Emit, Event, EventStore as _,
    Failure, Ids, JournalEntry, LoadRequest, Micros, Mode, OperatorStore as _, PlanStore as _,
    Plans, Publish, Published, RenewRequest, Renewed, RowInput, Run, RunId, RunStore as _, Scan,
    Scope, SendSignal, SessionId, Signal, SignalSent, Stamp, StepKey, StoreError, Stored,
    TakeOverRequest, Timestamp, WorkflowKey, decide_row,
};

use super::invariants::{all_runs, check_all_but};
use super::{StoreFactory, Tamper, Tampered};
use crate::{Drive, SeqIds};

/// The lease of every claim of the suite, as by default.
pub(super) const LEASE: Micros = Micros::from_secs(120);

/// An empty store, seen by two processes.
#[derive(Debug)]
pub struct World<F: StoreFactory> {
    pub(super) factory: F,
    pub(super) store: F::Store,
    /// Another process's view.
    pub(super) other: F::Store,
    pub(super) ids: SeqIds,
    /// The session of this process.
    pub(super) session: SessionId,
    /// The session of the other process.
    pub(super) rival: SessionId,
    nonce: AtomicU64,
    /// Runs that the rule damaged on purpose.
    damaged: Mutex<Vec<RunId>>,
}

impl<F: StoreFactory> World<F> {
    /// A new one.
    pub async fn fresh() -> Self {
        let factory = F::fresh().await;
        let (store, other) = (factory.open().await, factory.open().await);
        let ids = SeqIds::new();
        let (session, rival) = (ids.session(), ids.session());
        Self {
            factory,
            store,
            other,
            ids,
            session,
            rival,
            nonce: AtomicU64::new(0),
            damaged: Mutex::default(),
        }
    }

    /// What must hold after every rule.
    pub async fn finish(self) {
        let damaged = self.damaged.lock().unwrap().clone();
        check_all_but(&self.store, &damaged).await;
        check_all_but(&self.other, &damaged).await;
        self.check_that_ended_runs_stay().await;
    }

    /// Whatever time passes, no ended run is claimed, woken or changed.
    async fn check_that_ended_runs_stay(&self) {
        self.pass(Micros::from_secs(400 * 86_400)).await;
        let ended = self.ended().await;
        for app in self.store.app_list().await.unwrap() {
            while self.store.run_recover(Scan { app: app.clone(), limit: 100 }).await.unwrap().more
            {
            }
            for mode in [Mode::Execute, Mode::DryRun] {
                let request =
                    ClaimRequest { app: app.clone(), mode, ..self.claim_request(10_000).await };
                for run in self.store.claim_rows(request).await {
                    assert!(!ended.iter().any(|ended| ended.id == run.id), "{run:?} had ended");
                }
            }
        }
        for before in ended {
            assert_eq!(self.row(before.id).await, before);
        }
    }

    async fn ended(&self) -> Vec<Run> {
        let mut ended = Vec::new();
        for row in all_runs(&self.store).await {
            if row.state().is_terminal() {
                ended.push(self.row(row.id).await);
            }
        }
        ended
    }

    pub(super) async fn now(&self) -> Timestamp {
        self.store.store_now().await.unwrap()
    }

    pub(super) async fn pass(&self, span: Micros) {
        self.factory.pass_time(span).await;
    }

    pub(super) async fn pass_secs(&self, seconds: i64) {
        self.pass(Micros::from_secs(seconds)).await;
    }

    /// Tampers with the data; `false` says that the rule cannot be tested on this store.
    pub(super) async fn tamper(&self, tamper: Tamper) -> bool {
        if let Tamper::ReplaceFacts { run, .. }
        | Tamper::RemoveFacts { run, .. }
        | Tamper::EndChildrenUnseen(run) = &tamper
        {
            self.damaged.lock().unwrap().push(*run);
        }
        match self.factory.tamper(tamper.clone()).await {
            Tampered::Done => true,
            Tampered::Refused => panic!("the store refused {tamper:?}"),
            Tampered::Unsupported => {
                eprintln!("skipped: the factory does not support {tamper:?}");
                false
            }
        }
    }

    pub(super) fn publication(&self, workflow: &str, plan: Plan) -> Publish {
        Publish {
            app: app(),
            scope: scope(),
            workflow: WorkflowKey::from(workflow),
            version: self.ids.version(),
            plan,
            source: format!("# {workflow}"),
            budget: Default::default(),
            activate: true,
            authorization: None,
            author: "ada".to_owned(),
        }
    }

    pub(super) async fn publish(&self, workflow: &str, plan: Plan) -> Published {
        self.store.version_publish(self.publication(workflow, plan)).await.unwrap()
    }

    pub(super) fn emission(&self, event: Event) -> Emit {
        let event = event.check().unwrap();
        Emit { app: app(), scope: scope(), id: self.ids.event(), event, eager: None }
    }

    pub(super) async fn emit(&self, event: Event) -> Emission {
        self.store.event_emit(self.emission(event)).await.unwrap()
    }

    /// Starts a published workflow.
    pub(super) async fn start(&self, workflow: &str) -> RunId {
        let emission = self.emit(Event::start(workflow, json!({}))).await;
        assert_eq!(emission.runs.len(), 1, "{emission:?}");
        emission.runs[0]
    }

    /// Publishes a plan under the key `flow`, and starts it.
    pub(super) async fn run(&self, plan: Plan) -> RunId {
        self.publish("flow", plan).await;
        self.start("flow").await
    }

    /// A run of the plan that this process holds.
    pub(super) async fn running(&self, plan: Plan) -> Drive {
        let run = self.run(plan).await;
        self.claim_run(run).await
    }

    pub(super) async fn claim_request(&self, limit: u32) -> ClaimRequest {
        let mut footprints = Vec::new();
        for app in self.store.app_list().await.unwrap() {
            let offered = self.store.footprint_list(&app).await.unwrap();
            footprints.extend(offered.iter().map(surefoot_kernel_core::plan::Footprint::hash));
        }
        let nonce = self.nonce.fetch_add(1, Ordering::SeqCst);
        let (app, mode, session) = (app(), Mode::Execute, self.session);
        ClaimRequest {
            app,
            mode,
            footprints,
            tree: None,
            limit,
            session,
            nonce,
            lease: LEASE,
            plans: Plans::default(),
        }
    }

    /// Claims all that is due.
    pub(super) async fn claim(&self) -> Vec<Run> {
        self.store.claim_rows(self.claim_request(1_000).await).await
    }

    /// The other process claims all that is due.
    pub(super) async fn rival_claim(&self) -> Vec<Run> {
        let request = ClaimRequest { session: self.rival, ..self.claim_request(1_000).await };
        self.other.claim_rows(request).await
    }

    /// Claims all that is due, and loads this run, which this process must hold then.
    pub(super) async fn claim_run(&self, run: RunId) -> Drive {
        self.claim().await;
        let drive = self.drive(run).await;
        let owner = drive.run().lease().map(|lease| lease.owner);
        assert_eq!(owner, Some(self.session), "{:?} was not claimed", drive.run());
        drive
    }

    pub(super) async fn drive(&self, run: RunId) -> Drive {
        Drive::load(&self.store, run).await.unwrap()
    }

    pub(super) async fn stored(&self, run: RunId) -> Stored {
        self.store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap()
    }

    pub(super) async fn row(&self, run: RunId) -> Run {
        self.stored(run).await.run
    }

    pub(super) async fn journal(&self, run: RunId) -> Vec<JournalEntry> {
        self.stored(run).await.journal.unwrap()
    }

    /// Row and journal: what must not change where something is refused.
    pub(super) async fn all_of(&self, run: RunId) -> (Run, Vec<JournalEntry>) {
        let stored = self.stored(run).await;
        (stored.run, stored.journal.unwrap())
    }

    /// Commits what the core decides on the row as it is now.
    pub(super) async fn input(&self, run: RunId, input: RowInput) -> Result<Committed, StoreError> {
        let commit = self.decided(run, input).await;
        self.store.run_commit(commit).await
    }

    pub(super) async fn decided(&self, run: RunId, input: RowInput) -> Commit {
        let row = self.row(run).await;
        let facts = decide_row(&row, input, self.now().await).unwrap();
        Commit::new(&row, &facts)
    }

    pub(super) async fn cancel(&self, run: RunId) -> Committed {
        self.input(run, cancel()).await.unwrap()
    }

    /// Takes a run over from itself, after a commit under this generation.
    pub(super) async fn take_over(&self, run: RunId, generation: u64) -> Option<Run> {
        let request = TakeOverRequest { run, generation, session: self.session, lease: LEASE };
        self.store.run_take_over(request).await.unwrap()
    }

    pub(super) async fn renew(
        &self,
        session: SessionId,
        runs: Vec<Stamp>,
    ) -> Vec<(RunId, Renewed)> {
        self.store.lease_renew(RenewRequest { session, runs, lease: LEASE }).await.unwrap()
    }

    pub(super) async fn recover(&self) -> surefoot_kernel_core::Recovered {
        self.store.run_recover(Scan { app: app(), limit: 1_000 }).await.unwrap()
    }

    pub(super) async fn signal(&self, signal: Signal) -> SignalSent {
        self.store.signal_send(send(signal)).await.unwrap()
    }

    /// Calls the next action of the run and has this recorded.
    pub(super) async fn answer(&self, drive: &mut Drive, answer: Answer) {
        let command = drive.to_call(&self.store).await.unwrap();
        let Some(Command::Call(call)) = command else { panic!("no call, but {command:?}") };
        drive.answer(&self.store, &call.step, answer).await.unwrap();
        drive.flush(&self.store).await.unwrap();
    }

    /// Brings a claimed run to where it waits for this.
    pub(super) async fn park(&self, drive: &mut Drive, on: surefoot_kernel_core::Dependency) {
        self.answer(drive, Answer::Waiting { on }).await;
    }
}

pub(super) fn app() -> App {
    App::from("shop")
}

pub(super) fn scope() -> Scope {
    Scope::from("north")
}

pub(super) fn send(signal: Signal) -> SendSignal {
    SendSignal { app: app(), scope: Some(scope()), signal: signal.check().unwrap() }
}

pub(super) fn cancel() -> RowInput {
    RowInput::Cancel { actor: "ada".to_owned(), reason: "not needed any more".to_owned() }
}

pub(super) fn succeeded(output: serde_json::Value) -> Answer {
    Answer::Succeeded { output }
}

pub(super) fn failed(retryable: bool) -> Answer {
    let failure = Failure::new("PROVIDER_DOWN", "the provider does not answer");
    Answer::Failed { failure, retryable, retry_after: None }
}

pub(super) fn unknown() -> Answer {
    Answer::Unknown { message: "the connection broke".to_owned(), evidence: None }
}

pub(super) fn step(key: &str) -> StepKey {
    StepKey::from(key)
}
