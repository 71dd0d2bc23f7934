//! A store fails as its script says, and does what it did nevertheless.

use serde_json::json;
use surefoot_kernel_core::{
    App, Emit, Event, EventStore, Ids, Micros, OperatorStore, RenewRequest, RunFilter, RunStore,
    Scope, StoreError, TxStore,
};
use surefoot_testkit::{Fault, FaultPlan, FaultyStore, MemoryStore, Method, SeqIds, When};

fn store() -> (FaultyStore<MemoryStore>, FaultPlan) {
    let plan = FaultPlan::new();
    (FaultyStore::new(MemoryStore::new(), plan.clone()), plan)
}

fn emit(ids: &SeqIds) -> Emit {
    let (app, scope) = (App::from("shop"), Scope::from("north"));
    let event = Event::new("stock.low", json!({})).check().unwrap();
    Emit { app, scope, id: ids.event(), event, eager: None }
}

async fn events(store: &impl OperatorStore) -> usize {
    let filter = surefoot_kernel_core::EventFilter { limit: 100, ..Default::default() };
    store.event_list(filter).await.unwrap().rows.len()
}

#[tokio::test]
async fn the_nth_call_fails_and_no_other() {
    let (store, plan) = store();
    let ids = SeqIds::new();
    plan.at(Method::EventEmit, 2, Fault::Unavailable);
    assert!(store.event_emit(emit(&ids)).await.is_ok());
    let failed = store.event_emit(emit(&ids)).await;
    let is_unavailable =
        |error| matches!(error, surefoot_kernel_core::EmitError::Store(StoreError::Unavailable(_)));
    assert!(failed.is_err_and(is_unavailable));
    assert!(store.event_emit(emit(&ids)).await.is_ok());
    assert_eq!((plan.count(Method::EventEmit), events(store.inner()).await), (3, 2));
    assert_eq!(plan.calls(), [Method::EventEmit; 3]);
}

#[tokio::test]
async fn what_got_lost_may_have_happened() {
    for (fault, happened) in [(Fault::LostAnswer, 1), (Fault::LostRequest, 0), (Fault::Refused, 0)]
    {
        let (store, plan) = store();
        plan.every(Method::EventEmit, Some(fault));
        let error = store.event_emit(emit(&SeqIds::new())).await.unwrap_err();
        let surefoot_kernel_core::EmitError::Store(error) = error else { panic!("{error:?}") };
        let is_unknown = matches!(error, StoreError::UnknownOutcome(_));
        assert_eq!(is_unknown, fault != Fault::Refused);
        assert_eq!(events(store.inner()).await, happened);
        plan.every(Method::EventEmit, None);
        assert!(store.event_emit(emit(&SeqIds::new())).await.is_ok());
    }
}

#[tokio::test]
async fn a_read_is_never_in_doubt() {
    let (store, plan) = store();
    plan.every(Method::RunList, Some(Fault::LostAnswer));
    let error = store.run_list(RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn a_dead_process_does_nothing_until_it_starts_anew() {
    for (fault, happened) in [(Fault::DiesBefore, 0), (Fault::DiesAfter, 1)] {
        let (store, plan) = store();
        plan.at(Method::EventEmit, 1, fault);
        assert!(store.event_emit(emit(&SeqIds::new())).await.is_err() && plan.is_dead());
        assert!(store.store_now().await.is_err() && store.begin().await.is_err());
        assert_eq!(events(store.inner()).await, happened);
        plan.revive();
        assert!(store.store_now().await.is_ok());
    }
}

/// However often the keeper calls, the second point stays where it is.
#[tokio::test]
async fn the_keepers_calls_are_no_points() {
    let (store, plan) = store();
    plan.away_for(1);
    let session = SeqIds::new().session();
    let renew = || RenewRequest { session, runs: Vec::new(), lease: Micros::from_secs(1) };
    assert!(store.cancel_list(&[]).await.is_err() && store.lease_renew(renew()).await.is_err());
    assert!(store.store_now().await.is_err());
    assert!(store.cancel_list(&[]).await.is_ok() && store.lease_renew(renew()).await.is_ok());
    let stop = plan.stop_at(2, When::Before);
    stop.go_on(Some(Fault::Refused));
    assert!(store.lease_renew(renew()).await.is_ok());
    assert!(store.footprint_list(&"shop".into()).await.is_err());
    assert_eq!(plan.points(), [Method::StoreNow, Method::FootprintList]);
    assert_eq!(plan.count(Method::LeaseRenew), 3);
}

#[test]
fn every_method_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = Method::ALL.iter().map(|m| m.as_str()).collect();
    assert_eq!(names.len(), Method::ALL.len());
}
