//! Claims: who gets which run, when, and what it is then.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use crate::ClaimRows;
use std::collections::BTreeSet;

use serde_json::json;
use surefoot_kernel_core::{
    Answer, App, ClaimRequest, Code, Command, CreateDryRun, Dependency, Emit, Event,
    EventStore as _, Lease, LoadRequest, Mode, Phase, PlanStore as _, Publish, RowInput, Run,
    RunId, RunState, RunStore as _, TakeOverRequest, Todo, TraceContext, apply, decide_row,
    release_backoff,
};

use super::world::{LEASE, World, failed, step, succeeded, unknown};
use super::{StoreFactory, Tamper};
use crate::plans::{ambiguous, idempotent, plan, pure};

/// What the core makes of a row by a claim or a takeover whose lease is known.
pub(super) fn as_the_core_says(
    before: &Run,
    input: impl Fn(Lease) -> RowInput,
    after: &Run,
) -> Run {
    let lease = after.lease().unwrap().clone();
    let now =
        surefoot_kernel_core::Timestamp::from_micros(lease.until.micros() - lease.length.get());
    let facts = decide_row(before, input(lease), now).unwrap();
    let mut run = facts.iter().fold(before.clone(), apply);
    run.revision += 1;
    run
}

/// Covers behaviour 88.
pub async fn a_claim_is_what_the_core_says<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![pure("a")])).await;
    let queued = world.row(run).await;
    assert_eq!((queued.state(), queued.generation, queued.revision), (RunState::Queued, 0, 0));
    let before = world.now().await;
    let claimed = world.claim().await.remove(0);
    let after = world.now().await;

    let lease = claimed.lease().unwrap();
    assert_eq!((lease.owner, lease.length), (world.session, LEASE));
    assert!(before.plus(LEASE) <= lease.until && lease.until <= after.plus(LEASE));
    assert_eq!(claimed, as_the_core_says(&queued, |lease| RowInput::Claim { lease }, &claimed));
    assert_eq!(world.row(run).await, claimed);
    assert_eq!((claimed.generation, claimed.attempt, claimed.revision), (1, 1, 1));
}

/// Covers behaviour 88.
pub async fn a_second_claim_keeps_the_first_start<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a")])).await;
    let started_at = drive.run().started_at;
    assert!(started_at.is_some());
    world.answer(&mut drive, failed(true)).await;
    world.pass_secs(400).await;
    let queued = world.row(drive.run().id).await;
    let claimed = world.claim().await.remove(0);
    assert_eq!(claimed.started_at, started_at);
    assert_eq!((claimed.generation, claimed.attempt), (2, 2));
    assert_eq!(claimed, as_the_core_says(&queued, |lease| RowInput::Claim { lease }, &claimed));
}

/// Covers behaviour 87.
/// Covers field fault 37.
pub async fn each_of_many_claimers_gets_a_run_of_its_own<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![pure("a")])).await;
    for _ in 0..20 {
        world.start("flow").await;
    }
    let request = world.claim_request(1).await;
    let mut claims = tokio::task::JoinSet::new();
    for claimer in 0..20 {
        let store = if claimer % 2 == 0 { world.store.clone() } else { world.other.clone() };
        let session = surefoot_kernel_core::Ids::session(&world.ids);
        let request = ClaimRequest { session, nonce: 0, ..request.clone() };
        claims.spawn(async move { store.claim_rows(request).await });
    }
    let claimed: Vec<RunId> = claims.join_all().await.iter().flatten().map(|run| run.id).collect();
    assert_eq!(claimed.len(), 20, "a claimer got nothing though runs were due");
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), 20, "a run was claimed twice");
}

/// Covers behaviour 95.
pub async fn claims_go_by_the_time_from_which_a_run_is_ready<F: StoreFactory>(world: &World<F>) {
    let mut early = world.running(plan(vec![idempotent("a")])).await;
    world.answer(&mut early, failed(true)).await;
    let mut expected = vec![early.run().id];
    world.pass_secs(30).await;
    for _ in 0..3 {
        expected.push(world.start("flow").await);
        world.pass_secs(1).await;
    }
    let mut claimed = Vec::new();
    for _ in 0..4 {
        let request = world.claim_request(1).await;
        claimed.extend(world.store.claim_rows(request).await.iter().map(|run| run.id));
    }
    assert_eq!(claimed, expected, "fresh runs starved one whose backoff was over");
}

