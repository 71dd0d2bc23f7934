//! Versions and activations: immutable, numbered, and switched in one step.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Activate, App, Event, Micros, OperatorStore as _, PlanStore as _, Publish, PublishError,
    RunState, Scope, SetActivation, VersionId, WorkflowKey, payload,
};

use super::world::{World, app, scope, succeeded};
use super::{StoreFactory, Tamper, Tampered};
use crate::plans::{plan, pure, scheduled, triggered};

const LOW: &str = "stock.low";

fn listening() -> Plan {
    triggered(plan(vec![pure("a")]), "low", LOW)
}

fn low() -> Event {
    Event::new(LOW, json!({ "item": "bolt" }))
}

fn activation(revision: u64, expected: Option<u64>) -> Activate {
    Activate {
        app: app(),
        scope: scope(),
        workflow: WorkflowKey::from("flow"),
        revision,
        expected,
        actor: "bob".to_owned(),
        reason: "back to what worked".to_owned(),
    }
}

/// Covers behaviour 61.
pub async fn concurrent_publishes_get_numbers_without_gap<F: StoreFactory>(world: &World<F>) {
    let mut publishes = tokio::task::JoinSet::new();
    for process in 0..10 {
        let store = if process % 2 == 0 { world.store.clone() } else { world.other.clone() };
        let publish = world.publication("flow", listening());
        publishes.spawn(async move { store.version_publish(publish).await.unwrap().revision });
    }
    let mut revisions = publishes.join_all().await;
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=10).collect::<Vec<_>>());
    let workflow = world.store.workflow_list(&app(), None).await.unwrap().remove(0);
    assert_eq!(workflow.latest, 10);
    assert!(workflow.active.is_some());
    assert_eq!(world.emit(low()).await.matched, 1);
}

/// Covers behaviour 62.
pub async fn a_stored_version_refuses_an_update<F: StoreFactory>(world: &World<F>) {
    let published = world.publish("flow", listening()).await;
    let before = world.store.version_load(published.version).await.unwrap();
    match world.factory.tamper(Tamper::UpdateVersion(published.version)).await {
        Tampered::Unsupported => eprintln!("skipped: nobody but the store writes its versions"),
        tampered @ (Tampered::Done | Tampered::Refused) => assert_eq!(tampered, Tampered::Refused),
    }
    assert_eq!(world.store.version_load(published.version).await.unwrap(), before);
}

/// Covers behaviour 63.
pub async fn a_draft_changes_nothing_that_is_live<F: StoreFactory>(world: &World<F>) {
    let first = world.publish("flow", listening()).await;
    let before = world.store.workflow_list(&app(), None).await.unwrap().remove(0);
    let draft = Publish { activate: false, ..world.publication("flow", plan(vec![pure("b")])) };
    let draft = world.store.version_publish(draft).await.unwrap();
    assert_eq!(draft.revision, 2);
    let after = world.store.workflow_list(&app(), None).await.unwrap().remove(0);
    assert_eq!((after.active, after.latest), (Some(1), 2));
    assert_eq!(after.activations, before.activations);
    let run = world.emit(low()).await.runs[0];
    assert_eq!(world.row(run).await.origin.version, first.version);
    assert!(!world.store.version_load(draft.version).await.unwrap().unwrap().active);

    let only = Publish { activate: false, ..world.publication("draft", listening()) };
    world.store.version_publish(only).await.unwrap();
    assert_eq!(world.emit(low()).await.matched, 1);
    let rows = world.store.workflow_list(&app(), None).await.unwrap();
    assert_eq!((rows[0].workflow.as_str(), rows[0].active, rows[0].latest), ("draft", None, 1));
}

/// A stored version goes live only over the version that the caller saw, and the audit says who did it.
pub async fn a_stored_version_is_made_live_on_request<F: StoreFactory>(world: &World<F>) {
    let first = world.publish("flow", listening()).await;
    world.publish("flow", plan(vec![pure("b")])).await;
    assert_eq!(world.emit(low()).await.matched, 0);
    let seen = world.store.version_activate(activation(1, Some(1))).await;
    let Err(PublishError::NotExpected { expected: Some(1), active: Some(2) }) = seen else {
        unreachable!("{seen:?}")
    };
    assert_eq!(world.emit(low()).await.matched, 0);
    let activated = world.store.version_activate(activation(1, Some(2))).await.unwrap();
    assert_eq!((activated.version, activated.revision), (first.version, 1));
    let run = world.emit(low()).await.runs[0];
    assert_eq!(world.row(run).await.origin.version, first.version);
    let audit = world.store.audit_list(&app(), None, 1).await.unwrap().remove(0);
    assert_eq!((audit.actor.as_str(), audit.version), ("bob", Some(first.version)));
    assert_eq!(audit.reason, "back to what worked");
    let before = world.store.audit_list(&app(), None, 100).await.unwrap();
    let again = world.store.version_activate(activation(1, Some(1))).await.unwrap();
    assert_eq!(again, activated);
    let after = world.store.audit_list(&app(), None, 100).await.unwrap();
    assert_eq!(after, before, "what changes nothing is not written down");
    world.store.version_activate(activation(2, None)).await.unwrap();
    assert_eq!(world.emit(low()).await.matched, 0);
}

