//! COMMITs of which nobody knows what became: their request is lost, their answer is lost, or they come late, on a real
//! line and with a real server. What is there afterwards is one of the two, and what comes too late changes nothing.

use serde_json::json;
use sqlx::{PgConnection, Row};
use surefoot_kernel_core::{
    Amounts, BoxFuture, Commit, EmitError, End, EventFilter, EventStore, Fact, Locked,
    OperatorStore, PlanStore, PublishError, Run, RunStore, SendSignal, Signal, SignalError,
    StepCharge, StoreError, TakeOverRequest, TxStore, TxWork, Work,
};
use surefoot_store_postgres::{PostgresTx, sqlx};
use surefoot_testkit::ClaimRows as _;
use surefoot_testkit::servers::Fate;

use crate::published::{self, emit, order, publish, published};
use crate::support::{LEASE, World, app, claim, load, next, outcome, scope, session, step};
use crate::wire::{DOUBTS, Wired, begun, caught, settled, until_waiting};

fn is_unknown(error: &StoreError) -> bool {
    matches!(error, StoreError::UnknownOutcome(_))
}

fn take_over(run: &Run) -> TakeOverRequest {
    TakeOverRequest { run: run.id, generation: run.generation, session: session(), lease: LEASE }
}

fn uuid(run: &Run) -> sqlx::types::Uuid {
    sqlx::types::Uuid::from_bytes(run.id.to_bytes())
}

/// What must be there after the takeover: the whole of the commit or nothing of it, and the next step can be recorded.
async fn check_taken(wired: &Wired, before: &Run, taken: &Run, is_there: bool) -> Run {
    let steps = u64::from(is_there);
    assert_eq!((taken.generation, taken.seq), (before.generation + 1, before.seq + steps));
    let stored = load(&wired.store, before.id).await;
    assert_eq!(stored.run, *taken);
    let facts: usize = stored.journal.unwrap().iter().map(|entry| entry.facts.len()).sum();
    assert_eq!(u64::try_from(facts).unwrap(), taken.seq);
    step(&wired.store, taken).await.unwrap().run
}

/// A batch of plain commits is a statement that is a transaction of its own.
///
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_in_doubt_is_there_or_fenced_out() {
    let world = World::new().await;
    let wired = Wired::with(world, |options| options.committers(1)).await;
    for fate in DOUBTS {
        let runs = wired.world.claimed(20).await;
        // The first commit goes alone, and those that come while it waits go together.
        let first = wired.proxy.trap("run/commit_steps", Fate::Delay);
        let doubt = wired.proxy.trap("run/commit_steps", fate);
        let mut commits = Vec::new();
        for run in &runs {
            commits.push(begun(wired.store.run_commit(outcome(run, json!(1)))).await);
            caught(&first).await;
        }
        first.release();
        let mut answers = Vec::new();
        for commit in commits {
            answers.push(commit.await);
        }
        let unknown = answers.iter().filter(|it| it.as_ref().is_err_and(is_unknown)).count();
        assert_eq!((unknown, answers.iter().filter(|it| it.is_ok()).count()), (19, 1), "{fate:?}");
        let mut ended = Vec::new();
        for run in &runs {
            let stored = load(&wired.world.store, run.id).await.run;
            let was_known = stored.revision > run.revision && fate != Fate::LoseAnswer;
            let taken = wired.store.run_take_over(take_over(run)).await.unwrap().unwrap();
            let is_there = was_known || fate == Fate::LoseAnswer;
            ended.push(check_taken(&wired, run, &taken, is_there).await);
        }
        if fate == Fate::ComeLate {
            settled(&doubt).await;
        }
        for run in ended {
            assert_eq!(load(&wired.store, run.id).await.run, run, "{fate:?}: changed afterwards");
        }
    }
}