/// Runs that are ready at the same moment are claimed by id.
pub async fn runs_of_one_moment_are_claimed_by_id<F: StoreFactory>(world: &World<F>) {
    let mut flow = plan(vec![pure("a")]);
    for index in 0..8 {
        flow = crate::plans::triggered(flow, &format!("t{index}"), "stock.low");
    }
    world.publish("flow", flow).await;
    let mut runs = world.emit(Event::new("stock.low", json!({}))).await.runs;
    assert_eq!(runs.len(), 8);
    runs.sort_unstable();
    let mut claimed: Vec<RunId> = Vec::new();
    for _ in 0..4 {
        let request = world.claim_request(2).await;
        let mut pair = world.store.claim_rows(request).await;
        pair.sort_unstable_by_key(|run| run.id);
        claimed.extend(pair.iter().map(|run| run.id));
    }
    assert_eq!(claimed, runs);
}

/// Covers behaviour 96.
pub async fn a_worker_claims_only_runs_of_its_app<F: StoreFactory>(world: &World<F>) {
    let other = App::from("bank");
    let flow = plan(vec![pure("a")]);
    let publish = Publish { app: other.clone(), ..world.publication("flow", flow.clone()) };
    world.store.version_publish(publish).await.unwrap();
    let emit = world.emission(Event::start("flow", json!({})));
    let theirs = world.store.event_emit(Emit { app: other.clone(), ..emit }).await.unwrap().runs[0];
    let ours = world.run(flow).await;
    let claimed: Vec<RunId> = world.claim().await.iter().map(|run| run.id).collect();
    assert_eq!(claimed, [ours]);
    let request = ClaimRequest { app: other, ..world.claim_request(10).await };
    assert_eq!(world.store.claim_rows(request).await[0].id, theirs);
}

/// Covers behaviour 97.
pub async fn an_execute_worker_leaves_dry_runs_alone<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![pure("a")])).await;
    if !world.tamper(Tamper::MakeDryRun(run)).await {
        return;
    }
    assert!(world.claim().await.is_empty());
    assert_eq!(world.row(run).await.state(), RunState::Queued);
    let request = ClaimRequest { mode: Mode::DryRun, ..world.claim_request(10).await };
    assert_eq!(world.store.claim_rows(request).await[0].id, run);
}

/// Covers behaviour 142.
pub async fn only_named_footprints_are_claimed<F: StoreFactory>(world: &World<F>) {
    let (ours, theirs) = (plan(vec![pure("ours")]), plan(vec![pure("theirs")]));
    world.publish("ours", ours.clone()).await;
    world.publish("theirs", theirs.clone()).await;
    let stranded = world.start("theirs").await;
    world.pass_secs(60).await;
    let run = world.start("ours").await;
    let named =
        ClaimRequest { footprints: vec![ours.footprint.hash()], ..world.claim_request(1).await };
    assert_eq!(world.store.claim_rows(named).await[0].id, run, "an older run is in the way");
    let row = world.row(stranded).await;
    assert_eq!((row.state(), row.generation, row.revision), (RunState::Queued, 0, 0));
    let fitting = ClaimRequest {
        footprints: vec!["nobody's".to_owned(), theirs.footprint.hash()],
        ..world.claim_request(1).await
    };
    assert_eq!(world.store.claim_rows(fitting).await[0].id, stranded);
}

