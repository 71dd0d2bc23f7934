//! Lists, numbers, versions and deferred events.

use serde_json::json;
use surefoot_kernel_core::{
    Activate, Commit, End, Event, EventFilter, EventStatus, EventStore, Fact, Failure, LoadRequest,
    Micros, Mode, OperatorStore, Phase, PlanStore, PublishError, RenewRequest, RunFilter, RunState,
    RunStore, SessionReport,
};
use surefoot_store_sqlite::sqlx;
use surefoot_testkit::ClaimRows as _;
use tokio::task::JoinSet;

use crate::schema::raw;
use crate::support::{
    LEASE, World, app, claim, emit, footprint, load, next, order, publish, scope, session,
};

#[tokio::test]
async fn pages_stay_in_their_place_while_runs_are_added() {
    let world = World::published().await;
    for _ in 0..25 {
        world.emit(order()).await;
    }
    let filter = RunFilter { app: Some(app()), limit: 10, ..RunFilter::default() };
    let all = RunFilter { limit: 100, ..filter.clone() };
    let all = world.store.run_list(all).await.unwrap();
    assert_eq!((all.rows.len(), all.next), (25, None));
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = RunFilter { cursor: cursor.clone(), ..filter.clone() };
        let page = world.store.run_list(page).await.unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.run.id));
        world.emit(order()).await;
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let expected: Vec<_> = all.rows.iter().map(|row| row.run.id).collect();
    assert_eq!(seen, expected);
    let bad = RunFilter { cursor: Some("nonsense".to_owned()), ..filter };
    assert!(world.store.run_list(bad).await.is_err());
}

#[tokio::test]
async fn lists_are_filtered() {
    let world = World::published().await;
    let runs = world.claimed(3).await;
    let error = Failure::new("BOOM", "it broke");
    let end = Fact::Ended { end: End::Failed(error), at: world.store.store_now().await.unwrap() };
    world.store.run_commit(Commit::new(&runs[1], &[end])).await.unwrap();
    let by = |states: Vec<RunState>| RunFilter { states, limit: 10, ..RunFilter::default() };
    let failed = world.store.run_list(by(vec![RunState::Failed])).await.unwrap();
    assert_eq!(failed.rows.len(), 1);
    let row = &failed.rows[0];
    assert_eq!((row.run.id, row.version_revision), (runs[1].id, 1));
    assert!(matches!(&row.run.phase, Phase::Failed { error, .. } if error.message == "it broke"));
    let both = world.store.run_list(by(vec![RunState::Running, RunState::Failed])).await.unwrap();
    assert_eq!(both.rows.len(), 3);
    let event = runs[0].origin.event;
    let of_event = RunFilter { event, limit: 10, ..RunFilter::default() };
    assert_eq!(world.store.run_list(of_event).await.unwrap().rows[0].run.id, runs[0].id);
    let other = RunFilter { scope: Some("south".into()), limit: 10, ..RunFilter::default() };
    assert!(world.store.run_list(other).await.unwrap().rows.is_empty());
    let children = RunFilter { parent: Some(runs[0].id), limit: 10, ..RunFilter::default() };
    assert!(world.store.run_list(children).await.unwrap().rows.is_empty());
    let detail = world.store.run_detail(runs[1].id).await.unwrap().unwrap();
    assert_eq!((detail.version_revision, detail.journal.unwrap().len()), (1, 1));
    assert_eq!(detail.event.unwrap().kind, "order.placed");
    assert_eq!(world.store.app_list().await.unwrap(), [app()]);
}

