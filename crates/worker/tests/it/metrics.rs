//! A worker's counters say exactly what it did.

use std::time::Duration;

use serde_json::Value;
use surefoot_kernel_core::{Commit, Fact, RunState, RunStore as _};
use surefoot_language::Stop;
use surefoot_testkit::Exposition;
use surefoot_worker::Metrics;

use crate::actions::{Actions, n};
use crate::plans::act;
use crate::store::{Op, Verdict};
use crate::world::{APP, World, until};

/// All that is not zero, but buckets.
fn counted(metrics: &Metrics) -> Vec<String> {
    let page = Exposition::parse(&metrics.text()).unwrap();
    let all = page.counted();
    let all = all.iter().filter(|(series, _)| !series.contains("_bucket{"));
    all.map(|(series, value)| format!("{} {value}", series.replace("app=\"shop\"", ""))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_counted_scenario_is_told_exactly() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        if config == n(3) { Err(Stop::fail("NO_ADDRESS", "nobody")) } else { Ok(config) }
    }));
    let good = world.start(vec![act("compute", n(1)), act("mail", n(2))]).await;
    let metrics = Metrics::new(APP);
    let worker = world.builder().trace(metrics.clone()).build().unwrap();
    worker.run_one().await.unwrap();
    assert_eq!(world.state(good).await, RunState::Succeeded);
    let bad = world.start(vec![act("mail", n(3))]).await;
    worker.run_one().await.unwrap();
    assert_eq!(world.state(bad).await, RunState::Failed);
    assert_eq!(counted(&metrics), EXPECTED);
    let buckets = Exposition::parse(&metrics.text()).unwrap();
    for (bound, count) in [("0.025", 0.0), ("0.05", 2.0), ("+Inf", 2.0)] {
        let series = format!(
            "surefoot_worker_step_seconds_bucket{{app=\"shop\",class=\"idempotent\",le=\"{bound}\"}}"
        );
        assert_eq!(buckets.value(&series), Some(count), "{series}");
    }
}

/// Two runs: one with a computation and a mail, one whose mail fails with a code of the application. Each records its
/// inputs, and the outcome of each step; the last outcome that succeeds ends its run in the same commit.
const EXPECTED: &[&str] = &[
    "surefoot_worker_claim_seconds_count{} 2",
    "surefoot_worker_claimed_runs_total{} 2",
    "surefoot_worker_commit_facts_count{} 4",
    "surefoot_worker_commit_facts_sum{} 7",
    "surefoot_worker_commit_seconds_count{} 4",
    "surefoot_worker_runs_left_total{,state=\"failed\"} 1",
    "surefoot_worker_runs_left_total{,state=\"succeeded\"} 1",
    "surefoot_worker_runs_taken_total{} 2",
    "surefoot_worker_start_lag_seconds_count{} 2",
    "surefoot_worker_step_seconds_count{,class=\"idempotent\"} 2",
    "surefoot_worker_step_seconds_count{,class=\"pure\"} 1",
    "surefoot_worker_step_seconds_sum{,class=\"idempotent\"} 0.06",
    "surefoot_worker_steps_total{,outcome=\"failed\",code=\"application\"} 1",
    "surefoot_worker_steps_total{,outcome=\"succeeded\",code=\"\"} 2",
];

#[tokio::test(start_paused = true)]
async fn a_write_that_another_worker_fenced_out_is_counted() {
    let world = World::new(Actions::default().mail(|_, _| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(Value::Null)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    // The keeper hears nothing: only the write finds out.
    world.store.on(|op| match op {
        Op::Renew(_) => Verdict::Fail(crate::store::unavailable()),
        _ => Verdict::Go,
    });
    let metrics = Metrics::new(APP);
    let worker = world.builder().trace(metrics.clone()).build().unwrap();
    let driving = tokio::spawn(async move { worker.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    let row = world.run(run).await;
    let commit = Commit::new(&row, &[Fact::FenceRaised]);
    world.store.inner.run_commit(commit).await.unwrap();
    driving.await.unwrap().unwrap();
    let refused = "surefoot_worker_writes_refused_total{,why=\"fenced\"} 1";
    assert!(counted(&metrics).iter().any(|line| line == refused), "{:?}", counted(&metrics));
}
