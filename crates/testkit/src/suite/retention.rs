//! What expires and what is pruned: payloads go, keys and ids stay; whole trees, never a part of what is alive.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::{Value, json};
use surefoot_kernel_core::retention::EVENT_RETENTION_DAYS;
use surefoot_kernel_core::{
    App, Audit, Emission, Emit, Event, EventFilter, EventId, EventRow, EventStatus,
    EventStore as _, LoadRequest, OperatorStore as _, Prunable, Prune, Pruned, Redrive,
    RetentionError, RetentionStore as _, RowInput, RunId, RunState, RunStore as _, Scope, Signal,
    StoreError, Verdict,
};

use super::operator::in_attention;
use super::world::{World, app, failed, scope, send, step, succeeded};
use super::{StoreFactory, Tamper};
use crate::plans::{idempotent, plan, pure, triggered};

const LOW: &str = "stock.low";
const DAY: i64 = 86_400;

fn low(key: &str) -> Event {
    Event::new(LOW, json!({ "item": "bolt" }))
        .context(json!({ "shift": 2 }))
        .authorization(json!({ "actor": "ada" }))
        .dedupe_key(key)
}

async fn listening<F: StoreFactory>(world: &World<F>) {
    world.publish("listener", triggered(plan(vec![pure("a")]), "low", LOW)).await;
}

/// An event whose run waits for a worker.
async fn emitted<F: StoreFactory>(world: &World<F>, key: &str) -> Emission {
    listening(world).await;
    world.emit(low(key)).await
}

async fn end<F: StoreFactory>(world: &World<F>, run: RunId) {
    let mut drive = world.claim_run(run).await;
    let reply = |_: &_| crate::Reply::Answer(succeeded(json!(1)));
    assert!(drive.to_end(&world.store, reply).await.unwrap().state().is_terminal());
}

/// A run that has ended well.
pub(super) async fn ended<F: StoreFactory>(world: &World<F>) -> RunId {
    let run = world.run(plan(vec![pure("a")])).await;
    end(world, run).await;
    run
}

async fn expire<F: StoreFactory>(world: &World<F>) -> u32 {
    let mut emptied = 0;
    loop {
        let pass = world.store.event_expire(&app(), 2).await.unwrap();
        assert!(pass.emptied <= 2);
        emptied += pass.emptied;
        if !pass.more {
            return emptied;
        }
    }
}

async fn events<F: StoreFactory>(world: &World<F>) -> Vec<EventRow> {
    let filter = EventFilter { app: Some(app()), limit: 100, ..EventFilter::default() };
    world.store.event_list(filter).await.unwrap().rows
}

async fn is_there<F: StoreFactory>(world: &World<F>, run: RunId) -> bool {
    let request = LoadRequest { run, after: None };
    world.store.run_load(request).await.unwrap().is_some()
}

fn runs_in(states: &[RunState]) -> Prunable {
    Prunable::Runs { states: states.to_vec() }
}

async fn prune_once<F: StoreFactory>(world: &World<F>, what: Prunable) -> Pruned {
    world.pass_secs(1).await;
    let before = world.now().await;
    let prune = Prune { app: app(), scope: None, what, before, limit: 100, audit: None };
    world.store.prune(prune).await.unwrap()
}

/// Covers behaviour 84.
pub async fn a_payload_expires_only_when_no_run_needs_a_person<F: StoreFactory>(world: &World<F>) {
    let run = in_attention(world).await;
    world.pass_secs(31 * DAY).await;
    assert_eq!(expire(world).await, 0, "the run is in attention");
    let resolve = RowInput::Resolve { step: step("steps.0"), verdict: Verdict::NotPerformed };
    world.input(run, resolve).await.unwrap();
    assert_eq!(expire(world).await, 0, "the run is queued");
    world.cancel(run).await;
    assert_eq!(expire(world).await, 1);
    assert!(events(world).await[0].is_expired);
    let detail = world.store.run_detail(run).await.unwrap().unwrap();
    assert!(detail.event.is_some_and(|event| event.is_expired));
    assert_eq!(expire(world).await, 0, "once is enough");
}