#[tokio::test]
async fn health_counts() {
    let world = World::published().await;
    world.claimed(2).await;
    world.emit(order()).await;
    world.emit(Event::new("nobody.listens", json!({}))).await;
    world.emit(order().deferred()).await;
    let health = world.store.app_health(&app()).await.unwrap();
    let count = |state| health.runs.iter().find(|(of, _)| *of == state).unwrap().1;
    assert_eq!((count(RunState::Running), count(RunState::Queued)), (2, 1));
    assert_eq!(health.due_by_footprint.len(), 1);
    assert_eq!(
        (&*health.due_by_footprint[0].0, health.due_by_footprint[0].1),
        (&*footprint().hash(), 1)
    );
    assert!(health.oldest_due.is_some());
    assert_eq!((health.events_pending, health.events_unmatched), (1, 1));
    assert_eq!(world.store.footprint_list(&app()).await.unwrap(), [footprint()]);
    let report = SessionReport {
        session: session(),
        app: app(),
        name: "host/1".to_owned(),
        mode: Mode::Execute,
        offers: vec![footprint()],
        tree: None,
        slots: 4,
        busy: 2,
        stuck: 0,
        ended: false,
    };
    world.store.session_report(report.clone()).await.unwrap();
    let sessions = world.store.session_list(&app()).await.unwrap();
    assert_eq!((sessions.len(), &*sessions[0].name), (1, "host/1"));
    world.store.session_report(SessionReport { ended: true, ..report }).await.unwrap();
    assert!(world.store.session_list(&app()).await.unwrap().is_empty());
}

/// Covers field fault 164.
#[tokio::test]
async fn empty_lists_are_asked_for_and_answered() {
    let world = World::published().await;
    world.emit(order()).await;
    let nothing = surefoot_kernel_core::ClaimRequest { footprints: Vec::new(), ..claim(5, next()) };
    assert!(world.store.claim_rows(nothing).await.is_empty());
    assert!(world.store.claim_rows(claim(0, next())).await.is_empty());
    let request = RenewRequest { session: session(), runs: Vec::new(), lease: LEASE };
    assert!(world.store.lease_renew(request).await.unwrap().is_empty());
    let elsewhere = "elsewhere".into();
    assert!(world.store.footprint_list(&elsewhere).await.unwrap().is_empty());
    let dispatched = world.store.event_dispatch(&elsewhere, 10).await.unwrap();
    assert_eq!(dispatched, Default::default());
    // And the queue is idle afterwards, not forgotten.
    assert_eq!(world.store.claim_rows(claim(5, next())).await.len(), 1);
    assert!(world.store.claim_rows(claim(5, next())).await.is_empty());
}

/// Covers behaviour 78.
#[tokio::test]
async fn a_deferred_event_keeps_what_it_matched() {
    let world = World::published().await;
    let emission = world.emit(order().deferred()).await;
    assert_eq!((emission.matched, emission.runs.len()), (1, 0));
    let first = world.store.version_list(&app(), &scope(), &"stock".into()).await.unwrap();
    world.store.version_publish(publish("stock")).await.unwrap();
    let dispatched = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(dispatched.dispatched, [emission.event]);
    let claimed = world.store.claim_rows(claim(10, next())).await;
    assert_eq!((claimed.len(), claimed[0].origin.version), (1, first[0].version));
    let again = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(again, Default::default());
}

/// Covers behaviour 81.
/// Covers behaviour 82.
#[tokio::test]
async fn a_dispatch_that_fails_holds_up_nobody_and_ends_in_the_dead_letters() {
    let world = World::published().await;
    let broken = world.emit(order().deferred()).await.event;
    let mut conn = raw(&world.path()).await;
    let spoil = "UPDATE surefoot_delivery SET version = zeroblob(16)";
    sqlx::query(spoil).execute(&mut conn).await.unwrap();
    let fine = world.emit(order().deferred()).await.event;
    let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!((pass.dispatched, pass.failed), (vec![fine], vec![broken]));
    let filter = |status| EventFilter { status: Some(status), limit: 9, ..EventFilter::default() };
    let retrying = world.store.event_list(filter(EventStatus::Retrying)).await.unwrap().rows;
    assert_eq!((retrying[0].event, retrying[0].attempts), (broken, 1));
    assert!(
        retrying[0].error.as_ref().unwrap().contains("workflow `stock` is gone"),
        "{retrying:?}"
    );
    for attempt in 2..=8 {
        assert_eq!(world.store.event_dispatch(&app(), 10).await.unwrap(), Default::default());
        world.pass(Micros::from_secs(300));
        let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
        assert_eq!(pass.failed, [broken], "attempt {attempt}");
    }
    world.pass(Micros::from_secs(3600));
    assert_eq!(world.store.event_dispatch(&app(), 10).await.unwrap(), Default::default());
    let dead = world.store.event_list(filter(EventStatus::DeadLettered)).await.unwrap().rows;
    assert_eq!((dead[0].event, dead[0].attempts), (broken, 8));
}

