//! Deleting workflows and scopes: all of it, nothing else, and never over an effect that nobody can explain.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    App, Audit, CreateDryRun, Delete, Deleted, Emit, EmitError, Event, EventFilter, EventStatus,
    EventStore as _, LoadRequest, OperatorStore as _, Place, PlanStore as _, Prunable, Prune,
    Publish, PublishError, Redrive, RetentionError, RetentionStore as _, RunFilter, RunId,
    RunState, RunStore as _, Scope, SetActivation, Signal, SignalError, WorkflowKey,
};

use super::operator::{in_attention, nobody_can_tell};
use super::retention::ended;
use super::world::{World, app, scope, send, succeeded};
use super::{StoreFactory, Tamper};
use crate::plans::{idempotent, plan, pure, triggered};

const LOW: &str = "stock.low";

fn place(workflow: Option<&str>) -> Place {
    Place { app: app(), scope: scope(), workflow: workflow.map(WorkflowKey::from) }
}

fn delete(workflow: Option<&str>, force: Force) -> Delete {
    let (actor, reason) = ("bob".to_owned(), "the customer left".to_owned());
    Delete { place: place(workflow), force, actor, reason }
}

/// Passes until the deletion is done, or something holds it up.
async fn go_on<F: StoreFactory>(world: &World<F>, workflow: Option<&str>) -> Deleted {
    for _ in 0..200 {
        let pass = world.store.delete_pass(place(workflow), 2).await.unwrap();
        if pass.done || !pass.unexplained.is_empty() || pass.ending > 0 {
            return pass;
        }
    }
    unreachable!("the deletion comes to no end")
}

async fn delete_all<F: StoreFactory>(world: &World<F>, workflow: Option<&str>) {
    world.store.delete_begin(delete(workflow, Force::No)).await.unwrap();
    let last = go_on(world, workflow).await;
    assert!(last.done, "{last:?}");
}

async fn is_there<F: StoreFactory>(world: &World<F>, run: RunId) -> bool {
    let request = LoadRequest { run, after: None };
    world.store.run_load(request).await.unwrap().is_some()
}

async fn count_events<F: StoreFactory>(world: &World<F>, of: &App, at: &Scope) -> usize {
    let (app, scope) = (Some(of.clone()), Some(at.clone()));
    let filter = EventFilter { app, scope, limit: 100, ..EventFilter::default() };
    world.store.event_list(filter).await.unwrap().rows.len()
}

async fn populate<F: StoreFactory>(world: &World<F>, of: &App, at: &Scope) -> RunId {
    for workflow in ["flow", "other"] {
        let plan = triggered(plan(vec![pure("a")]), "low", LOW);
        let publication = world.publication(workflow, plan);
        let publish = Publish { app: of.clone(), scope: at.clone(), ..publication };
        world.store.version_publish(publish).await.unwrap();
    }
    let mut runs = Vec::new();
    for nth in 0..3 {
        let event = Event::new(LOW, json!({})).dedupe_key(nth.to_string());
        let emit = Emit { app: of.clone(), scope: at.clone(), ..world.emission(event) };
        runs.extend(world.store.event_emit(emit).await.unwrap().runs);
    }
    let signal = send(Signal::new("approval", "7"));
    let signal =
        surefoot_kernel_core::SendSignal { app: of.clone(), scope: Some(at.clone()), ..signal };
    world.store.signal_send(signal).await.unwrap();
    runs[0]
}

