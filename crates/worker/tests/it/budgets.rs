//! Effect budgets: charged before the effect, once, or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    BudgetLine, Code, Dependency, Event, Fact, OperatorStore, PublishError, RunId, RunState, Signal,
};
use surefoot_language::{Access, Cost, Stop};
use surefoot_worker::Publication;

use crate::actions::{Actions, n};
use crate::plans::act;
use crate::store::{Op, Verdict, unknown};
use crate::world::{SCOPE, World, until};

fn paying() -> Actions {
    Actions::default().cost(|| Cost::of("payments", 1))
}

async fn lines(world: &World, run: RunId) -> Vec<BudgetLine> {
    world.store.inner.run_detail(run).await.unwrap().unwrap().budget.lines()
}

async fn used(world: &World, run: RunId) -> String {
    lines(world, run).await.first().map_or_else(String::new, |line| line.used.to_string())
}

async fn charges(world: &World, run: RunId) -> usize {
    let facts = world.facts(run).await;
    facts.iter().filter(|fact| matches!(fact, Fact::Charged(_))).count()
}

/// Covers behaviours 151, 156.
#[tokio::test(start_paused = true)]
async fn over_the_cap_a_step_fails_before_its_effect() {
    for action in ["book", "mail", "pay"] {
        for cap in [0_usize, 3] {
            let world = World::new(paying()).capped("payments", cap as f64);
            let run = world.start(vec![act(action, n(1)); 4]).await;
            assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed, "{action}");
            let error = world.error(run).await;
            assert_eq!(error.code, Code::BUDGET_EXCEEDED);
            let numbers =
                json!({ "dimension": "payments", "limit": cap, "used": cap, "requested": 1 });
            assert_eq!(error.details, Some(numbers), "{action}");
            assert_eq!(error.step.unwrap().as_str(), format!("steps.{cap}"));
            assert_eq!(world.log().count(&format!("{action}.run")), cap, "{action}");
            assert_eq!(used(&world, run).await, cap.to_string());
            assert_eq!(charges(&world, run).await, cap);
        }
    }
}

/// Covers behaviour 152.
#[tokio::test(start_paused = true)]
async fn an_odd_cost_is_refused_and_nothing_is_called() {
    for odd in [-1.0, f64::NAN, f64::INFINITY] {
        for action in ["book", "mail", "pay"] {
            let world = World::new(Actions::default().cost(move || Cost::of("eur", odd)));
            let run = world.start(vec![act(action, n(1))]).await;
            assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
            let error = world.error(run).await;
            assert_eq!(error.code, Code::ACTION_ERROR);
            assert!(error.message.contains(&format!("`eur` is {odd}")), "{}", error.message);
            assert_eq!(world.log().count(&format!("{action}.run")), 0);
        }
    }
}

/// Covers behaviour 152.
#[tokio::test(start_paused = true)]
async fn an_odd_cap_is_refused_when_it_is_published() {
    let world = World::new(Actions::default());
    for odd in [-0.5, f64::NAN, f64::NEG_INFINITY] {
        let source = "steps:\n  - mail: { n: 1 }\n";
        let publication = Publication::new("work", source).budget("eur", odd);
        let refused = world.kernel.scope(SCOPE).publish(world.module.manifest(), publication).await;
        let is_it = matches!(&refused, Err(PublishError::Budget(odd)) if odd.dimension == "eur");
        assert!(is_it, "{refused:?}");
    }
    assert!(world.store.inner.app_list().await.unwrap().is_empty());
}

/// Covers behaviour 153.
#[tokio::test(start_paused = true)]
async fn without_a_cap_it_is_counted() {
    let world = World::new(paying());
    let source = "steps:\n  - mail: { n: 1 }\n  - mail: { n: 2 }\n";
    let publication = Publication::new("work", source).budget("eur", 5);
    let scope = world.kernel.scope(SCOPE);
    scope.publish(world.module.manifest(), publication).await.unwrap();
    let run = scope.emit(Event::start("work", json!({}))).await.unwrap().runs[0];
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    let lines = serde_json::to_value(lines(&world, run).await).unwrap();
    let expected = json!([
        { "dimension": "eur", "used": 0, "limit": 5 },
        { "dimension": "payments", "used": 2, "limit": null },
    ]);
    assert_eq!(lines, expected);
}

