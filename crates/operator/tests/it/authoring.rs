//! Publishing, activating, emitting.

use serde_json::json;
use surefoot_kernel_core::{Event, PublishError, Scope, Signal, WorkflowKey};
use surefoot_language::Bindings;
use surefoot_operator::{
    ActivateVersion, EmitEvent, ErrorClass, OperatorError, PublishSource, SendTo,
};

use crate::world::{REORDER, SCOPE, World, app, manifest};

fn source<'a>(
    source: &'a str,
    manifest: &'a surefoot_language::Manifest,
    bindings: &'a Bindings,
) -> PublishSource<'a> {
    PublishSource {
        app: app(),
        scope: Scope::from(SCOPE),
        workflow: WorkflowKey::from("reorder"),
        source,
        manifest,
        bindings,
        budget: Default::default(),
        activate: true,
    }
}

#[tokio::test]
async fn what_does_not_compile_is_not_published_and_says_where() {
    let world = World::new();
    let (manifest, bindings) = (manifest(), Bindings::new());
    let publish = source("steps:\n  - payy: {}\n", &manifest, &bindings);
    let error = world.operator.publish(&world.ids, publish).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Refused);
    let OperatorError::Publish(PublishError::Compile { rendered, findings }) = error else {
        panic!("{error}")
    };
    assert!(rendered.contains("payy") && rendered.contains("pay"), "{rendered}");
    assert_eq!(findings[0]["line"], 2);
    assert!(world.operator.workflows(&app(), None).await.unwrap().workflows.is_empty());
}

#[tokio::test]
async fn drafts_change_nothing_until_they_are_activated() {
    let world = World::published().await;
    let (manifest, bindings) = (manifest(), Bindings::new());
    let draft = PublishSource { activate: false, ..source(REORDER, &manifest, &bindings) };
    let published = world.operator.publish(&world.ids, draft).await.unwrap();
    assert_eq!((published.revision, published.active), (2, false));
    let live =
        || async { world.operator.workflows(&app(), None).await.unwrap().workflows[0].active };
    assert_eq!(live().await, Some(1));
    let activate = |seen, why: &str| ActivateVersion {
        app: app(),
        scope: Scope::from(SCOPE),
        workflow: WorkflowKey::from("reorder"),
        revision: 2,
        seen,
        why: why.to_owned(),
    };
    let error = world.operator.activate(activate(Some(7), "x")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conflict);
    let error = world.operator.activate(activate(Some(1), "")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    assert_eq!(live().await, Some(1));
    world.operator.activate(activate(Some(1), "reviewed")).await.unwrap();
    assert_eq!(live().await, Some(2));
    let scope = Scope::from(SCOPE);
    let versions = world.operator.versions(&app(), &scope, &"reorder".into()).await.unwrap();
    let listed: Vec<_> = versions.versions.iter().map(|it| (it.revision, it.active)).collect();
    assert_eq!(listed, [(2, true), (1, false)]);
}

#[tokio::test]
async fn an_event_with_the_same_key_is_the_same_event() {
    let world = World::published().await;
    let emit = |item: &str| {
        let event = Event::new("inventory.stockLow", json!({ "item": item })).dedupe_key("k");
        EmitEvent { app: app(), scope: Scope::from(SCOPE), event }
    };
    let first = world.operator.emit(&world.ids, emit("bolt")).await.unwrap();
    let again = world.operator.emit(&world.ids, emit("nut")).await.unwrap();
    assert!(first.new && !again.new && !again.same_payload);
    assert_eq!((first.event, first.runs), (again.event, again.runs));
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_before_it_is_written() {
    let world = World::new();
    let event = Event::new("", json!({}));
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    let error = world.operator.emit(&world.ids, emit).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    let large = Signal::new("approval", "7").data("x".repeat(70_000));
    let error = world.operator.signal(app(), SendTo::App, large).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Refused);
    assert!(world.operator.app(None).await.is_err(), "nothing was written");
}

#[tokio::test]
async fn caps_are_listed_and_compared() {
    use surefoot_kernel_core::Amounts;
    use surefoot_operator::WhichVersion;
    let world = World::new();
    let (manifest, bindings) = (manifest(), Bindings::new());
    for caps in [vec![("payments", 3.0), ("mails", 9.0)], vec![("payments", 4.5), ("pages", 2.0)]] {
        let budget = Amounts::of(caps).unwrap();
        let publish = PublishSource { budget, ..source(REORDER, &manifest, &bindings) };
        world.operator.publish(&world.ids, publish).await.unwrap();
    }
    let (scope, key) = (Scope::from(SCOPE), WorkflowKey::from("reorder"));
    let versions = world.operator.versions(&app(), &scope, &key).await.unwrap().versions;
    let caps = |nth: usize| serde_json::to_value(&versions[nth].budget).unwrap();
    assert_eq!(
        (caps(0), caps(1)),
        (json!({ "payments": 4.5, "pages": 2 }), json!({ "payments": 3, "mails": 9 }))
    );
    let which = |nth: usize| WhichVersion::Id(versions[nth].id);
    let same = world.operator.diff(which(0), which(0)).await.unwrap();
    assert!(same.is_empty());
    let view = world.operator.diff(which(1), which(0)).await.unwrap();
    assert!(view.diff.is_empty() && !view.is_empty(), "only the caps differ");
    let changes = serde_json::to_value(&view.budget).unwrap();
    assert_eq!(
        changes,
        json!([
            { "dimension": "mails", "before": 9, "after": null },
            { "dimension": "pages", "before": null, "after": 2 },
            { "dimension": "payments", "before": 3, "after": 4.5 },
        ])
    );
}

/// Whoever emits in the scheduler's place would take a slot from it.
#[tokio::test]
async fn the_events_of_schedules_are_not_emitted_by_hand() {
    let world = World::new();
    let event = Event::new("surefoot.schedule.every", json!({})).target("cron");
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    let error = world.operator.emit(&world.ids, emit).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    assert!(error.to_string().contains("`surefoot.schedule.every`"), "{error}");
}
