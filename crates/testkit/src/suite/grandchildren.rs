//! Trees: how deep they are, how they are listed, how a cancel goes down, and who in them may be tried again.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions of the suite: a rule that fails panics"
)]

use serde_json::Value;
use surefoot_kernel_core::{
    ChildrenError, Command, OperatorStore as _, RowInput, RunFilter, RunId, RunState,
    RunStore as _, StoreError,
};

use super::StoreFactory;
use super::children::{end, ended, failed, family, ids, live, spawn, write};
use super::world::{World, step, unknown};
use crate::plans::{ambiguous, plan, pure, run_workflows};

/// Three levels of runs that wait: the first child of the first has one child of its own, the last level.
struct Tree {
    top: RunId,
    middle: RunId,
    /// The other child of the first, which does nothing.
    other: RunId,
    leaf: RunId,
}

async fn tree<F: StoreFactory>(world: &World<F>) -> Tree {
    world.publish("one", plan(vec![pure("a")])).await;
    world.publish("middle", plan(vec![run_workflows("one", 1, None)])).await;
    let mut drive = world.running(plan(vec![run_workflows("middle", 2, None)])).await;
    spawn(world, &mut drive).await;
    let top = drive.run().id;
    let [middle, other] = ids(world, top).await[..] else { panic!("not two children") };
    let mut drive = world.claim_run(middle).await;
    spawn(world, &mut drive).await;
    Tree { top, middle, other, leaf: ids(world, middle).await[0] }
}

/// Fails a last child, and with it its parent.
async fn fail_branch<F: StoreFactory>(world: &World<F>, tree: &Tree) {
    write(world, tree.leaf, failed()).await;
    // One that was retried looks first who is there.
    while world.row(tree.middle).await.state() == RunState::Queued {
        let mut drive = world.claim_run(tree.middle).await;
        drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    }
    assert_eq!(world.row(tree.middle).await.state(), RunState::Failed);
}

async fn listed<F: StoreFactory>(world: &World<F>, filter: RunFilter) -> Vec<RunId> {
    let page = world.store.run_list(filter).await.unwrap();
    page.rows.iter().map(|row| row.run.id).collect()
}

/// Whoever looks for what needs a person, or failed, finds it wherever in a tree it is.
pub async fn a_tree_is_listed_whole_where_children_are_asked_for<F: StoreFactory>(
    world: &World<F>,
) {
    let tree = tree(world).await;
    write(world, tree.leaf, failed()).await;
    let list = async |children, states| {
        let filter = RunFilter { children, states, limit: 10, ..RunFilter::default() };
        let mut runs = listed(world, filter).await;
        runs.sort_unstable();
        runs
    };
    let mut whole = vec![tree.top, tree.middle, tree.other, tree.leaf];
    whole.sort_unstable();
    assert_eq!(list(true, Vec::new()).await, whole);
    assert_eq!(list(false, Vec::new()).await, [tree.top]);
    assert_eq!(list(true, vec![RunState::Failed]).await, [tree.leaf]);
    assert!(list(false, vec![RunState::Failed]).await.is_empty());
}

/// A page of children in one state is as long as any other, however many newer ones are in another state.
pub async fn children_are_listed_by_state<F: StoreFactory>(world: &World<F>) {
    let (parent, _) = family(world, 4, None).await;
    let list = async |states, limit| {
        listed(world, RunFilter { parent: Some(parent), states, limit, ..RunFilter::default() })
            .await
    };
    let newest_first = list(Vec::new(), 10).await;
    write(world, newest_first[3], failed()).await;
    assert_eq!(list(vec![RunState::Failed], 1).await, newest_first[3..]);
    assert_eq!(list(vec![RunState::Failed, RunState::Queued], 10).await, newest_first);
    assert!(list(vec![RunState::Canceled], 10).await.is_empty());
}

/// A run that had ended before the cancel came by is not written, and hides nobody below it.
pub async fn a_cancel_goes_past_a_child_that_has_ended<F: StoreFactory>(world: &World<F>) {
    let tree = tree(world).await;
    fail_branch(world, &tree).await;
    world.input(tree.leaf, RowInput::Retry).await.unwrap();
    let ended = world.row(tree.middle).await;
    world.cancel(tree.top).await;
    while world.recover().await.more {}
    let leaf = world.row(tree.leaf).await;
    assert_eq!(leaf.state(), RunState::Canceled);
    let (request, asked) = (leaf.cancel.unwrap(), world.row(tree.top).await.cancel.unwrap());
    assert_eq!((request.actor, request.reason), (asked.actor, asked.reason));
    assert_eq!(world.row(tree.middle).await, ended);
    assert_eq!(live(world, tree.middle).await, 0);
    assert_ne!(world.row(tree.other).await.cancel, None);
}

