//! Commits of runs: many in one statement, and each with an answer of its own.

use serde_json::json;
use sqlx::{Connection, PgConnection};
use surefoot_kernel_core::{
    Commit, End, Fact, RenewRequest, Renewed, RowInput, Run, RunState, RunStore, StoreError,
    decide_row,
};
use surefoot_store_postgres::{PostgresStore, sqlx};
use surefoot_testkit::ClaimRows as _;
use tokio::task::JoinSet;

use crate::support::{LEASE, World, claim, load, next, outcome, session, step};

async fn all(store: &PostgresStore, commits: Vec<Commit>) -> Vec<Result<Run, StoreError>> {
    let mut tasks = JoinSet::new();
    for (index, commit) in commits.into_iter().enumerate() {
        let store = store.clone();
        tasks.spawn(async move { (index, store.run_commit(commit).await) });
    }
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer.map(|committed| committed.run)).collect()
}

fn end(run: &Run, at: surefoot_kernel_core::Timestamp) -> Commit {
    let end = End::Succeeded { result: json!({"of": run.id}), message: None, step: None };
    Commit::new(run, &[Fact::Ended { end, at }])
}

async fn lock(conn: &mut PgConnection, run: &Run) {
    sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
    let id = uuid(run);
    let query = sqlx::query("SELECT FROM surefoot.run WHERE id = $1 FOR NO KEY UPDATE");
    query.bind(id).fetch_one(conn).await.unwrap();
}

fn uuid(run: &Run) -> sqlx::types::Uuid {
    sqlx::types::Uuid::from_bytes(run.id.to_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_many_runs_share_a_batch() {
    let world = World::with(|options| options.committers(1)).await;
    let runs = world.claimed(200).await;
    let before = world.store.commit_stats();
    let answers = all(&world.store, runs.iter().map(|run| outcome(run, json!(1))).collect()).await;
    for (answer, run) in answers.into_iter().zip(&runs) {
        let written = answer.unwrap();
        assert_eq!((written.id, written.seq), (run.id, run.seq + 1));
        let stored = load(&world.store, run.id).await;
        assert_eq!(stored.run, written);
        assert_eq!(stored.journal.unwrap().len(), 1);
    }
    let after = world.store.commit_stats();
    assert_eq!(after.1 - before.1, 200, "each was in one batch");
    assert!(after.0 - before.0 < 100, "{} batches", after.0 - before.0);
}

#[tokio::test]
async fn an_end_keeps_its_result() {
    let world = World::new().await;
    let run = world.claimed(1).await.remove(0);
    let now = world.store.store_now().await.unwrap();
    let ended = world.store.run_commit(end(&run, now)).await.unwrap();
    assert_eq!(ended.run.state(), RunState::Succeeded);
    assert_eq!(load(&world.store, run.id).await.run, ended.run);
}

/// In one batch: a stale generation, a stale revision, a run that is not there, one whose row is locked, and good ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_commit_of_a_batch_has_an_answer_of_its_own() {
    let world = World::with(|options| options.committers(1)).await;
    let runs = world.claimed(5).await;
    let mut fenced = outcome(&runs[0], json!(0));
    fenced.before.generation += 1;
    fenced.after.generation += 1;
    let moved = step(&world.store, &runs[1]).await.unwrap().run;
    let stale = outcome(&runs[1], json!(1));
    let mut nobody = outcome(&runs[2], json!(2));
    nobody.before.run = surefoot_kernel_core::RunId::from_bytes([0xee; 16]);
    nobody.after.id = nobody.before.run;
    let mut conn = world.database.raw().await;
    lock(&mut conn, &runs[3]).await;
    let (store, locked) = (world.store.clone(), outcome(&runs[3], json!(3)));
    let waits = tokio::spawn(async move { store.run_commit(locked).await });
    let good = outcome(&runs[4], json!(4));
    let answers = all(&world.store, vec![fenced, stale, nobody, good]).await;
    assert!(matches!(answers[0], Err(StoreError::LeaseLost)), "{:?}", answers[0]);
    assert!(matches!(answers[1], Err(StoreError::Conflict)), "{:?}", answers[1]);
    assert!(matches!(answers[2], Err(StoreError::LeaseLost)), "{:?}", answers[2]);
    assert!(answers[3].is_ok(), "{:?}", answers[3]);
    assert_eq!(load(&world.store, runs[1].id).await.run, moved);
    assert!(!waits.is_finished());
    sqlx::raw_sql("ROLLBACK").execute(&mut conn).await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().run.seq, runs[3].seq + 1);
}