/// A payload is kept to the last moment of its time, and no run loses what it was started with.
pub async fn a_payload_is_kept_for_thirty_days<F: StoreFactory>(world: &World<F>) {
    let emission = emitted(world, "bolt").await;
    let run = emission.runs[0];
    end(world, run).await;
    world.pass_secs(EVENT_RETENTION_DAYS * DAY - 60).await;
    assert_eq!(expire(world).await, 0);
    world.pass_secs(120).await;
    assert_eq!(world.store.event_expire(&App::from("bank"), 10).await.unwrap().emptied, 0);
    assert_eq!(expire(world).await, 1);
    let stored = world.stored(run).await;
    assert_eq!(stored.invocation.unwrap().trigger, json!({ "item": "bolt" }));
}

/// By type, status and scope, in one order, wherever the pages end: an event that was emptied stays in its place.
pub async fn lists_of_events_are_the_same_page_by_page_whole_or_emptied<F: StoreFactory>(
    world: &World<F>,
) {
    for key in ["a", "b"] {
        let emission = emitted(world, key).await;
        end(world, emission.runs[0]).await;
        world.emit(Event::new("stock.unheard", json!({}))).await;
        world.pass_secs(1).await;
    }
    world.pass_secs(31 * DAY).await;
    let expired = expire(world).await;
    assert!(expired >= 2, "{expired}");
    for key in ["c", "d"] {
        emitted(world, key).await;
        world.emit(low(&format!("deferred-{key}")).deferred()).await;
        world.emit(Event::new("stock.unheard", json!({}))).await;
        let emit = Emit { scope: Scope::from("oslo"), ..world.emission(low(key)) };
        world.store.event_emit(emit).await.unwrap();
    }
    let all = events(world).await;
    assert_eq!(all.len(), 12);
    let order = |row: &EventRow| std::cmp::Reverse((row.recorded_at, row.event));
    assert!(all.is_sorted_by_key(order));
    let kinds = [None, Some(LOW), Some("stock.unheard"), Some("stock.never")];
    let statuses = EventStatus::ALL.iter().copied().map(Some).chain([None]);
    for (kind, status) in kinds.into_iter().flat_map(|it| statuses.clone().map(move |of| (it, of)))
    {
        for place in [None, Some(scope()), Some(Scope::from("oslo")), Some(Scope::from("rome"))] {
            let fits = |row: &&EventRow| {
                kind.is_none_or(|kind| row.kind == kind)
                    && status.is_none_or(|status| row.status == status)
                    && place.as_ref().is_none_or(|place| row.scope == *place)
            };
            let wanted: Vec<EventId> = all.iter().filter(fits).map(|row| row.event).collect();
            let (app, kind) = (Some(app()), kind.map(str::to_owned));
            let limit = 2;
            let mut filter =
                EventFilter { app, scope: place.clone(), kind, status, limit, cursor: None };
            let mut listed = Vec::new();
            loop {
                let page = world.store.event_list(filter.clone()).await.unwrap();
                listed.extend(page.rows.iter().map(|row| row.event));
                filter.cursor = page.next;
                if filter.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(listed, wanted, "{filter:?}");
        }
    }
}

/// The dedupe key, the ids of the runs and the hash outlive the payload, and the runs too.
pub async fn keys_and_run_ids_outlive_payloads_and_runs<F: StoreFactory>(world: &World<F>) {
    let first = emitted(world, "bolt").await;
    end(world, first.runs[0]).await;
    world.pass_secs(31 * DAY).await;
    assert_eq!(expire(world).await, 1);
    let again = world.emit(low("bolt")).await;
    assert_eq!((again.event, &again.runs, again.new), (first.event, &first.runs, false));
    assert!(again.same_payload && again.matched == 1);
    let other = world.emit(Event::new(LOW, json!({ "item": "nut" })).dedupe_key("bolt")).await;
    assert!(!other.same_payload && other.event == first.event);
    assert_eq!(prune_once(world, runs_in(&[RunState::Succeeded])).await.deleted, 1);
    let again = world.emit(low("bolt")).await;
    assert_eq!((again.event, &again.runs, again.new), (first.event, &first.runs, false));
    assert!(!is_there(world, first.runs[0]).await, "a repeat brings no run back");
    let row = &events(world).await[0];
    assert_eq!((row.dedupe_key.as_deref(), &row.runs), (Some("bolt"), &first.runs));
}

/// A pass keeps its limit, and what is held does not stand in the way of what is free.
pub async fn old_events_that_are_held_hide_no_free_one<F: StoreFactory>(world: &World<F>) {
    listening(world).await;
    let mut free = Vec::new();
    for nth in 0..6 {
        let run = world.emit(low(&nth.to_string())).await.runs[0];
        if nth >= 3 {
            free.push(run);
        }
    }
    for run in &free {
        world.cancel(*run).await;
    }
    world.pass_secs(31 * DAY).await;
    let pass = world.store.event_expire(&app(), 2).await.unwrap();
    assert_eq!((pass.emptied, pass.more), (2, true));
    let pass = world.store.event_expire(&app(), 2).await.unwrap();
    assert_eq!((pass.emptied, pass.more), (1, false));
    assert_eq!(events(world).await.iter().filter(|row| row.is_expired).count(), 3);
}

async fn dead_lettered<F: StoreFactory>(world: &World<F>) -> Option<EventId> {
    listening(world).await;
    let event = world.emit(low("bolt").deferred()).await.event;
    if !world.tamper(Tamper::BreakDispatch(event)).await {
        return None;
    }
    for _ in 0..8 {
        world.store.event_dispatch(&app(), 10).await.unwrap();
        world.pass_secs(600).await;
    }
    assert_eq!(events(world).await[0].status, EventStatus::DeadLettered);
    Some(event)
}

fn redrive(event: EventId) -> Redrive {
    Redrive { event, actor: "bob".to_owned(), reason: "the row was mended".to_owned() }
}

/// A dead-lettered event gets its runs after all, and the audit says who wanted it.
pub async fn a_dead_lettered_event_is_redriven<F: StoreFactory>(world: &World<F>) {
    let Some(event) = dead_lettered(world).await else { return };
    assert!(world.tamper(Tamper::MendDispatch(event)).await);
    let redriven = world.store.event_redrive(redrive(event)).await.unwrap();
    assert_eq!((redriven.deliveries, redriven.dropped.len()), (1, 0));
    let row = &events(world).await[0];
    assert_eq!((row.status, row.attempts, &row.error), (EventStatus::Pending, 0, &None));
    let twice = world.store.event_redrive(redrive(event)).await;
    assert!(matches!(twice, Err(RetentionError::NotDeadLettered { .. })), "{twice:?}");
    assert_eq!(world.store.event_dispatch(&app(), 10).await.unwrap().dispatched, [event]);
    assert_eq!(events(world).await[0].runs.len(), 1);
    let audit = world.store.audit_list(&app(), None, 1).await.unwrap().remove(0);
    assert_eq!((audit.verb.as_str(), audit.actor.as_str()), ("redrive", "bob"));
    let unknown = redrive(EventId::from_bytes([9; 16]));
    let unknown = world.store.event_redrive(unknown).await;
    assert!(matches!(unknown, Err(RetentionError::NotFound { .. })), "{unknown:?}");
}

/// What was emptied cannot be dispatched any more, and is not guessed.
pub async fn an_expired_event_is_not_redriven<F: StoreFactory>(world: &World<F>) {
    let Some(event) = dead_lettered(world).await else { return };
    world.pass_secs(31 * DAY).await;
    assert_eq!(expire(world).await, 1);
    let refused = world.store.event_redrive(redrive(event)).await.unwrap_err();
    assert!(matches!(refused, RetentionError::Expired { .. }), "{refused:?}");
    assert_eq!(refused.code().unwrap().as_str(), "EVENT_EXPIRED");
    assert_eq!(events(world).await[0].status, EventStatus::DeadLettered);
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!(health.events_dead_lettered, 0, "nobody can do anything about it any more");
}

/// An old event that is redriven while it expires is one or the other: it never waits for its runs without a payload.
pub async fn a_redrive_and_an_expiry_never_both_win<F: StoreFactory>(world: &World<F>) {
    let Some(event) = dead_lettered(world).await else { return };
    assert!(world.tamper(Tamper::MendDispatch(event)).await);
    world.pass_secs(31 * DAY).await;
    let place = app();
    let expire = world.store.event_expire(&place, 10);
    let (emptied, redriven) = tokio::join!(expire, world.other.event_redrive(redrive(event)));
    let emptied = emptied.unwrap().emptied;
    assert_eq!(emptied, u32::from(redriven.is_err()), "{redriven:?}");
    let dispatched = world.store.event_dispatch(&app(), 10).await.unwrap().dispatched;
    assert_eq!(dispatched.len(), usize::from(redriven.is_ok()));
    if let Some(run) = events(world).await[0].runs.first() {
        let invocation = world.stored(*run).await.invocation.unwrap();
        assert_eq!(invocation.trigger, json!({ "item": "bolt" }));
    }
}

/// Only what ended in a named state, long enough ago, is pruned; audit rows and events stay.
pub async fn a_policy_prunes_what_it_names_and_no_more<F: StoreFactory>(world: &World<F>) {
    let good = ended(world).await;
    let canceled = world.start("flow").await;
    world.cancel(canceled).await;
    let living = world.start("flow").await;
    let audits = world.store.audit_list(&app(), None, 100).await.unwrap().len();
    let early = Prune {
        app: app(),
        scope: None,
        what: runs_in(RunState::ALL),
        before: surefoot_kernel_core::Timestamp::from_micros(1),
        limit: 100,
        audit: None,
    };
    assert_eq!(world.store.prune(early.clone()).await.unwrap().deleted, 0);
    let before = world.now().await.plus(surefoot_kernel_core::Micros::from_secs(1));
    for elsewhere in [
        Prune { app: App::from("bank"), before, ..early.clone() },
        Prune { scope: Some(Scope::from("south")), before, ..early.clone() },
        Prune { what: runs_in(&[RunState::Failed]), before, ..early.clone() },
    ] {
        assert_eq!(world.store.prune(elsewhere).await.unwrap().deleted, 0);
    }
    assert_eq!(prune_once(world, runs_in(&[RunState::Succeeded])).await.deleted, 1);
    assert!(!is_there(world, good).await && is_there(world, canceled).await);
    assert_eq!(prune_once(world, runs_in(RunState::ALL)).await.deleted, 1);
    assert!(!is_there(world, canceled).await && is_there(world, living).await);
    assert_eq!(world.store.audit_list(&app(), None, 100).await.unwrap().len(), audits);
    assert_eq!(events(world).await.len(), 3);
    end(world, living).await;
}

/// Covers field fault 88.
pub async fn a_tree_is_pruned_as_a_whole_or_not_at_all<F: StoreFactory>(world: &World<F>) {
    let parent = world.run(plan(vec![pure("a")])).await;
    let child = world.start("flow").await;
    if !world.tamper(Tamper::MakeChild { run: child, parent }).await {
        return;
    }
    let mut drive = world.drive(parent).await;
    if drive.run().lease().is_none() {
        drive = world.claim_run(parent).await;
    }
    let reply = |_: &_| crate::Reply::Answer(succeeded(json!(1)));
    drive.to_end(&world.store, reply).await.unwrap();
    assert_eq!(prune_once(world, runs_in(RunState::ALL)).await, Pruned::default());
    assert!(is_there(world, parent).await, "its child is alive");
    world.cancel(child).await;
    let mut drive = world.drive(child).await;
    if !drive.run().state().is_terminal() {
        drive.to_end(&world.store, reply).await.unwrap();
    }
    assert_eq!(prune_once(world, runs_in(RunState::ALL)).await.deleted, 2);
    assert!(!is_there(world, parent).await && !is_there(world, child).await);
}

/// What was given up without knowing is the only trace of an effect that may have happened: no policy prunes it.
pub async fn an_abandoned_effect_outlives_every_policy<F: StoreFactory>(world: &World<F>) {
    let run = in_attention(world).await;
    let abandon = RowInput::Abandon { accept_unknown: true, unclaimable: false };
    world.input(run, abandon).await.unwrap();
    world.pass_secs(400 * DAY).await;
    assert_eq!(prune_once(world, runs_in(RunState::ALL)).await, Pruned::default());
    assert_eq!(world.store.effect_list(&app(), None, 10).await.unwrap().len(), 1);
}

/// A call prunes as much as it may, says that there is more, and the oldest go first.
pub async fn pruning_goes_on_where_it_stopped<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let run = world.start("flow").await;
        world.cancel(run).await;
        runs.push(run);
        world.pass_secs(1).await;
    }
    let before = world.now().await;
    let what = runs_in(&[RunState::Canceled]);
    let prune = Prune { app: app(), scope: Some(scope()), what, before, limit: 2, audit: None };
    let audit = Audit {
        actor: "bob".to_owned(),
        verb: "prune".to_owned(),
        reason: "older than the policy".to_owned(),
        details: "{}".to_owned(),
    };
    let prune = Prune { audit: Some(audit), ..prune };
    let mut counts = Vec::new();
    loop {
        let pruned = world.store.prune(prune.clone()).await.unwrap();
        counts.push(pruned.deleted);
        for (nth, run) in runs.iter().enumerate() {
            let gone = nth < counts.iter().map(|it| usize::try_from(*it).unwrap()).sum();
            assert_eq!(is_there(world, *run).await, !gone, "run {nth}");
        }
        if !pruned.more {
            break;
        }
    }
    assert_eq!(counts.iter().sum::<u32>(), 5, "{counts:?}");
    assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
    let audits = world.store.audit_list(&app(), None, 100).await.unwrap();
    let written = audits.iter().filter(|row| row.verb == "prune" && row.scope == scope()).count();
    assert_eq!(written, counts.iter().filter(|count| **count > 0).count());
}

