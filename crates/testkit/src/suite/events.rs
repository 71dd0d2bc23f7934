//! Events: what is recorded, what it starts, and what a repeat is.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;

use serde_json::json;
use surefoot_kernel_core::{
    App, Eager, Emit, Event, EventFilter, EventStatus, EventStore as _, Lease, LoadRequest, Mode,
    OperatorStore as _, PlanStore as _, Plans, Publish, RowInput, Run, RunFilter, RunId, RunState,
    RunStore as _, Scope, Stored, Timestamp, WorkflowKey,
};

use super::StoreFactory;
use super::runs::as_the_core_says;
use super::world::{LEASE, World, app, scope, succeeded};
use crate::plans::{plan, pure, triggered};

const LOW: &str = "stock.low";

fn listening() -> surefoot_kernel_core::plan::Plan {
    triggered(plan(vec![pure("a")]), "low", LOW)
}

fn low() -> Event {
    Event::new(LOW, json!({ "item": "bolt" }))
}

/// Covers behaviour 72.
pub async fn an_event_starts_one_run_per_enabled_activation<F: StoreFactory>(world: &World<F>) {
    for key in ["a", "b", "c"] {
        world.publish(key, listening()).await;
    }
    world.publish("deaf", triggered(plan(vec![pure("a")]), "high", "stock.high")).await;
    world.publish("twice", triggered(listening(), "low2", LOW)).await;
    let emission = world.emit(low()).await;
    assert_eq!((emission.matched, emission.runs.len(), emission.new), (5, 5, true));
    let mut started = Vec::new();
    for run in &emission.runs {
        let run = world.row(*run).await;
        assert_eq!(run.origin.event, Some(emission.event));
        assert_eq!((run.origin.mode, run.state()), (Mode::Execute, RunState::Queued));
        assert_eq!((run.origin.root, run.origin.parent.as_ref()), (run.id, None));
        started.push((run.origin.workflow.to_string(), run.origin.trigger.clone().unwrap()));
    }
    started.sort();
    let expected = [("a", "low"), ("b", "low"), ("c", "low"), ("twice", "low"), ("twice", "low2")];
    assert_eq!(started, expected.map(|(key, kind)| (key.to_owned(), kind.to_owned())));
}

/// Covers behaviour 73.
/// Covers behaviour 180.
pub async fn an_event_that_nobody_listens_to_is_recorded_and_listed<F: StoreFactory>(
    world: &World<F>,
) {
    for event in [low(), low().deferred()] {
        let emission = world.emit(event).await;
        assert_eq!((emission.matched, emission.runs.len(), emission.new), (0, 0, true));
    }
    world.publish("late", listening()).await;
    assert!(world.store.event_dispatch(&app(), 10).await.unwrap().dispatched.is_empty());
    let status = Some(EventStatus::Unmatched);
    let filter = EventFilter { app: Some(app()), status, limit: 10, ..EventFilter::default() };
    let listed = world.store.event_list(filter).await.unwrap();
    assert_eq!(listed.rows.len(), 2);
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!((health.events_unmatched, health.events_pending), (2, 0));
}

/// Covers behaviour 74.
/// Covers field fault 66.
pub async fn a_repeated_key_records_nothing_and_returns_the_first_runs<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("flow", listening()).await;
    let first = world.emit(low().dedupe_key("bolt:1")).await;
    assert!(first.new && first.same_payload);
    world.publish("second", listening()).await;
    world.pass_secs(400 * 86_400).await;
    let again = world.emit(low().dedupe_key("bolt:1")).await;
    assert_eq!((again.event, &again.runs, again.matched), (first.event, &first.runs, 1));
    assert!(!again.new && again.same_payload && again.started.is_empty());
    let other = Event::new(LOW, json!({ "item": "nut" })).dedupe_key("bolt:1");
    let other = world.emit(other).await;
    assert_eq!((other.event, other.new, other.same_payload), (first.event, false, false));
    assert_eq!(world.emit(low()).await.runs.len(), 2, "an event without a key is always new");
}

/// Covers behaviour 75.
/// Covers field fault 93.
pub async fn keys_are_unique_per_app_scope_and_type_only<F: StoreFactory>(world: &World<F>) {
    let long = "k".repeat(500);
    let awkward = ["7", "7%20", "a/b", "a b", "é", "e\u{301}", "😀", "\u{202e}rtl", "'; --", &long];
    let mut events = BTreeSet::new();
    let mut recorded = 0;
    let places = [("a", "b"), ("a", "b/c"), ("a/b", "c"), ("a", ""), ("A", "b")];
    for (app, scope) in places {
        for kind in ["low", "low:x"] {
            for key in awkward.into_iter().chain(["x:7"]) {
                let emit = world.emission(Event::new(kind, json!({})).dedupe_key(key));
                let (app, scope) = (App::from(app), Scope::from(scope));
                let emission = world.store.event_emit(Emit { app, scope, ..emit }).await.unwrap();
                assert!(emission.new, "{key:?} was taken in another place");
                events.insert(emission.event);
                recorded += 1;
            }
        }
    }
    assert_eq!(events.len(), recorded);
}