/// Covers behaviour 69.
pub async fn a_scope_goes_with_all_it_has_and_nothing_else<F: StoreFactory>(world: &World<F>) {
    let (south, bank) = (Scope::from("south"), App::from("bank"));
    let gone = populate(world, &app(), &scope()).await;
    let mut kept = Vec::new();
    for (of, at) in [(app(), south.clone()), (bank.clone(), scope())] {
        kept.push((populate(world, &of, &at).await, of, at));
    }
    delete_all(world, None).await;
    assert!(!is_there(world, gone).await);
    assert_eq!(count_events(world, &app(), &scope()).await, 0);
    assert!(world.store.workflow_list(&app(), Some(&scope())).await.unwrap().is_empty());
    let filter =
        RunFilter { app: Some(app()), scope: Some(scope()), limit: 100, ..RunFilter::default() };
    assert!(world.store.run_list(filter).await.unwrap().rows.is_empty());
    let signals = world.store.signal_list(&app(), None, 100).await.unwrap();
    assert_eq!(signals.iter().map(|row| row.scope.clone()).collect::<Vec<_>>(), [Some(south)]);
    for (run, of, at) in kept {
        assert!(is_there(world, run).await);
        assert_eq!(count_events(world, &of, &at).await, 3);
        assert_eq!(world.store.workflow_list(&of, Some(&at)).await.unwrap().len(), 2);
        assert_eq!(world.store.signal_list(&of, None, 100).await.unwrap().len(), 1);
    }
    let verbs = world.store.audit_list(&app(), None, 100).await.unwrap();
    let verbs: Vec<&str> = verbs.iter().map(|row| row.verb.as_str()).collect();
    assert!(verbs.contains(&"delete") && verbs.contains(&"deleted") && verbs.contains(&"publish"));
}

/// Covers behaviour 70.
pub async fn a_workflow_that_has_run_is_deleted<F: StoreFactory>(world: &World<F>) {
    let run = ended(world).await;
    world.publish("other", plan(vec![pure("a")])).await;
    let other = world.start("other").await;
    delete_all(world, Some("flow")).await;
    assert!(!is_there(world, run).await && is_there(world, other).await);
    let left = world.store.workflow_list(&app(), None).await.unwrap();
    assert_eq!(left.iter().map(|row| row.workflow.as_str()).collect::<Vec<_>>(), ["other"]);
    world.publish("flow", plan(vec![pure("a")])).await;
    let again = world.start("flow").await;
    assert_ne!(again, run);
    assert_eq!(world.row(again).await.state(), RunState::Queued);
}

/// Covers behaviour 85.
pub async fn a_delivery_to_a_deleted_workflow_fails_in_sight<F: StoreFactory>(world: &World<F>) {
    let listening = || triggered(plan(vec![pure("a")]), "low", LOW);
    world.publish("flow", listening()).await;
    world.publish("other", listening()).await;
    let pending = world.emit(Event::new(LOW, json!({})).deferred()).await.event;
    delete_all(world, Some("flow")).await;
    let healthy = world.emit(Event::new(LOW, json!({})).deferred()).await.event;
    let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!((pass.dispatched, pass.failed), (vec![healthy], vec![pending]));
    let filter = EventFilter {
        app: Some(app()),
        status: Some(EventStatus::Retrying),
        limit: 10,
        ..EventFilter::default()
    };
    let row = world.store.event_list(filter).await.unwrap().rows.remove(0);
    assert!(row.error.as_ref().is_some_and(|error| error.contains("flow")), "{row:?}");
    for _ in 0..8 {
        world.pass_secs(600).await;
        world.store.event_dispatch(&app(), 10).await.unwrap();
    }
    let (actor, reason) = ("bob".to_owned(), "it is gone on purpose".to_owned());
    let redriven =
        world.store.event_redrive(Redrive { event: pending, actor, reason }).await.unwrap();
    assert_eq!((redriven.deliveries, redriven.dropped), (1, vec![WorkflowKey::from("flow")]));
    assert_eq!(world.store.event_dispatch(&app(), 10).await.unwrap().dispatched, [pending]);
    let verbs = world.store.audit_list(&app(), None, 10).await.unwrap();
    assert!(verbs.iter().any(|row| row.verb == "drop_delivery" && row.details.contains("flow")));
    assert!(world.store.workflow_list(&app(), None).await.unwrap().len() == 1, "nothing came back");
}