/// A failed run that is retried while it is being pruned is one or the other, never half of each.
pub async fn a_retry_and_a_prune_never_both_win<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    for _ in 0..10 {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        world.answer(&mut drive, failed(false)).await;
        let retry = world.decided(run, RowInput::Retry).await;
        let before = world.now().await.plus(surefoot_kernel_core::Micros::from_secs(1));
        let what = runs_in(&[RunState::Failed]);
        let prune = Prune { app: app(), scope: None, what, before, limit: 10, audit: None };
        let (retried, pruned) =
            tokio::join!(world.store.run_commit(retry), world.other.prune(prune));
        let pruned = pruned.unwrap().deleted == 1;
        assert!(retried.is_ok() != pruned, "{retried:?} {pruned}");
        if pruned {
            assert!(matches!(retried, Err(StoreError::LeaseLost)), "{retried:?}");
        }
        assert_eq!(is_there(world, run).await, !pruned);
        if !pruned {
            world.cancel(run).await;
        }
    }
}

/// Spent signals go by a policy; what no run has used stays, and so does what a run is about to use.
pub async fn only_spent_signals_are_pruned<F: StoreFactory>(world: &World<F>) {
    let on = surefoot_kernel_core::Dependency::on("approval", "7");
    let mut drive = world.running(plan(vec![idempotent("a")])).await;
    let run = drive.run().id;
    world.park(&mut drive, on).await;
    world.signal(Signal::new("approval", "7")).await;
    assert_eq!(
        prune_once(world, Prunable::SpentSignals).await.deleted,
        0,
        "its run has not used it"
    );
    end(world, run).await;
    world.signal(Signal::new("approval", "8")).await;
    assert_eq!(prune_once(world, Prunable::SpentSignals).await.deleted, 1);
    let left = world.store.signal_list(&app(), None, 10).await.unwrap();
    assert_eq!(left.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["8"]);
    let again = world.store.signal_send(send(Signal::new("approval", "8"))).await.unwrap();
    assert!(!again.new);
}

