//! Scopes, names, keys that were used before: what is misspelt is told, never shown as nothing.

use serde_json::json;
use surefoot_kernel_core::{
    Event, EventFilter, Micros, Prunable, Prune, RetentionStore as _, RunFilter, RunState, Scope,
    Signal, WorkflowKey,
};
use surefoot_language::Bindings;
use surefoot_operator::{
    Cancel, EmitEvent, EmittedView, ErrorClass, Operator, OperatorError, PrunePolicy,
    PublishSource, SendTo, Switch, TimelineOf,
};

use crate::world::{REORDER, SCOPE, World, app, manifest};

async fn emit(world: &World, scope: &str, event: Event) -> EmittedView {
    let emit = EmitEvent { app: app(), scope: Scope::from(scope), event };
    world.operator.emit(&world.ids, emit).await.unwrap()
}

fn low() -> Event {
    Event::new("inventory.stockLow", json!({ "item": "bolt" }))
}

#[track_caller]
fn starts_nothing(emitted: &EmittedView, why: &str) {
    let said = emitted.why_nothing.as_deref().unwrap();
    assert!(emitted.runs.is_empty() && said.contains(why), "{said}");
    assert!(said.contains("starts nothing later: once that is mended, emit it again"), "{said}");
}

#[tokio::test]
async fn an_event_that_starts_nothing_says_which_mistake_it_was() {
    let world = World::published().await;
    starts_nothing(&emit(&world, "berln", low()).await, "there are workflows in berlin");
    let start = |workflow: &str| Event::start(workflow, json!({}));
    starts_nothing(&emit(&world, SCOPE, start("reordr")).await, "it has reorder");
    let unheard = Event::new("inventory.stockLo", json!({}));
    starts_nothing(&emit(&world, SCOPE, unheard).await, "but to inventory.stockLow");
    let switch = Switch {
        app: app(),
        scope: Scope::from(SCOPE),
        workflow: WorkflowKey::from("reorder"),
        activation: Some("stockLow".to_owned()),
        enabled: false,
        why: "the feed is wrong".to_owned(),
    };
    world.operator.switch(switch).await.unwrap();
    let off = emit(&world, SCOPE, low().dedupe_key("bolt")).await;
    starts_nothing(&off, "activation `stockLow` is switched off");
    assert_eq!(
        off.command.as_deref(),
        Some("surefoot enable reorder stockLow --app shop --scope berlin --reason '<why>'")
    );
    assert!(off.why_nothing.unwrap().ends_with("under another key"));
    let again = emit(&world, SCOPE, low().dedupe_key("bolt")).await;
    assert!(again.why_nothing.unwrap().contains("a repeat starts nothing"), "{}", again.new);
    let heard = emit(&world, SCOPE, start("reorder")).await;
    assert_eq!((heard.runs.len(), heard.why_nothing), (1, None));
}

/// Events stay, so one for a misspelt app would make it an app for ever.
#[tokio::test]
async fn an_event_for_a_misspelt_app_is_not_recorded() {
    let of = |app: &str| EmitEvent {
        app: surefoot_kernel_core::App::from(app),
        scope: Scope::from(SCOPE),
        event: low(),
    };
    let world = World::published().await;
    let refused = world.operator.emit(&world.ids, of("shpo")).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Refused);
    assert_eq!(refused.to_string(), "there is no app `shpo` in this store; it holds shop");
    assert_eq!(world.operator.apps().await.unwrap(), [app()]);
    // Where nothing is known yet, nothing is misspelt.
    let empty = World::new();
    empty.operator.emit(&empty.ids, of("shop")).await.unwrap();
}

