//! One of the two stores, and who works on it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::json;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Amounts, Answer, App, ClaimRequest, Command, Commit, Dependency, Dispatched, Eager, Emit,
    Event, EventFilter, EventStore as _, Expired, Fact, Failure, Ids, Invocation, JournalEntry,
    LoadRequest, Micros, Mode, OperatorStore as _, Phase, PlanStore as _, Plans, Prunable, Prune,
    Pruned, Publish, ReconcileAnswer, RenewRequest, RetentionStore as _, RowInput, Run, RunFilter,
    RunId, RunState, RunStore as _, Scan, Scope, SendSignal, SessionId, SessionReport,
    SetActivation, Signal, StepKey, StoreError, Stored, TakeOverRequest, Timestamp, Verdict,
    WorkflowKey, decide_row,
};

use super::compare::Seen;
use super::moves::Move;
use crate::plans::{
    ambiguous, delay, idempotent, plan, pure, run_workflows, transactional, triggered, wait_for,
};
use crate::suite::{StoreFactory, check_invariants};
use crate::{Drive, DriveError, SeqIds};

/// Longer than two moves, shorter than three.
const LEASE: Micros = Micros::from_secs(2_000);
/// Between two moves: longer than any backoff.
const BETWEEN: Micros = Micros::from_secs(700);
const LONG: Micros = Micros::from_secs(45 * 86_400);
const TREE: &str = "tree";
const WORKFLOWS: [&str; 3] = ["leaf", "flow", TREE];
const ORDER: &str = "order.placed";
const ALL: u32 = 1_000;

pub(super) struct Side<F: StoreFactory> {
    factory: F,
    stores: [F::Store; 2],
    ids: SeqIds,
    sessions: [SessionId; 2],
    claims: [Option<ClaimRequest>; 2],
    nonce: u64,
    began: Timestamp,
    kept: Option<Commit>,
    /// What the first session has read of plans; the second one has read none.
    plans: Plans,
}

impl<F: StoreFactory> Side<F> {
    /// With its workflows.
    pub(super) async fn new() -> Self {
        let factory = F::fresh().await;
        let stores = [factory.open().await, factory.open().await];
        let ids = SeqIds::new();
        let sessions = [ids.session(), ids.session()];
        let (claims, began) = ([None, None], Timestamp::from_micros(0));
        let (nonce, kept, plans) = (0, None, Plans::default());
        let mut side = Self { factory, stores, ids, sessions, claims, nonce, began, kept, plans };
        side.began = side.now().await;
        for workflow in 0..WORKFLOWS.len() {
            drop(side.publish(workflow).await);
        }
        side
    }

    pub(super) fn began(&self) -> Timestamp {
        self.began
    }

    fn store(&self) -> &F::Store {
        let [store, _] = &self.stores;
        store
    }

    /// Each session has a handle of its own.
    fn of(&self, who: usize) -> (&F::Store, SessionId) {
        let ([first, second], [one, other]) = (&self.stores, self.sessions);
        if who == 0 { (first, one) } else { (second, other) }
    }

    async fn now(&self) -> Timestamp {
        self.store().store_now().await.unwrap_or_default()
    }

    /// Makes a move, and lets time pass. Says what was answered.
    pub(super) async fn make(&mut self, one: Move) -> Seen {
        let answer = self.answer(one).await;
        let span = if one == Move::Expire { LONG } else { BETWEEN };
        self.factory.pass_time(span).await;
        vec![("the answer".to_owned(), answer)]
    }