/// The backend stands in the middle of its COMMIT, and its client is gone: the takeover waits for it, and then sees all
/// that it wrote.
///
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_a_commit_that_is_under_way_in_the_server() {
    let wired = Wired::new().await;
    let mut conn = wired.world.database.raw().await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_advisory_xact_lock_shared(99); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON surefoot.journal
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();";
    sqlx::raw_sql(slow).execute(&mut conn).await.unwrap();
    for _ in 0..3 {
        let run = wired.world.claimed(1).await.remove(0);
        sqlx::raw_sql("SELECT pg_advisory_lock(99)").execute(&mut conn).await.unwrap();
        let gone = wired.proxy.trap("run/commit_steps", Fate::ComeLate);
        gone.release();
        let answer = wired.store.run_commit(outcome(&run, json!(1))).await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        until_waiting(&mut conn, 1).await;
        let (store, request) = (wired.store.clone(), take_over(&run));
        let taking = tokio::spawn(async move { store.run_take_over(request).await });
        until_waiting(&mut conn, 2).await;
        assert!(!taking.is_finished());
        sqlx::raw_sql("SELECT pg_advisory_unlock(99)").execute(&mut conn).await.unwrap();
        let taken = taking.await.unwrap().unwrap().unwrap();
        check_taken(&wired, &run, &taken, true).await;
    }
}

fn charged(run: &Run) -> Commit {
    let amounts = Amounts::of([("mails", 1.0)]).unwrap();
    Commit::new(run, &[Fact::Charged(StepCharge { step: "steps.0".into(), amounts })])
}

async fn used(conn: &mut PgConnection, run: &Run) -> i64 {
    let used = "SELECT used FROM surefoot.root_budget WHERE root = $1 AND dimension = 'mails'";
    let row = sqlx::query(used).bind(uuid(run)).fetch_optional(conn).await.unwrap();
    row.map_or(0, |row| row.get(0))
}

/// Commits that concern budgets share a transaction: its COMMIT is a message of its own, and until it came the locks are
/// held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_commits_in_doubt_is_there_or_not_when_it_is_looked_at() {
    let wired = Wired::new().await;
    let mut conn = wired.world.database.raw().await;
    for fate in DOUBTS {
        let run = wired.world.claimed(1).await.remove(0);
        let doubt = wired.proxy.trap("SELECT; COMMIT", fate);
        let answer = wired.store.run_commit(charged(&run)).await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        let (store, request) = (wired.store.clone(), take_over(&run));
        let taking = tokio::spawn(async move { store.run_take_over(request).await });
        if fate == Fate::ComeLate {
            until_waiting(&mut conn, 1).await;
            settled(&doubt).await;
        }
        let taken = taking.await.unwrap().unwrap().unwrap();
        let is_there = fate != Fate::LoseRequest;
        check_taken(&wired, &run, &taken, is_there).await;
        assert_eq!(used(&mut conn, &run).await, if is_there { 1_000_000 } else { 0 }, "{fate:?}");
    }
}

/// Books an item, and records that.
struct Book;

impl TxWork<PostgresTx> for Book {
    fn work<'a>(&'a mut self, tx: &'a mut PostgresTx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(async move {
            let booked = sqlx::query("INSERT INTO stock VALUES ($1)").bind(uuid(&locked.run));
            if booked.execute(tx).await.is_err() {
                return Work::Rollback;
            }
            Work::Commit(Box::new(outcome(&locked.run, json!("booked"))))
        })
    }
}

async fn booked(conn: &mut PgConnection, run: &Run) -> i64 {
    let count = sqlx::query("SELECT count(*) FROM stock WHERE run = $1").bind(uuid(run));
    count.fetch_one(conn).await.unwrap().get(0)
}

async fn with_stock(conn: &mut PgConnection) {
    sqlx::raw_sql("CREATE TABLE stock (run uuid)").execute(conn).await.unwrap();
}

