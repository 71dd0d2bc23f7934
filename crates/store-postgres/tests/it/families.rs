//! Children whose ends meet each other, and the park of their parent, in every order.

use serde_json::json;
use surefoot_kernel_core::{
    Child, ChildStore, Children, Commit, CreateChildren, Dependency, End, Fact, GroupRow, Run,
    RunId, RunState, RunStore, Scan, SessionId, StoreError, Timestamp,
};
use surefoot_store_postgres::{PostgresStore, sqlx};
use surefoot_testkit::ClaimRows as _;
use tokio::task::JoinSet;

use crate::support::{World, app, claim, load, next};

/// With a live version of the workflow `stock`, which children run.
async fn world() -> World {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let live = "WITH w AS (INSERT INTO surefoot.workflow (app, scope, key, created_at)
            VALUES ('inventory', 'north', 'stock', 0) RETURNING no)
        INSERT INTO surefoot.version (id, workflow, revision, plan_hash, footprint_hash, created_at,
            author, footprint, budget, plan, source)
        SELECT '05050505-0505-0505-0505-050505050505', no, 1, '', 'f1', 0, '', '{}', '{}', '{}', ''
        FROM w";
    sqlx::query(live).execute(&mut conn).await.unwrap();
    let active = "UPDATE surefoot.workflow SET active = '05050505-0505-0505-0505-050505050505'";
    sqlx::query(active).execute(&mut conn).await.unwrap();
    world
}

/// A run that this process holds, and its children.
async fn family(world: &World, count: usize, parallel: Option<u32>) -> Run {
    let parent = world.claimed(1).await.remove(0);
    let children = (0..count).map(|_| Child::new("stock", json!({})));
    let create = CreateChildren {
        before: parent.stamp(),
        step: "steps.0".into(),
        children: Children::check(children).unwrap(),
        parallel,
    };
    let created = world.store.children_create(create).await.unwrap();
    assert_eq!(created.new, u32::try_from(count).unwrap());
    parent
}

fn park(parent: &Run) -> Commit {
    let step = "steps.0".into();
    let on = Some(Dependency::on_children(&step));
    let at = Timestamp::from_micros(1);
    Commit::new(parent, &[Fact::Parked { step, on, deadline: None, spins: 0, at }])
}

fn end(run: &Run) -> Commit {
    let end = End::Succeeded { result: json!(1), message: None, step: None };
    Commit::new(run, &[Fact::Ended { end, at: Timestamp::from_micros(1) }])
}

async fn group(store: &PostgresStore, parent: RunId) -> GroupRow {
    store.children_groups(parent).await.unwrap().remove(0)
}

/// The last child ends while its parent parks: the parent is awake again, or the next pass of recovery wakes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_last_child_and_the_park_of_its_parent_lose_no_wake() {
    let world = world().await;
    let other = world.other().await;
    for _ in 0..40 {
        let parent = family(&world, 1, None).await;
        let child = world.store.claim_rows(claim(1, next())).await.remove(0);
        let (parked, ended) =
            tokio::join!(world.store.run_commit(park(&parent)), other.run_commit(end(&child)));
        assert_eq!(ended.unwrap().run.state(), RunState::Succeeded);
        parked.unwrap();
        if load(&world.store, parent.id).await.run.state() == RunState::Waiting {
            let woken = world.store.run_recover(Scan { app: app(), limit: 10 }).await.unwrap();
            assert_eq!(woken.woken, [parent.id]);
        }
        let row = load(&world.store, parent.id).await.run;
        assert_eq!(row.state(), RunState::Queued, "{row:?}");
        assert_eq!(group(&world.store, parent.id).await.live, 0);
        // Out of the way of the next round.
        assert_eq!(world.store.claim_rows(claim(1, next())).await[0].id, parent.id);
    }
}