    async fn answer(&mut self, one: Move) -> String {
        match one {
            Move::Emit { workflow, dedupe, deferred, slots } => {
                match self.emission(workflow, dedupe, deferred, slots) {
                    Ok(emit) => said(&self.store().event_emit(emit).await),
                    Err(refused) => refused,
                }
            }
            Move::Claim { who, limit } => self.claim_anew(who, limit).await,
            Move::ClaimAgain { who } => self.claim_again(who).await,
            Move::Drive { nth, reply } => match self.nth(nth, &[RunState::Running]).await {
                Some(run) => said(&self.drive(run.id, reply).await),
                None => "nothing runs".to_owned(),
            },
            Move::Keep { nth } => self.keep(nth).await,
            Move::Send => match self.kept.take() {
                Some(commit) => said(&self.store().run_commit(commit).await),
                None => "nothing was kept".to_owned(),
            },
            Move::TakeOver { nth, who } => self.take_over(nth, who).await,
            Move::Renew { who } => self.renew(who).await,
            Move::Recover { limit } => self.recover(limit).await,
            Move::Dispatch => said(&self.dispatch().await),
            Move::Signal { key } => self.signal(key).await,
            Move::Cancel { nth } => {
                let cancel =
                    RowInput::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() };
                self.input(nth, ANY, |_| Some(cancel.clone())).await
            }
            Move::Resolve { nth, verdict } => self.resolve(nth, verdict).await,
            Move::Retry { nth } => self.input(nth, ENDED_BADLY, |_| Some(RowInput::Retry)).await,
            Move::Reconcile { nth } => {
                let ask = |run: &Run| Some(RowInput::AskReconcile { step: open(run)? });
                self.input(nth, &[RunState::NeedsAttention], ask).await
            }
            Move::Abandon { nth } => {
                let abandon = RowInput::Abandon { accept_unknown: true, unclaimable: false };
                self.input(nth, ENDED_BADLY, |_| Some(abandon.clone())).await
            }
            Move::Publish { workflow } => self.publish(workflow).await,
            Move::SetActivation { workflow, enabled } => self.switch(workflow, enabled).await,
            Move::Report { who } => self.report(who).await,
            Move::Expire => said(&self.expire().await),
            Move::Prune => said(&self.prune().await),
            Move::Wait => "time passes".to_owned(),
        }
    }

    async fn claim_anew(&mut self, who: usize, limit: u32) -> String {
        self.nonce += 1;
        let request = self.claim(who, limit);
        if let Some(last) = self.claims.get_mut(who) {
            *last = Some(request.clone());
        }
        said(&self.of(who).0.run_claim(request).await.map(brought))
    }

    async fn claim_again(&self, who: usize) -> String {
        match self.claims.get(who).cloned().flatten() {
            Some(request) => said(&self.of(who).0.run_claim(request).await.map(brought)),
            None => "nothing was claimed".to_owned(),
        }
    }

    async fn keep(&mut self, nth: usize) -> String {
        let run = self.nth(nth, &[RunState::Running]).await;
        let now = self.now().await;
        self.kept = run.and_then(|run| {
            let facts = decide_row(&run, RowInput::HandOver, now).ok()?;
            Some(Commit::new(&run, &facts))
        });
        said(&self.kept)
    }

    async fn take_over(&self, nth: usize, who: usize) -> String {
        let Some(run) = self.nth(nth, ANY).await else { return "no run".to_owned() };
        let (store, session) = self.of(who);
        let (run, generation) = (run.id, run.generation);
        let request = TakeOverRequest { run, generation, session, lease: LEASE };
        said(&store.run_take_over(request).await)
    }

    async fn renew(&self, who: usize) -> String {
        let runs = self.runs().await;
        let running = runs.iter().filter(|run| run.state() == RunState::Running);
        let runs = running.map(Run::stamp).collect();
        let (store, session) = self.of(who);
        said(&store.lease_renew(RenewRequest { session, runs, lease: LEASE }).await)
    }

    async fn recover(&self, limit: u32) -> String {
        let recovered = self.store().run_recover(Scan { app: app(), limit }).await;
        said(&recovered.map(|mut it| {
            it.woken.sort_unstable();
            it.finalised.sort_unstable();
            it
        }))
    }

    async fn signal(&self, key: u64) -> String {
        match Signal::new("approval", key.to_string()).check() {
            Ok(signal) => {
                let send = SendSignal { app: app(), scope: Some(scope()), signal };
                said(&self.store().signal_send(send).await)
            }
            Err(error) => said(&error),
        }
    }

    async fn resolve(&self, nth: usize, verdict: u64) -> String {
        let verdict = match verdict {
            0 => Verdict::Succeeded { output: json!({}) },
            1 => Verdict::Failed { code: None, message: "no".to_owned() },
            _ => Verdict::NotPerformed,
        };
        let resolve =
            |run: &Run| Some(RowInput::Resolve { step: open(run)?, verdict: verdict.clone() });
        self.input(nth, &[RunState::NeedsAttention], resolve).await
    }

    async fn switch(&self, workflow: usize, enabled: bool) -> String {
        let set = SetActivation {
            app: app(),
            scope: scope(),
            workflow: name(workflow).into(),
            activation: Some("order".to_owned()),
            enabled,
            actor: "ann".to_owned(),
            reason: "a test".to_owned(),
        };
        said(&self.store().activation_set(set).await)
    }

    async fn report(&self, who: usize) -> String {
        let (store, session) = self.of(who);
        let report = SessionReport {
            session,
            app: app(),
            name: format!("worker {who}"),
            mode: Mode::Execute,
            offers: plans().into_iter().map(|plan| plan.footprint).collect(),
            tree: None,
            slots: 4,
            busy: 1,
            stuck: 0,
            ended: false,
        };
        said(&store.session_report(report).await)
    }

    /// A store may do a part in each call, if time presses; what all calls do together is the same everywhere.
    async fn dispatch(&self) -> Result<Dispatched, StoreError> {
        let mut all = Dispatched::default();
        loop {
            let pass = self.store().event_dispatch(&app(), ALL).await?;
            let goes_on = pass.more && !pass.dispatched.is_empty();
            all.dispatched.extend(pass.dispatched);
            all.failed.extend(pass.failed);
            if !goes_on {
                return Ok(Dispatched { more: pass.more, ..all });
            }
        }
    }

    async fn expire(&self) -> Result<Expired, StoreError> {
        let mut emptied = 0;
        loop {
            let pass = self.store().event_expire(&app(), ALL).await?;
            emptied += pass.emptied;
            if !(pass.more && pass.emptied > 0) {
                return Ok(Expired { emptied, more: pass.more });
            }
        }
    }

    async fn prune(&self) -> Result<Pruned, StoreError> {
        let states = vec![RunState::Succeeded, RunState::Failed, RunState::Canceled];
        let (what, before) = (Prunable::Runs { states }, self.now().await);
        let (app, scope) = (app(), None);
        let prune = Prune { app, scope, what, before, limit: ALL, audit: None };
        let mut deleted = 0;
        loop {
            let pass = self.store().prune(prune.clone()).await?;
            deleted += pass.deleted;
            if !(pass.more && pass.deleted > 0) {
                return Ok(Pruned { deleted, more: pass.more });
            }
        }
    }

    fn emission(
        &self,
        workflow: usize,
        dedupe: Option<u64>,
        deferred: bool,
        slots: u32,
    ) -> Result<Emit, String> {
        let event = match WORKFLOWS.get(workflow) {
            Some(workflow) => Event::start(*workflow, json!({})),
            None => Event::new(ORDER, json!({ "item": "bolt" })),
        };
        let event = match dedupe {
            Some(key) => event.dedupe_key(key.to_string()),
            None => event,
        };
        let event = if deferred { event.deferred() } else { event };
        let footprints = plans().iter().map(|plan| plan.footprint.hash()).collect();
        let [session, _] = self.sessions;
        let plans = self.plans.clone();
        let eager = Eager { session, footprints, slots, lease: LEASE, plans };
        let eager = (slots > 0).then_some(eager);
        let event = event.check().map_err(|error| said(&error))?;
        Ok(Emit { app: app(), scope: scope(), id: self.ids.event(), event, eager })
    }

    fn claim(&self, who: usize, limit: u32) -> ClaimRequest {
        let footprints = plans().iter().map(|plan| plan.footprint.hash()).collect();
        let (_, session) = self.of(who);
        let (app, mode, nonce) = (app(), Mode::Execute, self.nonce);
        ClaimRequest {
            app,
            mode,
            footprints,
            tree: None,
            limit,
            session,
            nonce,
            lease: LEASE,
            plans: if who == 0 { self.plans.clone() } else { Plans::default() },
        }
    }

    async fn publish(&mut self, workflow: usize) -> String {
        let Some(plan) = plans().into_iter().nth(workflow) else { return "no plan".to_owned() };
        let publish = Publish {
            app: app(),
            scope: scope(),
            workflow: name(workflow).into(),
            version: self.ids.version(),
            plan: plan.clone(),
            source: format!("# {workflow}"),
            budget: Amounts::of([("mails", 3.0)]).unwrap_or_default(),
            activate: true,
            authorization: None,
            author: "ann".to_owned(),
        };
        let published = self.store().version_publish(publish).await;
        if let Ok(published) = &published {
            self.plans = self.plans.with(published.version, Arc::new(plan));
        }
        said(&published)
    }

    /// Brings a run to its next action, and has that answer.
    async fn drive(&self, run: RunId, reply: u64) -> Result<Run, DriveError> {
        let store = self.store();
        let mut drive = Drive::load(store, run).await?;
        drive.set_cost(Amounts::of([("mails", 1.0)]).unwrap_or_default());
        match drive.to_call(store).await? {
            None => {}
            Some(Command::Call(call) | Command::Prepare(call)) => {
                drive.answer(store, &call.step, answer(reply)).await?;
            }
            Some(Command::Transact(call)) => {
                let row = format!("{run} {}", call.step);
                drive
                    .transact(store, &call, |tx| {
                        let row = row.clone();
                        Box::pin(async move {
                            F::write_row(tx, &row, "there").await.ok().map(|()| answer(reply))
                        })
                    })
                    .await?;
            }
            Some(Command::Reconcile(call)) => {
                let input = Drive::input(&call, crate::Reply::Reconciled(reconciled(reply)));
                drive.take(store, input).await?;
            }
            Some(Command::Spawn(spawn)) => drop(drive.spawn(store, spawn).await?),
            Some(Command::Collect(collect)) => drive.collect(store, &collect).await?,
        }
        drive.flush(store).await?;
        Ok(drive.run().clone())
    }

    /// What somebody wants of a run is decided on its row, and written.
    async fn input(
        &self,
        nth: usize,
        states: &[RunState],
        input: impl Fn(&Run) -> Option<RowInput>,
    ) -> String {
        let Some(run) = self.nth(nth, states).await else { return "no run".to_owned() };
        let Some(input) = input(&run) else { return "it asks for nobody".to_owned() };
        match decide_row(&run, input, self.now().await) {
            Ok(facts) if facts.is_empty() => "nothing to do".to_owned(),
            Ok(facts) => said(&self.store().run_commit(Commit::new(&run, &facts)).await),
            Err(rejection) => said(&rejection),
        }
    }

    /// One of the runs in these states, in the order of their ids.
    async fn nth(&self, nth: usize, states: &[RunState]) -> Option<Run> {
        let mut runs = self.runs().await;
        runs.retain(|run| states.contains(&run.state()));
        let nth = nth.checked_rem(runs.len())?;
        runs.into_iter().nth(nth)
    }

    async fn runs(&self) -> Vec<Run> {
        self.stored().await.into_values().map(|stored| stored.run).collect()
    }

    /// All, in the order of their ids, as they are loaded.
    async fn stored(&self) -> BTreeMap<RunId, Stored> {
        let mut found = BTreeMap::new();
        let mut open = vec![None];
        while let Some(parent) = open.pop() {
            let filter = RunFilter { app: Some(app()), parent, limit: ALL, ..RunFilter::default() };
            let page = self.store().run_list(filter).await;
            for row in page.map(|page| page.rows).unwrap_or_default() {
                let run = row.run;
                if run.attempt > 0 && run.origin.workflow == WorkflowKey::from(TREE) {
                    open.push(Some(run.id));
                }
                let load = LoadRequest { run: run.id, after: None };
                if let Ok(Some(stored)) = self.store().run_load(load).await {
                    found.insert(run.id, stored);
                }
            }
        }
        found
    }

    /// Rows and journals, as they are after a move.
    pub(super) async fn look(&self) -> Seen {
        let seen = self.stored().await.into_iter();
        let shown = seen.map(|(run, stored)| (format!("run {run}"), said(&stored)));
        shown.collect()
    }

    /// All that there is; and what always holds, holds.
    pub(super) async fn look_at_all(&self) -> Seen {
        check_invariants(self.store()).await;
        let mut seen = Seen::new();
        for (run, _) in self.stored().await {
            let detail = self.store().run_detail(run).await.map(|detail| {
                detail.map(|mut detail| {
                    // The same text in each.
                    detail.plan.clear();
                    detail
                })
            });
            seen.push((format!("the detail of {run}"), said(&detail)));
            let row = F::read_row(self.store(), &format!("{run} steps.1")).await;
            seen.push((format!("the row of {run}"), said(&row)));
        }
        let (store, app) = (self.store(), app());
        let events = EventFilter { app: Some(app.clone()), limit: ALL, ..EventFilter::default() };
        let events = store.event_list(events).await.map(|page| page.rows);
        seen.push(("the events".to_owned(), said(&events)));
        let effects = store.effect_list(&app, None, ALL).await;
        seen.push(("the effects".to_owned(), said(&effects)));
        seen.push(("the signals".to_owned(), said(&store.signal_list(&app, None, ALL).await)));
        seen.push(("the audit".to_owned(), said(&store.audit_list(&app, None, ALL).await)));
        seen.push(("the health".to_owned(), said(&store.app_health(&app).await)));
        seen.push(("the sessions".to_owned(), said(&store.session_list(&app).await)));
        let workflows = store.workflow_list(&app, None).await;
        seen.push(("the workflows".to_owned(), said(&workflows)));
        seen
    }
}