/// Covers behaviour 61.
/// Covers behaviour 76.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_publish_and_emit_at_once() {
    let world = World::new().await;
    let stores = [world.store.clone(), world.other().await];
    let mut tasks = JoinSet::new();
    for number in 0..10_usize {
        let store = stores[number % 2].clone();
        tasks.spawn(async move { store.version_publish(publish("stock")).await.unwrap().revision });
    }
    let mut revisions = tasks.join_all().await;
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=10).collect::<Vec<u64>>());
    let mut tasks = JoinSet::new();
    for number in 0..10_usize {
        let store = stores[number % 2].clone();
        tasks.spawn(async move { store.event_emit(emit(order().dedupe_key("k"))).await.unwrap() });
    }
    let emissions = tasks.join_all().await;
    assert_eq!(emissions.iter().filter(|emission| emission.new).count(), 1);
    assert!(
        emissions.iter().all(|it| it.event == emissions[0].event && it.runs == emissions[0].runs)
    );
    assert_eq!(emissions[0].runs.len(), 1);
}

/// Covers behaviour 63.
/// Covers behaviour 64.
#[tokio::test]
async fn drafts_change_nothing_and_disabled_triggers_stay_disabled() {
    let world = World::published().await;
    let draft = surefoot_kernel_core::Publish { activate: false, ..publish("stock") };
    let draft = world.store.version_publish(draft).await.unwrap();
    assert_eq!(draft.revision, 2);
    let listed = world.store.workflow_list(&app(), None).await.unwrap();
    assert_eq!((listed[0].active, listed[0].latest), (Some(1), 2));
    let keys = |row: &surefoot_kernel_core::WorkflowRow| {
        row.activations.iter().map(|(key, _, on)| (key.clone(), *on)).collect::<Vec<_>>()
    };
    assert_eq!(keys(&listed[0]), [("start".to_owned(), true), ("order".to_owned(), true)]);
    let activate = Activate {
        app: app(),
        scope: scope(),
        workflow: "stock".into(),
        revision: 2,
        expected: Some(7),
        actor: "mia".to_owned(),
        reason: "better".to_owned(),
    };
    let refused = world.store.version_activate(activate.clone()).await;
    assert!(matches!(
        refused,
        Err(PublishError::NotExpected { expected: Some(7), active: Some(1) })
    ));
    let mut conn = raw(&world.path()).await;
    let disable = "UPDATE surefoot_activation SET enabled = 0 WHERE key = 'order'";
    sqlx::query(disable).execute(&mut conn).await.unwrap();
    let activate = Activate { expected: Some(1), ..activate };
    assert_eq!(world.store.version_activate(activate).await.unwrap().revision, 2);
    world.store.version_publish(publish("stock")).await.unwrap();
    let listed = world.store.workflow_list(&app(), Some(&scope())).await.unwrap();
    assert_eq!(listed[0].active, Some(3));
    assert_eq!(keys(&listed[0]), [("start".to_owned(), true), ("order".to_owned(), false)]);
    assert_eq!(world.emit(order()).await.matched, 0);
    let verbs: Vec<_> = world.store.audit_list(&app(), None, 9).await.unwrap();
    let verbs: Vec<_> = verbs.iter().map(|row| &*row.verb).collect();
    assert_eq!(verbs, ["publish", "activate", "draft", "publish"]);
}