/// Nothing starts, is published or is signalled where a deletion has begun.
pub async fn nothing_new_comes_into_what_is_being_deleted<F: StoreFactory>(world: &World<F>) {
    let listening = || triggered(plan(vec![pure("a")]), "low", LOW);
    world.publish("flow", listening()).await;
    world.publish("other", listening()).await;
    world.emit(Event::new(LOW, json!({})).deferred()).await;
    world.store.delete_begin(delete(Some("flow"), Force::No)).await.unwrap();
    let event = world.emit(Event::new(LOW, json!({}))).await;
    assert_eq!(event.matched, 1, "only the other workflow listens");
    let start = world.store.event_emit(world.emission(Event::start("flow", json!({})))).await;
    assert!(matches!(start, Err(EmitError::BeingDeleted { .. })), "{start:?}");
    let publish = world.store.version_publish(world.publication("flow", listening())).await;
    assert!(matches!(publish, Err(PublishError::BeingDeleted { .. })), "{publish:?}");
    world.store.delete_begin(delete(None, Force::No)).await.unwrap();
    let emit = world.store.event_emit(world.emission(Event::new(LOW, json!({})))).await;
    assert!(matches!(emit, Err(EmitError::BeingDeleted { .. })), "{emit:?}");
    let publish = world.store.version_publish(world.publication("new", listening())).await;
    assert!(matches!(publish, Err(PublishError::BeingDeleted { .. })), "{publish:?}");
    let signal = world.store.signal_send(send(Signal::new("approval", "7"))).await;
    assert!(matches!(signal, Err(SignalError::BeingDeleted { .. })), "{signal:?}");
    let dispatched = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert!(dispatched.dispatched.is_empty() && dispatched.failed.len() == 1);
    assert!(go_on(world, None).await.done);
    world.publish("flow", listening()).await;
    assert_eq!(world.emit(Event::new(LOW, json!({}))).await.matched, 1);
}

/// No dry run is created where a deletion has begun; one that was created before is answered again.
pub async fn no_dry_run_comes_into_what_is_being_deleted<F: StoreFactory>(world: &World<F>) {
    for workflow in ["flow", "other"] {
        let draft =
            Publish { activate: false, ..world.publication(workflow, plan(vec![pure("a")])) };
        let version = world.store.version_publish(draft).await.unwrap().version;
        let asked = async |id: u8| {
            let stored = world.store.version_load(version).await.unwrap().unwrap();
            let create = CreateDryRun {
                id: RunId::from_bytes([id; 16]),
                app: stored.app,
                scope: stored.scope,
                workflow: stored.workflow,
                version,
                footprint: stored.footprint.hash(),
                trigger: None,
                event: Event::start(workflow, json!({})).check().unwrap(),
            };
            world.store.dry_run_create(create).await
        };
        let own = workflow.as_bytes()[0];
        let first = asked(own).await.unwrap();
        let whole = (workflow == "flow").then_some(workflow);
        world.store.delete_begin(delete(whole, Force::No)).await.unwrap();
        assert_eq!(asked(own).await.unwrap().id, first.id, "its first answer was lost");
        let refused = asked(own + 1).await;
        assert!(matches!(refused, Err(EmitError::BeingDeleted { .. })), "{refused:?}");
        assert!(go_on(world, whole).await.done);
    }
}

/// An effect that nobody can explain holds a deletion up, by name; a reason and force go over it.
pub async fn an_unexplained_effect_holds_a_deletion_up<F: StoreFactory>(world: &World<F>) {
    let run = in_attention(world).await;
    for workflow in [None, Some("flow")] {
        let refused = world.store.delete_begin(delete(workflow, Force::No)).await.unwrap_err();
        let RetentionError::Unexplained { effects } = &refused else { unreachable!("{refused:?}") };
        assert_eq!((effects.len(), effects[0].run), (1, run));
        assert!(refused.to_string().contains(&run.to_string()));
    }
    // Nothing was changed: the workflow still starts.
    let other = world.start("flow").await;
    world.cancel(other).await;
    world.store.delete_begin(delete(None, Force::Unexplained)).await.unwrap();
    assert!(go_on(world, None).await.done);
    assert!(!is_there(world, run).await);
    assert!(world.store.effect_list(&app(), None, 10).await.unwrap().is_empty());
}

