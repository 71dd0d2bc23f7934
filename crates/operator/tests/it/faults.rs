//! A store that fails, and several people at once: a verb is done once or not at all.

use surefoot_kernel_core::RunState;
use surefoot_operator::{Cancel, ErrorClass, Operator, OperatorError, Outcome, Retry};
use surefoot_testkit::{Fault, FaultPlan, FaultyStore, Method};

use crate::world::World;

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