/// The root of a tree and its children are taken, and a run that is no root stands for no tree.
pub async fn a_claim_for_one_tree_leaves_every_other_run_alone<F: StoreFactory>(world: &World<F>) {
    let (root, mut children) = super::children::family(world, 2, None).await;
    let stranger = world.run(plan(vec![pure("a")])).await;
    let of = async |tree: RunId| {
        let request = ClaimRequest { tree: Some(tree), ..world.claim_request(10).await };
        let claimed = world.store.claim_rows(request).await;
        claimed.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(of(children[0]).await, [], "a child is no root");
    let mut taken = of(root).await;
    taken.sort_unstable();
    children.sort_unstable();
    assert_eq!(taken, children, "the root itself waits");
    assert_eq!(world.row(stranger).await.state(), RunState::Queued);
    assert_eq!(of(stranger).await, [stranger]);
    assert_eq!(world.claim().await, []);
}

/// Covers field fault 164.
pub async fn empty_requests_are_answered_with_nothing<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![pure("a")])).await;
    let nothing = ClaimRequest { footprints: Vec::new(), ..world.claim_request(10).await };
    assert!(world.store.claim_rows(nothing).await.is_empty());
    let none = world.claim_request(0).await;
    assert!(world.store.claim_rows(none).await.is_empty());
    assert!(world.renew(world.session, Vec::new()).await.is_empty());
    assert_eq!(world.row(run).await.generation, 0);
    assert_eq!(world.claim().await.len(), 1);
    assert!(world.claim().await.is_empty());
}

/// A claim gives at most what it asked for, the rest stays due.
pub async fn a_claim_keeps_its_limit<F: StoreFactory>(world: &World<F>) {
    world.publish("a", plan(vec![pure("a")])).await;
    world.publish("b", plan(vec![pure("b")])).await;
    for _ in 0..3 {
        world.start("a").await;
        world.start("b").await;
    }
    for expected in [4, 2, 0] {
        let request = world.claim_request(4).await;
        assert_eq!(world.store.claim_rows(request).await.len(), expected);
    }
}

/// Covers behaviour 101.
/// Covers field fault 66.
pub async fn a_repeated_nonce_finds_the_same_claim<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![pure("a")])).await;
    for _ in 0..3 {
        world.start("flow").await;
    }
    let request = world.claim_request(2).await;
    let mut first = world.store.claim_rows(request.clone()).await;
    let mut again = world.other.claim_rows(request.clone()).await;
    first.sort_unstable_by_key(|run| run.id);
    again.sort_unstable_by_key(|run| run.id);
    assert_eq!(first.len(), 2);
    assert_eq!(again, first, "the answer was lost, and with it two runs until their leases end");
    // Neither another session's equal nonce nor its own next one finds them.
    let rival = ClaimRequest { session: world.rival, limit: 1, ..request.clone() };
    let third = world.store.claim_rows(rival).await;
    assert!(third.len() == 1 && first.iter().all(|run| run.id != third[0].id));
    assert!(world.claim().await.is_empty());
    // What somebody else has claimed since is not found any more.
    world.pass_secs(121).await;
    assert_eq!(world.rival_claim().await.len(), 3);
    assert!(world.store.claim_rows(request).await.is_empty());
}

/// Covers behaviour 92.
pub async fn a_released_run_is_not_claimed_before_its_backoff_is_over<F: StoreFactory>(
    world: &World<F>,
) {
    let mut drive = world.running(plan(vec![idempotent("a")])).await;
    let before = world.now().await;
    world.answer(&mut drive, failed(true)).await;
    let Phase::Queued { ready_at, todo: Todo::Steps } = drive.run().phase else {
        unreachable!("{:?}", drive.run())
    };
    let backoff = release_backoff(drive.run().id, 1);
    assert!(before.plus(backoff) <= ready_at && ready_at <= world.now().await.plus(backoff));
    world.pass_secs(3).await;
    assert!(world.claim().await.is_empty());
    world.pass_secs(3).await;
    assert_eq!(world.claim().await.len(), 1);
}

/// Covers behaviour 93.
/// Covers field fault 127.
/// Covers field fault 130.
pub async fn a_run_that_fails_every_time_is_exhausted_at_the_ninth_claim<F: StoreFactory>(
    world: &World<F>,
) {
    let run = world.run(plan(vec![idempotent("a")])).await;
    for execution in 1..=8 {
        let mut drive = world.claim_run(run).await;
        assert_eq!(drive.run().failures, execution);
        if execution % 2 == 0 {
            // The worker dies: its claim counts, its lease runs out.
            world.pass_secs(121).await;
        } else {
            world.answer(&mut drive, failed(true)).await;
            world.pass_secs(301).await;
        }
    }
    let mut ninth = world.claim_run(run).await;
    assert_eq!(ninth.to_call(&world.store).await.unwrap(), None);
    let Phase::Failed { error, .. } = world.row(run).await.phase else { unreachable!() };
    assert_eq!((error.code, error.step), (Code::RETRY_EXHAUSTED, Some(step("steps.0"))));
}