const ANY: &[RunState] = &[
    RunState::Queued,
    RunState::Running,
    RunState::Waiting,
    RunState::Succeeded,
    RunState::Failed,
    RunState::NeedsAttention,
    RunState::Canceled,
];
const ENDED_BADLY: &[RunState] = &[RunState::Failed, RunState::NeedsAttention];

fn app() -> App {
    App::from("shop")
}

fn scope() -> Scope {
    Scope::from("north")
}

fn name(workflow: usize) -> &'static str {
    WORKFLOWS.get(workflow).copied().unwrap_or_default()
}

fn plans() -> [Plan; 3] {
    let leaf = plan(vec![idempotent("mail"), ambiguous("pay").attempts(2)]);
    let flow = plan(vec![
        pure("weigh"),
        transactional("book"),
        idempotent("mail"),
        ambiguous("pay").attempts(3),
        wait_for("approval", "0", Some(Micros::from_secs(1_000))),
        delay(Micros::from_secs(1_000)),
    ]);
    let tree = plan(vec![run_workflows("leaf", 3, Some(2)), idempotent("mail")]);
    [triggered(leaf, "order", ORDER), triggered(flow, "order", ORDER), tree]
}

fn answer(reply: u64) -> Answer {
    let failure = || Failure::new("PROVIDER_DOWN", "the provider does not answer");
    match reply {
        0 => Answer::Failed {
            failure: failure(),
            retryable: true,
            retry_after: Some(Micros::from_secs(400)),
        },
        1 => Answer::Failed { failure: failure(), retryable: false, retry_after: None },
        2 => Answer::Waiting { on: Dependency::on("approval", "1") },
        3 => Answer::Unknown { message: "the line broke".to_owned(), evidence: None },
        4 => Answer::NotCalled,
        5 => Answer::OutputRefused { error: failure(), evidence: "too much".to_owned() },
        _ => Answer::Succeeded { output: json!({ "n": reply, "text": "a \u{0} b" }) },
    }
}

