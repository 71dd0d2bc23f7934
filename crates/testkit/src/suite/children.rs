//! Children: who they are, what their ends mean, and how they are canceled, retried and read.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions of the suite: a rule that fails panics"
)]

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Child, ChildResult, ChildStore as _, Children, ChildrenCreated, ChildrenError, ChildrenRequest,
    Command, Commit, CreateChildren, Dependency, End, Event, EventStore as _, Fact, Failure,
    GroupRow, Micros, OperatorStore as _, Phase, PlanStore as _, RowInput, RunId, RunState,
    RunStore as _, Scan, Scope, Signal, StoreError, TxStore as _, Wake,
};
use tokio::task::JoinSet;

use super::world::{World, app, step};
use super::{StoreFactory, Tamper, Tampered};
use crate::Drive;
use crate::plans::{ambiguous, idempotent, plan, pure, run_workflows, transactional};

/// A run of so many children that this process holds, before it has created them.
async fn parent<F: StoreFactory>(world: &World<F>, count: usize, parallel: Option<u32>) -> Drive {
    world.publish("one", plan(vec![pure("a")])).await;
    world.running(plan(vec![run_workflows("one", count, parallel)])).await
}

pub(super) async fn spawn<F: StoreFactory>(world: &World<F>, drive: &mut Drive) -> ChildrenCreated {
    let command = drive.advance(&world.store).await.unwrap();
    let Some(Command::Spawn(spawn)) = command else { panic!("no children, but {command:?}") };
    drive.spawn(&world.store, spawn).await.unwrap()
}

/// A run that waits for so many children, and those.
pub(super) async fn family<F: StoreFactory>(
    world: &World<F>,
    count: usize,
    parallel: Option<u32>,
) -> (RunId, Vec<RunId>) {
    let mut drive = parent(world, count, parallel).await;
    spawn(world, &mut drive).await;
    let run = drive.run().id;
    (run, ids(world, run).await)
}

async fn all<F: StoreFactory>(world: &World<F>, parent: RunId) -> Vec<ChildResult> {
    let mut request = ChildrenRequest { parent, step: step("steps.0"), from: 0, limit: 1_000 };
    let mut children = Vec::new();
    loop {
        let page = world.store.children_read(request.clone()).await.unwrap();
        children.extend(page.children);
        match page.next {
            Some(next) => request.from = next,
            None => return children,
        }
    }
}

pub(super) async fn ids<F: StoreFactory>(world: &World<F>, parent: RunId) -> Vec<RunId> {
    all(world, parent).await.into_iter().map(|child| child.run).collect()
}

pub(super) async fn group<F: StoreFactory>(world: &World<F>, parent: RunId) -> GroupRow {
    world.store.children_groups(parent).await.unwrap().remove(0)
}

pub(super) async fn live<F: StoreFactory>(world: &World<F>, parent: RunId) -> u32 {
    group(world, parent).await.live
}

fn create(drive: &Drive, children: Vec<Child>) -> CreateChildren {
    let children = Children::check(children).unwrap();
    CreateChildren { before: drive.stamp(), step: step("steps.0"), children, parallel: None }
}

pub(super) fn ended(result: Value) -> Fact {
    let end = End::Succeeded { result, message: None, step: None };
    Fact::Ended { end, at: surefoot_kernel_core::Timestamp::from_micros(1) }
}

pub(super) fn failed() -> Fact {
    let end = End::Failed(Failure::new("OUT_OF_STOCK", "no bolts"));
    Fact::Ended { end, at: surefoot_kernel_core::Timestamp::from_micros(1) }
}

pub(super) async fn write<F: StoreFactory>(world: &World<F>, run: RunId, fact: Fact) {
    let row = world.row(run).await;
    world.store.run_commit(Commit::new(&row, &[fact])).await.unwrap();
}

pub(super) async fn end<F: StoreFactory>(world: &World<F>, run: RunId) {
    write(world, run, ended(Value::Null)).await;
}

