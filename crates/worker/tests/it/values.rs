//! What the application's resolver gave to a step is journaled: every attempt sends the same request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Code, Dependency, Fact, RESOLVED_VALUE_MAX_BYTES, RowInput, RunId, RunState, Source,
    StepValues, ValueResolver, Verdict as Word,
};
use surefoot_language::{Access, AmbiguousResultExt, Reconciled, Stop};
use surefoot_worker::{NotYet, Worker};

use crate::actions::{Actions, n};
use crate::plans::act;
use crate::store::{Verdict, unavailable, unknown};
use crate::world::{World, until};

/// Says something else each time that it is asked.
#[derive(Clone, Default)]
struct Fickle(Arc<AtomicUsize>);

impl Fickle {
    fn asked(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl ValueResolver for Fickle {
    async fn resolve(&self, reference: &str) -> Result<Option<Value>, Source> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        match reference {
            "large" => Ok(Some(json!("x".repeat(RESOLVED_VALUE_MAX_BYTES)))),
            "later" => Err(Box::new(NotYet(Dependency::on("price", "bolt")))),
            _ => Ok(Some(json!(asked))),
        }
    }
}

fn worker(world: &World, fickle: &Fickle) -> Worker {
    let fickle = fickle.clone();
    world.builder().values(move |_| fickle.clone()).build().unwrap()
}

async fn values(world: &World, run: RunId) -> Vec<StepValues> {
    let facts = world.facts(run).await.into_iter();
    facts
        .filter_map(|fact| match fact {
            Fact::ValuesResolved { values, .. } => Some(values),
            _ => None,
        })
        .collect()
}

fn price(value: i64) -> StepValues {
    let mut values = StepValues::default();
    values.keep("price", json!(value));
    values
}

/// Waits until the log has a line, kills the worker there, and lets its lease run out.
async fn crash_at(world: &World, fickle: &Fickle, line: &'static str) {
    let doomed = worker(world, fickle);
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until(line, || world.log().count(line) == 1).await;
    crash.abort();
    tokio::time::advance(Duration::from_secs(121)).await;
}

/// Sends what it resolved; the first attempt never comes back.
fn sends() -> Actions {
    let actions = Actions::default();
    let log = actions.log.clone();
    let first = Arc::new(AtomicUsize::new(0));
    actions.mail(move |cx, _| {
        let (log, first) = (log.clone(), first.clone());
        async move {
            let price: i64 = cx.resolve("price").await?;
            log.add(format!("sent {price}"));
            if first.fetch_add(1, Ordering::SeqCst) == 0 {
                std::future::pending::<()>().await;
            }
            Ok(json!(price))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_a_crash_sends_what_the_first_attempt_sent() {
    let (world, fickle) = (World::new(sends()), Fickle::default());
    let run = world.start(vec![act("mail", n(1)), act("mail", n(2))]).await;
    crash_at(&world, &fickle, "sent").await;
    assert_eq!(values(&world, run).await, [price(1)]);
    assert_eq!(world.settle(&worker(&world, &fickle), run).await, RunState::Succeeded);
    // The second step asks for itself.
    assert_eq!(world.outputs(run).await, [json!(1), json!(2)]);
    assert_eq!((fickle.asked(), world.log().count("sent 1")), (2, 2));
}

/// The value is durable before the action has it: a store that cannot write it keeps the action from sending.
#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_journaled_is_not_used() {
    let (world, fickle) = (World::new(sends()), Fickle::default());
    world.store.on(|op| {
        let is_value = op.facts().contains("values_resolved");
        if is_value { Verdict::Fail(unavailable()) } else { Verdict::Go }
    });
    let run = world.start(vec![act("mail", n(1))]).await;
    worker(&world, &fickle).run_one().await.unwrap();
    assert_eq!((world.state(run).await, world.log().count("sent")), (RunState::Queued, 0));
    let why = world.run(run).await.last_failure.unwrap();
    assert_eq!(why.code, Code::VALUE_UNAVAILABLE);
    assert!(why.message.contains("`price`"), "{}", why.message);
}

#[tokio::test(start_paused = true)]
async fn a_value_whose_commit_is_unknown_is_recorded_once() {
    for done in [true, false] {
        let fickle = Fickle::default();
        let world = World::new(Actions::default().mail(|cx, _| async move {
            let price: i64 = cx.resolve("price").await?;
            Ok(json!(price))
        }));
        let mut is_first = true;
        world.store.on(move |op| {
            let is_value = op.facts().contains("values_resolved");
            match (is_value && std::mem::take(&mut is_first), done) {
                (true, true) => Verdict::Lose(unknown()),
                (true, false) => Verdict::Fail(unknown()),
                (false, _) => Verdict::Go,
            }
        });
        let run = world.start(vec![act("mail", n(1))]).await;
        assert_eq!(world.settle(&worker(&world, &fickle), run).await, RunState::Succeeded);
        assert_eq!(values(&world, run).await, [price(1)], "{done}");
        assert_eq!(world.outputs(run).await, [json!(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_call_and_the_question_about_it_see_the_same_value() {
    let fickle = Fickle::default();
    let actions = Actions::default();
    let (log, asked) = (actions.log.clone(), actions.log.clone());
    let first = Arc::new(AtomicUsize::new(0));
    let actions = actions.pay(move |cx, _| {
        let (log, first) = (log.clone(), first.clone());
        async move {
            let price: i64 = cx.resolve("price").await.or_nothing_happened("NO_PRICE")?;
            log.add(format!("sent {price}"));
            if first.fetch_add(1, Ordering::SeqCst) == 0 {
                std::future::pending::<()>().await;
            }
            Ok(json!(price))
        }
    });
    let world = World::new(actions.find(move |cx, _| {
        let log = asked.clone();
        async move {
            let price: i64 = cx.resolve("price").await?;
            log.add(format!("asked {price}"));
            Ok(Reconciled::unknown("no list of payments"))
        }
    }));
    let run = world.start(vec![act("pay", n(1))]).await;
    crash_at(&world, &fickle, "sent").await;
    assert!(world.run(run).await.has_unsettled_effect());
    let worker = worker(&world, &fickle);
    assert_eq!(world.settle(&worker, run).await, RunState::NeedsAttention);
    let resolve = RowInput::Resolve { step: "steps.0".into(), verdict: Word::NotPerformed };
    world.act_on(run, resolve).await.unwrap();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("sent 1"), world.log().count("asked 1")), (2, 1));
    assert_eq!((fickle.asked(), values(&world, run).await), (1, vec![price(1)]));
}

/// With the mark, in one commit.
#[tokio::test(start_paused = true)]
async fn what_authorize_resolved_is_journaled_with_the_mark() {
    let fickle = Fickle::default();
    let actions = Actions::default().may(|_, cx| async move {
        let price: i64 = cx.resolve("price").await?;
        Ok(Access::allowed_if(price > 0, "too cheap"))
    });
    let world = World::new(actions.pay(|cx, _| async move {
        let price: i64 = cx.resolve("price").await.or_nothing_happened("NO_PRICE")?;
        Ok(json!(price))
    }));
    let (told, heard) = std::sync::mpsc::channel();
    world.store.on(move |op| {
        told.send(op.facts().to_owned()).unwrap();
        Verdict::Go
    });
    let run = world.start(vec![act("pay", n(1))]).await;
    worker(&world, &fickle).run_one().await.unwrap();
    let commits: Vec<String> =
        heard.try_iter().filter(|facts| facts.contains("values_resolved")).collect();
    assert_eq!(commits.len(), 1);
    assert!(commits[0].contains("call_marked"), "{commits:?}");
    assert_eq!((world.outputs(run).await, fickle.asked()), (vec![json!(1)], 1));
}

#[tokio::test(start_paused = true)]
async fn a_transactional_step_journals_its_values_with_its_outcome() {
    let fickle = Fickle::default();
    let failed = Arc::new(AtomicUsize::new(0));
    let world = World::new(Actions::default().book(move |cx, _| {
        let failed = failed.clone();
        Box::pin(async move {
            let price: i64 = cx.resolve("price").await?;
            cx.tx().table().insert("bolt".to_owned(), price.to_string());
            match failed.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Stop::retry("BUSY", "later")),
                _ => Ok(json!(price)),
            }
        })
    }));
    let run = world.start(vec![act("book", n(1))]).await;
    let worker = worker(&world, &fickle);
    worker.run_one().await.unwrap();
    // Rolled back, and nothing of it was seen anywhere.
    assert_eq!(values(&world, run).await, []);
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!(values(&world, run).await, [price(2)]);
    assert_eq!(world.store.inner.table_row("bolt").as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_value_over_its_limit_is_refused_by_name() {
    let fickle = Fickle::default();
    let world = World::new(Actions::default().mail(|cx, config| async move {
        let _: String = cx.resolve("large").await?;
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    assert_eq!(world.settle(&worker(&world, &fickle), run).await, RunState::Failed);
    let error = world.error(run).await;
    assert_eq!(error.code, Code::VALUE_TOO_LARGE);
    assert!(error.message.contains("`large`") && error.message.len() < 300, "{}", error.message);
    assert_eq!(values(&world, run).await, []);
}

/// The type of the stop makes the action say that it had sent nothing; then the mark is settled and the step parks.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_there_yet_parks_an_ambiguous_call_on_its_word_alone() {
    let fickle = Fickle::default();
    let world = World::new(Actions::default().pay(|cx, config| async move {
        let _: i64 = cx.resolve("price").await.or_nothing_happened("NO_PRICE")?;
        let _: i64 = cx.resolve("later").await.or_nothing_happened("NO_PRICE")?;
        Ok(config)
    }));
    let run = world.start(vec![act("pay", n(1))]).await;
    worker(&world, &fickle).run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Waiting);
    assert!(!world.run(run).await.has_unsettled_effect());
    assert_eq!(values(&world, run).await, [price(1)]);
}