fn reconciled(reply: u64) -> ReconcileAnswer {
    match reply {
        0 | 1 => ReconcileAnswer::NotFound,
        2 | 3 => ReconcileAnswer::Unknown { why: "nobody knows".to_owned() },
        4 => ReconcileAnswer::Failed { failure: Failure::new("DECLINED", "no") },
        _ => ReconcileAnswer::Succeeded { output: json!(reply) },
    }
}

/// The step whose effect is open.
fn open(run: &Run) -> Option<StepKey> {
    match &run.phase {
        Phase::NeedsAttention(attention) => attention.error.step.clone(),
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::Waiting(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => None,
    }
}

/// What a claim brought, in no order, but for the moment of the answer.
fn brought(claimed: Vec<Stored>) -> Vec<(Run, Option<Invocation>, Vec<Fact>)> {
    let facts = |journal: Vec<JournalEntry>| journal.into_iter().flat_map(|row| row.facts);
    let one = |it: Stored| (it.run, it.invocation, facts(it.journal.unwrap_or_default()).collect());
    let mut claimed: Vec<(Run, _, _)> = claimed.into_iter().map(one).collect();
    claimed.sort_unstable_by_key(|(run, ..)| run.id);
    claimed
}

/// What was said, without what only a driver says.
fn said(answer: &impl Debug) -> String {
    let text = format!("{answer:?}");
    let drivers = ["Refused(", "TransactionConflict(", "Unavailable(", "UnknownOutcome("];
    let end = drivers.iter().filter_map(|word| text.find(word)).min();
    end.map_or(text.clone(), |end| {
        let word = text.get(end..).and_then(|rest| rest.split('(').next()).unwrap_or_default();
        format!("{}{word}", text.get(..end).unwrap_or_default())
    })
}