/// A repeated creation creates nothing; new keys are added behind the known ones.
///
/// Covers behaviour 159.
pub async fn the_same_children_are_created_once<F: StoreFactory>(world: &World<F>) {
    let drive = parent(world, 3, None).await;
    let child = |key: &str| Child::new("one", json!({ "of": key })).key(key);
    let first = create(&drive, vec![child("a"), child("b")]);
    let created = world.store.children_create(first.clone()).await.unwrap();
    assert_eq!(created, ChildrenCreated { new: 2, total: 2 });
    let before = ids(world, drive.run().id).await;
    let again = world.other.children_create(first).await.unwrap();
    assert_eq!(again, ChildrenCreated { new: 0, total: 2 });
    let more = create(&drive, vec![child("b"), child("c"), child("a")]);
    let more = world.store.children_create(more).await.unwrap();
    assert_eq!(more, ChildrenCreated { new: 1, total: 3 });
    let after = ids(world, drive.run().id).await;
    assert_eq!((after.len(), &after[..2]), (3, &before[..]));
}

/// A child reads its parent's context and actor, and its own inputs.
pub async fn a_child_shares_what_its_root_was_started_with<F: StoreFactory>(world: &World<F>) {
    world.publish("one", plan(vec![pure("a")])).await;
    world.publish("flow", plan(vec![run_workflows("one", 1, None)])).await;
    let event = Event::start("flow", json!({})).context(json!({ "tenant": 7 }));
    let event = event.authorization(json!({ "actor": "ada" }));
    let parent = world.emit(event).await.runs[0];
    let mut drive = world.claim_run(parent).await;
    spawn(world, &mut drive).await;
    let child = ids(world, parent).await.remove(0);
    let stored = world.stored(child).await;
    let invocation = stored.invocation.unwrap();
    assert_eq!((invocation.trigger, invocation.context), (json!({}), json!({ "tenant": 7 })));
    assert_eq!(invocation.actor, Some(json!("ada")));
    let (of, origin) = (world.row(parent).await.origin, stored.run.origin);
    assert_eq!((&origin.app, &origin.scope, origin.mode), (&of.app, &of.scope, of.mode));
    assert_eq!((origin.root, origin.occurred_at), (parent, of.occurred_at));
    let detail = world.store.run_detail(child).await.unwrap().unwrap();
    assert_eq!(detail.invocation.context, json!({ "tenant": 7 }));
    assert!(detail.event.is_none());
}

/// The database itself refuses a child in another scope than its parent's.
///
/// Covers behaviour 160.
pub async fn a_child_stays_in_the_place_of_its_parent<F: StoreFactory>(world: &World<F>) {
    let parent = world.run(plan(vec![pure("a")])).await;
    let elsewhere = surefoot_kernel_core::Publish {
        scope: Scope::from("south"),
        ..world.publication("flow", plan(vec![pure("a")]))
    };
    world.store.version_publish(elsewhere).await.unwrap();
    let emit = surefoot_kernel_core::Emit {
        scope: Scope::from("south"),
        ..world.emission(Event::start("flow", json!({})))
    };
    let run = world.store.event_emit(emit).await.unwrap().runs[0];
    let tampered = world.factory.tamper(Tamper::MakeChild { run, parent }).await;
    assert_ne!(tampered, Tampered::Done, "a child came into another scope");
    assert!(world.row(run).await.origin.parent.is_none());
}

/// One child that cannot be is a reason for none.
pub async fn children_are_created_all_or_none<F: StoreFactory>(world: &World<F>) {
    let drive = parent(world, 1, None).await;
    world.store.version_publish(draft(world)).await.unwrap();
    for missing in ["nowhere", "draft"] {
        let children = vec![Child::new("one", Value::Null), Child::new(missing, Value::Null)];
        let refused = world.store.children_create(create(&drive, children)).await;
        let Err(ChildrenError::NoWorkflow { workflow }) = refused else { panic!("{refused:?}") };
        assert_eq!(workflow.as_str(), missing);
    }
    assert!(ids(world, drive.run().id).await.is_empty());
    assert!(world.store.children_groups(drive.run().id).await.unwrap().is_empty());
}