/// Cancel goes down a tree from its top: what can end ends, what nobody can explain yet is flagged.
///
/// Covers behaviour 108.
pub async fn a_cancel_is_carried_down_the_tree<F: StoreFactory>(world: &World<F>) {
    world.publish("one", plan(vec![ambiguous("pay")])).await;
    world.publish("middle", plan(vec![run_workflows("one", 3, None)])).await;
    let mut top = world.running(plan(vec![run_workflows("middle", 2, None)])).await;
    spawn(world, &mut top).await;
    let run = top.run().id;
    let middle = ids(world, run).await;
    let mut leaves = Vec::new();
    for parent in &middle {
        let mut drive = world.claim_run(*parent).await;
        spawn(world, &mut drive).await;
        leaves.extend(ids(world, *parent).await);
    }
    let mut open = world.claim_run(leaves[0]).await;
    world.answer(&mut open, unknown()).await;
    world.pass_secs(2).await;
    let mut asked = world.claim_run(leaves[0]).await;
    let unsure = surefoot_kernel_core::ReconcileAnswer::Unknown { why: "nobody knows".to_owned() };
    asked.advance(&world.store).await.unwrap();
    let input = surefoot_kernel_core::Input::Reconciled { step: step("steps.0"), answer: unsure };
    asked.take(&world.store, input).await.unwrap();
    world.cancel(run).await;
    while world.recover().await.more {}
    for run in middle.iter().chain(&leaves[1..]).chain([&run]) {
        let row = world.row(*run).await;
        assert!(row.cancel.is_some(), "{row:?}");
        assert!(row.state() == RunState::Canceled || row.state() == RunState::Running, "{row:?}");
    }
    let flagged = world.row(leaves[0]).await;
    assert_eq!(flagged.state(), RunState::NeedsAttention);
    assert!(flagged.cancel.is_some() && flagged.has_unsettled_effect());
    assert_eq!(live(world, middle[0]).await, 1 + running(world, &leaves[1..3]).await);
    // Nobody comes back to life in a canceled tree.
    let verdict = surefoot_kernel_core::Verdict::NotPerformed;
    world.input(leaves[0], RowInput::Resolve { step: step("steps.0"), verdict }).await.unwrap();
    assert_eq!(world.row(leaves[0]).await.state(), RunState::Canceled);
}

async fn running<F: StoreFactory>(world: &World<F>, runs: &[RunId]) -> u32 {
    let mut count = 0;
    for run in runs {
        count += u32::from(world.row(*run).await.state() == RunState::Running);
    }
    count
}

/// A child is tried again only if everybody above it is not canceled, and lives or may be tried again.
pub async fn a_child_is_not_retried_where_one_above_has_moved_on<F: StoreFactory>(
    world: &World<F>,
) {
    let refused = async |tree: &Tree, why: &str| {
        let commit = world.decided(tree.leaf, RowInput::Retry).await;
        let refused = world.store.run_commit(commit).await;
        assert!(
            matches!(refused, Err(StoreError::ParentMovedOn { parent }) if parent == tree.top),
            "{why}: {refused:?}"
        );
        assert_eq!(world.row(tree.leaf).await.state(), RunState::Failed);
        let detail = world.store.run_detail(tree.leaf).await.unwrap().unwrap();
        assert!(detail.group.unwrap().1, "{why}");
    };
    let canceled = tree(world).await;
    fail_branch(world, &canceled).await;
    world.cancel(canceled.top).await;
    refused(&canceled, "canceled").await;
    let over = tree(world).await;
    fail_branch(world, &over).await;
    end(world, over.other).await;
    refused(&over, "it is about to read").await;
    let mut drive = world.claim_run(over.top).await;
    drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    // Everybody above has failed for it, and may be tried again: from the last one up.
    for run in [over.leaf, over.middle, over.top] {
        world.input(run, RowInput::Retry).await.unwrap();
    }
    fail_branch(world, &over).await;
    write(world, over.top, ended(Value::Null)).await;
    refused(&over, "it has succeeded").await;
}

/// Children of children end at the sixteenth level.
pub async fn a_tree_has_a_bottom<F: StoreFactory>(world: &World<F>) {
    let mut run = world.run(plan(vec![run_workflows("flow", 1, None)])).await;
    for depth in 0..surefoot_kernel_core::CHILD_DEPTH_MAX {
        let mut drive = world.claim_run(run).await;
        assert_eq!(drive.run().origin.depth(), depth);
        spawn(world, &mut drive).await;
        run = ids(world, run).await.remove(0);
    }
    let mut drive = world.claim_run(run).await;
    let command = drive.advance(&world.store).await.unwrap();
    let Some(Command::Spawn(wanted)) = command else { panic!("{command:?}") };
    let refused = drive.spawn(&world.store, wanted).await;
    assert!(matches!(refused, Err(crate::DriveError::Children(ChildrenError::TooDeep { .. }))));
}