/// Audit rows go only by a switch of their own.
pub async fn audit_rows_go_by_a_switch_of_their_own<F: StoreFactory>(world: &World<F>) {
    let run = ended(world).await;
    let audit = Audit {
        actor: "bob".to_owned(),
        verb: "cancel".to_owned(),
        reason: "late".to_owned(),
        details: "{}".to_owned(),
    };
    let other = world.start("flow").await;
    let commit = world.decided(other, super::world::cancel()).await.audited(audit);
    world.store.run_commit(commit).await.unwrap();
    prune_once(world, runs_in(RunState::ALL)).await;
    assert!(!is_there(world, run).await);
    let rows = world.store.audit_list(&app(), None, 10).await.unwrap();
    assert!(rows.iter().any(|row| row.verb == "cancel" && row.run == Some(other)));
    let pruned = prune_once(world, Prunable::Audit).await;
    assert_eq!(u64::from(pruned.deleted), rows.len() as u64);
    assert!(world.store.audit_list(&app(), None, 10).await.unwrap().is_empty());
}

/// What nobody listened to is emptied on request; its key stays taken.
pub async fn unmatched_payloads_are_emptied_on_request<F: StoreFactory>(world: &World<F>) {
    let event = world.emit(low("bolt")).await;
    assert_eq!(event.matched, 0);
    world.pass_secs(31 * DAY).await;
    assert_eq!(expire(world).await, 0, "it was never dispatched");
    assert_eq!(prune_once(world, Prunable::UnmatchedPayloads).await.deleted, 1);
    assert_eq!(prune_once(world, Prunable::UnmatchedPayloads).await.deleted, 0);
    let again = world.emit(low("bolt")).await;
    assert_eq!((again.event, again.new, again.same_payload), (event.event, false, true));
    assert_ne!(json!(again.matched), Value::Null);
}
