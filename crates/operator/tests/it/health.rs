//! What turns health red, and what does not.

use expect_test::expect;
use surefoot_kernel_core::{Micros, Timestamp};
use surefoot_operator::{
    AppHealthView, EVENT_PENDING_RED_AFTER, EmitEvent, RUN_DUE_RED_AFTER, UNSETTLED_RED_AFTER,
};

use crate::world::{SCOPE, World, app};

async fn health(world: &World) -> AppHealthView {
    world.operator.health(Some(app()), None).await.unwrap().apps.remove(0)
}

/// A worker lives and offers everything.
async fn alive(world: &World) {
    world.report(vec![world.footprint().await], 0).await;
}

#[tokio::test]
async fn an_app_where_nothing_happens_is_not_red() {
    let world = World::published().await;
    let view = health(&world).await;
    expect![[r#"
        {
          "app": "shop",
          "ok": true,
          "red": [],
          "notes": [],
          "read_at": "2026-01-01T00:00:00.000000Z",
          "runs": {
            "canceled": 0,
            "failed": 0,
            "needs_attention": 0,
            "queued": 0,
            "running": 0,
            "succeeded": 0,
            "waiting": 0
          },
          "oldest_due_at": null,
          "start_lag_ms": 0,
          "unsettled_effects": 0,
          "oldest_unsettled_ms": null,
          "outputs_missing": 0,
          "effects_given_up": 0,
          "exhausted": 0,
          "events": {
            "pending": 0,
            "oldest_pending_ms": null,
            "dispatch_error": null,
            "dead_lettered": 0,
            "unmatched": 0
          },
          "missing_modules": [],
          "workers": [
            {
              "session": "wrk_00000000000100000000000000000000",
              "name": "host 12",
              "mode": "execute",
              "live": true,
              "seen_ms": 0,
              "slots": 4,
              "busy": 1,
              "stuck": 0
            }
          ],
          "clock_skew_ms": null
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&view).unwrap());
}

#[tokio::test]
async fn a_run_that_needs_a_person_is_red() {
    let world = World::published().await;
    world.unknown().await;
    assert_eq!(health(&world).await.red, ["1 run waits for a person"]);
}

#[tokio::test]
async fn an_executing_effect_is_red_only_after_long() {
    let world = World::published().await;
    let (run, drive) = world.paying().await;
    world.store.clock().advance(Micros::from_secs(300));
    renew(&world, drive.stamp()).await;
    alive(&world).await;
    let view = health(&world).await;
    assert_eq!((view.ok, view.unsettled_effects), (true, 1), "{:?}", view.red);
    world.store.clock().advance(UNSETTLED_RED_AFTER);
    renew(&world, drive.stamp()).await;
    alive(&world).await;
    let view = health(&world).await;
    assert_eq!(view.red, ["an effect has been unexplained for too long"], "{run}");
}

async fn renew(world: &World, stamp: surefoot_kernel_core::Stamp) {
    use surefoot_kernel_core::{RenewRequest, RunStore as _};
    let lease = Micros::from_secs(120);
    let request = RenewRequest { session: world.session, runs: vec![stamp], lease };
    world.store.lease_renew(request).await.unwrap();
}

/// Covers field fault 7.
#[tokio::test]
async fn runs_that_nobody_takes_are_red() {
    let world = World::published().await;
    world.emitted().await;
    world.store.clock().advance(RUN_DUE_RED_AFTER);
    alive(&world).await;
    let view = health(&world).await;
    assert_eq!(view.start_lag_ms, 60_000);
    assert_eq!(view.red, ["1 run is due for too long, and no worker has a free slot for it"]);
    world.store.clock().advance(Micros::from_secs(61));
    let view = health(&world).await;
    assert!(!view.workers[0].live);
    assert_eq!(view.red, ["1 run is due, and no live worker offers module `inventory`"]);
}

#[tokio::test]
async fn a_stuck_slot_is_red() {
    let world = World::published().await;
    world.report(vec![world.footprint().await], 2).await;
    assert_eq!(health(&world).await.red, ["worker `host 12` has 2 stuck slots"]);
}

#[tokio::test]
async fn events_that_wait_for_their_runs_are_red() {
    let world = World::published().await;
    let event =
        surefoot_kernel_core::Event::new("inventory.stockLow", serde_json::json!({ "item": "x" }));
    let emit = EmitEvent { app: app(), scope: SCOPE.into(), event: event.deferred() };
    world.operator.emit(&world.ids, emit).await.unwrap();
    let view = health(&world).await;
    assert_eq!((view.ok, view.events.pending), (true, 1));
    world.store.clock().advance(EVENT_PENDING_RED_AFTER);
    alive(&world).await;
    let view = health(&world).await;
    assert_eq!(
        view.red,
        ["events have waited for their runs for too long, though a worker is live"]
    );
    world.store.clock().advance(Micros::from_secs(61));
    let view = health(&world).await;
    assert_eq!(view.red, ["events wait for their runs, and no worker is live that creates them"]);
}

/// A worker tries and fails: that is not the same as no worker, and what is done about it is another thing.
#[tokio::test]
async fn a_dispatch_that_fails_is_told_with_its_reason() {
    use surefoot_kernel_core::EventStore as _;
    let world = World::published().await;
    let event =
        surefoot_kernel_core::Event::new("inventory.stockLow", serde_json::json!({ "item": "x" }));
    let emit = EmitEvent { app: app(), scope: SCOPE.into(), event: event.deferred() };
    world.operator.emit(&world.ids, emit).await.unwrap();
    let place = surefoot_kernel_core::Place {
        app: app(),
        scope: SCOPE.into(),
        workflow: Some("reorder".into()),
    };
    let delete =
        surefoot_operator::DeletePlace { place, force: false, why: "not wanted".to_owned() };
    world.operator.delete(delete, |_| {}).await.unwrap();
    world.store.event_dispatch(&app(), 10).await.unwrap();
    world.store.clock().advance(EVENT_PENDING_RED_AFTER);
    world.report(Vec::new(), 0).await;
    let view = health(&world).await;
    let error = view.events.dispatch_error.unwrap();
    assert!(error.contains("reorder"), "{error}");
    assert_eq!(
        view.red,
        [format!("events wait for their runs, and their dispatch fails: {error}")]
    );
}

#[tokio::test]
async fn doctor_says_what_is_there_without_workers() {
    let world = World::new();
    world.publish("reorder", crate::world::REORDER).await;
    let found = async |name: &str| {
        let wall = world.store.clock().now();
        let doctor = world.operator.doctor_of(Some(app()), wall).await.unwrap();
        let check = doctor.checks.into_iter().find(|check| check.name == name).unwrap();
        (check.ok, check.found, check.help)
    };
    let idle = "none reported within the last minute, and nothing waits for one".to_owned();
    assert_eq!(found("workers of shop").await, (true, idle, None));
    let modules = found("modules of shop").await;
    assert_eq!(modules, (true, "no open run needs one".to_owned(), None));
    world.emitted().await;
    let (ok, _, help) = found("workers of shop").await;
    assert_eq!((ok, help.as_deref()), (false, Some("start one: nothing moves without")));
    let nope = world.operator.doctor_of(Some("nope".into()), world.store.clock().now()).await;
    assert!(nope.unwrap_err().to_string().contains("it holds shop"));
}

#[tokio::test]
async fn a_clock_that_is_off_is_noted_and_not_red() {
    let world = World::published().await;
    let store = world.store.clock().now();
    for (ahead, noted) in [(0_i64, false), (-3_000_000, true), (90_000_000, true)] {
        let wall = Timestamp::from_micros(store.micros() + ahead);
        let view = world.operator.health(Some(app()), Some(wall)).await.unwrap();
        assert!(view.ok);
        assert_eq!(view.apps[0].clock_skew_ms, Some(ahead / 1_000));
        assert_eq!(!view.apps[0].notes.is_empty(), noted);
    }
}

/// Two versions of a workflow use different parts of one module: what they want alike is said once.
#[tokio::test]
async fn what_versions_of_one_module_lack_is_said_once() {
    let world = World::published().await;
    world.emitted().await;
    world.publish("mail", "steps:\n  - mail: {}\n").await;
    let start = surefoot_kernel_core::Event::start("mail", serde_json::json!({}));
    let emit = EmitEvent { app: app(), scope: SCOPE.into(), event: start };
    world.operator.emit(&world.ids, emit).await.unwrap();
    world.store.clock().advance(Micros::from_secs(61));
    let view = health(&world).await;
    assert_eq!(view.missing_modules.len(), 2);
    assert_eq!(view.red, ["2 runs are due, and no live worker offers module `inventory`"]);
    let wall = world.store.clock().now();
    let doctor = world.operator.doctor(wall).await.unwrap();
    let modules = doctor.checks.iter().find(|check| check.name == "modules of shop").unwrap();
    assert_eq!(modules.found, "no live worker offers module `inventory`");
}

#[tokio::test]
async fn an_effect_that_was_given_up_is_counted_and_not_red() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let why = "the bank has no log".to_owned();
    let abandon = surefoot_operator::Abandon { run, seen, accept_unknown: true, why };
    world.operator.abandon(abandon).await.unwrap();
    alive(&world).await;
    let view = health(&world).await;
    assert_eq!((view.ok, view.unsettled_effects, view.effects_given_up), (true, 0, 1));
    let note = "1 effect was given up without knowing what became of it; it stays listed";
    assert_eq!(view.notes, [note]);
    let listed = world.operator.effects(&app(), None, Micros::ZERO, 9).await.unwrap();
    assert_eq!(listed.effects.len(), 1, "the list and the number agree");
}

#[tokio::test]
async fn a_dry_run_that_nobody_takes_can_be_given_up() {
    let world = World::published().await;
    let ask = surefoot_operator::AskDryRun {
        app: app(),
        scope: SCOPE.into(),
        workflow: "reorder".into(),
        revision: None,
        event: surefoot_kernel_core::Event::start("reorder", serde_json::json!({ "item": "x" })),
    };
    let run = world.operator.dry_run(&world.ids, ask).await.unwrap();
    let explained = world.operator.explain(run).await.unwrap();
    assert!(explained.headline.starts_with("Dry run, nothing is done. "), "{explained}");
    // A worker that executes is alive, and no worker for this.
    let (seen, why) = (explained.revision, "not wanted".to_owned());
    let abandon = surefoot_operator::Abandon { run, seen, accept_unknown: false, why };
    let done = world.operator.abandon(abandon).await.unwrap();
    assert_eq!(done.run.state, surefoot_kernel_core::RunState::Failed);
}
