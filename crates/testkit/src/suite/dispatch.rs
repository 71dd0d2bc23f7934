//! Deferred events: their runs are created later, once, and a failure holds up nobody else.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;

use serde_json::json;
use surefoot_kernel_core::{
    App, Emit, Event, EventFilter, EventRow, EventStatus, EventStore as _, OperatorStore as _,
    PlanStore as _, Publish,
};

use super::world::{World, app};
use super::{StoreFactory, Tamper};
use crate::plans::{plan, pure, triggered};

const LOW: &str = "stock.low";

fn listening() -> surefoot_kernel_core::plan::Plan {
    triggered(plan(vec![pure("a")]), "low", LOW)
}

fn low() -> Event {
    Event::new(LOW, json!({ "item": "bolt" })).deferred()
}

async fn listed<F: StoreFactory>(world: &World<F>, status: EventStatus) -> Vec<EventRow> {
    let filter = EventFilter {
        app: Some(app()),
        status: Some(status),
        limit: 100,
        ..EventFilter::default()
    };
    world.store.event_list(filter).await.unwrap().rows
}

/// A deferred event is recorded at once; its runs come with the dispatch.
pub async fn a_deferred_event_gets_its_runs_when_it_is_dispatched<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("flow", listening()).await;
    let emission = world.emit(low()).await;
    assert_eq!((emission.matched, emission.runs.len(), emission.new), (1, 0, true));
    assert!(world.claim().await.is_empty());
    let pending = listed(world, EventStatus::Pending).await;
    assert!(pending.len() == 1 && pending[0].event == emission.event && pending[0].matched == 1);
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!(
        (health.events_pending, health.oldest_pending_event),
        (1, Some(pending[0].recorded_at))
    );

    let done = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(
        (&done.dispatched[..], done.failed.len(), done.more),
        (&[emission.event][..], 0, false)
    );
    let dispatched = listed(world, EventStatus::Dispatched).await;
    let claimed = world.claim().await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(dispatched[0].runs, [claimed[0].id]);
    assert!(world.store.event_dispatch(&app(), 10).await.unwrap().dispatched.is_empty());
    assert_eq!(world.store.app_health(&app()).await.unwrap().events_pending, 0);
}

/// Covers behaviour 77.
/// Covers field fault 19.
pub async fn dispatchers_at_once_create_each_run_once<F: StoreFactory>(world: &World<F>) {
    world.publish("a", listening()).await;
    world.publish("b", listening()).await;
    for _ in 0..20 {
        world.emit(low()).await;
    }
    let mut passes = tokio::task::JoinSet::new();
    for process in 0..6 {
        let store = if process % 2 == 0 { world.store.clone() } else { world.other.clone() };
        passes.spawn(async move { while store.event_dispatch(&app(), 5).await.unwrap().more {} });
    }
    passes.join_all().await;
    while world.store.event_dispatch(&app(), 5).await.unwrap().more {}
    assert_eq!(listed(world, EventStatus::Dispatched).await.len(), 20);
    assert_eq!(world.claim().await.len(), 40);
}

/// Covers behaviour 78.
/// Covers field fault 119.
pub async fn a_run_is_pinned_to_what_matched_when_the_event_was_recorded<F: StoreFactory>(
    world: &World<F>,
) {
    let first = world.publish("flow", listening()).await;
    let emission = world.emit(low()).await;
    world.publish("flow", plan(vec![pure("b")])).await;
    world.publish("late", listening()).await;
    world.store.event_dispatch(&app(), 10).await.unwrap();
    let done = listed(world, EventStatus::Dispatched).await.remove(0);
    assert_eq!((done.event, done.runs.len()), (emission.event, 1));
    let run = world.row(done.runs[0]).await;
    assert_eq!(run.origin.version, first.version);
    assert_eq!(run.origin.footprint, listening().footprint.hash());
    assert_eq!(run.origin.trigger.as_deref(), Some("low"));
}