/// An effect that is being performed holds nothing up, for its run is asked to end. Once nobody but a person can tell
/// what became of it, the pass names it, and force goes over it.
pub async fn a_late_effect_is_named_and_may_be_forced<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![crate::plans::ambiguous("pay")])).await;
    let run = drive.run().id;
    assert!(drive.to_call(&world.store).await.unwrap().is_some());
    world.store.delete_begin(delete(None, Force::No)).await.unwrap();
    let held = go_on(world, None).await;
    assert_eq!((held.done, held.ending, held.unexplained.len()), (false, 1, 0));
    world.pass_secs(600).await;
    world.recover().await;
    let held = go_on(world, None).await;
    assert_eq!((held.done, held.ending, held.unexplained.len()), (false, 1, 0));
    nobody_can_tell(world, run).await;
    let held = go_on(world, None).await;
    assert_eq!((held.done, held.unexplained.len(), held.unexplained[0].run), (false, 1, run));
    world.store.delete_begin(delete(None, Force::Unexplained)).await.unwrap();
    assert!(go_on(world, None).await.done);
    assert!(!is_there(world, run).await);
}

/// What is being deleted is neither switched on nor off, and what its audit tells can be read when all else is gone.
pub async fn nothing_is_switched_there_and_the_audit_outlives_the_app<F: StoreFactory>(
    world: &World<F>,
) {
    let run = ended(world).await;
    let workflow = world.row(run).await.origin.workflow.clone();
    world.store.delete_begin(delete(None, Force::No)).await.unwrap();
    assert_eq!(world.store.app_health(&app()).await.unwrap().deleting, [place(None)]);
    for enabled in [false, true] {
        let set = SetActivation {
            app: app(),
            scope: scope(),
            workflow: workflow.clone(),
            activation: None,
            enabled,
            actor: "ada".to_owned(),
            reason: "tidy".to_owned(),
        };
        let refused = world.store.activation_set(set).await;
        assert!(matches!(refused, Err(PublishError::BeingDeleted { .. })), "{refused:?}");
    }
    assert!(go_on(world, None).await.done);
    assert_eq!(world.store.app_health(&app()).await.unwrap().deleting, []);
    assert_eq!(world.store.app_list().await.unwrap(), [app()]);
    let audit = world.store.audit_list(&app(), None, 10).await.unwrap();
    assert!(audit.iter().any(|row| row.verb == "deleted"), "{audit:?}");
}

/// A run that a worker holds is asked to end, and is deleted only when it has ended.
pub async fn a_deletion_waits_for_the_worker<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![idempotent("a")])).await;
    let run = drive.run().id;
    for force in [Force::No, Force::Unexplained] {
        world.store.delete_begin(delete(None, force)).await.unwrap();
        let held = go_on(world, None).await;
        assert_eq!((held.done, held.ending, held.unexplained.len()), (false, 1, 0));
        assert!(world.row(run).await.cancel.is_some());
    }
    world.pass_secs(600).await;
    world.recover().await;
    assert_eq!(world.row(run).await.state(), RunState::Canceled);
    assert!(go_on(world, None).await.done);
    assert!(!is_there(world, run).await);
}

/// Runs that are children of another workflow's runs are named, and nothing is begun.
pub async fn shared_runs_hold_a_workflow_but_no_scope<F: StoreFactory>(world: &World<F>) {
    world.publish("parent", plan(vec![pure("a")])).await;
    world.publish("flow", plan(vec![pure("a")])).await;
    let parent = world.start("parent").await;
    let child = world.start("flow").await;
    if !world.tamper(Tamper::MakeChild { run: child, parent }).await {
        return;
    }
    let refused = world.store.delete_begin(delete(Some("flow"), Force::No)).await.unwrap_err();
    let RetentionError::Shared { roots } = &refused else { unreachable!("{refused:?}") };
    assert_eq!(roots[..], [parent]);
    world.start("flow").await;
    delete_all(world, None).await;
    assert!(!is_there(world, parent).await && !is_there(world, child).await);
}

