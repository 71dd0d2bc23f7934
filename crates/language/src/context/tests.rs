use serde_json::json;
use surefoot_kernel_core::{CancelSource, Dependency, Fence, StoreError};

use super::*;
use crate::binding::On;

struct Port {
    heartbeat: fn() -> Result<(), FenceError>,
}

impl StepPort for Port {
    fn heartbeat(&self) -> BoxFuture<'_, Result<(), FenceError>> {
        Box::pin(async { (self.heartbeat)() })
    }

    fn resolve<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Option<Value>, Stop>> {
        Box::pin(async move {
            match reference {
                "secret" => Ok(Some(json!(7))),
                "later" => Err(Stop::wait_for(Dependency::on("value", "later"))),
                _ => Ok(None),
            }
        })
    }

    fn is_written(&self, pointer: &str) -> bool {
        pointer == "/written"
    }

    fn time_left(&self) -> Option<Duration> {
        Some(Duration::from_secs(3))
    }

    fn children_create(
        &self,
        _children: Children,
    ) -> BoxFuture<'_, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(async { Err(StoreError::Canceled.into()) })
    }

    fn children_read(
        &self,
        _from: u32,
        _limit: u32,
    ) -> BoxFuture<'_, Result<ChildrenPage, StoreError>> {
        Box::pin(async { Err(StoreError::Unavailable("down".into())) })
    }
}

fn cx(heartbeat: fn() -> Result<(), FenceError>) -> StepCx {
    let detached = StepData::detached(RunId::from_bytes([7; 16]), "steps.0");
    StepCx::new(StepData { port: Arc::new(Port { heartbeat }), ..detached })
}

fn send_sync_static<T: Send + Sync + 'static>() {}

#[test]
fn contexts_can_be_held_anywhere() {
    struct Tx;
    send_sync_static::<StepCx>();
    send_sync_static::<PureCx>();
    send_sync_static::<IdempotentCx>();
    send_sync_static::<IdempotentCx<On<Tx>>>();
    send_sync_static::<AmbiguousCx>();
    send_sync_static::<AmbiguousCx<On<Tx>>>();
    send_sync_static::<Stop>();
    send_sync_static::<crate::AmbiguousStop>();
}

#[test]
fn the_key_is_that_of_run_and_step_in_every_attempt() {
    let data = StepData::detached(RunId::from_bytes([7; 16]), "steps.0");
    let first = IdempotentCx::unfenced(StepCx::new(data.clone()));
    let second = AmbiguousCx::unfenced(StepCx::new(StepData { attempt: 2, ..data.clone() }));
    assert_eq!(first.effect_key(), second.effect_key());
    assert_eq!(*first.effect_key(), EffectKey::of(data.run, &data.step));
    assert_eq!((first.attempt(), second.attempt()), (1, 2));
    assert_eq!(second.step_key().as_str(), "steps.0");
}

#[test]
fn actors_bindings_and_signals_are_read_in_the_applications_shape() {
    let pins = BTreeMap::from([("main".to_owned(), "wh_7".to_owned())]);
    let data = StepData {
        invocation: Arc::new(Invocation { actor: Some(json!("ann")), ..Invocation::default() }),
        bindings: Arc::new(BTreeMap::from([("warehouse".to_owned(), pins)])),
        resumed: Some(Resumed::Signaled(json!({"by": "ben"}))),
        ..StepData::detached(RunId::from_bytes([7; 16]), "steps.0")
    };
    let cx = StepCx::new(data.clone());
    assert_eq!(cx.actor::<String>().as_deref(), Some("ann"));
    assert_eq!(cx.actor::<u32>(), None);
    assert_eq!(cx.binding("warehouse.main").unwrap(), "wh_7");
    for unknown in ["warehouse.other", "shop.main", "warehouse", ""] {
        assert_eq!(cx.binding(unknown).unwrap_err().code(), Code::VALUE_UNAVAILABLE);
    }
    assert_eq!((cx.resumed(), cx.signal()), (true, Some(&json!({"by": "ben"}))));
    let late = StepCx::new(StepData { resumed: Some(Resumed::DeadlinePassed), ..data });
    assert_eq!((late.resumed(), late.signal()), (true, None));
}

#[tokio::test]
async fn values_are_resolved_missing_misshapen_or_waiting() {
    let cx = cx(|| Ok(()));
    assert_eq!(cx.resolve::<u32>("secret").await.unwrap(), 7);
    let missing = cx.resolve::<u32>("none").await.unwrap_err();
    assert_eq!((missing.code(), missing.is_retryable()), (Code::VALUE_UNAVAILABLE, false));
    let misshapen = cx.resolve::<String>("secret").await.unwrap_err();
    assert_eq!(misshapen.code(), Code::VALUE_UNAVAILABLE);
    assert!(cx.resolve::<u32>("later").await.unwrap_err().dependency().is_some());
    assert_eq!(cx.time_left(), Some(Duration::from_secs(3)));
}

#[tokio::test]
async fn without_a_resolver_no_value_is_available() {
    let cx = StepCx::new(StepData::detached(RunId::from_bytes([7; 16]), "steps.0"));
    let stop = cx.resolve::<u32>("secret").await.unwrap_err();
    assert_eq!(stop.code(), Code::VALUE_UNAVAILABLE);
    assert!(cx.heartbeat().await.is_ok());
    assert_eq!(cx.halted(), None);
}

#[tokio::test]
async fn a_refused_heartbeat_is_remembered_and_an_unanswered_one_is_not() {
    let lost = cx(|| Err(FenceError::LeaseLost));
    assert!(lost.heartbeat().await.is_err());
    assert_eq!(lost.clone().halted(), Some(Halt::LeaseLost));
    let unavailable = cx(|| Err(FenceError::Store(StoreError::Unavailable("busy".into()))));
    assert!(unavailable.heartbeat().await.is_err());
    assert_eq!(unavailable.halted(), None);
}

#[tokio::test]
async fn a_fence_holds_on_the_actions_own_transaction() {
    struct Held(u32);
    struct Counting;
    impl Fence<Held> for Counting {
        fn hold<'a>(&'a self, tx: &'a mut Held) -> BoxFuture<'a, Result<(), FenceError>> {
            Box::pin(async {
                tx.0 += 1;
                if tx.0 > 1 { Err(FenceError::Canceled) } else { Ok(()) }
            })
        }
    }
    let cx = IdempotentCx::<On<Held>>::fenced(cx(|| Ok(())), Arc::new(Counting));
    let mut tx = Held(0);
    assert!(cx.heartbeat_in(&mut tx).await.is_ok());
    assert_eq!((tx.0, cx.halted()), (1, None));
    assert!(cx.heartbeat_in(&mut tx).await.is_err());
    assert_eq!(cx.halted(), Some(Halt::Canceled));
}

#[tokio::test]
async fn a_fired_token_is_seen_through_every_context() {
    let source = CancelSource::default();
    let detached = StepData::detached(RunId::from_bytes([7; 16]), "steps.0");
    let step = StepCx::new(StepData { cancel: source.observer(), ..detached });
    let (pure, keyed) = (PureCx::new(step.clone()), IdempotentCx::unfenced(step));
    assert!(!pure.is_canceled() && !keyed.is_canceled());
    source.fire();
    keyed.canceled().await;
    assert!(pure.is_canceled() && keyed.is_canceled());
}