/// Covers behaviour 94.
pub async fn an_outcome_lets_the_count_of_failures_start_again<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![idempotent("a"), idempotent("b")])).await;
    for _ in 0..3 {
        let mut drive = world.claim_run(run).await;
        world.answer(&mut drive, failed(true)).await;
        world.pass_secs(301).await;
    }
    let mut drive = world.claim_run(run).await;
    assert_eq!(drive.run().failures, 4);
    world.answer(&mut drive, succeeded(json!(1))).await;
    assert_eq!((drive.run().failures, drive.run().step_attempt), (0, 1));
    world.answer(&mut drive, failed(true)).await;
    let row = world.row(run).await;
    assert_eq!((row.failures, row.last_failure.unwrap().code), (1, Code::from("PROVIDER_DOWN")));
}

/// Covers behaviour 90.
/// Covers behaviour 91.
/// Covers field fault 24.
pub async fn a_run_whose_worker_died_goes_on_behind_its_last_outcome<F: StoreFactory>(
    world: &World<F>,
) {
    let run = world.run(plan(vec![idempotent("a"), idempotent("b"), pure("c")])).await;
    let mut first = world.claim_run(run).await;
    world.answer(&mut first, succeeded(json!({ "n": 1 }))).await;
    let Some(Command::Call(lost)) = first.to_call(&world.store).await.unwrap() else {
        unreachable!()
    };
    assert_eq!((lost.step.as_str(), lost.attempt), ("steps.1", 1));
    drop(first);
    world.pass_secs(121).await;
    assert_eq!(world.rival_claim().await.len(), 1);
    let mut second = world.drive(run).await;
    let Some(Command::Call(again)) = second.to_call(&world.store).await.unwrap() else {
        unreachable!()
    };
    assert_eq!((&again.step, again.attempt), (&lost.step, 2));
    assert_eq!(again.effect_key, lost.effect_key);
    let mut called = Vec::new();
    let ended = second.to_end(&world.store, |call| {
        called.push(call.step.to_string());
        crate::Reply::Answer(succeeded(json!("done")))
    });
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
    assert_eq!(called, ["steps.1", "steps.2"], "step 0 has an outcome");
}

/// Covers behaviour 133.
/// Covers field fault 24.
pub async fn a_marked_call_is_reconciled_and_never_called_again<F: StoreFactory>(world: &World<F>) {
    let mut first = world.running(plan(vec![ambiguous("pay")])).await;
    let run = first.run().id;
    let Some(Command::Call(call)) = first.to_call(&world.store).await.unwrap() else {
        unreachable!()
    };
    let row = world.row(run).await;
    assert!(row.has_unsettled_effect(), "the mark is durable before the call: {row:?}");
    world.pass_secs(121).await;
    world.rival_claim().await;
    let mut second = world.drive(run).await;
    let Some(Command::Reconcile(asked)) = second.to_call(&world.store).await.unwrap() else {
        unreachable!()
    };
    assert_eq!(asked.effect_key, call.effect_key);
}

/// A worker of the same host that starts anew is another session: it waits for the old one's leases like anybody.
///
/// Covers field fault 39.
pub async fn a_restarted_worker_gets_its_orphans_when_their_leases_end<F: StoreFactory>(
    world: &World<F>,
) {
    let run = world.run(plan(vec![pure("a")])).await;
    assert_eq!(world.claim().await.len(), 1);
    assert!(world.rival_claim().await.is_empty());
    world.pass_secs(110).await;
    assert!(world.rival_claim().await.is_empty());
    world.pass_secs(11).await;
    let row = world.row(run).await;
    let claimed = world.rival_claim().await.remove(0);
    assert_eq!((claimed.id, claimed.generation, claimed.attempt), (run, 2, 2));
    assert_eq!(claimed, as_the_core_says(&row, |lease| RowInput::Claim { lease }, &claimed));
}