fn draft<F: StoreFactory>(world: &World<F>) -> surefoot_kernel_core::Publish {
    let publication = world.publication("draft", plan(vec![pure("a")]));
    surefoot_kernel_core::Publish { activate: false, ..publication }
}

/// Whoever does not hold the parent creates nothing; nor does its holder once cancel was requested.
pub async fn only_the_holder_of_a_parent_creates_children<F: StoreFactory>(world: &World<F>) {
    let drive = parent(world, 1, None).await;
    let request = || create(&drive, vec![Child::new("one", Value::Null)]);
    let run = drive.run().id;
    world.cancel(run).await;
    let refused = world.store.children_create(request()).await;
    assert!(matches!(refused, Err(ChildrenError::Store(StoreError::Canceled))), "{refused:?}");
    world.pass_secs(121).await;
    world.recover().await;
    let refused = world.store.children_create(request()).await;
    assert!(matches!(refused, Err(ChildrenError::Store(StoreError::LeaseLost))), "{refused:?}");
    let stale = parent(world, 1, None).await;
    world.pass_secs(121).await;
    world.rival_claim().await;
    let late = create(&stale, vec![Child::new("one", Value::Null)]);
    let refused = world.store.children_create(late).await;
    assert!(matches!(refused, Err(ChildrenError::Store(StoreError::LeaseLost))), "{refused:?}");
    let mut unknown = request();
    unknown.before.run = RunId::from_bytes([9; 16]);
    assert!(world.store.children_create(unknown).await.is_err());
    assert!(ids(world, stale.run().id).await.is_empty());
}

/// As many as one call may create, all of them in it; and as many ends, in batches, leave none.
///
/// Covers behaviour 161. Covers field fault 143.
pub async fn the_most_children_of_one_call<F: StoreFactory>(world: &World<F>) {
    let most = surefoot_kernel_core::CHILDREN_MAX;
    let too_many = Children::check((0..=most).map(|_| Child::new("one", Value::Null)));
    assert!(matches!(too_many, Err(ChildrenError::TooMany { .. })));
    let drive = parent(world, 1, None).await;
    let request = create(&drive, (0..most).map(|_| Child::new("one", json!({}))).collect());
    let created = world.store.children_create(request.clone()).await.unwrap();
    assert_eq!(created, ChildrenCreated { new: 65_536, total: 65_536 });
    let again = world.store.children_create(request).await.unwrap();
    assert_eq!(again, ChildrenCreated { new: 0, total: 65_536 });
    let run = drive.run().id;
    let last = ChildrenRequest { parent: run, step: step("steps.0"), from: 65_535, limit: 10 };
    let last = world.store.children_read(last).await.unwrap();
    assert_eq!((last.children[0].index, last.total, last.next), (65_535, 65_536, None));
    world.cancel(run).await;
    let mut passes = 0_u32;
    let mut canceled = 0;
    loop {
        let pass = world.recover().await;
        assert!(pass.finalised.len() <= 1_000, "a pass is bounded");
        canceled += pass.finalised.len();
        passes += 1;
        if !pass.more {
            break;
        }
    }
    assert!(passes >= 65, "{passes}");
    assert!(canceled >= 65_436, "{canceled}");
    let group = group(world, run).await;
    assert_eq!((group.total, group.live), (65_536, 0));
    assert!(group.states.contains(&(RunState::Canceled, 65_536)), "{group:?}");
}