#[tokio::test]
async fn a_repeated_event_says_which_of_its_runs_are_gone() {
    let world = World::published().await;
    let run = emit(&world, SCOPE, low().dedupe_key("bolt")).await.runs[0];
    let repeated = emit(&world, SCOPE, low().dedupe_key("bolt")).await;
    assert_eq!((repeated.new, repeated.gone.len()), (false, 0));
    let cancel = Cancel { run, seen: None, why: "late".to_owned() };
    world.operator.cancel(cancel).await.unwrap();
    world.store.clock().advance(Micros::from_secs(10));
    let what = Prunable::Runs { states: vec![RunState::Canceled] };
    let before = world.store.clock().now();
    let prune = Prune { app: app(), scope: None, what, before, limit: 10, audit: None };
    assert_eq!(world.store.prune(prune).await.unwrap().deleted, 1);
    let repeated = emit(&world, SCOPE, low().dedupe_key("bolt")).await;
    assert_eq!((&repeated.runs, &repeated.gone), (&vec![run], &vec![run]));
}

#[tokio::test]
async fn a_misspelt_scope_is_no_scope_where_nothing_happens() {
    let world = World::published().await;
    world.unknown().await;
    let (here, typo) = (Scope::from(SCOPE), Scope::from("berln"));
    let is_told = |error: OperatorError| {
        assert_eq!(error.class(), ErrorClass::Refused);
        assert!(error.to_string().contains("nothing is known of it"), "{error}");
    };
    let of = |scope: &Scope| RunFilter {
        app: Some(app()),
        scope: Some(scope.clone()),
        limit: 10,
        ..RunFilter::default()
    };
    let events = |scope: &Scope| EventFilter {
        app: Some(app()),
        scope: Some(scope.clone()),
        limit: 10,
        ..EventFilter::default()
    };
    let operator = &world.operator;
    assert_eq!(operator.runs(of(&here)).await.unwrap().runs.len(), 1);
    is_told(operator.runs(of(&typo)).await.unwrap_err());
    assert_eq!(operator.events(events(&here)).await.unwrap().events.len(), 1);
    is_told(operator.events(events(&typo)).await.unwrap_err());
    let span = Micros::ZERO;
    assert_eq!(operator.effects(&app(), Some(&here), span, 9).await.unwrap().effects.len(), 1);
    is_told(operator.effects(&app(), Some(&typo), span, 9).await.unwrap_err());
    is_told(operator.signals(&app(), Some(&typo), 9).await.unwrap_err());
    is_told(operator.audit(&app(), Some(&typo), 9).await.unwrap_err());
    is_told(operator.workflows(&app(), Some(&typo)).await.unwrap_err());
    let timeline = |scope: &Scope| TimelineOf {
        app: app(),
        scope: Some(scope.clone()),
        span: Micros::from_secs(3_600),
        slices: 4,
    };
    assert_eq!(operator.timeline(timeline(&here)).await.unwrap().total, 1);
    is_told(operator.timeline(timeline(&typo)).await.unwrap_err());
    let policy = PrunePolicy {
        app: app(),
        scope: Some(typo),
        older_than: span,
        states: vec![RunState::Failed],
        spent_signals: false,
        unmatched_events: false,
        audit: false,
        why: "late".to_owned(),
    };
    is_told(operator.prune(policy, |_| ()).await.unwrap_err());
    // A scope in which only a signal waits is known, though its other lists are empty.
    let (to, signal) = (SendTo::Scope(Scope::from("bonn")), Signal::new("approval", "7"));
    operator.signal(app(), to, signal).await.unwrap();
    assert!(operator.runs(of(&Scope::from("bonn"))).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn a_run_of_another_place_is_not_the_one_that_was_meant() {
    let world = World::published().await;
    let run = world.emitted().await;
    let (bank, shop) = (surefoot_kernel_core::App::from("bank"), app());
    let (here, there) = (Scope::from(SCOPE), Scope::from("bonn"));
    for (app, scope, is_there) in [
        (None, None, true),
        (Some(&shop), Some(&here), true),
        (None, Some(&there), false),
        (Some(&bank), None, false),
        (Some(&shop), Some(&there), false),
    ] {
        let checked = world.operator.check_place(run, app, scope).await;
        assert_eq!(checked.is_ok(), is_there, "{app:?} {scope:?}");
        if let Err(error) = checked {
            assert!(error.to_string().ends_with("it is in shop/berlin"), "{error}");
        }
    }
}

#[tokio::test]
async fn what_is_no_name_and_what_is_too_long_for_the_audit_is_refused() {
    let world = World::published().await;
    let run = world.emitted().await;
    let before = (world.row(run).await, world.audit().await);
    let cancel = |why: String| Cancel { run, seen: None, why };
    let usage = |error: OperatorError, says: &str| {
        assert_eq!(error.class(), ErrorClass::Usage, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let long = world.operator.cancel(cancel("x".repeat(2_001))).await.unwrap_err();
    usage(long, "2001 characters, the limit is 2000");
    for actor in ["", " ", "ann\u{1b}[2J", &"a".repeat(201)] {
        let nobody: Operator = world.operator.acting_as(actor);
        let refused = nobody.cancel(cancel("late".to_owned())).await.unwrap_err();
        usage(refused, "cannot be the name of an actor");
    }
    let emit = EmitEvent { app: app(), scope: Scope::from(" "), event: low() };
    usage(world.operator.emit(&world.ids, emit).await.unwrap_err(), "name of a scope");
    let to = SendTo::Scope(Scope::from(""));
    let signaled = world.operator.signal(app(), to, Signal::new("approval", "7")).await;
    usage(signaled.unwrap_err(), "name of a scope");
    let (manifest, bindings) = (manifest(), Bindings::new());
    let publish = PublishSource {
        app: app(),
        scope: Scope::from(SCOPE),
        workflow: WorkflowKey::from("my flow"),
        source: REORDER,
        manifest: &manifest,
        bindings: &bindings,
        budget: Default::default(),
        activate: true,
    };
    let published = world.operator.publish(&world.ids, publish).await;
    usage(published.unwrap_err(), "name of a workflow");
    assert_eq!((world.row(run).await, world.audit().await), before);
}

#[tokio::test]
async fn the_audit_tells_of_which_workflow_and_what_was_said_of_which_step() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let resolve = surefoot_operator::Resolve {
        run,
        step: "steps.1".into(),
        seen,
        verdict: surefoot_kernel_core::Verdict::NotPerformed,
        why: "the bank has no such charge".to_owned(),
    };
    world.operator.resolve(resolve).await.unwrap();
    let row = world.operator.audit(&app(), None, 1).await.unwrap().audit.remove(0);
    let step = row.step.as_ref().map(|step| step.as_str());
    assert_eq!((step, row.verdict.as_deref()), (Some("steps.1"), Some("not_performed")));
    assert_eq!(row.workflow, Some(WorkflowKey::from("reorder")));
}

/// What a list is narrowed to must be there, else it looks as if nothing happened.
#[tokio::test]
async fn a_list_of_runs_is_not_empty_for_a_name_that_is_not_there() {
    let world = World::published().await;
    let of = |workflow: &str| RunFilter {
        app: Some(app()),
        workflow: Some(workflow.into()),
        limit: 10,
        ..RunFilter::default()
    };
    assert!(world.operator.runs(of("reorder")).await.unwrap().runs.is_empty());
    let error = world.operator.runs(of("nope")).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no workflow `nope` in app `shop`; it has reorder");
    let error = world.operator.retry_failed(of("nope"), None, "mended").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Refused, "{error}");
    let parent = surefoot_kernel_core::RunId::from_bytes([9; 16]);
    let filter = RunFilter { parent: Some(parent), limit: 10, ..RunFilter::default() };
    let error = world.operator.runs(filter).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no run {parent}"));
    let code = surefoot_kernel_core::Code::from("a b");
    let error =
        world.operator.retry_failed(of("reorder"), Some(&code), "mended").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage, "{error}");
}

/// A name that is none was asked for in the wrong way.
#[tokio::test]
async fn what_has_the_wrong_length_is_wrong_usage() {
    let world = World::published().await;
    for event in
        [Event::new("", json!({})), low().dedupe_key(""), Event::new("x".repeat(201), json!({}))]
    {
        let emit = EmitEvent { app: app(), scope: SCOPE.into(), event };
        let error = world.operator.emit(&world.ids, emit).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Usage, "{error}");
    }
    let to = SendTo::Scope(SCOPE.into());
    let signal = Signal::new("", "k");
    let error = world.operator.signal(app(), to, signal).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage, "{error}");
}
