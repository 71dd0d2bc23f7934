//! How answers of actions become outcomes, and what observers see.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Code, Dependency, Event, Fact, FenceError, Measure, Micros, RunId, RunState, Source, StepKey,
    Trace, TraceContext, ValueResolver,
};
use surefoot_language::{Access, Stop};
use surefoot_worker::{NotYet, Tick};

use crate::actions::{Actions, Log, n};
use crate::plans::{act, each, saved, set, timed};
use crate::store::{Op, Verdict};
use crate::world::{World, until};

/// Covers behaviour 123.
#[tokio::test(start_paused = true)]
async fn an_unexpected_error_fails_the_step_and_is_not_tried_again() {
    let world = World::new(Actions::default().mail(|_, _| async {
        Err(std::io::Error::other("the disk is on fire"))?;
        Ok(Value::Null)
    }));
    let run = world.start(vec![act("mail", n(1)), act("pay", n(2))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
    let error = world.error(run).await;
    assert_eq!((error.code, error.message.as_str()), (Code::ACTION_ERROR, "the disk is on fire"));
    assert_eq!((world.log().count("mail.run"), world.log().count("pay")), (1, 0));
}

#[derive(Debug, thiserror::Error)]
#[error("the archive could not be written")]
struct Wrapped(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Covers behaviour 124.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_recognised_inside_an_applications_own_error() {
    let world = World::new(Actions::default().mail(|_, _| async {
        let lost: Result<(), FenceError> = Err(FenceError::LeaseLost);
        lost.map_err(|error| Wrapped(Box::new(Wrapped(Box::new(error)))))?;
        Ok(Value::Null)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    world.worker().run_one().await.unwrap();
    let left = world.run(run).await;
    assert_eq!((left.state(), left.last_failure), (RunState::Running, None));
    assert!(!world.facts(run).await.iter().any(|fact| matches!(fact, Fact::StepFailed { .. })));
}

/// Covers behaviour 124.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_recognised_behind_an_error_that_hides_its_source() {
    let world = World::new(Actions::default().mail(|cx, _| async move {
        cx.canceled().await;
        if cx.heartbeat().await.is_err() {
            return Err(Stop::from("the archive could not be written"));
        }
        Ok(Value::Null)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    world.store.on(|op| match op {
        Op::Renew(_) => Verdict::Fail(crate::store::unavailable()),
        _ => Verdict::Go,
    });
    let worker = world.worker();
    let driving = tokio::spawn(async move { worker.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    // Another session takes it over behind the worker's back.
    let row = world.run(run).await;
    let commit = surefoot_kernel_core::Commit::new(&row, &[Fact::FenceRaised]);
    surefoot_kernel_core::RunStore::run_commit(&world.store.inner, commit).await.unwrap();
    world.store.heal();
    driving.await.unwrap().unwrap();
    assert_eq!(world.run(run).await.last_failure, None);
    assert!(!world.facts(run).await.iter().any(|fact| matches!(fact, Fact::StepFailed { .. })));
}

/// Writes down what it sees, and panics each time.
struct Rude(Log, crate::store::TestStore);

impl Rude {
    fn see(&self, line: String) {
        self.0.add(line);
        panic!("an observer's defect");
    }
}

impl Trace for Rude {
    fn run_started(&self, _: RunId, generation: u64) {
        self.see(format!("run started {generation}"));
    }
    fn step_started(&self, _: RunId, step: &StepKey, attempt: u32) {
        self.see(format!("step started {step} #{attempt}"));
    }
    fn step_finished(&self, _: RunId, step: &StepKey, code: Option<&str>) {
        self.see(format!("step finished {step} {code:?}, commits {}", self.1.count("commit")));
    }
    fn run_finished(&self, _: RunId, state: RunState) {
        self.see(format!("run finished {state}, commits {}", self.1.count("commit")));
    }
    fn measured(&self, _: Measure) {
        panic!("another defect");
    }
}

/// Covers behaviour 125.
#[tokio::test(start_paused = true)]
async fn an_observer_that_always_panics_changes_nothing_and_sees_the_order() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("compute", n(1)), act("mail", n(2))]).await;
    let seen = Log::default();
    let trace = Rude(seen.clone(), world.store.clone());
    let worker = world.builder().trace(trace).build().unwrap();
    worker.run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(
        seen.lines(),
        [
            "run started 1",
            "step started steps.0 #1",
            // Only once it is durable: before the next step's hooks.
            "step finished steps.0 None, commits 1",
            "step started steps.1 #1",
            "step finished steps.1 None, commits 2",
            "run finished succeeded, commits 2",
        ]
    );
}

struct Prices(Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl ValueResolver for Prices {
    async fn resolve(&self, reference: &str) -> Result<Option<Value>, Source> {
        self.0.lock().unwrap().push(reference.to_owned());
        if self.0.lock().unwrap().len() == 1 {
            return Err(Box::new(NotYet(Dependency::on("price", "bolt"))));
        }
        Ok(Some(json!(12)))
    }
}

/// Covers behaviour 126.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_there_yet_parks_the_step_before_its_action_is_called() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let claims = Arc::new(Mutex::new(0));
    let world = World::new(Actions::default().may(|_, cx| async move {
        let price: i64 = cx.resolve("price.bolt").await?;
        Ok(Access::allowed_if(price > 10, "too cheap"))
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let (values, made) = (asked.clone(), claims.clone());
    let worker = world.builder().values(move |claim| {
        *made.lock().unwrap() += 1;
        assert_eq!(claim.workflow.as_str(), "work");
        Prices(values.clone())
    });
    let worker = worker.build().unwrap();
    worker.run_one().await.unwrap();
    assert_eq!((world.state(run).await, world.log().count("mail.run")), (RunState::Waiting, 0));
    let signal = surefoot_kernel_core::Signal::new("price", "bolt");
    world.kernel.scope(crate::world::SCOPE).signal(signal).await.unwrap();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((asked.lock().unwrap().len(), *claims.lock().unwrap()), (2, 2));
}

/// Covers behaviour 111.
/// Covers behaviour 116.
#[tokio::test(start_paused = true)]
async fn an_iteration_that_fails_for_now_does_not_repeat_the_ones_before_it() {
    let failed = Arc::new(Mutex::new(false));
    let once = failed.clone();
    let world = World::new(Actions::default().mail(move |cx, config| {
        let fails = cx.step_key().as_str().ends_with("#2")
            && !std::mem::replace(&mut *once.lock().unwrap(), true);
        async move { if fails { Err(Stop::retry("BUSY", "429")) } else { Ok(config) } }
    }));
    let steps = vec![each(json!([1, 2, 3, 4, 5]), vec![act("mail", n(1))])];
    let run = world.start(steps).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    let per_item: Vec<usize> =
        (0..5).map(|item| world.log().count(&format!("mail.run steps.0.do.0#{item} "))).collect();
    assert_eq!(per_item, [1, 1, 2, 1, 1]);
    assert_eq!(world.run(run).await.state(), RunState::Succeeded);
}

/// Pure outcomes wait for the next commit, but not longer than they may.
#[tokio::test(start_paused = true)]
async fn a_hundred_pure_outcomes_are_enough_for_a_commit() {
    let world = World::new(Actions::default());
    let items: Vec<i64> = (0..100).collect();
    let run =
        world.start(vec![each(json!(items), vec![set("x", json!(1)), act("compute", n(1))])]).await;
    world.worker().run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    // Inputs, the loop's items and two outcomes an item: 202 facts, and the end.
    assert_eq!(world.store.count("commit"), 3);
}

/// A hook past its timeout gets its token, then its future is dropped, then the failure is recorded.
#[tokio::test(start_paused = true)]
async fn a_step_that_does_not_come_back_is_told_then_dropped_then_tried_again() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        if cx.attempt() == 1 {
            assert_eq!(cx.time_left(), Some(Duration::from_secs(30)));
            std::future::pending::<()>().await;
        }
        Ok(config)
    }));
    let step = timed(act("mail", n(1)), Micros::from_secs(30));
    let run = world.start(vec![step]).await;
    let worker = world.worker();
    let began = tokio::time::Instant::now();
    worker.run_one().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 35);
    let failure = world.run(run).await.last_failure.unwrap();
    assert_eq!(failure.code, Code::TIMEOUT);
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
}

/// A hook that heeds its token within the grace is not dropped; what it then says of a failure is the timeout.
#[tokio::test(start_paused = true)]
async fn an_answer_within_the_grace_counts() {
    for succeeds in [true, false] {
        let world = World::new(Actions::default().mail(move |cx, config| async move {
            cx.canceled().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            if succeeds { Ok(config) } else { Err(Stop::fail("STOPPED", "told to")) }
        }));
        let step = timed(act("mail", n(1)), Micros::from_secs(10));
        let run = world.start(vec![step]).await;
        world.worker().run_one().await.unwrap();
        let row = world.run(run).await;
        if succeeds {
            assert_eq!(row.state(), RunState::Succeeded);
        } else {
            assert_eq!(row.last_failure.unwrap().code, Code::TIMEOUT);
        }
    }
}

/// The schema is judged before any hook is called.
#[tokio::test(start_paused = true)]
async fn a_config_that_does_not_fit_calls_nothing() {
    for action in ["compute", "book", "mail", "pay"] {
        let world = World::new(Actions::default());
        let run = world.start(vec![act(action, json!("no object"))]).await;
        world.worker().run_one().await.unwrap();
        let error = world.error(run).await;
        assert_eq!((error.code, world.log().lines().len()), (Code::CONFIG_INVALID, 0), "{action}");
        assert_eq!(error.details.unwrap()["pointers"], json!([""]));
    }
}

/// An output over 1 MiB: a failure where nothing happened, a person's matter where something did.
#[tokio::test(start_paused = true)]
async fn an_output_that_is_too_large_is_never_a_failure_of_an_effect() {
    let large = || json!("x".repeat(1024 * 1024));
    let actions = || {
        Actions::default()
            .compute(move |_| Ok(large()))
            .book(move |cx, _| {
                cx.tx().table().insert("bolt".to_owned(), "1".to_owned());
                Box::pin(async move { Ok(large()) })
            })
            .mail(move |_, _| async move { Ok(large()) })
            .pay(move |_, _| async move { Ok(large()) })
    };
    for (action, state) in [
        ("compute", RunState::Failed),
        ("book", RunState::Failed),
        ("mail", RunState::NeedsAttention),
        ("pay", RunState::NeedsAttention),
    ] {
        let world = World::new(actions());
        let run = world.start(vec![saved(act(action, n(1)), "out")]).await;
        world.worker().run_one().await.unwrap();
        assert_eq!(
            (world.state(run).await, world.error(run).await.code),
            (state, Code::OUTPUT_TOO_LARGE)
        );
        assert_eq!(world.store.inner.table_row("bolt"), None);
        if let Some(effect) = world.run(run).await.effect() {
            assert_eq!(effect.evidence.as_ref().unwrap().len(), 8 * 1024);
        }
    }
}

/// A computation on a thread of its own holds up neither the runtime nor what is pending.
#[tokio::test]
async fn a_heavy_computation_leaves_the_runtime_alone() {
    let gate = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let opened = gate.clone();
    let world = World::new(Actions::default().compute(move |config| {
        if config["n"] == 2 {
            let (open, changed) = &*opened;
            let open = open.lock().unwrap();
            drop(changed.wait_while(open, |open| !*open).unwrap());
        }
        Ok(config)
    }));
    let run = world.start(vec![act("compute", n(1)), act("grind", n(2))]).await;
    let worker = world.worker();
    let driving = tokio::spawn(async move { worker.tick(Tick::max_runs(1)).await });
    // The outcome before it does not wait for it.
    until("the pending outcome is flushed", || world.store.count("commit") == 1).await;
    assert_eq!(world.outputs(run).await, [n(1)]);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    driving.await.unwrap().unwrap();
    assert_eq!(world.outputs(run).await, [n(1), n(2)]);
}

/// Trace context of the event is there for each step, of every attempt.
#[tokio::test(start_paused = true)]
async fn a_step_knows_the_trace_context_of_its_event() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let world = World::new(Actions::default().mail(|cx, _| async move {
        let trace = cx.trace_context().unwrap();
        Ok(json!([trace.traceparent(), trace.tracestate()]))
    }));
    world.publish("work", vec![act("mail", n(1))]).await;
    let trace = TraceContext::new(parent).unwrap().with_state("congo=1").unwrap();
    let event = Event::start("work", json!({})).trace_context(trace);
    let emission = world.kernel.scope(crate::world::SCOPE).emit(event).await.unwrap();
    let run = emission.runs[0];
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [json!([parent, "congo=1"])]);
}