/// A deletion of what is not there, or has not begun, is told so.
pub async fn what_is_not_there_is_not_deleted<F: StoreFactory>(world: &World<F>) {
    for workflow in [None, Some("flow")] {
        let nothing = world.store.delete_begin(delete(workflow, Force::No)).await;
        assert!(matches!(nothing, Err(RetentionError::NotFound { .. })), "{nothing:?}");
        let nothing = world.store.delete_pass(place(workflow), 10).await;
        assert!(matches!(nothing, Err(RetentionError::NotFound { .. })), "{nothing:?}");
    }
    ended(world).await;
    let nothing = world.store.delete_pass(place(None), 10).await;
    assert!(matches!(nothing, Err(RetentionError::NotFound { .. })), "{nothing:?}");
    delete_all(world, None).await;
    let again = world.store.delete_begin(delete(None, Force::No)).await;
    assert!(matches!(again, Err(RetentionError::NotFound { .. })), "{again:?}");
}

/// Audit rows outlive what they are about, with ids only.
pub async fn audit_rows_stay_with_ids_only<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a")])).await;
    let run = drive.run().id;
    let audit = Audit {
        actor: "bob".to_owned(),
        verb: "cancel".to_owned(),
        reason: "late".to_owned(),
        details: json!({ "output": { "card": "4711" } }).to_string(),
    };
    let commit = world.decided(run, super::world::cancel()).await.audited(audit);
    world.store.run_commit(commit).await.unwrap();
    drive = world.drive(drive.run().id).await;
    let reply = |_: &_| crate::Reply::Answer(succeeded(json!(1)));
    drive.to_end(&world.store, reply).await.unwrap();
    delete_all(world, None).await;
    let rows = world.store.audit_list(&app(), None, 100).await.unwrap();
    let row = rows.iter().find(|row| row.verb == "cancel").unwrap();
    assert_eq!((row.run, row.actor.as_str(), row.details.as_str()), (Some(run), "bob", "{}"));
}

/// So do those of runs that were pruned before: of the whole scope, or of the workflow and no other.
pub async fn audit_rows_of_pruned_runs_stay_with_ids_only<F: StoreFactory>(world: &World<F>) {
    for workflow in ["flow", "other", "third"] {
        world.publish(workflow, plan(vec![pure("a")])).await;
        let run = world.start(workflow).await;
        let audit = Audit {
            actor: "bob".to_owned(),
            verb: "cancel".to_owned(),
            reason: workflow.to_owned(),
            details: json!({ "output": { "card": "4711" } }).to_string(),
        };
        let commit = world.decided(run, super::world::cancel()).await.audited(audit);
        world.store.run_commit(commit).await.unwrap();
    }
    world.pass_secs(60).await;
    let what = Prunable::Runs { states: vec![RunState::Canceled] };
    let before = world.store.store_now().await.unwrap();
    let prune = Prune { app: app(), scope: None, what, before, limit: 100, audit: None };
    // One call may stop early where it has lasted long.
    let mut deleted = 0;
    loop {
        let pruned = world.store.prune(prune.clone()).await.unwrap();
        deleted += pruned.deleted;
        if !pruned.more {
            break;
        }
    }
    assert_eq!(deleted, 3);
    let bared = async || {
        let rows = world.store.audit_list(&app(), None, 100).await.unwrap();
        let of_runs = rows.into_iter().filter(|row| row.verb == "cancel");
        let bare = of_runs.filter(|row| row.run.is_some() && row.details == "{}");
        let mut bare: Vec<String> = bare.map(|row| row.reason).collect();
        bare.sort_unstable();
        bare
    };
    assert!(bared().await.is_empty(), "pruning keeps the audit as it is");
    delete_all(world, Some("other")).await;
    assert_eq!(bared().await, ["other"]);
    delete_all(world, None).await;
    assert_eq!(bared().await, ["flow", "other", "third"]);
}
