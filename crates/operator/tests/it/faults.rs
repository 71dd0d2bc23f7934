//! A store that fails, and several people at once: a verb is done once or not at all.

use serde_json::json;
use surefoot_kernel_core::{Event, Micros, RunState, Scope, Signal};
use surefoot_operator::{
    ActivateVersion, Cancel, EmitEvent, ErrorClass, Operator, OperatorError, Outcome, PrunePolicy,
    Retry, SendTo, Switch,
};
use surefoot_testkit::{Fault, FaultPlan, FaultyStore, Method};

use crate::world::{SCOPE, World};

#[tokio::test]
async fn a_verb_in_doubt_may_be_repeated_with_its_revision() {
    for (fault, is_done) in [(Fault::LostRequest, false), (Fault::LostAnswer, true)] {
        let world = World::published().await;
        let run = world.failed().await;
        let seen = world.revision(run).await;
        let plan = FaultPlan::new();
        let operator = Operator::new(FaultyStore::new(world.store.clone(), plan.clone()), "ann");
        plan.every(Method::RunCommit, Some(fault));
        let retry = || Retry { run, seen, why: "mended".to_owned() };
        let error = operator.retry(retry()).await.unwrap_err();
        assert!(matches!(error, OperatorError::InDoubt { .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Unavailable);

        plan.every(Method::RunCommit, None);
        let again = operator.retry(retry()).await;
        assert_eq!(again.is_err(), is_done);
        if let Err(error) = again {
            assert_eq!(error.class(), ErrorClass::Conflict);
        }
        assert_eq!(world.row(run).await.state(), RunState::Queued);
        let retries = world.audit().await.into_iter().filter(|(verb, _, _)| verb == "retry");
        assert_eq!(retries.count(), 1);
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_said_to_be_away() {
    let world = World::published().await;
    let run = world.failed().await;
    let plan = FaultPlan::new();
    let operator = Operator::new(FaultyStore::new(world.store.clone(), plan.clone()), "ann");
    for method in [Method::RunDetail, Method::RunList, Method::AppHealth, Method::RunLoad] {
        plan.every(method, Some(Fault::Unavailable));
    }
    let cancel = Cancel { run, seen: None, why: "x".to_owned() };
    for error in [
        operator.show(run).await.unwrap_err(),
        operator.explain(run).await.unwrap_err(),
        operator.health(None, None).await.unwrap_err(),
        operator.cancel(cancel).await.unwrap_err(),
    ] {
        assert_eq!(error.class(), ErrorClass::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn of_many_cancels_one_cancels() {
    let world = World::published().await;
    let run = world.emitted().await;
    let operator = || world.operator.clone();
    let cancels = (0..8).map(|_| {
        let operator = operator();
        let cancel = Cancel { run, seen: None, why: "no longer wanted".to_owned() };
        tokio::spawn(async move { operator.cancel(cancel).await.unwrap().outcome })
    });
    let mut outcomes = Vec::new();
    for cancel in cancels.collect::<Vec<_>>() {
        outcomes.push(cancel.await.unwrap());
    }
    let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Canceled).count();
    assert_eq!(done, 1, "{outcomes:?}");
    let rows = world.audit().await.into_iter().filter(|(verb, _, _)| verb == "cancel");
    assert_eq!(rows.count(), 1);
}

/// A store speaks to workers of a commit without an answer; whoever emits, signals, publishes or prunes is told what
/// they can do.
#[tokio::test]
async fn a_write_without_an_answer_is_told_in_words_of_its_own() {
    let world = World::published().await;
    let plan = FaultPlan::new();
    let operator = Operator::new(FaultyStore::new(world.store.clone(), plan.clone()), "ann");
    let writes = [
        Method::EventEmit,
        Method::SignalSend,
        Method::VersionActivate,
        Method::ActivationSet,
        Method::Prune,
        Method::DeleteBegin,
    ];
    writes.into_iter().for_each(|method| plan.every(method, Some(Fault::LostAnswer)));
    let (app, scope) = (crate::world::app(), || Scope::from(SCOPE));
    let emit = async |event| {
        let emit = EmitEvent { app: app.clone(), scope: scope(), event };
        operator.emit(&world.ids, emit).await.unwrap_err()
    };
    let low = || Event::new("inventory.stockLow", json!({ "item": "nut" }));
    let signal = Signal::new("approval", "7");
    let activate = ActivateVersion {
        app: app.clone(),
        scope: scope(),
        workflow: "reorder".into(),
        revision: 1,
        seen: None,
        why: "x".to_owned(),
    };
    let switch = Switch {
        app: app.clone(),
        scope: scope(),
        workflow: "reorder".into(),
        activation: None,
        enabled: false,
        why: "x".to_owned(),
    };
    let prune = PrunePolicy {
        app: app.clone(),
        scope: None,
        older_than: Micros::ZERO,
        states: vec![RunState::Failed],
        spent_signals: false,
        unmatched_events: false,
        audit: false,
        why: "x".to_owned(),
    };
    for (error, says) in [
        (emit(low()).await, "look among the events before it is emitted again"),
        (emit(low().dedupe_key("nut")).await, "emit it again under the same key"),
        (
            operator.signal(app.clone(), SendTo::Scope(scope()), signal).await.unwrap_err(),
            "send it again",
        ),
        (operator.activate(activate).await.unwrap_err(), "to activate it again is safe"),
        (operator.switch(switch).await.unwrap_err(), "to switch it again is safe"),
        (operator.prune(prune, |_| {}).await.unwrap_err(), "it goes on where it stopped"),
    ] {
        assert_eq!(error.class(), ErrorClass::Unavailable, "{error}");
        let said = error.to_string();
        assert!(said.starts_with("nobody knows whether ") && said.contains(says), "{said}");
        let below = std::error::Error::source(&error).unwrap().to_string();
        assert!(!below.contains("take the run over"), "{below}");
    }
}
