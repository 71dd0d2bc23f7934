//! The suite bites: a store with one flaw fails the rule concerned.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Activate, ActivationSet, App, AppHealth, AuditRow, BoxFuture, Child, ChildStore, Children,
    ChildrenCreated, ChildrenError, ChildrenOn, ChildrenPage, ChildrenRequest, ClaimRequest,
    Commit, Committed, CreateChildren, CreateDryRun, Delete, Deleted, Dispatched, EffectRow,
    Emission, Emit, EmitError, EventFilter, EventRow, EventStore, Expired, Fence, FenceError,
    GroupRow, JournalPage, LoadRequest, Locked, Micros, Mode, OperatorStore, Page, Place,
    PlanStore, Prune, Pruned, Publish, PublishError, Published, Receipt, Recovered, Redrive,
    Redriven, RenewRequest, Renewed, RetentionError, RetentionStore, Run, RunCount, RunDetail,
    RunFilter, RunId, RunRow, RunSpan, RunStore, Scan, Schedules, Scope, SendSignal, SessionReport,
    SessionRow, SetActivation, SignalError, SignalRow, SignalSent, Stamp, StoreError, StoreFact,
    Stored, StoredVersion, TakeOverRequest, Timestamp, TxStore, TxWork, VersionId, Work, WorkDue,
    WorkflowKey, WorkflowRow,
};
use surefoot_testkit::suite::{
    StoreFactory, Tamper, Tampered, World, begin, budgets, children, dispatch, events, fence,
    fidelity, journal, leases, operator, recovery, runs, signals, transactions, waits,
};
use surefoot_testkit::{MemoryFactory, MemoryStore, MemoryTx, OpenMemoryTx};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Commits whoever asks, on whatever it was decided.
    CommitsBlindly,
    /// Tells the worker that its lease is renewed, and renews nothing.
    RenewsInWordsOnly,
    /// Keeps a signal only for runs that wait already.
    ForgetsEarlySignals,
    /// Wakes app-wide waits by scoped signals.
    MixesScopes,
    /// Looks at no dedupe key.
    RecordsEachEmit,
    /// Does not find a claim by its nonce.
    ForgetsNonces,
    /// Lets a commit in doubt come late.
    TakesOverInWordsOnly,
    /// Commits what the work wanted rolled back.
    NeverRollsBack,
    /// Runs the work before it looks at the stamp.
    ChecksTooLate,
    /// Keeps the row, loses the facts.
    LosesFacts,
    /// Lets every worker through the fence.
    FencesNobody,
    /// Sends every number through a float.
    RoundsNumbers,
    /// Pages by the number of rows seen.
    PagesByOffset,
    /// Says after one pass of recovery that all is done.
    StopsRecovery,
    /// Does not say that an event is due.
    OverlooksEvents,
    /// Answers a pass of dispatch with everything, whatever the limit.
    IgnoresLimits,
    /// Leaves out audit rows.
    AuditsNobody,
    /// Charges nothing, and records that it did.
    ChargesNothing,
    /// Says that the mark of an ambiguous call is durable, and writes it with the next commit.
    DelaysMarks,
    /// Creates children as long as it goes well.
    CreatesOneByOne,
    /// Answers children in the order of their ids.
    ReadsByRunId,
    /// Creates children anew that are there already.
    CreatesAgain,
    /// Says of inputs that they are recorded with the claim, and does not say which.
    ClaimsWithoutInputs,
}

#[derive(Debug, Clone)]
pub(crate) struct Wrong {
    inner: MemoryStore,
    flaw: Flaw,
    /// What this process has not written yet.
    delayed: Arc<Mutex<Option<Commit>>>,
}

impl Wrong {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }
}