/// Covers behaviour 192.
///
/// A schedule stands since it first stood like this, over new versions; one that was gone, or is due at other times,
/// begins anew.
pub async fn an_equal_schedule_stands_over_new_versions<F: StoreFactory>(world: &World<F>) {
    let nightly =
        |cron: &str| scheduled(plan(vec![pure("a")]), "nightly", cron, Some("Europe/Berlin"));
    let listed = async || world.store.schedule_list(&app()).await.unwrap();
    world.publish("flow", nightly("0 2 * * *")).await;
    let first = listed().await;
    let row = first.rows[0].clone();
    assert_eq!((row.workflow.as_str(), row.key.as_str(), row.enabled), ("flow", "nightly", true));
    assert_eq!((&row.scope, row.schedule.cron.as_str()), (&scope(), "0 2 * * *"));
    assert!(row.since <= first.now);
    let again = async |plan: Plan| {
        world.pass_secs(60).await;
        world.publish("flow", plan).await;
        listed().await.rows
    };
    let weekly = scheduled(nightly("0 2 * * *"), "weekly", "0 9 * * 1", None);
    let both = again(weekly).await;
    assert_eq!((both.len(), both[0].since), (2, row.since), "the same schedule");
    assert!(both[1].since > row.since);
    let other = again(nightly("0 3 * * *")).await;
    assert!(other.len() == 1 && other[0].since > both[1].since, "another time");
    assert!(again(plan(vec![pure("b")])).await.is_empty(), "no schedule");
    let back = again(nightly("0 3 * * *")).await;
    assert!(back[0].since > other[0].since, "it was gone");
    assert!(world.store.schedule_list(&App::from("other")).await.unwrap().rows.is_empty());
    let draft = Publish { activate: false, ..world.publication("draft", nightly("0 2 * * *")) };
    world.store.version_publish(draft).await.unwrap();
    assert_eq!(listed().await.rows.len(), 1, "a draft is not live");
}

/// What passed while a schedule was disabled is never due; what was enabled all the time stands as it did.
pub async fn a_schedule_that_is_enabled_again_begins_anew<F: StoreFactory>(world: &World<F>) {
    let both = scheduled(plan(vec![pure("a")]), "nightly", "0 2 * * *", None);
    let both = scheduled(both, "weekly", "0 9 * * 1", None);
    let since = async || {
        let rows = world.store.schedule_list(&app()).await.unwrap().rows;
        [rows[0].since, rows[1].since]
    };
    world.publish("flow", both).await;
    let [nightly, weekly] = since().await;
    world.pass_secs(60).await;
    world.store.activation_set(switch(Some("nightly"), false)).await.unwrap();
    assert_eq!(since().await, [nightly, weekly]);
    world.pass_secs(60).await;
    world.store.activation_set(switch(None, true)).await.unwrap();
    let [again, same] = since().await;
    assert!(again >= nightly.plus(Micros::from_secs(120)), "{again} after {nightly}");
    assert_eq!(same, weekly);
    world.pass_secs(60).await;
    world.store.activation_set(switch(None, true)).await.unwrap();
    assert_eq!(since().await, [again, weekly], "it was enabled already");
}

/// What is not there cannot be made live.
pub async fn an_unknown_revision_is_not_found<F: StoreFactory>(world: &World<F>) {
    let nothing = world.store.version_activate(activation(1, None)).await;
    assert!(matches!(nothing, Err(PublishError::NotFound { .. })), "{nothing:?}");
    world.publish("flow", listening()).await;
    for revision in [0, 2, u64::MAX] {
        let nothing = world.store.version_activate(activation(revision, None)).await;
        assert!(matches!(nothing, Err(PublishError::NotFound { .. })), "{nothing:?}");
    }
    let unknown = VersionId::from_bytes([9; 16]);
    assert_eq!(world.store.version_load(unknown).await.unwrap(), None);
    assert_eq!(world.emit(low()).await.matched, 1);
}