/// Covers behaviour 155.
#[tokio::test(start_paused = true)]
async fn a_step_that_fails_and_waits_pays_once() {
    let calls = AtomicUsize::new(0);
    let actions = paying().mail(move |_, config| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            match call {
                0 => Err(Stop::retry("BUSY", "later")),
                1 => Err(Stop::wait_for(Dependency::on("approval", "7"))),
                _ => Ok(config),
            }
        }
    });
    let world = World::new(actions).capped("payments", 1.0);
    let run = world.start(vec![act("mail", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    worker.run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Waiting);
    world.kernel.scope(SCOPE).signal(Signal::new("approval", "7")).await.unwrap();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("mail.run"), charges(&world, run).await), (3, 1));
    assert_eq!(used(&world, run).await, "1");
}

/// Covers behaviour 158.
#[tokio::test(start_paused = true)]
async fn a_rolled_back_step_pays_nothing_and_its_retry_once() {
    let calls = AtomicUsize::new(0);
    let actions = paying().book(move |_, config| {
        let is_first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        let answer = if is_first { Err(Stop::retry("BUSY", "later")) } else { Ok(config) };
        Box::pin(async { answer })
    });
    let world = World::new(actions).capped("payments", 1.0);
    let run = world.start(vec![act("book", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    assert_eq!((used(&world, run).await.as_str(), charges(&world, run).await), ("0", 0));
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((used(&world, run).await.as_str(), charges(&world, run).await), ("1", 1));
}

/// A refusal leaves the budget alone: the cost is not even asked for.
///
/// Covers behaviour 135.
#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_costs_nothing() {
    for action in ["book", "mail", "pay"] {
        let actions = paying().may(|_, _| async { Ok(Access::denied("not you")) });
        let world = World::new(actions).capped("payments", 1.0);
        let run = world.start(vec![act(action, n(1))]).await;
        assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
        assert_eq!(world.error(run).await.code, Code::FORBIDDEN);
        assert_eq!(used(&world, run).await, "0");
        assert_eq!(world.log().count(&format!("{action}.cost")), 0);
    }
}

/// The commit that charges is in doubt: whatever became of it, it is paid once.
#[tokio::test(start_paused = true)]
async fn a_charge_in_doubt_is_not_made_twice() {
    for action in ["mail", "pay"] {
        for landed in [true, false] {
            let world = World::new(paying()).capped("payments", 1.0);
            let run = world.start(vec![act(action, n(1))]).await;
            let mut lost = false;
            world.store.on(move |op| match op {
                Op::Commit(_) if op.facts().contains("charged") && !lost => {
                    lost = true;
                    if landed { Verdict::Lose(unknown()) } else { Verdict::Fail(unknown()) }
                }
                _ => Verdict::Go,
            });
            assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded, "{action}");
            assert_eq!(charges(&world, run).await, 1, "{action} {landed}");
            assert_eq!(used(&world, run).await, "1");
            assert_eq!(world.log().count(&format!("{action}.run")), 1, "{action} {landed}");
        }
    }
}

/// A worker dies between charge and outcome.
#[tokio::test(start_paused = true)]
async fn whoever_goes_on_after_a_crash_pays_nothing() {
    let actions = paying().mail(|cx, config| async move {
        if cx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(config)
    });
    let world = World::new(actions).capped("payments", 1.0);
    let run = world.start(vec![act("mail", n(1))]).await;
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the call is made", || world.log().count("mail.run") == 1).await;
    crash.abort();
    tokio::time::advance(Duration::from_secs(121)).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!((charges(&world, run).await, used(&world, run).await.as_str()), (1, "1"));
}
