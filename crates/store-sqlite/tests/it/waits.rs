//! Waits: signals before and after, deadlines to the microsecond, and recovery.

use std::collections::HashSet;
use surefoot_testkit::ClaimRows as _;

use serde_json::json;
use surefoot_kernel_core::{
    Commit, Dependency, EventStore, Fact, Micros, OperatorStore, Phase, Recovered, RowInput, Run,
    RunState, RunStore, Scan, SendSignal, Signal, Timestamp, TxStore, Wake, decide_row,
};

use crate::support::{LEASE, World, app, claim, load, next, outcome, scope};

fn park(run: &Run, on: Option<Dependency>, deadline: Option<Timestamp>) -> Commit {
    let at = run.started_at.unwrap();
    let step = "steps.0".into();
    Commit::new(run, &[Fact::Parked { step, on, deadline, spins: 0, at }])
}

fn approval(key: &str) -> Dependency {
    Dependency::on("approval", key)
}

fn send(key: &str) -> SendSignal {
    let signal = Signal::new("approval", key).data(json!({"by": "mia"})).check().unwrap();
    SendSignal { app: app(), scope: Some(scope()), signal }
}

fn scan(limit: u32) -> Scan {
    Scan { app: app(), limit }
}

/// Covers behaviour 143.
#[tokio::test]
async fn a_signal_wakes_exactly_the_runs_that_wait_on_it() {
    let world = World::published().await;
    let runs = world.claimed(4).await;
    world.store.run_commit(park(&runs[0], Some(approval("7")), None)).await.unwrap();
    world.store.run_commit(park(&runs[1], Some(approval("8")), None)).await.unwrap();
    world.store.run_commit(park(&runs[2], Some(approval("7").app_wide()), None)).await.unwrap();
    world.store.run_commit(park(&runs[3], Some(approval("7")), None)).await.unwrap();
    let sent = world.store.signal_send(send("7")).await.unwrap();
    let mut both = vec![runs[0].id, runs[3].id];
    both.sort_unstable();
    assert_eq!((sent.new, sent.woken), (true, both));
    let again = world.store.signal_send(send("7")).await.unwrap();
    assert_eq!((again.new, again.woken.len()), (false, 0));
    let wide = SendSignal { scope: None, ..send("7") };
    assert_eq!(world.store.signal_send(wide).await.unwrap().woken, [runs[2].id]);
    let woken = load(&world.store, runs[0].id).await.run;
    assert_eq!(woken.state(), RunState::Queued);
    assert_eq!(woken.resume.unwrap().wake, Wake::Signal(json!({"by": "mia"})));
    assert_eq!(load(&world.store, runs[1].id).await.run.state(), RunState::Waiting);
}

/// Covers behaviour 144.
/// Covers field fault 29.
#[tokio::test]
async fn a_park_on_a_signal_that_came_before_wakes_at_once() {
    let world = World::published().await;
    let run = world.claimed(1).await.remove(0);
    assert!(world.store.signal_send(send("7")).await.unwrap().woken.is_empty());
    let committed = world.store.run_commit(park(&run, Some(approval("7")), None)).await.unwrap();
    assert_eq!(committed.run.state(), RunState::Queued);
    assert_eq!(committed.run.revision, run.revision + 1);
    assert_eq!(load(&world.store, run.id).await.run, committed.run);
    assert_eq!(world.store.signal_list(&app(), None, 10).await.unwrap().len(), 1);

    // The signal is spent by the outcome of the step that it woke, not by the wake.
    let again = world.store.claim_rows(claim(1, next())).await.remove(0);
    assert_eq!(again.resume.as_ref().unwrap().spins, 1);
    assert_eq!(world.store.signal_list(&app(), None, 10).await.unwrap().len(), 1);
    world.store.run_commit(outcome(&again, json!(null))).await.unwrap();
    assert!(world.store.signal_list(&app(), None, 10).await.unwrap().is_empty());
}