#[async_trait]
impl RunStore for Wrong {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        self.inner.store_now().await
    }

    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError> {
        self.inner.dry_run_create(create).await
    }

    async fn run_claim(&self, mut request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        if self.has(Flaw::ForgetsNonces) {
            static FRESH: AtomicU64 = AtomicU64::new(1 << 40);
            request.nonce = FRESH.fetch_add(1, Ordering::SeqCst);
        }
        let mut claimed = self.inner.run_claim(request).await?;
        if self.has(Flaw::ClaimsWithoutInputs) {
            claimed.iter_mut().for_each(|stored| stored.journal = Ok(Vec::new()));
        }
        Ok(claimed)
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        self.inner.run_load(request).await
    }

    async fn run_commit(&self, mut commit: Commit) -> Result<Committed, StoreError> {
        if self.has(Flaw::CommitsBlindly)
            && let Some(row) =
                self.inner.run_load(LoadRequest { run: commit.before.run, after: None }).await?
        {
            commit.before = row.run.stamp();
        }
        let facts = commit.journal.as_ref().map_or("", |journal| &journal.facts);
        if self.has(Flaw::DelaysMarks) && facts.contains("call_marked") {
            let (run, receipt) = (commit.after.clone(), Receipt::attest(&commit.after));
            *self.delayed.lock().unwrap() = Some(commit);
            return Ok(Committed { run, receipt, now: self.inner.store_now().await? });
        }
        let delayed = self.delayed.lock().unwrap().take();
        if let Some(delayed) = delayed {
            self.inner.run_commit(delayed).await?;
        }
        if self.has(Flaw::LosesFacts) {
            commit.journal = None;
        }
        if self.has(Flaw::ChargesNothing) {
            commit.charge = None;
        }
        if self.has(Flaw::AuditsNobody) {
            commit.audit = None;
        }
        self.inner.run_commit(commit).await
    }

    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        if self.has(Flaw::TakesOverInWordsOnly) {
            let stored = self.inner.run_load(LoadRequest { run: request.run, after: None }).await?;
            return Ok(stored.map(|stored| stored.run));
        }
        self.inner.run_take_over(request).await
    }

    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        if self.has(Flaw::RenewsInWordsOnly) {
            let until = self.inner.store_now().await?.plus(request.lease);
            let held = Renewed::Held { until, canceled: false };
            return Ok(request.runs.iter().map(|stamp| (stamp.run, held)).collect());
        }
        self.inner.lease_renew(request).await
    }

    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError> {
        self.inner.cancel_list(held).await
    }

    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        self.inner.run_open(app, runs).await
    }

    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        let recovered = self.inner.run_recover(scan).await?;
        Ok(Recovered { more: recovered.more && !self.has(Flaw::StopsRecovery), ..recovered })
    }

    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        let due = self.inner.work_due(app, mode).await?;
        Ok(WorkDue { dispatch: due.dispatch && !self.has(Flaw::OverlooksEvents), ..due })
    }

    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        self.inner.footprint_list(app).await
    }

    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        self.inner.session_report(report).await
    }
}

/// As a store does that keeps numbers as floats.
fn rounded(payload: &Payload) -> Payload {
    let through_float = |value: &Value| match value.as_number() {
        Some(number) => number.as_f64().map_or(Value::Null, Value::from),
        None => value.clone(),
    };
    Payload::from_value(&through_float(payload.value())).unwrap()
}

#[async_trait]
impl EventStore for Wrong {
    async fn event_emit(&self, mut emit: Emit) -> Result<Emission, EmitError> {
        if self.has(Flaw::RecordsEachEmit) {
            emit.event.dedupe_key = None;
        }
        if self.has(Flaw::RoundsNumbers) {
            emit.event.data = rounded(&emit.event.data);
        }
        self.inner.event_emit(emit).await
    }

    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        let limit = if self.has(Flaw::IgnoresLimits) { 1_000 } else { limit };
        self.inner.event_dispatch(app, limit).await
    }

    async fn signal_send(&self, mut send: SendSignal) -> Result<SignalSent, SignalError> {
        if self.has(Flaw::MixesScopes) {
            send.scope = None;
        }
        if !self.has(Flaw::ForgetsEarlySignals) {
            return self.inner.signal_send(send).await;
        }
        let mut open = self.inner.begin().await?;
        let sent = self.inner.signal_send_in(&mut open, send).await?;
        if !sent.woken.is_empty() {
            self.inner.commit(open).await?;
        }
        Ok(sent)
    }
}