/// The seven numbers of a group are those of its children.
///
/// Covers behaviour 162. Covers field fault 136.
pub async fn counts_by_state_sum_to_the_total<F: StoreFactory>(world: &World<F>) {
    world.publish("one", plan(vec![ambiguous("pay")])).await;
    let (run, children) = {
        let mut drive = world.running(plan(vec![run_workflows("one", 8, None)])).await;
        spawn(world, &mut drive).await;
        (drive.run().id, ids(world, drive.run().id).await)
    };
    end(world, children[0]).await;
    write(world, children[1], failed()).await;
    world.cancel(children[2]).await;
    let error = Failure::new("ODD", "odd");
    write(world, children[3], Fact::AttentionCalled { error }).await;
    let on = Some(Dependency::on("approval", "7"));
    let (of, at) = (step("steps.0"), world.now().await);
    let parked = Fact::Parked { step: of, on, deadline: None, spins: 0, at };
    write(world, children[4], parked).await;
    let lease = surefoot_kernel_core::Lease {
        owner: world.session,
        until: at.plus(Micros::from_secs(120)),
        length: Micros::from_secs(120),
    };
    write(world, children[5], Fact::Claimed { lease, at }).await;
    let group = group(world, run).await;
    let count = |of| group.states.iter().find(|(state, _)| *state == of).unwrap().1;
    let counts: Vec<u32> = RunState::ALL.iter().map(|state| count(*state)).collect();
    assert_eq!(counts, [2, 1, 1, 1, 1, 1, 1], "{group:?}");
    assert_eq!((group.total, group.live, group.held), (8, 5, 0));
}

/// Whichever of them comes first, the end of the last child and the park: the parent is awake afterwards, once.
///
/// Covers field fault 12. Covers field fault 2.
pub async fn a_child_that_ends_while_its_parent_parks_wakes_it_once<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("one", plan(vec![pure("a")])).await;
    world.publish("flow", plan(vec![run_workflows("one", 1, None)])).await;
    for round in 0..60 {
        let parent = world.start("flow").await;
        let mut drive = world.claim_run(parent).await;
        let create = create(&drive, vec![Child::new("one", json!({}))]);
        drive.advance(&world.store).await.unwrap();
        world.store.children_create(create).await.unwrap();
        let child = ids(world, parent).await.remove(0);
        let row = world.row(child).await;
        let commit = Commit::new(&row, &[ended(json!(7))]);
        let (other, store) = (world.other.clone(), world.store.clone());
        let ends = tokio::spawn(async move { other.run_commit(commit).await.map(drop) });
        let scans = tokio::spawn(async move {
            store.run_recover(Scan { app: app(), limit: 100 }).await.map(drop)
        });
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        let result = Ok(());
        let spawned = surefoot_kernel_core::Input::Spawned { step: step("steps.0"), result };
        drive.take(&world.store, spawned).await.unwrap();
        ends.await.unwrap().unwrap();
        scans.await.unwrap().unwrap();
        let run = world.row(parent).await;
        assert_eq!(run.state(), RunState::Queued, "round {round}: {run:?}");
        let resume = run.resume.as_ref().unwrap();
        assert_eq!((&resume.wake, resume.step.as_str()), (&Wake::Children, "steps.0"));
        assert!(world.recover().await.woken.is_empty(), "it was woken already");
        let mut drive = world.claim_run(parent).await;
        let result = drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
        assert!(
            matches!(result.phase, Phase::Succeeded { ref result, .. } if *result == json!([7]))
        );
    }
}