/// Covers field fault 26.
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transactional_step_in_doubt_is_booked_where_it_is_recorded_and_once() {
    let wired = Wired::new().await;
    let mut conn = wired.world.database.raw().await;
    with_stock(&mut conn).await;
    for fate in DOUBTS {
        let run = wired.world.claimed(1).await.remove(0);
        let doubt = wired.proxy.trap("COMMIT", fate);
        let answer = wired.store.run_transact(run.stamp(), &mut Book).await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        let (store, request) = (wired.store.clone(), take_over(&run));
        let taking = tokio::spawn(async move { store.run_take_over(request).await });
        if fate == Fate::ComeLate {
            until_waiting(&mut conn, 1).await;
            settled(&doubt).await;
        }
        let taken = taking.await.unwrap().unwrap().unwrap();
        let is_there = taken.seq > run.seq;
        assert_eq!(is_there, fate != Fate::LoseRequest);
        assert_eq!(booked(&mut conn, &run).await, i64::from(is_there), "{fate:?}");
        if is_there {
            check_taken(&wired, &run, &taken, true).await;
        } else {
            // Not recorded: it is done again, and then it is there once.
            let again = wired.store.run_transact(taken.stamp(), &mut Book).await.unwrap().unwrap();
            assert_eq!((again.run.seq, booked(&mut conn, &run).await), (run.seq + 1, 1));
        }
        assert_eq!(wired.store.lent(), (0, 0));
    }
}

/// The work fails since its connection is gone: that is the store's word, and not the action's, or the run would fail for
/// good at each restart of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transactional_step_that_loses_its_connection_has_not_failed() {
    let wired = Wired::new().await;
    let mut conn = wired.world.database.raw().await;
    with_stock(&mut conn).await;
    let run = wired.world.claimed(1).await.remove(0);
    for fate in [Fate::LoseRequest, Fate::LoseAnswer] {
        let lost = wired.proxy.trap("INSERT INTO stock", fate);
        let answer = wired.store.run_transact(run.stamp(), &mut Book).await;
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        assert_eq!((lost.caught(), booked(&mut conn, &run).await), (1, 0));
    }
    // An error of the statement itself is the action's own.
    let refused = wired.proxy.trap("INSERT INTO stock", Fate::Fail("23505"));
    assert_eq!(wired.store.run_transact(run.stamp(), &mut Book).await.unwrap(), None);
    assert_eq!(refused.caught(), 1);
    assert!(wired.store.run_transact(run.stamp(), &mut Book).await.unwrap().is_some());
    assert_eq!((booked(&mut conn, &run).await, wired.store.lent()), (1, (0, 0)));
}

/// The event has an id of its own before it is recorded: emitting it again finds it.
///
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_in_doubt_is_found_by_its_id_and_recorded_once() {
    let wired = Wired::of(published().await).await;
    for (count, fate) in (1..).zip(DOUBTS) {
        let event = emit(order());
        let doubt = wired.proxy.trap("event/emit", fate);
        let answer = wired.store.event_emit(event.clone()).await;
        let is_lost = |error: &EmitError| matches!(error, EmitError::Store(it) if is_unknown(it));
        assert!(answer.as_ref().is_err_and(is_lost), "{answer:?}");
        let again = wired.store.event_emit(event.clone()).await.unwrap();
        assert_eq!((again.event, again.runs.len()), (event.id, 1));
        assert_eq!(again.new, fate != Fate::LoseAnswer, "{fate:?}");
        assert!(again.same_payload);
        if fate == Fate::ComeLate {
            settled(&doubt).await;
        }
        let all = EventFilter { limit: 1_000, ..EventFilter::default() };
        assert_eq!(wired.store.event_list(all).await.unwrap().rows.len(), count, "{fate:?}");
        let runs = wired.store.claim_rows(published::claim(10)).await;
        assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), again.runs, "{fate:?}");
    }
}