/// Covers behaviour 64.
pub async fn what_an_operator_disabled_stays_disabled<F: StoreFactory>(world: &World<F>) {
    let both = triggered(listening(), "high", "stock.high");
    world.publish("flow", both.clone()).await;
    let disable = Tamper::DisableActivation {
        app: app(),
        scope: scope(),
        workflow: WorkflowKey::from("flow"),
        activation: "low".to_owned(),
    };
    if !world.tamper(disable).await {
        return;
    }
    for _ in 0..2 {
        assert_eq!(world.emit(low()).await.matched, 0);
        assert_eq!(world.emit(Event::new("stock.high", json!({}))).await.matched, 1);
        let row = world.store.workflow_list(&app(), None).await.unwrap().remove(0);
        let mut switches = row.activations;
        switches.sort();
        let expected =
            [("high", "stock.high", true), ("low", LOW, false), ("start", "surefoot.start", true)];
        assert_eq!(switches, expected.map(|(k, e, on)| (k.to_owned(), e.to_owned(), on)));
        world.publish("flow", both.clone()).await;
    }
}

/// Covers behaviour 65.
/// Covers field fault 119.
pub async fn a_dropped_trigger_starts_nothing_more_and_ends_nothing<F: StoreFactory>(
    world: &World<F>,
) {
    let first = world.publish("flow", listening()).await;
    let run = world.emit(low()).await.runs[0];
    world.publish("flow", plan(vec![pure("b")])).await;
    assert_eq!(world.emit(low()).await.matched, 0);
    let mut drive = world.claim_run(run).await;
    assert_eq!(drive.run().origin.version, first.version);
    let ended = drive.to_end(&world.store, |call| {
        assert_eq!(call.action, "a", "the run follows the version that it is pinned to");
        crate::Reply::Answer(succeeded(json!(1)))
    });
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
}

/// A version reads back as it was published.
pub async fn a_version_reads_back_as_it_was_published<F: StoreFactory>(world: &World<F>) {
    let before = world.now().await;
    let publish = world.publication("flow", triggered(listening(), "high", "stock.high"));
    let published = world.store.version_publish(publish.clone()).await.unwrap();
    assert_eq!((published.version, published.revision), (publish.version, 1));
    let stored = world.other.version_load(publish.version).await.unwrap().unwrap();
    let read: Plan = payload::from_stored(&stored.plan).unwrap();
    assert_eq!(read, publish.plan);
    assert_eq!((stored.plan_hash, read.hash()), (publish.plan.hash(), publish.plan.hash()));
    assert_eq!((stored.footprint, stored.source), (publish.plan.footprint, publish.source));
    assert_eq!((stored.app, stored.scope, stored.workflow), (app(), scope(), publish.workflow));
    assert_eq!((stored.revision, stored.author, stored.active), (1, publish.author, true));
    assert!(before <= stored.created_at && stored.created_at <= world.now().await);
}

/// Lists are in order, complete, and do not carry plans.
pub async fn versions_are_listed_newest_first_without_their_plans<F: StoreFactory>(
    world: &World<F>,
) {
    for _ in 0..3 {
        world.publish("flow", listening()).await;
    }
    world.publish("other", listening()).await;
    let flow = WorkflowKey::from("flow");
    let listed = world.store.version_list(&app(), &scope(), &flow).await.unwrap();
    let shape: Vec<_> = listed.iter().map(|version| (version.revision, version.active)).collect();
    assert_eq!(shape, [(3, true), (2, false), (1, false)]);
    assert!(listed.iter().all(|version| version.plan.is_empty() && version.source.is_empty()));
    let nothing = world.store.version_list(&app(), &Scope::from("south"), &flow).await.unwrap();
    assert!(nothing.is_empty());
}