/// In whatever order children end, the last one wakes the parent, and results are read by index.
///
/// Covers field fault 142. Covers field fault 143.
pub async fn children_that_end_in_any_order_wake_their_parent_once<F: StoreFactory>(
    world: &World<F>,
) {
    for count in [1_usize, 1_023, 1_024, 1_025] {
        let (run, children) = family(world, count, None).await;
        let waiting = world.row(run).await;
        assert_eq!(waiting.state(), RunState::Waiting);
        // A step that shares no factor with any of the numbers: every index comes once.
        let order = (0..count).map(|turn| (turn * 677 + 11) % count);
        let mut writes = JoinSet::new();
        for index in order {
            let (store, child) = (world.store.clone(), children[index]);
            writes.spawn(async move {
                let request = surefoot_kernel_core::LoadRequest { run: child, after: Some(0) };
                let row = store.run_load(request).await.unwrap().unwrap().run;
                store.run_commit(Commit::new(&row, &[ended(json!(index))])).await.unwrap();
            });
            if writes.len() >= 64 {
                writes.join_next().await.unwrap().unwrap();
            }
        }
        writes.join_all().await;
        let woken = world.row(run).await;
        assert_eq!(woken.state(), RunState::Queued);
        assert_eq!(woken.revision, waiting.revision + 1, "woken once");
        let mut drive = world.claim_run(run).await;
        let end = drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
        let expected: Vec<usize> = (0..count).collect();
        assert!(
            matches!(end.phase, Phase::Succeeded { ref result, .. } if *result == json!(expected))
        );
    }
}

/// A park on children of which none is live is no park; nor is one on children that never were.
pub async fn a_park_on_children_that_have_ended_wakes_at_once<F: StoreFactory>(world: &World<F>) {
    let mut drive = parent(world, 1, None).await;
    let run = drive.run().id;
    let command = drive.advance(&world.store).await.unwrap();
    let Some(Command::Spawn(wanted)) = command else { panic!("{command:?}") };
    let create = CreateChildren {
        before: drive.stamp(),
        step: wanted.step.clone(),
        children: wanted.children.clone(),
        parallel: None,
    };
    world.store.children_create(create).await.unwrap();
    end(world, ids(world, run).await.remove(0)).await;
    assert_eq!(world.row(run).await.state(), RunState::Running, "nobody waited");
    drive.spawn(&world.store, wanted).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Queued);
    let mut childless = world.running(plan(vec![idempotent("a")])).await;
    world.park(&mut childless, Dependency::on_children(&step("steps.0"))).await;
    assert_eq!(world.row(childless.run().id).await.state(), RunState::Queued);
}

/// A child that waits for a person has not ended; what the person says may end it.
pub async fn attention_is_not_the_end_of_a_child<F: StoreFactory>(world: &World<F>) {
    world.publish("one", plan(vec![ambiguous("pay")])).await;
    let mut drive = world.running(plan(vec![run_workflows("one", 1, None)])).await;
    spawn(world, &mut drive).await;
    let run = drive.run().id;
    let child = ids(world, run).await.remove(0);
    let error = Failure::new("ODD", "odd");
    write(world, child, Fact::AttentionCalled { error }).await;
    assert_eq!((live(world, run).await, world.row(run).await.state()), (1, RunState::Waiting));
    let abandon = RowInput::Abandon { accept_unknown: false, unclaimable: false };
    world.input(child, abandon).await.unwrap();
    assert_eq!((live(world, run).await, world.row(run).await.state()), (0, RunState::Queued));
}

/// A held child is not claimed; each end lets the next one go, by index, and a held one that is canceled makes no
/// room.
pub async fn held_children_are_let_go_as_others_end<F: StoreFactory>(world: &World<F>) {
    let (run, children) = family(world, 6, Some(2)).await;
    let queued = async || {
        let mut claimable = Vec::new();
        for (index, child) in (0..).zip(&children) {
            let row = world.row(*child).await;
            if row.state() == RunState::Queued && !row.is_held() {
                claimable.push(index);
            }
        }
        claimable
    };
    assert_eq!(queued().await, [0, 1]);
    world.pass(Micros::from_secs(10 * 86_400)).await;
    assert_eq!(world.claim().await.len(), 2, "time lets nobody go");
    world.cancel(children[2]).await;
    assert!(queued().await.is_empty());
    end(world, children[1]).await;
    assert_eq!(queued().await, [3]);
    let counts = group(world, run).await;
    assert_eq!((counts.live, counts.held, counts.parallel), (4, 2, 2));
    for child in [0, 3, 4, 5] {
        assert_eq!(world.row(run).await.state(), RunState::Waiting);
        end(world, children[child]).await;
    }
    assert_eq!(world.row(run).await.state(), RunState::Queued);
}

