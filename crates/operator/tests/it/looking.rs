//! What people see.

use expect_test::expect;
use serde_json::{Value, json};
use surefoot_kernel_core::{
    App, EventFilter, Micros, RetentionStore as _, RunFilter, RunId, RunState, Scope, Signal,
    WorkflowKey,
};
use surefoot_operator::{ErrorClass, EventsView, OperatorError, SendTo};

use crate::world::{SCOPE, World, app};

/// Ids of versions and events count up, so everything is the same in every run of the test.
fn pretty(view: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(view).unwrap()
}

#[tokio::test]
async fn runs_have_the_promised_form() {
    let world = World::published().await;
    world.unknown().await;
    let filter = RunFilter { app: Some(app()), limit: 10, ..RunFilter::default() };
    expect![[r#"
        {
          "runs": [
            {
              "id": "run_0000000000036ddceb391c527bcbac03",
              "app": "shop",
              "scope": "berlin",
              "workflow": "reorder",
              "version": 1,
              "mode": "execute",
              "state": "needs_attention",
              "revision": 7,
              "attempt": 2,
              "created_at": "2026-01-01T00:00:00.000000Z",
              "started_at": "2026-01-01T00:00:00.000000Z",
              "finished_at": null,
              "error": {
                "code": "EFFECT_OUTCOME_UNKNOWN",
                "message": "nobody can tell whether the effect of `steps.1` happened: no such service"
              },
              "parent": null
            }
          ],
          "next": null
        }"#]].assert_eq(&pretty(&world.operator.runs(filter).await.unwrap()));
}

#[tokio::test]
async fn a_run_shows_its_cause_and_the_effect_state_beside_each_step_state() {
    let world = World::published().await;
    let run = world.unknown().await;
    expect![[r#"
        {
          "id": "run_0000000000036ddceb391c527bcbac03",
          "app": "shop",
          "scope": "berlin",
          "workflow": "reorder",
          "version": 1,
          "mode": "execute",
          "state": "needs_attention",
          "revision": 7,
          "attempt": 2,
          "created_at": "2026-01-01T00:00:00.000000Z",
          "started_at": "2026-01-01T00:00:00.000000Z",
          "finished_at": null,
          "error": {
            "code": "EFFECT_OUTCOME_UNKNOWN",
            "message": "nobody can tell whether the effect of `steps.1` happened: no such service"
          },
          "parent": null,
          "inputs": {
            "item": "bolt"
          },
          "result": null,
          "result_message": null,
          "event": {
            "id": "evt_00000000000300000000000000000000",
            "type": "inventory.stockLow",
            "key": "bolt",
            "trigger": "stockLow",
            "occurred_at": "2026-01-01T00:00:00.000000Z",
            "payload": {
              "context": null,
              "data": {
                "item": "bolt"
              }
            }
          },
          "budget": [],
          "steps": [
            {
              "key": "steps.0",
              "action": "mail",
              "class": "idempotent",
              "state": "completed",
              "effect_state": "succeeded",
              "effect_key": "e87954166ee177a113c5ea61250530397a9ddd228a4df438873f6e73bc97a496",
              "attempt": null,
              "started_at": "2026-01-01T00:00:00.000000Z",
              "finished_at": "2026-01-01T00:00:00.000000Z",
              "error": null
            },
            {
              "key": "steps.1",
              "action": "pay",
              "class": "ambiguous",
              "state": "needs_attention",
              "effect_state": "ambiguous",
              "effect_key": "55a88732ae693ee6a25202c26ac427857fefef160ebf3e9398ad9ab0d3235013",
              "attempt": 2,
              "started_at": "2026-01-01T00:00:00.000000Z",
              "finished_at": null,
              "error": {
                "code": "EFFECT_OUTCOME_UNKNOWN",
                "message": "nobody can tell whether the effect of `steps.1` happened: no such service"
              }
            }
          ],
          "children": []
        }"#]].assert_eq(&pretty(&world.operator.show(run).await.unwrap()));
}

#[tokio::test]
async fn an_explanation_carries_the_revision_and_the_commands() {
    let world = World::published().await;
    let run = world.unknown().await;
    let explanation = world.operator.explain(run).await.unwrap();
    let revision = world.revision(run).await;
    assert_eq!(explanation.revision, revision);
    let commands: Vec<&str> =
        explanation.legal_actions.iter().map(|action| action.command.as_str()).collect();
    assert_eq!(commands.len(), 6, "{commands:#?}");
    assert!(commands.iter().all(|it| it.contains(&format!("--revision {revision} "))));
}

/// Covers behaviour 142.
#[tokio::test]
async fn explain_and_health_name_what_no_worker_offers() {
    let world = World::published().await;
    let run = world.emitted().await;
    let mut offer = world.footprint().await;
    offer.uses.remove("action/pay");
    world.report(vec![offer], 0).await;
    let explanation = world.operator.explain(run).await.unwrap();
    let text = &explanation.why_not_moving[1].text;
    assert_eq!(text, "no live worker can run it; the nearest lacks action/pay");
    let health = world.operator.health(Some(app()), None).await.unwrap();
    assert_eq!(health.apps[0].missing_modules[0].lacks, ["action/pay"]);
    assert_eq!(health.apps[0].missing_modules[0].due_runs, 1);

    world.report(vec![world.footprint().await], 0).await;
    let health = world.operator.health(Some(app()), None).await.unwrap();
    assert!(health.apps[0].missing_modules.is_empty());
}

/// Covers behaviour 181.
#[tokio::test]
async fn effects_show_their_age_and_young_ones_can_be_left_out() {
    let world = World::published().await;
    let (run, _) = world.paying().await;
    let minute = Micros::from_secs(60);
    let young = world.operator.effects(&app(), None, minute, 10).await.unwrap();
    assert!(young.effects.is_empty());
    world.store.clock().advance(Micros::from_secs(300));
    let old = world.operator.effects(&app(), None, minute, 10).await.unwrap();
    assert_eq!((old.effects[0].run, old.effects[0].age_ms), (run, 300_000));
    expect![[r#"
        {
          "effects": [
            {
              "run": "run_0000000000036ddceb391c527bcbac03",
              "step": "steps.1",
              "action": "pay",
              "effect_key": "55a88732ae693ee6a25202c26ac427857fefef160ebf3e9398ad9ab0d3235013",
              "state": "marked",
              "since": "2026-01-01T00:00:00.000000Z",
              "age_ms": 300000
            }
          ]
        }"#]]
    .assert_eq(&pretty(&old));
}

/// Covers behaviour 180.
#[tokio::test]
async fn unmatched_events_are_listed_and_told_apart() {
    let world = World::published().await;
    assert!(world.emit("inventory.unheard").await.is_empty());
    let filter = EventFilter { app: Some(app()), limit: 10, ..EventFilter::default() };
    let EventsView { events, .. } = world.operator.events(filter).await.unwrap();
    assert_eq!((events[0].status, events[0].kind.as_str()), ("unmatched", "inventory.unheard"));
    world.store.clock().advance(Micros::from_secs(86_400));
    world.report(vec![world.footprint().await], 0).await;
    let health = world.operator.health(None, None).await.unwrap();
    assert!(health.ok, "{health:?}");
    assert_eq!(health.apps[0].events.unmatched, 1);
    assert_eq!(health.apps[0].notes, ["1 event matched no workflow"]);
}

#[tokio::test]
async fn signals_are_listed_until_a_run_used_them() {
    let world = World::published().await;
    let approval = || Signal::new("approval", "7").data(json!({ "by": "bob" }));
    let to = || SendTo::Scope(Scope::from(SCOPE));
    let sent = world.operator.signal(app(), to(), approval()).await.unwrap();
    assert!(sent.new && sent.woken.is_empty());
    let again = world.operator.signal(app(), to(), approval()).await.unwrap();
    assert!(!again.new);
    world.operator.signal(app(), SendTo::App, approval()).await.unwrap();
    let signals = world.operator.signals(&app(), None, 10).await.unwrap().signals;
    let scopes: Vec<Option<&str>> =
        signals.iter().map(|it| it.scope.as_ref().map(Scope::as_str)).collect();
    assert_eq!(scopes.len(), 2);
    assert!(scopes.contains(&None) && scopes.contains(&Some(SCOPE)));
}

#[tokio::test]
async fn pages_follow_each_other() {
    let world = World::published().await;
    for index in 0..5 {
        let event =
            surefoot_kernel_core::Event::start("reorder", json!({ "item": index.to_string() }));
        let scope = Scope::from(SCOPE);
        let emit = surefoot_operator::EmitEvent { app: app(), scope, event };
        world.operator.emit(&world.ids, emit).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let filter = RunFilter { limit: 2, cursor, ..RunFilter::default() };
        let page = world.operator.runs(filter).await.unwrap();
        seen.extend(page.runs.iter().map(|run| run.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 5);
    let filter = RunFilter { cursor: Some("no cursor".to_owned()), ..RunFilter::default() };
    let error = world.operator.runs(filter).await.unwrap_err();
    assert!(matches!(error, OperatorError::NotACursor), "{error}");
    assert_eq!(error.class(), ErrorClass::Usage);
    let states = vec![RunState::Failed];
    let filter = RunFilter { states, limit: 5, ..RunFilter::default() };
    assert!(world.operator.runs(filter).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let world = World::published().await;
    let run = RunId::from_bytes([9; 16]);
    for error in [
        world.operator.show(run).await.unwrap_err(),
        world.operator.explain(run).await.unwrap_err(),
    ] {
        assert!(matches!(error, OperatorError::NotFound { .. }), "{error}");
    }
    let (scope, key) = (Scope::from(SCOPE), WorkflowKey::from("none"));
    let error = world.operator.versions(&app(), &scope, &key).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no workflow `none` in scope `berlin` of app `shop`");
}

#[tokio::test]
async fn the_app_is_found_out_where_there_is_one() {
    let world = World::new();
    let error = world.operator.app(None).await.unwrap_err();
    assert!(matches!(error, OperatorError::NoApp) && error.class() == ErrorClass::Usage);
    world.publish("reorder", crate::world::REORDER).await;
    assert_eq!(world.operator.app(None).await.unwrap(), app());
    let other = App::from("other");
    let approval = Signal::new("approval", "7");
    world.operator.signal(other.clone(), SendTo::App, approval).await.unwrap();
    let error = world.operator.app(None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store holds several apps (other, shop): name one with `--app`"
    );
    assert_eq!(world.operator.app(Some(other.clone())).await.unwrap(), other);
    assert_eq!(world.operator.known_app(Some(other.clone())).await.unwrap(), other);
    let error = world.operator.known_app(Some(App::from("shopp"))).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no app `shopp` in this store; it holds other, shop");
}

/// A store that is mended by hand can hold anything: it is said, and nothing panics.
/// Covers field fault 102.
#[tokio::test]
async fn every_view_is_an_object_with_text_ids() {
    let world = World::published().await;
    let run = world.emitted().await;
    let shown = serde_json::to_value(world.operator.show(run).await.unwrap()).unwrap();
    assert_eq!(shown["id"], Value::String(run.to_string()));
    assert_eq!(shown["event"]["payload"]["data"], json!({ "item": "bolt" }));
    assert_eq!(shown["budget"], json!([]));
}

/// Covers behaviours 84, 186.
#[tokio::test]
async fn an_expired_payload_is_shown_as_expired_and_the_cause_stays() {
    let world = World::published().await;
    let run = world.failed().await;
    let before = world.operator.show(run).await.unwrap();
    assert_eq!(before.event.as_ref().unwrap().payload["data"]["item"], "bolt");
    world.store.clock().advance(Micros::from_secs(31 * 86_400));
    assert_eq!(world.store.event_expire(&app(), 10).await.unwrap().emptied, 1);
    let after = world.operator.show(run).await.unwrap();
    let event = after.event.unwrap();
    assert_eq!(event.payload, serde_json::json!("expired"));
    assert_eq!(event.key, before.event.unwrap().key);
    assert_eq!(after.inputs, before.inputs, "the run has a copy of its own");
    let events = world.operator.events(EventFilter { limit: 9, ..EventFilter::default() }).await;
    assert!(events.unwrap().events[0].expired);
}