/// The entries that break no rule of the schema are written, whoever is in the batch with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_culprit_fails_alone() {
    let world = World::with(|options| options.committers(1)).await;
    let runs = world.claimed(64).await;
    let mut commits: Vec<Commit> = runs.iter().map(|run| outcome(run, json!(1))).collect();
    // No text of the database has that character.
    commits[17].journal.as_mut().unwrap().facts = "\0".into();
    let answers = all(&world.store, commits).await;
    for (index, answer) in answers.iter().enumerate() {
        if index == 17 {
            assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
        } else {
            assert!(answer.is_ok(), "{index}: {answer:?}");
        }
    }
    assert_eq!(load(&world.store, runs[17].id).await.run, runs[17]);
}

/// Two commits of one run never meet in one batch: one counts, the other is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_commits_of_one_run_one_counts() {
    let world = World::new().await;
    for run in world.claimed(20).await {
        let answers =
            all(&world.store, vec![outcome(&run, json!(1)), outcome(&run, json!(2))]).await;
        let written: Vec<_> = answers.iter().filter(|answer| answer.is_ok()).collect();
        assert_eq!(written.len(), 1, "{answers:?}");
        assert!(answers.iter().any(|it| matches!(it, Err(StoreError::Conflict))), "{answers:?}");
        let stored = load(&world.store, run.id).await;
        assert_eq!((stored.run.seq, stored.journal.unwrap().len()), (run.seq + 1, 1));
    }
}

/// Renewals and steps write different columns of the same rows: neither undoes the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_under_load_lose_nothing() {
    let world = World::new().await;
    let runs = world.claimed(60).await;
    let stamps: Vec<_> = runs.iter().map(Run::stamp).collect();
    let mut steps = JoinSet::new();
    for run in runs.clone() {
        let store = world.store.clone();
        steps.spawn(async move {
            let mut run = run;
            for _ in 0..20 {
                run = step(&store, &run).await.unwrap().run;
            }
            run
        });
    }
    let mut renewals = 0;
    while !steps.is_empty() && renewals < 1_000 {
        let request = RenewRequest { session: session(), runs: stamps.clone(), lease: LEASE };
        let renewed = world.store.lease_renew(request).await.unwrap();
        assert!(renewed.iter().all(|(_, it)| *it != Renewed::Lost), "{renewed:?}");
        renewals += 1;
        while steps.try_join_next().is_some() {}
    }
    for run in runs {
        let stored = load(&world.store, run.id).await;
        assert_eq!((stored.run.seq, stored.journal.unwrap().len()), (run.seq + 20, 20));
        assert!(stored.run.lease().unwrap().until > run.lease().unwrap().until);
    }
}

/// A renewal need not carry the end of the lease over to the claim index at once; nobody claims before it all the same.
#[tokio::test]
async fn a_renewed_run_is_not_claimed_before_its_lease_ends() {
    let world = World::new().await;
    let run = world.claimed(1).await.remove(0);
    let mut until = run.lease().unwrap().until;
    for _ in 0..4 {
        world.pass(surefoot_kernel_core::Micros::from_secs(50));
        let request = RenewRequest { session: session(), runs: vec![run.stamp()], lease: LEASE };
        let renewed = world.store.lease_renew(request).await.unwrap();
        let [(_, Renewed::Held { until: renewed, .. })] = renewed[..] else {
            panic!("{renewed:?}")
        };
        assert!(renewed > until);
        until = renewed;
        assert!(world.store.claim_rows(claim(1, next())).await.is_empty());
    }
    world.pass(surefoot_kernel_core::Micros::from_secs(119));
    assert!(world.store.claim_rows(claim(1, next())).await.is_empty());
    world.pass(surefoot_kernel_core::Micros::from_secs(1));
    assert_eq!(world.store.claim_rows(claim(1, next())).await[0].generation, 2);
}

/// What an operator does comes alone, and waits for the row.
#[tokio::test]
async fn a_cancel_waits_for_the_row() {
    let world = World::new().await;
    let run = world.claimed(1).await.remove(0);
    let mut conn = world.database.raw().await;
    lock(&mut conn, &run).await;
    let cancel = RowInput::Cancel { actor: "mia".to_owned(), reason: "wrong".to_owned() };
    let now = world.store.store_now().await.unwrap();
    let commit = Commit::new(&run, &decide_row(&run, cancel, now).unwrap());
    let store = world.store.clone();
    let waits = tokio::spawn(async move { store.run_commit(commit).await });
    assert!(world.store.cancel_list(&[run.stamp()]).await.unwrap().is_empty());
    assert!(!waits.is_finished());
    sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
    assert!(waits.await.unwrap().unwrap().run.cancel.is_some());
    assert_eq!(world.store.cancel_list(&[run.stamp()]).await.unwrap(), [run.id]);
    conn.close().await.unwrap();
}