/// Covers field fault 40.
pub async fn many_live_leases_hide_no_lapsed_one<F: StoreFactory>(world: &World<F>) {
    let orphan = world.run(plan(vec![pure("a")])).await;
    world.claim().await;
    world.pass_secs(60).await;
    for _ in 0..50 {
        world.start("flow").await;
    }
    assert_eq!(world.claim().await.len(), 50);
    world.pass_secs(61).await;
    let request = ClaimRequest { session: world.rival, ..world.claim_request(1).await };
    let claimed = world.other.claim_rows(request).await;
    assert_eq!(claimed[0].id, orphan);
}

/// Covers field fault 6.
pub async fn only_queued_and_lapsed_runs_are_claimed<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![ambiguous("pay")])).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(world.start("flow").await);
    }
    world.claim().await;
    for (run, answer) in runs.iter().zip([
        succeeded(json!(1)),
        failed(false),
        Answer::Waiting { on: Dependency::on("approval", "7") },
        unknown(),
    ]) {
        let mut drive = world.drive(*run).await;
        world.answer(&mut drive, answer).await;
        drive.to_end(&world.store, |_| crate::Reply::Answer(failed(false))).await.unwrap();
    }
    world.cancel(runs[4]).await;
    world.pass_secs(2).await;
    let mut asked = world.claim_run(runs[3]).await;
    let ended = asked.to_end(&world.store, |_| {
        let why = "no answer".to_owned();
        crate::Reply::Reconciled(surefoot_kernel_core::ReconcileAnswer::Unknown { why })
    });
    assert_eq!(ended.await.unwrap().state(), RunState::NeedsAttention);
    world.pass_secs(1_000).await;
    assert!(world.claim().await.is_empty(), "canceled, ended, waiting or in attention");
}

/// What is not there is answered as such, and written by nobody.
pub async fn an_unknown_run_is_no_run<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![pure("a")])).await;
    let run = RunId::from_bytes([9; 16]);
    assert!(world.store.run_load(LoadRequest { run, after: None }).await.unwrap().is_none());
    let request = TakeOverRequest { run, generation: 1, session: world.session, lease: LEASE };
    assert!(world.store.run_take_over(request).await.unwrap().is_none());
    let command = drive.to_call(&world.store).await.unwrap();
    assert!(command.is_some());
    let mut commit = drive.commit().unwrap();
    commit.before.run = run;
    commit.after.id = run;
    assert!(world.store.run_commit(commit).await.is_err());
    assert!(world.store.run_load(LoadRequest { run, after: None }).await.unwrap().is_none());
}

/// Covers behaviour 97.
pub async fn a_dry_run_is_created_once_and_claimed_in_its_mode_only<F: StoreFactory>(
    world: &World<F>,
) {
    let draft = Publish { activate: false, ..world.publication("flow", plan(vec![pure("a")])) };
    let version = world.store.version_publish(draft).await.unwrap().version;
    let stored = world.store.version_load(version).await.unwrap().unwrap();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    let trace = TraceContext::new(traceparent).unwrap();
    let create = CreateDryRun {
        id: RunId::from_bytes([5; 16]),
        app: stored.app.clone(),
        scope: stored.scope.clone(),
        workflow: stored.workflow.clone(),
        version,
        footprint: stored.footprint.hash(),
        trigger: None,
        event: Event::start("flow", json!({ "n": 1 })).trace_context(trace).check().unwrap(),
    };
    let run = world.store.dry_run_create(create.clone()).await.unwrap();
    assert_eq!(world.other.dry_run_create(create).await.unwrap(), run);
    assert_eq!((run.origin.mode, run.origin.event, run.origin.root), (Mode::DryRun, None, run.id));
    let invocation = world.stored(run.id).await.invocation.unwrap();
    assert_eq!(invocation.trigger, json!({ "n": 1 }));
    assert_eq!(invocation.trace.unwrap().traceparent(), traceparent);
    assert!(world.claim().await.is_empty(), "an execute worker took it");
    let request = ClaimRequest { mode: Mode::DryRun, ..world.claim_request(10).await };
    let claimed = world.store.claim_rows(request).await;
    assert_eq!(claimed.iter().map(|run| run.id).collect::<Vec<_>>(), [run.id]);
}