/// Covers behaviour 76.
/// Covers field fault 19.
pub async fn two_processes_that_emit_one_key_at_once_record_one_event<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("flow", listening()).await;
    for round in 0..10 {
        let mut emits = tokio::task::JoinSet::new();
        for process in 0..8 {
            let store = if process % 2 == 0 { world.store.clone() } else { world.other.clone() };
            let emit = world.emission(low().dedupe_key(format!("bolt:{round}")));
            emits.spawn(async move { store.event_emit(emit).await.unwrap() });
        }
        let emissions = emits.join_all().await;
        assert_eq!(emissions.iter().filter(|emission| emission.new).count(), 1);
        assert!(emissions.windows(2).all(|pair| pair[0].event == pair[1].event));
        assert!(emissions.iter().all(|emission| emission.runs == emissions[0].runs));
        assert_eq!(emissions[0].runs.len(), 1);
    }
    assert_eq!(world.claim().await.len(), 10);
}

/// A store may record many in one go: what one of them is, is its own.
pub async fn of_events_emitted_at_once_each_gets_its_own_answer<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let first = world.emit(low().dedupe_key("old")).await;
    let mut emits = tokio::task::JoinSet::new();
    for index in 0..100_u32 {
        let event = match index % 5 {
            0 => low(),
            1 => low().dedupe_key("old"),
            2 => Event::new("stock.unheard", json!({ "index": index })),
            3 => low().deferred(),
            _ => low().dedupe_key(format!("new:{}", index % 2)),
        };
        let (store, emit) = (world.store.clone(), world.emission(event));
        emits.spawn(async move { (index, emit.id, store.event_emit(emit).await.unwrap()) });
    }
    let mut keyed = Vec::new();
    for (index, id, emission) in emits.join_all().await {
        let said = (emission.new, emission.matched, emission.runs.len());
        match index % 5 {
            0 => assert_eq!((said, emission.event), ((true, 1, 1), id)),
            1 => assert_eq!((said, &emission.runs), ((false, 1, 1), &first.runs)),
            2 => assert_eq!((said, emission.event), ((true, 0, 0), id)),
            3 => assert_eq!((said, emission.event), ((true, 1, 0), id)),
            _ => keyed.push(emission),
        }
    }
    assert_eq!(keyed.iter().filter(|emission| emission.new).count(), 2);
    let mut dispatched = 0;
    loop {
        let pass = world.store.event_dispatch(&app(), 100).await.unwrap();
        dispatched += pass.dispatched.len();
        if !pass.more {
            break;
        }
    }
    assert_eq!(dispatched, 20);
    let claimed: BTreeSet<RunId> = world.claim().await.iter().map(|run| run.id).collect();
    assert_eq!(claimed.len(), 1 + 20 + 20 + 2);
    assert!(keyed.iter().all(|emission| claimed.contains(&emission.runs[0])));
}

/// An emit in doubt is sent again under its own id, with or without a key.
///
/// Covers field fault 66.
pub async fn an_event_is_found_again_by_its_id<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    for event in [low(), low().dedupe_key("bolt:1"), low().deferred()] {
        let emit = world.emission(event);
        let first = world.store.event_emit(emit.clone()).await.unwrap();
        let again = world.other.event_emit(emit).await.unwrap();
        assert_eq!((first.event, &first.runs), (again.event, &again.runs));
        assert!(first.new && !again.new && again.same_payload);
    }
    assert_eq!(world.claim().await.len(), 2, "two now, one deferred");
}

