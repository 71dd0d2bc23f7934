//! Many children: whatever the order of their ends, and whatever comes between their creation and its end.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::{
    CHILDREN_MAX, Child, ChildStore as _, Children, ChildrenCreated, ChildrenError, Commit,
    CreateChildren, Input, OperatorStore as _, Phase, Run, RunFilter, RunId, RunState,
    RunStore as _, StoreError, decide_row,
};
use tokio::task::JoinSet;

use super::StoreFactory;
use super::children::{ended, group, ids};
use super::world::{World, cancel, step};
use crate::Drive;
use crate::dice::Dice;
use crate::plans::{plan, pure, run_workflows};

/// What one call may create would take long here: [`the_most_children_end_in_random_order`] does that.
const CROWD: usize = 16_384;
/// Ends that are written at once.
const BATCH: usize = 1_000;

/// A run that this process holds, whose step is about to create children.
async fn parent<F: StoreFactory>(world: &World<F>) -> Drive {
    world.publish("one", plan(vec![pure("a")])).await;
    let mut drive = world.running(plan(vec![run_workflows("one", 1, None)])).await;
    drive.advance(&world.store).await.unwrap();
    drive
}

fn creation(drive: &Drive, count: usize) -> CreateChildren {
    let children = Children::check((0..count).map(|_| Child::new("one", json!({})))).unwrap();
    CreateChildren { before: drive.stamp(), step: step("steps.0"), children, parallel: None }
}

/// All children of a run, page by page.
async fn rows<F: StoreFactory>(world: &World<F>, parent: RunId) -> Vec<Run> {
    let (mut rows, mut cursor) = (Vec::new(), None);
    loop {
        let parent = Some(parent);
        let filter = RunFilter { parent, cursor, limit: 1_000, ..RunFilter::default() };
        let page = world.store.run_list(filter).await.unwrap();
        rows.extend(page.rows.into_iter().map(|row| row.run));
        cursor = page.next;
        if cursor.is_none() {
            return rows;
        }
    }
}

async fn end_in_random_order<F: StoreFactory>(world: &World<F>, count: usize) {
    let mut drive = parent(world).await;
    let run = drive.run().id;
    let created = world.store.children_create(creation(&drive, count)).await.unwrap();
    assert_eq!(created.total as usize, count);
    let spawned = Input::Spawned { step: step("steps.0"), result: Ok(()) };
    drive.take(&world.store, spawned).await.unwrap();
    let waiting = world.row(run).await;
    assert_eq!(waiting.state(), RunState::Waiting);
    let children = rows(world, run).await;
    let order = Dice(count as u64).shuffled(count);
    let mut left = count;
    for batch in order.chunks(BATCH) {
        let mut writes = JoinSet::new();
        for index in batch {
            let store = if index % 2 == 0 { &world.store } else { &world.other }.clone();
            let child = &children[*index];
            let of = child.origin.parent.as_ref().map(|parent| parent.index);
            let commit = Commit::new(child, &[ended(json!(of))]);
            writes.spawn(async move { store.run_commit(commit).await.map(drop).unwrap() });
        }
        writes.join_all().await;
        left -= batch.len();
        let (state, woken) = if left == 0 { (RunState::Queued, 1) } else { (RunState::Waiting, 0) };
        let row = world.row(run).await;
        assert_eq!((row.state(), row.revision), (state, waiting.revision + woken), "{left} left");
    }
    assert!(world.recover().await.woken.is_empty(), "it was woken already");
    let mut drive = world.claim_run(run).await;
    let end = drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    let expected: Vec<usize> = (0..count).collect();
    assert!(matches!(end.phase, Phase::Succeeded { result, .. } if result == json!(expected)));
}

/// Whatever the order in which many children end, only the last one wakes their parent, which reads their results by index.
///
/// Covers field faults 142, 143.
pub async fn many_children_end_in_random_order_and_wake_their_parent_once<F: StoreFactory>(
    world: &World<F>,
) {
    end_in_random_order(world, CROWD).await;
}

/// The same of as many as one call may create.
pub async fn the_most_children_end_in_random_order<F: StoreFactory>(world: &World<F>) {
    end_in_random_order(world, CHILDREN_MAX).await;
}

/// A cancel that comes while children are created: there are none, or all of them, and those are canceled.
///
/// Covers behaviour 108. Covers field fault 140.
pub async fn a_cancel_in_the_middle_of_a_creation_leaves_no_orphan<F: StoreFactory>(
    world: &World<F>,
) {
    for round in 0..20 {
        let drive = parent(world).await;
        let run = drive.run().id;
        let (creation, store) = (creation(&drive, 200), world.other.clone());
        let creates = tokio::spawn(async move { store.children_create(creation).await });
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        let row = world.row(run).await;
        let facts = decide_row(&row, cancel(), world.now().await).unwrap();
        world.store.run_commit(Commit::new(&row, &facts)).await.unwrap();
        let total = match creates.await.unwrap() {
            Ok(created) => {
                assert_eq!(created, ChildrenCreated { new: 200, total: 200 });
                200
            }
            Err(refused) => {
                let is_canceled = matches!(refused, ChildrenError::Store(StoreError::Canceled));
                assert!(is_canceled, "{refused:?}");
                0
            }
        };
        // Its worker is gone.
        world.pass_secs(121).await;
        while world.recover().await.more {}
        assert_eq!(world.row(run).await.state(), RunState::Canceled);
        assert_eq!(ids(world, run).await.len(), total, "all of them or none");
        for child in rows(world, run).await {
            assert_eq!(child.state(), RunState::Canceled, "an orphan: {child:?}");
        }
        assert!(total == 0 || group(world, run).await.live == 0);
    }
    assert_eq!(world.claim().await.len(), 0, "nothing of it is left to work on");
}