/// Covers behaviour 149.
/// Covers field fault 165.
#[tokio::test]
async fn a_deadline_wakes_at_its_microsecond_and_not_before() {
    let world = World::published().await;
    let run = world.claimed(1).await.remove(0);
    let deadline = world.store.store_now().await.unwrap().plus(Micros::from_secs(3600));
    world.store.run_commit(park(&run, None, Some(deadline))).await.unwrap();
    assert_eq!(world.store.run_recover(scan(10)).await.unwrap(), Recovered::default());
    let stored = load(&world.store, run.id).await.run;
    let early = Timestamp::from_micros(deadline.micros() - 1);
    let wake = || RowInput::Wake { wake: Wake::Deadline, at_once: false };
    assert!(decide_row(&stored, wake(), early).is_err());
    assert!(decide_row(&stored, wake(), deadline).is_ok());
    let Phase::Waiting(wait) = &stored.phase else { panic!("{stored:?}") };
    assert_eq!(wait.deadline, Some(deadline), "not a microsecond is lost");

    world.pass(Micros::from_secs(3600));
    let restarted = world.other().await;
    assert_eq!(restarted.run_recover(scan(10)).await.unwrap().woken, [run.id]);
    assert_eq!(restarted.run_recover(scan(10)).await.unwrap(), Recovered::default());
    let resumed = world.store.claim_rows(claim(1, next())).await.remove(0);
    assert_eq!((resumed.generation, resumed.resume.unwrap().wake), (2, Wake::Deadline));
}

/// Covers behaviour 148.
#[tokio::test]
async fn more_runs_than_one_signal_wakes_are_woken_by_the_scan() {
    let world = World::published().await;
    let mut runs = world.claimed(600).await;
    runs.extend(world.claimed(600).await);
    let parks = runs.iter().map(|run| park(run, Some(approval("7")), None));
    let mut parked = tokio::task::JoinSet::new();
    for park in parks {
        let store = world.store.clone();
        parked.spawn(async move { store.run_commit(park).await.unwrap() });
    }
    parked.join_all().await;
    let sent = world.store.signal_send(send("7")).await.unwrap();
    assert_eq!(sent.woken.len(), 1_000);
    assert!(sent.woken.is_sorted());
    let first = world.store.run_recover(scan(150)).await.unwrap();
    assert_eq!((first.woken.len(), first.more), (150, true));
    let second = world.store.run_recover(scan(150)).await.unwrap();
    assert_eq!((second.woken.len(), second.more), (50, false));
    assert_eq!(world.store.run_recover(scan(150)).await.unwrap(), Recovered::default());
    let all: HashSet<_> = sent.woken.iter().chain(&first.woken).chain(&second.woken).collect();
    assert_eq!(all.len(), 1_200, "each once");
}

#[tokio::test]
async fn a_cancel_whose_worker_is_gone_is_finalised() {
    let world = World::published().await;
    let runs = world.claimed(2).await;
    let now = world.store.store_now().await.unwrap();
    let cancel = RowInput::Cancel { actor: "mia".to_owned(), reason: "wrong".to_owned() };
    let facts = decide_row(&runs[0], cancel, now).unwrap();
    world.store.run_commit(Commit::new(&runs[0], &facts)).await.unwrap();
    assert_eq!(world.store.run_recover(scan(10)).await.unwrap(), Recovered::default());
    world.pass(LEASE);
    // A claim leaves the canceled run to recovery, and takes the other one.
    let claimed = world.store.claim_rows(claim(10, next())).await;
    assert_eq!(claimed.iter().map(|run| run.id).collect::<Vec<_>>(), [runs[1].id]);
    assert_eq!(world.store.run_recover(scan(10)).await.unwrap().finalised, [runs[0].id]);
    let stored = load(&world.store, runs[0].id).await.run;
    assert_eq!((stored.state(), stored.generation), (RunState::Canceled, 2));
}

#[tokio::test]
async fn a_signal_inside_a_transaction_is_as_good_as_it() {
    let world = World::published().await;
    let run = world.claimed(1).await.remove(0);
    world.store.run_commit(park(&run, Some(approval("7")), None)).await.unwrap();
    let mut tx = world.store.begin().await.unwrap();
    let sent = world.store.signal_send_in(&mut tx, send("7")).await.unwrap();
    assert_eq!(sent.woken, [run.id]);
    tx.rollback().await;
    assert_eq!(load(&world.store, run.id).await.run.state(), RunState::Waiting);
    let mut tx = world.store.begin().await.unwrap();
    assert!(world.store.signal_send_in(&mut tx, send("7")).await.unwrap().new);
    tx.commit().await.unwrap();
    assert_eq!(load(&world.store, run.id).await.run.state(), RunState::Queued);
}