#[async_trait]
impl PlanStore for Wrong {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.inner.version_publish(publish).await
    }

    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.inner.version_activate(activate).await
    }

    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.inner.activation_set(set).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        self.inner.version_load(version).await
    }

    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        self.inner.workflow_list(app, scope).await
    }

    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        self.inner.schedule_list(app).await
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        self.inner.version_list(app, scope, workflow).await
    }
}

#[async_trait]
impl OperatorStore for Wrong {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        self.inner.app_list().await
    }

    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        if !self.has(Flaw::PagesByOffset) {
            return self.inner.run_list(filter).await;
        }
        let limit = filter.limit as usize;
        let seen = filter.cursor.as_ref().map_or(0, |cursor| cursor.parse().unwrap());
        let all = RunFilter { limit: 1_000, cursor: None, ..filter };
        let all = self.inner.run_list(all).await?.rows;
        let next = (all.len() > seen + limit).then(|| (seen + limit).to_string());
        Ok(Page { rows: all.into_iter().skip(seen).take(limit).collect(), next })
    }

    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        self.inner.run_detail(run).await
    }

    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        self.inner.journal_list(run, from, limit).await
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        self.inner.effect_list(app, scope, limit).await
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        self.inner.event_list(filter).await
    }

    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        self.inner.signal_list(app, scope, limit).await
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.session_list(app).await
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        self.inner.app_health(app).await
    }

    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        self.inner.run_timeline(span).await
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        self.inner.store_check().await
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.inner.audit_list(app, scope, limit).await
    }
}

#[async_trait]
impl RetentionStore for Wrong {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        self.inner.event_expire(app, limit).await
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.inner.event_redrive(redrive).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        self.inner.prune(prune).await
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.inner.delete_begin(delete).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        self.inner.delete_pass(place, limit).await
    }
}

#[async_trait]
impl ChildStore for Wrong {
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError> {
        let groups = self.inner.children_groups(create.before.run).await?;
        let is_again = groups.iter().any(|group| group.step == create.step);
        let creates_anew = self.has(Flaw::CreatesAgain) && is_again;
        if !self.has(Flaw::CreatesOneByOne) && !creates_anew {
            return self.inner.children_create(create).await;
        }
        let mut all = ChildrenCreated { new: 0, total: 0 };
        for child in create.children.iter() {
            let inputs: Value = serde_json::from_str(&child.inputs).unwrap();
            let again = if creates_anew { "again" } else { "" };
            let key = format!("{}{again}", child.key);
            let children = Children::check([Child::new(child.workflow.clone(), inputs).key(key)])?;
            let create = CreateChildren { children, ..create.clone() };
            let created = self.inner.children_create(create).await?;
            all = ChildrenCreated { new: all.new + created.new, total: created.total };
        }
        Ok(all)
    }

    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError> {
        let mut page = self.inner.children_read(request).await?;
        if self.has(Flaw::ReadsByRunId) {
            page.children.sort_by_key(|child| child.run);
        }
        Ok(page)
    }

    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError> {
        self.inner.children_groups(parent).await
    }
}

impl TxStore for Wrong {
    type Tx = MemoryTx;
    type Open = OpenMemoryTx;

    async fn begin(&self) -> Result<OpenMemoryTx, StoreError> {
        self.inner.begin().await
    }

    async fn commit(&self, open: OpenMemoryTx) -> Result<(), StoreError> {
        self.inner.commit(open).await
    }

    async fn event_emit_in(&self, tx: &mut MemoryTx, emit: Emit) -> Result<Emission, EmitError> {
        self.inner.event_emit_in(tx, emit).await
    }

    async fn version_publish_in(
        &self,
        tx: &mut MemoryTx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        self.inner.version_publish_in(tx, publish).await
    }