/// Covers behaviour 80.
pub async fn an_emitters_authorization_wins_over_the_activations<F: StoreFactory>(
    world: &World<F>,
) {
    let authorization = Some(json!({ "actor": { "name": "fallback" } }));
    let publish = Publish { authorization, ..world.publication("flow", listening()) };
    world.store.version_publish(publish).await.unwrap();
    let named = json!({ "name": "ada", "roles": ["buyer"] });
    for (given, actor) in [
        (None, Some(json!({ "name": "fallback" }))),
        (Some(json!({})), Some(json!({ "name": "fallback" }))),
        (Some(json!(null)), Some(json!({ "name": "fallback" }))),
        (Some(json!({ "actor": named })), Some(named)),
        (Some(json!({ "actor": "job:restock" })), Some(json!("job:restock"))),
        (Some(json!({ "user": "root" })), None),
        (Some(json!({ "actor": "" })), None),
        (Some(json!({ "actor": 7 })), None),
        (Some(json!("root")), None),
    ] {
        let event = match given.clone() {
            Some(given) => low().authorization(given),
            None => low(),
        };
        let run = world.emit(event).await.runs[0];
        let invocation = world.stored(run).await.invocation.unwrap();
        assert_eq!(invocation.actor, actor, "{given:?}");
    }
    let publish = world.publication("bare", triggered(plan(vec![pure("a")]), "high", "high"));
    world.store.version_publish(publish).await.unwrap();
    let run = world.emit(Event::new("high", json!({}))).await.runs[0];
    assert_eq!(world.stored(run).await.invocation.unwrap().actor, None);
}

/// Covers behaviour 86.
/// Covers behaviour 45.
pub async fn an_event_keeps_when_it_happened<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let before = world.now().await;
    let run = world.emit(low()).await.runs[0];
    let row = world.row(run).await;
    assert!(before <= row.origin.occurred_at && row.origin.occurred_at <= world.now().await);
    assert!(before <= row.origin.created_at && row.origin.created_at <= world.now().await);
    for at in [1_i64, 1_700_000_000_123_456, 4_102_444_800_000_001, -5] {
        let at = Timestamp::from_micros(at);
        let emission = world.emit(low().occurred_at(at)).await;
        let row = world.row(emission.runs[0]).await;
        assert_eq!(row.origin.occurred_at, at);
        assert!(row.origin.created_at >= before, "a run is ready when it is created, not before");
        let listed = world.store.run_detail(row.id).await.unwrap().unwrap().event.unwrap();
        assert_eq!((listed.occurred_at, listed.event), (at, emission.event));
    }
}

/// Covers behaviour 79.
pub async fn a_target_restricts_an_event_to_one_workflow<F: StoreFactory>(world: &World<F>) {
    world.publish("a", listening()).await;
    world.publish("b", listening()).await;
    let now = world.emit(low().target("b")).await;
    assert_eq!((now.matched, now.runs.len()), (1, 1));
    assert_eq!(world.row(now.runs[0]).await.origin.workflow, WorkflowKey::from("b"));
    assert_eq!(world.emit(low().target("c")).await.matched, 0);
    let later = world.emit(low().target("a").deferred()).await;
    assert_eq!((later.matched, later.runs.len()), (1, 0));
    world.store.event_dispatch(&app(), 10).await.unwrap();
    let filter = RunFilter { event: Some(later.event), limit: 10, ..Default::default() };
    let runs = world.store.run_list(filter).await.unwrap().rows;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].run.origin.workflow, WorkflowKey::from("a"));
}

/// The activation `start` matches only an event whose target names its workflow.
pub async fn a_start_reaches_its_workflow_only<F: StoreFactory>(world: &World<F>) {
    world.publish("a", plan(vec![pure("a")])).await;
    world.publish("b", plan(vec![pure("a")])).await;
    let emission = world.emit(Event::start("a", json!({ "n": 1 }))).await;
    assert_eq!((emission.matched, emission.runs.len()), (1, 1));
    let stored = world.stored(emission.runs[0]).await;
    assert_eq!(stored.run.origin.trigger, None);
    assert_eq!(stored.invocation.unwrap().trigger, json!({ "n": 1 }));
    let untargeted = world.emit(Event::new("surefoot.start", json!({}))).await;
    assert_eq!(untargeted.matched, 0, "a start without a target is no broadcast");
}

/// An event starts nothing in another scope or app.
pub async fn events_stay_in_their_app_and_scope<F: StoreFactory>(world: &World<F>) {
    for (app, scope) in [("shop", "north"), ("shop", "south"), ("bank", "north")] {
        let publish = world.publication("flow", listening());
        let publish = Publish { app: App::from(app), scope: Scope::from(scope), ..publish };
        world.store.version_publish(publish).await.unwrap();
    }
    let emission = world.emit(low()).await;
    assert_eq!(emission.runs.len(), 1);
    let origin = world.row(emission.runs[0]).await.origin.clone();
    assert_eq!((&origin.app, &origin.scope), (&app(), &scope()));
}