#[tokio::test]
async fn an_unreadable_run_is_named_and_does_not_hold_up_others() {
    let world = World::published().await;
    let bad = world.emit(order()).await.runs[0];
    let good = world.emit(order()).await.runs[0];
    let mut conn = raw(&world.path()).await;
    let spoil = sqlx::query("UPDATE surefoot_run SET cancel = 'not json' WHERE id = ?");
    spoil.bind(bad.to_bytes().to_vec()).execute(&mut conn).await.unwrap();
    let spoil = "UPDATE surefoot_run SET cancel = NULL, deadline = '{' WHERE cancel IS NOT NULL";
    sqlx::query(spoil).execute(&mut conn).await.unwrap();
    let claimed = world.store.claim_rows(claim(10, next())).await;
    assert_eq!(claimed.iter().map(|run| run.id).collect::<Vec<_>>(), [good]);
    let error = world.store.run_load(LoadRequest { run: bad, after: None }).await.unwrap_err();
    assert!(
        matches!(&error, surefoot_kernel_core::StoreError::Corrupt { run, what } if *run == bad && what.contains("deadline")),
        "{error:?}"
    );
    let spoil = "UPDATE surefoot_journal SET facts = '[{\"from_the_future\": 1}]'";
    crate::support::step(&world.store, &claimed[0]).await.unwrap();
    sqlx::query(spoil).execute(&mut conn).await.unwrap();
    assert!(load(&world.store, good).await.journal.is_err());
}

/// A busy worker asks for one run at a time: the unreadable one at the front would take its place each time.
#[tokio::test]
async fn an_unreadable_run_does_not_use_up_a_claim() {
    let world = World::published().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        world.pass(Micros::from_secs(1));
        runs.push(world.emit(order()).await.runs[0]);
    }
    let mut conn = raw(&world.path()).await;
    for bad in &runs[..2] {
        let spoil = sqlx::query("UPDATE surefoot_run SET deadline = '{' WHERE id = ?");
        spoil.bind(bad.to_bytes().to_vec()).execute(&mut conn).await.unwrap();
    }
    for good in &runs[2..] {
        let claimed = world.store.claim_rows(claim(1, next())).await;
        assert_eq!(claimed.iter().map(|run| run.id).collect::<Vec<_>>(), [*good]);
    }
    assert!(world.store.claim_rows(claim(1, next())).await.is_empty());
}

/// Of a tag that very many events have, the runs are found on the way through all of them.
#[tokio::test]
async fn a_tag_that_very_many_events_have_finds_its_runs() {
    let world = World::published().await;
    let tagged = world.emit(order().tag("many").tag("few")).await;
    let bare = world.emit(order()).await;
    let crowd = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5001)
        INSERT INTO surefoot_event (id, app, scope, kind, payload_hash, occurred_at, recorded_at, matched, runs, status, attempts, tags)
        SELECT randomblob(16), app, scope, kind, payload_hash, occurred_at, recorded_at, 0, x'', 'unmatched', 0, '[\"many\"]'
        FROM n, surefoot_event WHERE tags IS NOT NULL";
    sqlx::query(crowd).execute(&mut raw(&world.path()).await).await.unwrap();
    let find = async |tag: &str, states: Vec<RunState>| {
        let tag = Some(tag.to_owned());
        let filter = RunFilter { tag, states, limit: 10, ..RunFilter::default() };
        let rows = world.store.run_list(filter).await.unwrap().rows;
        rows.iter().map(|row| row.run.id).collect::<Vec<_>>()
    };
    for states in [Vec::new(), vec![RunState::Queued, RunState::Failed]] {
        assert_eq!(find("many", states.clone()).await, tagged.runs);
        assert_eq!(find("few", states).await, tagged.runs);
    }
    assert!(find("many", vec![RunState::Failed]).await.is_empty());
    assert!(!bare.runs.is_empty() && find("none", Vec::new()).await.is_empty());
}