    async fn signal_send_in(
        &self,
        tx: &mut MemoryTx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        self.inner.signal_send_in(tx, send).await
    }

    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<MemoryTx>,
    ) -> Result<Option<Committed>, StoreError> {
        if !self.has(Flaw::NeverRollsBack) && !self.has(Flaw::ChecksTooLate) {
            return self.inner.run_transact(before, work).await;
        }
        let load = LoadRequest { run: before.run, after: None };
        let stored = self.inner.run_load(load).await?.ok_or(StoreError::LeaseLost)?;
        let detail = self.inner.run_detail(before.run).await?.ok_or(StoreError::LeaseLost)?;
        let locked = Locked { run: stored.run, budget: detail.budget, now: stored.now };
        let mut open = self.inner.begin().await?;
        match work.work(&mut open, locked).await {
            Work::Rollback if self.has(Flaw::NeverRollsBack) => {
                self.inner.commit(open).await?;
                Ok(None)
            }
            Work::Rollback => Ok(None),
            Work::Commit(commit) => {
                self.inner.commit(open).await?;
                self.inner.run_commit(*commit).await.map(Some)
            }
        }
    }

    fn children_on(&self) -> Arc<dyn ChildrenOn<MemoryTx>> {
        self.inner.children_on()
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<MemoryTx>> {
        if self.has(Flaw::FencesNobody) {
            Arc::new(Open)
        } else {
            self.inner.fence(run, generation)
        }
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        self.inner.is_transaction_conflict(error)
    }
}

struct Open;

impl Fence<MemoryTx> for Open {
    fn hold<'a>(&'a self, _: &'a mut MemoryTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Makes stores with one flaw: the number is its place in the list of flaws.
#[derive(Debug)]
pub(crate) struct WrongFactory<const FLAW: u8>(MemoryFactory);

impl<const FLAW: u8> StoreFactory for WrongFactory<FLAW> {
    type Store = Wrong;

    async fn fresh() -> Self {
        Self(MemoryFactory::fresh().await)
    }

    async fn open(&self) -> Wrong {
        Wrong {
            inner: self.0.open().await,
            flaw: FLAWS[usize::from(FLAW)],
            delayed: Arc::default(),
        }
    }

    async fn pass_time(&self, span: Micros) {
        self.0.pass_time(span).await;
    }

    async fn turn_back(&self, span: Micros) {
        self.0.turn_back(span).await;
    }

    async fn write_row(tx: &mut MemoryTx, key: &str, value: &str) -> Result<(), StoreError> {
        MemoryFactory::write_row(tx, key, value).await
    }

    async fn read_row(store: &Wrong, key: &str) -> Option<String> {
        MemoryFactory::read_row(&store.inner, key).await
    }

    async fn tamper(&self, tamper: Tamper) -> Tampered {
        self.0.tamper(tamper).await
    }
}

pub(crate) const FLAWS: [Flaw; 24] = [
    Flaw::None,
    Flaw::CommitsBlindly,
    Flaw::RenewsInWordsOnly,
    Flaw::ForgetsEarlySignals,
    Flaw::MixesScopes,
    Flaw::RecordsEachEmit,
    Flaw::ForgetsNonces,
    Flaw::TakesOverInWordsOnly,
    Flaw::NeverRollsBack,
    Flaw::ChecksTooLate,
    Flaw::LosesFacts,
    Flaw::FencesNobody,
    Flaw::RoundsNumbers,
    Flaw::PagesByOffset,
    Flaw::StopsRecovery,
    Flaw::IgnoresLimits,
    Flaw::AuditsNobody,
    Flaw::DelaysMarks,
    Flaw::CreatesOneByOne,
    Flaw::ReadsByRunId,
    Flaw::ChargesNothing,
    Flaw::CreatesAgain,
    Flaw::OverlooksEvents,
    Flaw::ClaimsWithoutInputs,
];

/// Whether a rule holds for a store with a flaw.
fn holds<const FLAW: u8>(rule: impl AsyncFnOnce(&World<WrongFactory<FLAW>>)) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = || {
        runtime.block_on(async {
            let world = World::fresh().await;
            rule(&world).await;
            world.finish().await;
        });
    };
    catch_unwind(AssertUnwindSafe(run)).is_ok()
}

macro_rules! bites {
    ($($flaw:ident = $number:literal: $($family:ident::$rule:ident),+;)*) => {
        #[test]
        fn a_store_with_a_flaw_fails_the_rule_concerned() {
            $(
                assert_eq!(FLAWS[$number], Flaw::$flaw);
                $(
                    let rule = concat!(stringify!($family), "::", stringify!($rule));
                    assert!(holds::<0>(async |world| $family::$rule(world).await), "{rule} fails without a flaw");
                    let missed = holds::<$number>(async |world| $family::$rule(world).await);
                    assert!(!missed, "{rule} misses a store that {:?}", Flaw::$flaw);
                )+
            )*
        }
    };
}