/// A deferred event that is emitted again to be dispatched now is dispatched now, once.
pub async fn a_repeat_dispatches_what_is_still_pending<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let pending = world.emit(low().dedupe_key("bolt:1").deferred()).await;
    assert_eq!((pending.matched, pending.runs.len()), (1, 0));
    let still = world.emit(low().dedupe_key("bolt:1").deferred()).await;
    assert_eq!((still.event, still.new, still.runs.len()), (pending.event, false, 0));
    let now = world.emit(low().dedupe_key("bolt:1")).await;
    assert_eq!((now.event, now.new, now.runs.len()), (pending.event, false, 1));
    assert!(world.store.event_dispatch(&app(), 10).await.unwrap().dispatched.is_empty());
    assert_eq!(world.emit(low().dedupe_key("bolt:1")).await.runs, now.runs);
    assert_eq!(world.claim().await.len(), 1);
}

fn eager<F: StoreFactory>(
    world: &World<F>,
    plan: &surefoot_kernel_core::plan::Plan,
    slots: u32,
) -> Eager {
    let footprints = vec![plan.footprint.hash()];
    Eager { session: world.session, footprints, slots, lease: LEASE, plans: Plans::default() }
}

/// An eager start is a creation and a claim in one.
pub async fn an_eager_start_is_what_a_claim_would_be<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let emit = world.emission(low());
    let emit = Emit { eager: Some(eager(world, &listening(), 1)), ..emit };
    let emission = world.store.event_emit(emit).await.unwrap();
    let [stored] = &emission.started[..] else { unreachable!("{emission:?}") };
    let started = &stored.run;
    assert_eq!(emission.runs, [started.id]);
    let new = Run::new(started.id, (*started.origin).clone());
    let expected = as_the_core_says(&new, |lease: Lease| RowInput::Claim { lease }, started);
    assert_eq!(*started, Run { revision: started.revision, ..expected });
    let load = LoadRequest { run: started.id, after: None };
    let loaded = world.store.run_load(load).await.unwrap().unwrap();
    assert_eq!(loaded, Stored { now: loaded.now, ..stored.clone() });
    assert!(world.rival_claim().await.is_empty());
    let mut drive = world.drive(started.id).await;
    let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1))));
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
}

/// No more runs are started than there are free slots, and none that the worker cannot run.
pub async fn an_eager_start_keeps_to_its_slots_and_footprints<F: StoreFactory>(world: &World<F>) {
    let foreign = triggered(plan(vec![pure("other")]), "low", LOW);
    world.publish("foreign", foreign).await;
    for key in ["a", "b", "c"] {
        world.publish(key, listening()).await;
    }
    let emit = Emit { eager: Some(eager(world, &listening(), 2)), ..world.emission(low()) };
    let emission = world.store.event_emit(emit).await.unwrap();
    assert_eq!((emission.runs.len(), emission.started.len()), (4, 2));
    assert!(
        emission.started.iter().all(|it| it.run.origin.footprint == listening().footprint.hash())
    );
    let queued: Vec<RunId> = world.claim().await.iter().map(|run| run.id).collect();
    assert_eq!(queued.len(), 2);
    assert!(emission.started.iter().all(|it| !queued.contains(&it.run.id)));
}

/// A duplicate and a deferred event start nothing eagerly.
pub async fn duplicates_and_deferred_events_start_nothing_eagerly<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("flow", listening()).await;
    world.emit(low().dedupe_key("bolt:1")).await;
    for event in [low().dedupe_key("bolt:1"), low().deferred()] {
        let emit = world.emission(event);
        let emit = Emit { eager: Some(eager(world, &listening(), 5)), ..emit };
        assert!(world.store.event_emit(emit).await.unwrap().started.is_empty());
    }
    let claimed = world.claim().await;
    assert!(claimed.len() == 1 && claimed[0].generation == 1);
}

/// Covers behaviour 66.
pub async fn each_event_matches_exactly_one_version_while_one_is_published<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("flow", listening()).await;
    for _ in 0..10 {
        let mut emits = tokio::task::JoinSet::new();
        let publish = world.publication("flow", listening());
        let store = world.other.clone();
        emits.spawn(async move {
            store.version_publish(publish).await.unwrap();
            None
        });
        for _ in 0..5 {
            let (store, emit) = (world.store.clone(), world.emission(low()));
            emits.spawn(async move { Some(store.event_emit(emit).await.unwrap()) });
        }
        for emission in emits.join_all().await.into_iter().flatten() {
            assert_eq!((emission.matched, emission.runs.len()), (1, 1));
        }
    }
}

/// Covers field fault 90.
pub async fn an_event_of_full_size_is_kept_whole<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let full = "ü".repeat((surefoot_kernel_core::EVENT_MAX_PAYLOAD_BYTES - 2) / 2);
    let event = Event::new(LOW, &full).context(&full);
    let run = world.emit(event).await.runs[0];
    let invocation = world.stored(run).await.invocation.unwrap();
    assert!(invocation.trigger == json!(full) && invocation.context == json!(full));
}