/// Covers behaviour 67.
pub async fn the_fallback_authorization_is_frozen_with_the_event<F: StoreFactory>(
    world: &World<F>,
) {
    let by = |name: &str| Publish {
        authorization: Some(json!({ "actor": name })),
        ..world.publication("flow", listening())
    };
    world.store.version_publish(by("ada")).await.unwrap();
    let deferred = world.emit(low()).await;
    let now = |event: Event| async move { world.emit(event).await.runs[0] };
    let first = now(Event::new(LOW, json!({}))).await;
    world.store.version_publish(by("bob")).await.unwrap();
    let second = now(Event::new(LOW, json!({}))).await;
    world.store.event_dispatch(&app(), 10).await.unwrap();
    let rows = listed(world, EventStatus::Dispatched).await;
    let late = rows.iter().find(|row| row.event == deferred.event).unwrap().runs[0];
    for (run, actor) in [(first, "ada"), (second, "bob"), (late, "ada")] {
        let invocation = world.stored(run).await.invocation.unwrap();
        assert_eq!(invocation.actor, Some(json!(actor)));
    }
}

/// Covers behaviour 96.
pub async fn a_worker_dispatches_only_events_of_its_app<F: StoreFactory>(world: &World<F>) {
    let other = App::from("bank");
    let publish = Publish { app: other.clone(), ..world.publication("flow", listening()) };
    world.store.version_publish(publish).await.unwrap();
    let emit = Emit { app: other.clone(), ..world.emission(low()) };
    let theirs = world.store.event_emit(emit).await.unwrap();
    assert!(world.store.event_dispatch(&app(), 10).await.unwrap().dispatched.is_empty());
    let done = world.store.event_dispatch(&other, 10).await.unwrap();
    assert_eq!(done.dispatched, [theirs.event]);
}

/// A pass keeps its limit, says that there is more, and takes the oldest first.
pub async fn a_pass_keeps_its_limit_and_says_that_there_is_more<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(world.emit(low()).await.event);
        world.pass_secs(1).await;
    }
    // A pass that takes long on a slow machine may end before its limit.
    while !events.is_empty() {
        let pass = world.store.event_dispatch(&app(), 2).await.unwrap();
        let count = pass.dispatched.len();
        assert!((1..=2).contains(&count), "{count}");
        let oldest: BTreeSet<_> = events.drain(..count).collect();
        assert_eq!(pass.dispatched.into_iter().collect::<BTreeSet<_>>(), oldest);
        assert_eq!(pass.more, !events.is_empty());
    }
    let pass = world.store.event_dispatch(&app(), 2).await.unwrap();
    assert_eq!((pass.more, pass.dispatched.len()), (false, 0));
}

/// Covers behaviour 81.
pub async fn an_event_whose_dispatch_fails_holds_up_no_other<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let broken = world.emit(low()).await.event;
    world.pass_secs(1).await;
    let healthy = world.emit(low()).await.event;
    if !world.tamper(Tamper::BreakDispatch(broken)).await {
        return;
    }
    let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!((pass.dispatched, pass.failed), (vec![healthy], vec![broken]));
    let row = listed(world, EventStatus::Retrying).await.remove(0);
    assert_eq!((row.event, row.attempts, row.runs.len()), (broken, 1, 0));
    assert!(row.error.is_some_and(|error| !error.is_empty()));
    assert_eq!(world.store.app_health(&app()).await.unwrap().events_pending, 1);
    assert!(world.store.event_dispatch(&app(), 10).await.unwrap().failed.is_empty(), "before 1 s");
    world.pass(surefoot_kernel_core::Micros::from_millis(1_100)).await;
    assert!(world.tamper(Tamper::MendDispatch(broken)).await);
    let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(pass.dispatched, [broken]);
    assert_eq!(world.claim().await.len(), 2);
}

/// Covers behaviour 82.
pub async fn the_eighth_failure_dead_letters_an_event<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let broken = world.emit(low()).await.event;
    if !world.tamper(Tamper::BreakDispatch(broken)).await {
        return;
    }
    for attempt in 1..=8 {
        let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
        assert_eq!(pass.failed, [broken], "attempt {attempt}");
        // 1 s doubling; the moment before its end it is not due.
        let seconds: i64 = 1 << (attempt - 1);
        world.pass(surefoot_kernel_core::Micros::from_millis(seconds * 1_000 - 800)).await;
        let early = world.store.event_dispatch(&app(), 10).await.unwrap();
        assert!(early.failed.is_empty(), "attempt {attempt} was followed too early");
        world.pass(surefoot_kernel_core::Micros::from_millis(900)).await;
    }
    world.pass_secs(86_400).await;
    assert!(world.store.event_dispatch(&app(), 10).await.unwrap().failed.is_empty());
    let row = listed(world, EventStatus::DeadLettered).await.remove(0);
    assert_eq!((row.event, row.attempts), (broken, 8));
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!((health.events_dead_lettered, health.events_pending), (1, 0));
}