bites! {
    CommitsBlindly = 1:
        leases::a_stale_generation_writes_nothing,
        leases::a_stale_revision_is_a_conflict_and_changes_nothing,
        leases::of_two_commits_on_the_same_state_one_wins,
        operator::of_two_verdicts_one_wins;
    RenewsInWordsOnly = 2:
        leases::a_renewed_lease_is_taken_by_nobody,
        leases::a_renewal_brings_back_no_lease_that_was_given_up,
        leases::a_renewal_tells_of_a_cancel_request,
        fence::a_renewal_does_not_wait_for_a_fence;
    ForgetsEarlySignals = 3:
        signals::a_wait_for_what_has_occurred_wakes_at_once,
        signals::a_signal_counts_whenever_it_comes,
        signals::park_and_signal_at_once_never_lose_the_wake;
    MixesScopes = 4:
        signals::a_signal_wakes_exactly_the_runs_that_wait_for_it,
        signals::an_app_wide_signal_wakes_only_app_wide_waits;
    RecordsEachEmit = 5:
        events::a_repeated_key_records_nothing_and_returns_the_first_runs,
        events::two_processes_that_emit_one_key_at_once_record_one_event;
    ForgetsNonces = 6:
        runs::a_repeated_nonce_finds_the_same_claim;
    TakesOverInWordsOnly = 7:
        leases::a_takeover_finds_what_the_lost_commit_did,
        leases::a_takeover_fences_out_a_commit_that_comes_late;
    NeverRollsBack = 8:
        transactions::a_rollback_leaves_nothing;
    ChecksTooLate = 9:
        leases::a_stale_generation_writes_nothing,
        transactions::of_two_transactions_of_one_step_one_counts;
    LosesFacts = 10:
        journal::each_commit_is_one_row_that_follows_the_one_before,
        runs::a_run_whose_worker_died_goes_on_behind_its_last_outcome;
    FencesNobody = 11:
        fence::a_fence_refuses_whoever_does_not_hold_the_run,
        fence::a_fence_refuses_once_cancel_was_requested;
    RoundsNumbers = 12:
        fidelity::an_events_payload_comes_back_as_it_was;
    PagesByOffset = 13:
        operator::pages_are_stable_while_runs_come_and_change;
    StopsRecovery = 14:
        recovery::a_pass_keeps_its_limit_and_says_that_there_is_more,
        signals::one_signal_wakes_a_thousand_and_the_scan_the_rest;
    IgnoresLimits = 15:
        dispatch::a_pass_keeps_its_limit_and_says_that_there_is_more;
    AuditsNobody = 16:
        operator::each_verb_is_audited_with_its_write;
    CreatesOneByOne = 18:
        children::children_are_created_all_or_none;
    ReadsByRunId = 19:
        children::children_that_end_in_any_order_wake_their_parent_once;
    ChargesNothing = 20:
        budgets::charges_go_up_to_the_cap_and_a_refused_one_writes_nothing,
        budgets::a_cap_of_nothing_lets_no_call_be_marked,
        budgets::a_step_pays_once_whoever_goes_on_with_it,
        budgets::a_tree_of_runs_charges_the_counters_of_its_root;
    CreatesAgain = 21:
        children::the_same_children_are_created_once;
    OverlooksEvents = 22:
        recovery::what_is_due_is_said_in_one_answer;
    ClaimsWithoutInputs = 23:
        begin::a_claim_brings_runs_as_reading_does,
        begin::a_new_run_has_its_inputs_with_its_claim,
        begin::a_run_whose_worker_died_at_once_gets_no_second_inputs;
}

/// A rule that a flaw does not concern still holds: the flaws are as small as they say.
#[test]
fn a_flaw_leaves_other_rules_alone() {
    assert!(holds::<13>(async |world| waits::parks_are_no_failures(world).await));
    assert!(holds::<16>(async |world| leases::a_stale_generation_writes_nothing(world).await));
    assert!(holds::<5>(async |world| signals::the_first_signal_of_a_key_stays(world).await));
}