/// A tag finds the runs of its events and no others, also one that very many events have; it is no part of the payload.
pub async fn runs_are_found_by_the_tags_of_their_event<F: StoreFactory>(world: &World<F>) {
    world.publish("a", listening()).await;
    world.publish("b", listening()).await;
    let tagged = |event: Event, tags: &[&str]| tags.iter().fold(event, |it, tag| it.tag(*tag));
    let urgent = world.emit(tagged(low().dedupe_key("7"), &["urgent", "customer:7"])).await;
    world.pass_secs(1).await;
    let later = world.emit(tagged(low().deferred(), &["customer:7"])).await;
    world.store.event_dispatch(&app(), 10).await.unwrap();
    world.pass_secs(1).await;
    let bare = world.emit(low()).await;
    let again = world.emit(tagged(low().dedupe_key("7"), &["other"])).await;
    assert_eq!((again.event, again.new, again.same_payload), (urgent.event, false, true));

    let find = async |tag: &str, filter: RunFilter| {
        let (mut found, mut cursor) = (BTreeSet::new(), None);
        loop {
            let tag = Some(tag.to_owned());
            let page = RunFilter { tag, cursor, limit: 3, ..filter.clone() };
            let page = world.store.run_list(page).await.unwrap();
            found.extend(page.rows.iter().map(|row| row.run.origin.event.unwrap()));
            assert!(page.rows.iter().all(|row| !bare.runs.contains(&row.run.id)));
            cursor = page.next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    let set = |events: &[&surefoot_kernel_core::Emission]| -> BTreeSet<_> {
        events.iter().map(|emission| emission.event).collect()
    };
    let all = RunFilter::default;
    assert_eq!(find("customer:7", all()).await, set(&[&urgent, &later]));
    assert_eq!(find("urgent", all()).await, set(&[&urgent]));
    let of_app = RunFilter { app: Some(app()), scope: Some(scope()), ..all() };
    assert_eq!(find("customer:7", of_app).await, set(&[&urgent, &later]));
    let queued = RunFilter { states: vec![RunState::Queued], ..all() };
    assert_eq!(find("customer:7", queued).await, set(&[&urgent, &later]));
    for tag in ["other", "customer", "customer:7 ", "", "\"", "%"] {
        assert!(find(tag, all()).await.is_empty(), "{tag}");
    }
    for nothing in [
        RunFilter { app: Some(App::from("bank")), ..all() },
        RunFilter { states: vec![RunState::Failed], ..all() },
        RunFilter { parent: Some(urgent.runs[0]), ..all() },
        RunFilter { event: Some(bare.event), ..all() },
    ] {
        assert!(find("customer:7", nothing).await.is_empty());
    }
    let filter = EventFilter { limit: 10, ..EventFilter::default() };
    let listed = world.store.event_list(filter).await.unwrap().rows;
    let tags: Vec<Vec<String>> = listed.into_iter().map(|row| row.tags).collect();
    let expected: [&[&str]; 3] = [&[], &["customer:7"], &["customer:7", "urgent"]];
    assert_eq!(
        tags,
        expected.map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>())
    );
    let detail = world.store.run_detail(urgent.runs[0]).await.unwrap().unwrap();
    assert_eq!(detail.event.unwrap().tags, ["customer:7", "urgent"]);
}

/// The tags of a repeat are not recorded, and the answer says so.
pub async fn a_repeated_key_says_whether_its_tags_are_the_recorded_ones<F: StoreFactory>(
    world: &World<F>,
) {
    let event =
        |tags: &[&str]| tags.iter().fold(low().dedupe_key("bolt:1"), |event, tag| event.tag(*tag));
    assert!(world.emit(event(&["urgent", "customer:7"])).await.same_tags);
    for (tags, same) in [
        (&["customer:7", "urgent"][..], true),
        (&["customer:7"], false),
        (&["customer:7", "late", "urgent"], false),
        (&[], false),
    ] {
        let again = world.emit(event(tags)).await;
        assert_eq!((again.new, again.same_tags, again.same_payload), (false, same, true));
    }
    assert!(world.emit(low().dedupe_key("bolt:2")).await.same_tags);
    assert!(world.emit(low().dedupe_key("bolt:2")).await.same_tags);
    let filter = EventFilter { app: Some(app()), limit: 10, ..EventFilter::default() };
    let listed = world.store.event_list(filter).await.unwrap();
    assert_eq!(listed.rows[1].tags, ["customer:7", "urgent"]);
}