/// What an application writes and emits in one transaction is there with the event or not at all.
///
/// Covers field fault 68.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_a_transaction_in_doubt_is_there_where_the_rest_of_it_is() {
    let wired = Wired::of(published().await).await;
    let mut conn = wired.world.database.raw().await;
    with_stock(&mut conn).await;
    for fate in DOUBTS {
        let event = emit(order());
        let id = sqlx::types::Uuid::from_bytes(event.id.to_bytes());
        let mut tx = wired.store.begin().await.unwrap();
        sqlx::query("INSERT INTO stock VALUES ($1)").bind(id).execute(&mut *tx).await.unwrap();
        let emission = wired.store.event_emit_in(&mut tx, event.clone()).await.unwrap();
        assert!(emission.new);
        let doubt = wired.proxy.trap("COMMIT", fate);
        let answer = tx.commit().await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        if fate == Fate::ComeLate {
            settled(&doubt).await;
        }
        let row = sqlx::query("SELECT count(*) FROM stock WHERE run = $1").bind(id);
        let rows: i64 = row.fetch_one(&mut conn).await.unwrap().get(0);
        let again = wired.store.event_emit(event).await.unwrap();
        assert_eq!(
            (rows, again.new),
            if fate == Fate::LoseRequest { (0, true) } else { (1, false) }
        );
        assert_eq!(wired.store.claim_rows(published::claim(10)).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_in_doubt_is_found_by_its_version() {
    let wired = Wired::new().await;
    for (revision, fate) in (1..).zip(DOUBTS) {
        let version = publish("stock");
        let doubt = wired.proxy.trap("SELECT; COMMIT", fate);
        let answer = wired.store.version_publish(version.clone()).await;
        let is_lost =
            |error: &PublishError| matches!(error, PublishError::Store(it) if is_unknown(it));
        assert!(answer.as_ref().is_err_and(is_lost), "{answer:?}");
        let (store, same) = (wired.store.clone(), version.clone());
        let again = tokio::spawn(async move { store.version_publish(same).await });
        if fate == Fate::ComeLate {
            until_waiting(&mut wired.world.database.raw().await, 1).await;
            settled(&doubt).await;
        }
        let published = again.await.unwrap().unwrap();
        assert_eq!(
            (published.version, published.revision),
            (version.version, revision),
            "{fate:?}"
        );
        let (app, scope, workflow) = (app(), scope(), "stock".into());
        let all = wired.store.version_list(&app, &scope, &workflow).await.unwrap();
        assert_eq!(u64::try_from(all.len()).unwrap(), revision, "{fate:?}");
    }
}

/// A claim whose answer was lost is found again by its nonce: it takes no other runs, also where the first one is still
/// under way.
///
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_in_doubt_that_is_made_again_takes_what_it_took() {
    for fate in DOUBTS {
        let wired = Wired::of(published().await).await;
        for _ in 0..6 {
            wired.store.event_emit(emit(order())).await.unwrap();
        }
        let request = published::claim(2);
        let doubt = wired.proxy.trap("SELECT; COMMIT", fate);
        let answer = wired.store.run_claim(request.clone()).await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        let (store, same) = (wired.store.clone(), request.clone());
        let again = tokio::spawn(async move { store.claim_rows(same).await });
        if fate == Fate::ComeLate {
            until_waiting(&mut wired.world.database.raw().await, 1).await;
            settled(&doubt).await;
        }
        let mut claimed = again.await.unwrap();
        claimed.sort_by_key(|run| run.id);
        assert_eq!(claimed.len(), 2, "{fate:?}");
        let mut third = wired.store.claim_rows(request).await;
        third.sort_by_key(|run| run.id);
        assert_eq!(third, claimed, "{fate:?}");
        assert!(claimed.iter().all(|run| (run.generation, run.attempt) == (1, 1)));
        // The others are free for other claims.
        assert_eq!(wired.store.claim_rows(published::claim(10)).await.len(), 4, "{fate:?}");
    }
}

/// The takeover itself may be in doubt: it is made again, and raises the generation once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_in_doubt_is_made_again_and_counts_once() {
    let wired = Wired::new().await;
    for fate in DOUBTS {
        let run = wired.world.claimed(1).await.remove(0);
        let doubt = wired.proxy.trap("SELECT; COMMIT", fate);
        let answer = wired.store.run_take_over(take_over(&run)).await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        let (store, request) = (wired.store.clone(), take_over(&run));
        let again = tokio::spawn(async move { store.run_take_over(request).await });
        if fate == Fate::ComeLate {
            until_waiting(&mut wired.world.database.raw().await, 1).await;
            settled(&doubt).await;
        }
        let taken = again.await.unwrap().unwrap().unwrap();
        check_taken(&wired, &run, &taken, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_in_doubt_is_sent_again_and_is_one() {
    let wired = Wired::new().await;
    for (nth, fate) in (0..).zip(DOUBTS) {
        let signal = Signal::new("approval", format!("{nth}")).check().unwrap();
        let send = SendSignal { app: app(), scope: Some(scope()), signal };
        let doubt = wired.proxy.trap("SELECT; COMMIT", fate);
        let answer = wired.store.signal_send(send.clone()).await;
        let is_lost =
            |error: &SignalError| matches!(error, SignalError::Store(it) if is_unknown(it));
        assert!(answer.as_ref().is_err_and(is_lost), "{answer:?}");
        let store = wired.store.clone();
        let again = tokio::spawn(async move { store.signal_send(send).await });
        if fate == Fate::ComeLate {
            until_waiting(&mut wired.world.database.raw().await, 1).await;
            settled(&doubt).await;
        }
        assert_eq!(again.await.unwrap().unwrap().new, fate == Fate::LoseRequest, "{fate:?}");
    }
}

/// The end of a run is final also where its answer was lost; nobody takes it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_in_doubt_is_an_end_or_none() {
    let wired = Wired::new().await;
    for fate in DOUBTS {
        let run = wired.world.claimed(1).await.remove(0);
        let at = wired.store.store_now().await.unwrap();
        let end = End::Succeeded { result: json!({"of": run.id}), message: None, step: None };
        let doubt = wired.proxy.trap("run/commit_moves", fate);
        let answer = wired.store.run_commit(Commit::new(&run, &[Fact::Ended { end, at }])).await;
        assert!(answer.as_ref().is_err_and(is_unknown), "{answer:?}");
        let taken = wired.store.run_take_over(take_over(&run)).await.unwrap().unwrap();
        if fate == Fate::ComeLate {
            settled(&doubt).await;
        }
        assert_eq!(taken.state().is_terminal(), fate == Fate::LoseAnswer, "{fate:?}");
        assert_eq!(load(&wired.store, run.id).await.run, taken, "{fate:?}");
    }
}

/// Connections that were lost while they were idle: whatever begins with a read is done on others, and what is written at
/// once says that it is in doubt. An event in doubt is found again by its id.
///
/// Covers field fault 66.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_were_lost_while_idle_repeat_nothing() {
    let wired = Wired::of(published().await).await;
    let mut run = wired.world.claimed(1).await.remove(0);
    for _ in 0..5 {
        run = match step(&wired.store, &run).await {
            Ok(committed) => committed.run,
            Err(error) => {
                assert!(is_unknown(&error), "{error:?}");
                wired.store.run_take_over(take_over(&run)).await.unwrap().unwrap()
            }
        };
        let event = emit(order());
        if let Err(error) = wired.store.event_emit(event.clone()).await {
            assert!(matches!(&error, EmitError::Store(error) if is_unknown(error)), "{error:?}");
            wired.store.event_emit(event).await.unwrap();
        }
        assert_eq!(wired.store.claim_rows(published::claim(5)).await.len(), 1);
        wired.proxy.cut();
    }
    let stored = load(&wired.world.store, run.id).await;
    assert_eq!(stored.journal.unwrap().len(), usize::try_from(stored.run.seq).unwrap());
    assert!(wired.store.claim_rows(claim(1, next())).await.is_empty());
}