/// A key means one workflow in each app and scope, and lists keep to one app.
pub async fn a_workflow_is_its_app_scope_and_key<F: StoreFactory>(world: &World<F>) {
    for (app, scope, key) in [
        ("shop", "north", "b"),
        ("shop", "south", "a"),
        ("bank", "north", "b"),
        ("shop", "north", "a"),
    ] {
        let publish = world.publication(key, listening());
        let publish = Publish { app: App::from(app), scope: Scope::from(scope), ..publish };
        assert_eq!(world.store.version_publish(publish).await.unwrap().revision, 1);
    }
    let keys = |rows: Vec<surefoot_kernel_core::WorkflowRow>| {
        let row = |row: surefoot_kernel_core::WorkflowRow| {
            (row.scope.to_string(), row.workflow.to_string())
        };
        rows.into_iter().map(row).collect::<Vec<_>>()
    };
    let all = keys(world.store.workflow_list(&app(), None).await.unwrap());
    let expected = [("north", "a"), ("north", "b"), ("south", "a")];
    assert_eq!(all, expected.map(|(scope, key)| (scope.to_owned(), key.to_owned())));
    let south = Scope::from("south");
    assert_eq!(keys(world.store.workflow_list(&app(), Some(&south)).await.unwrap()).len(), 1);
    assert_eq!(world.emit(low()).await.matched, 2);
    assert_eq!(world.store.app_list().await.unwrap(), [App::from("bank"), app()]);
}

/// A key has 1 to 200 characters, whatever they are.
///
/// Covers field fault 93.
pub async fn a_key_of_the_wrong_length_is_refused<F: StoreFactory>(world: &World<F>) {
    for key in ["", &"k".repeat(201)] {
        let refused = world.store.version_publish(world.publication(key, listening())).await;
        assert!(matches!(refused, Err(PublishError::KeyLength { .. })), "{refused:?}");
    }
    for key in ["a/b %20", "\u{202e}é😀", &"ü".repeat(200)] {
        assert_eq!(world.publish(key, plan(vec![pure("a")])).await.revision, 1);
        let run = world.start(key).await;
        assert_eq!(world.row(run).await.origin.workflow.as_str(), key);
    }
}

fn switch(activation: Option<&str>, enabled: bool) -> SetActivation {
    SetActivation {
        app: app(),
        scope: scope(),
        workflow: WorkflowKey::from("flow"),
        activation: activation.map(str::to_owned),
        enabled,
        actor: "bob".to_owned(),
        reason: "the feed is wrong".to_owned(),
    }
}

/// Covers behaviour 64.
pub async fn an_activation_is_switched_off_and_on<F: StoreFactory>(world: &World<F>) {
    let both = triggered(listening(), "high", "stock.high");
    world.publish("flow", both.clone()).await;
    let off = world.store.activation_set(switch(Some("low"), false)).await.unwrap();
    assert_eq!(off.changed, ["low"]);
    let row = world.store.audit_list(&app(), None, 1).await.unwrap().remove(0);
    assert_eq!((row.verb.as_str(), row.actor.as_str(), row.scope), ("disable", "bob", scope()));
    let again = world.store.activation_set(switch(Some("low"), false)).await.unwrap();
    assert!(again.changed.is_empty());
    assert_eq!(
        world.store.audit_list(&app(), None, 100).await.unwrap().len(),
        2,
        "nothing, no row"
    );
    // A version without the trigger does not forget the switch.
    world.publish("flow", plan(vec![pure("b")])).await;
    world.publish("flow", both).await;
    assert_eq!(world.emit(low()).await.matched, 0);
    assert_eq!(world.emit(Event::new("stock.high", json!({}))).await.matched, 1);
    let on = world.store.activation_set(switch(Some("low"), true)).await.unwrap();
    assert_eq!(on.changed, ["low"]);
    assert_eq!(world.emit(low()).await.matched, 1);
    for unknown in [
        switch(Some("nothing"), false),
        SetActivation { workflow: WorkflowKey::from("none"), ..switch(None, false) },
    ] {
        let unknown = world.store.activation_set(unknown).await;
        assert!(matches!(unknown, Err(PublishError::NotFound { .. })), "{unknown:?}");
    }
}

/// Covers behaviour 68.
pub async fn a_disabled_workflow_matches_nothing<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", triggered(listening(), "high", "stock.high")).await;
    let off = world.store.activation_set(switch(None, false)).await.unwrap();
    assert_eq!(off.changed, ["high", "low", "start"]);
    for event in [low(), Event::new("stock.high", json!({})), Event::start("flow", json!({}))] {
        assert_eq!(world.emit(event).await.matched, 0);
    }
    let row = world.store.workflow_list(&app(), None).await.unwrap().remove(0);
    assert_eq!(row.active, Some(1), "its version is still there to be looked at, or run dry");
    world.store.activation_set(switch(None, true)).await.unwrap();
    assert_eq!(world.emit(low()).await.matched, 1);
}