/// Claims and ends children until none is left.
async fn work(store: PostgresStore, who: u8, parent: RunId) -> u32 {
    let mut ended = 0;
    loop {
        let request = surefoot_kernel_core::ClaimRequest {
            session: SessionId::from_bytes([who; 16]),
            ..claim(2, next())
        };
        let claimed = store.claim_rows(request).await;
        if claimed.is_empty() && group(&store, parent).await.live == 0 {
            return ended;
        }
        if claimed.is_empty() {
            // Children that somebody had locked when a sibling ended.
            store.run_recover(Scan { app: app(), limit: 100 }).await.unwrap();
        }
        for child in claimed {
            store.run_commit(end(&child)).await.unwrap();
            ended += 1;
        }
    }
}

/// Many ends of one group at once: each is counted, and lets the next one go.
///
/// Covers field fault 161.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_of_siblings_are_counted_and_let_the_next_go() {
    let world = world().await;
    let parent = family(&world, 120, Some(6)).await;
    world.store.run_commit(park(&parent)).await.unwrap();
    let mut workers = JoinSet::new();
    for who in 0..6 {
        let store = if who % 2 == 0 { world.store.clone() } else { world.other().await };
        workers.spawn(work(store, who, parent.id));
    }
    let ended: u32 = workers.join_all().await.into_iter().sum();
    // The parent is woken by the last child, and may be claimed like one.
    let row = load(&world.store, parent.id).await.run;
    let group = group(&world.store, parent.id).await;
    assert_eq!((group.total, group.live, group.held), (120, 0, 0));
    let woken = u32::from(row.state() != RunState::Queued);
    assert_eq!(ended, 120 + woken, "{row:?}");
    assert_ne!(row.state(), RunState::Waiting, "the wake was lost: {row:?}");
}

/// Two calls for one step, by mistake at the same time: each child exists once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_children_at_the_same_time_are_created_once() {
    let world = world().await;
    let other = world.other().await;
    let parent = world.claimed(1).await.remove(0);
    let create = || CreateChildren {
        before: parent.stamp(),
        step: "steps.0".into(),
        children: Children::check((0..50).map(|_| Child::new("stock", json!({})))).unwrap(),
        parallel: None,
    };
    let (one, two) =
        tokio::join!(world.store.children_create(create()), other.children_create(create()));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.new + two.new, one.total, two.total), (50, 50, 50));
    assert_eq!(group(&world.store, parent.id).await.live, 50);
}

/// A child that somebody has locked does not hold the cancel of its siblings up, and is not left out.
#[tokio::test]
async fn a_cancel_comes_back_to_a_child_that_was_locked() {
    let world = world().await;
    let parent = family(&world, 3, None).await;
    let child = RunId::of_child(&parent, &"steps.0".into(), "1");
    let mut conn = world.database.raw().await;
    sqlx::raw_sql("BEGIN").execute(&mut conn).await.unwrap();
    let lock = sqlx::query("SELECT FROM surefoot.run WHERE id = $1 FOR NO KEY UPDATE");
    let lock = lock.bind(sqlx::types::Uuid::from_bytes(child.to_bytes()));
    lock.execute(&mut conn).await.unwrap();
    let cancel = surefoot_kernel_core::RowInput::Cancel {
        actor: "mia".to_owned(),
        reason: "wrong".to_owned(),
    };
    let facts = surefoot_kernel_core::decide_row(&parent, cancel, Timestamp::from_micros(1));
    world.store.run_commit(Commit::new(&parent, &facts.unwrap())).await.unwrap();
    assert_eq!(group(&world.store, parent.id).await.live, 1, "the others are canceled");
    let scan = || Scan { app: app(), limit: 10 };
    world.store.run_recover(scan()).await.unwrap();
    assert_eq!(load(&world.store, child).await.run.state(), RunState::Queued);
    sqlx::raw_sql("ROLLBACK").execute(&mut conn).await.unwrap();
    assert_eq!(world.store.run_recover(scan()).await.unwrap().finalised, [child]);
    assert_eq!(group(&world.store, parent.id).await.live, 0);
    let late = world.store.run_commit(end(&parent)).await;
    assert!(matches!(late, Err(StoreError::Conflict)), "{late:?}");
}