/// A retried child is held back while as many siblings as may are unfinished, and let go like any other.
pub async fn a_retried_child_is_held_back_where_its_group_is_full<F: StoreFactory>(
    world: &World<F>,
) {
    let (run, children) = family(world, 5, Some(2)).await;
    for child in &children[..2] {
        write(world, *child, failed()).await;
    }
    let counts = async || {
        let group = group(world, run).await;
        (group.live, group.held)
    };
    assert_eq!(counts().await, (3, 1));
    for child in &children[..2] {
        let retried = world.input(*child, RowInput::Retry).await.unwrap().run;
        assert!(retried.is_held(), "{retried:?}");
        assert_eq!(world.row(*child).await, retried);
    }
    assert_eq!(counts().await, (5, 3));
    let claimed: Vec<RunId> = world.claim().await.into_iter().map(|run| run.id).collect();
    assert_eq!(claimed.len(), 2, "{claimed:?}");
    assert!(claimed.iter().all(|run| children[2..4].contains(run)), "{claimed:?}");
    // By index: the retried ones come before the last one.
    for (ends, next) in [(2, 0), (3, 1), (0, 4)] {
        assert!(world.row(children[next]).await.is_held());
        end(world, children[ends]).await;
        assert!(!world.row(children[next]).await.is_held());
    }
    assert_eq!(counts().await, (2, 0));
}

/// Retries in one batch, of which the first finds room, keep to the same number.
pub async fn retries_at_once_keep_to_what_may_be_unfinished<F: StoreFactory>(world: &World<F>) {
    let (run, children) = family(world, 4, Some(2)).await;
    for child in &children[..3] {
        write(world, *child, failed()).await;
    }
    let mut writes = JoinSet::new();
    for child in &children[..3] {
        let commit = world.decided(*child, RowInput::Retry).await;
        let store = world.store.clone();
        writes.spawn(async move { store.run_commit(commit).await.map(drop) });
    }
    for written in writes.join_all().await {
        written.unwrap();
    }
    let group = group(world, run).await;
    assert_eq!((group.live, group.held), (4, 2));
    let mut held = 0;
    for child in &children {
        held += u32::from(world.row(*child).await.is_held());
    }
    assert_eq!(held, 2);
}

/// Should the last end have gone unseen, the scan wakes the parent.
pub async fn the_scan_wakes_a_parent_whose_children_have_ended<F: StoreFactory>(world: &World<F>) {
    let (run, children) = family(world, 2, None).await;
    assert!(world.recover().await.woken.is_empty());
    if !world.tamper(Tamper::EndChildrenUnseen(run)).await {
        return;
    }
    assert_eq!(world.recover().await.woken, [run]);
    let resume = world.row(run).await.resume.unwrap();
    assert_eq!(resume.wake, Wake::Children);
    // It looks, and waits again for those that are live after all.
    drop(children);
}

/// A parent that fails leaves its children alone.
pub async fn a_failed_parent_leaves_its_children_alone<F: StoreFactory>(world: &World<F>) {
    let drive = parent(world, 2, None).await;
    let run = drive.run().id;
    let request = create(&drive, vec![Child::new("one", json!({}))]);
    world.store.children_create(request).await.unwrap();
    write(world, run, failed()).await;
    while world.recover().await.more {}
    let child = world.row(ids(world, run).await.remove(0)).await;
    assert_eq!((child.state(), child.cancel), (RunState::Queued, None));
    end(world, child.id).await;
    assert_eq!(world.row(run).await.state(), RunState::Failed);
}

/// A retried child counts again, until its parent has taken its result or reads it.
pub async fn a_child_is_retried_until_its_result_is_taken<F: StoreFactory>(world: &World<F>) {
    let (run, children) = family(world, 2, None).await;
    write(world, children[0], failed()).await;
    world.input(children[0], RowInput::Retry).await.unwrap();
    assert_eq!(live(world, run).await, 2);
    write(world, children[0], failed()).await;
    end(world, children[1]).await;
    let refuses = async |why: &str| {
        let commit = world.decided(children[0], RowInput::Retry).await;
        let refused = world.store.run_commit(commit).await;
        assert!(
            matches!(refused, Err(StoreError::ParentMovedOn { parent }) if parent == run),
            "{why}: {refused:?}"
        );
        assert_eq!(world.row(children[0]).await.state(), RunState::Failed);
        let (_, is_taken) =
            world.store.run_detail(children[0]).await.unwrap().unwrap().group.unwrap();
        assert!(is_taken, "{why}");
    };
    refuses("the parent is about to read").await;
    let mut drive = world.claim_run(run).await;
    refuses("the parent reads").await;
    drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Failed);
    // The parent stands at the step, and reads again when it is retried: so the child may mend it.
    world.input(children[0], RowInput::Retry).await.unwrap();
    end(world, children[0]).await;
    assert_eq!(world.row(run).await.state(), RunState::Failed);
    world.input(run, RowInput::Retry).await.unwrap();
    let mut drive = world.claim_run(run).await;
    drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Queued, "it looks again");
    let mut drive = world.claim_run(run).await;
    let end = drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    assert_eq!(end.state(), RunState::Succeeded);
}

/// Children of a transactional step are there if its transaction is.
pub async fn children_of_a_transaction_are_there_if_it_is<F: StoreFactory>(world: &World<F>) {
    world.publish("one", plan(vec![pure("a")])).await;
    let drive = world.running(plan(vec![transactional("book")])).await;
    let (run, on) = (drive.run().id, world.store.children_on());
    let request = || create(&drive, vec![Child::new("one", json!({}))]);
    let mut open = world.store.begin().await.unwrap();
    assert_eq!(on.create(&mut open, request()).await.unwrap().new, 1);
    drop(open);
    assert!(ids(world, run).await.is_empty());
    let mut open = world.store.begin().await.unwrap();
    assert_eq!(on.create(&mut open, request()).await.unwrap().new, 1);
    assert_eq!(on.create(&mut open, request()).await.unwrap().new, 0);
    assert!(ids(world, run).await.is_empty());
    world.store.commit(open).await.unwrap();
    assert_eq!(ids(world, run).await.len(), 1);
}

/// A page of results ends at its limit, and before it is too large for memory.
pub async fn a_page_of_results_is_bounded<F: StoreFactory>(world: &World<F>) {
    let (run, children) = family(world, 5, None).await;
    for child in &children {
        write(world, *child, ended(json!("x".repeat(700_000)))).await;
    }
    let request = |from, limit| ChildrenRequest { parent: run, step: step("steps.0"), from, limit };
    let page = world.store.children_read(request(0, 10)).await.unwrap();
    assert_eq!((page.children.len(), page.next), (2, Some(2)));
    let page = world.store.children_read(request(4, 10)).await.unwrap();
    assert_eq!((page.children.len(), page.next), (1, None));
    assert_eq!(page.children[0].result.as_str().map(str::len), Some(700_000));
    let page = world.store.children_read(request(0, 1)).await.unwrap();
    assert_eq!((page.children.len(), page.next, page.total), (1, Some(1), 5));
    assert!(world.store.children_read(request(5, 1)).await.unwrap().children.is_empty());
}

/// A wait for children is none for a signal of any name.
pub async fn no_signal_ends_a_wait_for_children<F: StoreFactory>(world: &World<F>) {
    let (run, _) = family(world, 1, None).await;
    let on = Dependency::on_children(&step("steps.0"));
    let sent = world.signal(Signal::new(on.kind(), on.key())).await;
    assert!(sent.woken.is_empty());
    assert!(world.recover().await.woken.is_empty());
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
}
