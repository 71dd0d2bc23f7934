//! Work that another process does for a waiting step.

use std::future::ready;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use surefoot::prelude::*;
use surefoot_inventory::events::ItemListed;
use surefoot_inventory::quote::task::{self, Task, TaskState};
use surefoot_inventory::quote::{
    ATTEMPTS_MAX, Delivery, DeskError, Quote, QuoteRequest, RequestQuote, Supplier,
};

use crate::shop::{self, Always, Shop, Staff};

const RUN: RunId = RunId::from_bytes([7; 16]);

fn listed() -> Event {
    ItemListed { item: "bolt".to_owned(), pieces: 12 }.event()
}

fn good(task: &Task) -> Result<String, DeskError> {
    Ok(json!({ "cents": task.pieces * 100 }).to_string())
}

async fn tasks(shop: &Shop) -> Vec<Task> {
    let mut tx = shop.store.begin().await.unwrap();
    let open = task::list_open(&mut tx, 100).await.unwrap();
    tx.rollback().await;
    open
}

async fn state_of(shop: &Shop, task: &Task) -> TaskState {
    let mut tx = shop.store.begin().await.unwrap();
    let found = task::find(&mut tx, &task.effect_key).await.unwrap().unwrap();
    tx.rollback().await;
    found.state
}

/// Starts a run and works on it until it waits for the supplier.
async fn waiting(shop: &Shop, staff: &Staff) -> (RunId, Task) {
    let run = staff.emit(listed()).await;
    staff.until(run, RunState::Waiting).await;
    let task = tasks(shop).await.into_iter().find(|task| task.run == run).unwrap();
    (run, task)
}

/// Covers behaviour 214.
#[tokio::test]
async fn a_step_that_runs_twice_has_one_task_with_the_terms_of_the_first_time() {
    let shop = shop::open().await;
    let step = || StepCx::new(StepData::detached(RUN, "steps.0"));
    for terms in ["delivered, 30 days", "cash before delivery"] {
        let action = RequestQuote { store: shop.store.clone(), terms: terms.to_owned() };
        let request = QuoteRequest { item: "bolt".to_owned(), pieces: 12 };
        let cx = IdempotentCx::fenced(step(), Always::shared());
        let stop = action.run(&cx, request).await.unwrap_err();
        assert_eq!(stop.dependency().unwrap().key(), cx.effect_key().as_str());
    }
    let tasks = tasks(&shop).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0].terms, "delivered, 30 days", "pinned when the task was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_wakes_the_step_and_is_its_output() {
    let shop = shop::open().await;
    let staff = shop.staff().await;
    let (run, task) = waiting(&shop, &staff).await;
    let supplier = Supplier { kernel: staff.kernel.clone() };
    let deliveries = supplier.pass(|task| ready(good(&task))).await.unwrap();
    assert_eq!(deliveries, [Delivery::Delivered]);
    staff.until(run, RunState::Succeeded).await;
    assert_eq!(staff.output(run, &task.step).await, json!(Quote { cents: 1_200 }));
    assert_eq!(
        supplier.pass(|task| ready(good(&task))).await.unwrap(),
        [],
        "nothing is left to do"
    );
}

/// Covers behaviour 215.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_to_a_canceled_run_is_thrown_away_and_wakes_nobody() {
    for late in [Ok(r#"{"cents": 1}"#.to_owned()), Err(DeskError("busy".to_owned()))] {
        let shop = shop::open().await;
        let staff = shop.staff().await;
        let (run, task) = waiting(&shop, &staff).await;
        let supplier = Supplier { kernel: staff.kernel.clone() };
        // The run is canceled while the supplier is at work.
        let delivered = supplier.pass(|_| {
            let (kernel, late) = (staff.kernel.clone(), clone(&late));
            async move {
                kernel.cancel(run, "no longer needed").await.unwrap();
                late
            }
        });
        assert_eq!(delivered.await.unwrap(), [Delivery::Discarded]);
        assert_eq!(state_of(&shop, &task).await, TaskState::Canceled);
        assert_eq!(staff.state(run).await, RunState::Canceled);
        let asked = AtomicU32::new(0);
        let again = supplier.pass(|task| {
            asked.fetch_add(1, Ordering::Relaxed);
            ready(good(&task))
        });
        assert_eq!((again.await.unwrap(), asked.into_inner()), (vec![], 0));
    }
}

fn clone(answer: &Result<String, DeskError>) -> Result<String, DeskError> {
    answer.as_ref().cloned().map_err(|error| DeskError(error.0.clone()))
}

/// Covers behaviour 216.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_used_fails_the_step_at_once() {
    for useless in ["not JSON", r#"{"price": 3}"#, r#"{"cents": -1}"#] {
        let shop = shop::open().await;
        let staff = shop.staff().await;
        let (run, _) = waiting(&shop, &staff).await;
        let supplier = Supplier { kernel: staff.kernel.clone() };
        supplier.pass(|_| ready(Ok(useless.to_owned()))).await.unwrap();
        staff.until(run, RunState::Failed).await;
        let failure = staff.failure(run).await;
        assert_eq!(failure.code.as_str(), "QUOTE_UNUSABLE", "{useless}: {}", failure.message);
    }
}

/// Covers behaviour 216.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_desk_that_does_not_answer_is_asked_again_a_few_times_and_no_more() {
    let shop = shop::open().await;
    let staff = shop.staff().await;
    let (run, task) = waiting(&shop, &staff).await;
    let supplier = Supplier { kernel: staff.kernel.clone() };
    let busy = || supplier.pass(|_| ready(Err(DeskError("busy".to_owned()))));
    for _ in 1..ATTEMPTS_MAX {
        assert_eq!(busy().await.unwrap(), [Delivery::Postponed]);
        assert_eq!(state_of(&shop, &task).await, TaskState::Open);
    }
    assert_eq!(busy().await.unwrap(), [Delivery::GivenUp]);
    staff.until(run, RunState::Failed).await;
    let failure = staff.failure(run).await;
    assert_eq!(failure.code.as_str(), "SUPPLIER_UNREACHABLE");
    assert!(failure.message.contains("busy"), "{}", failure.message);
}

/// Covers behaviour 217.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_attempt_of_the_step_keeps_the_task_and_waits_on() {
    let shop = shop::open().await;
    let first = shop.staff().await;
    let (run, task) = waiting(&shop, &first).await;
    let before = first.stored(run).await.run.generation;
    // The deadline of the wait wakes the step while the task is open.
    shop.later(std::time::Duration::from_secs(3_601));
    first.until_generation(run, before + 1).await;
    first.until(run, RunState::Waiting).await;
    let interest = first.kernel.step_interest(run, &task.step).await.unwrap();
    assert_eq!(interest, StepInterest::Wanted, "a new generation alone cancels nothing");
    assert_eq!(tasks(&shop).await.first(), Some(&task), "the task is kept as it is");
    let supplier = Supplier { kernel: first.kernel.clone() };
    supplier.pass(|task| ready(good(&task))).await.unwrap();
    first.until(run, RunState::Succeeded).await;
    let interest = first.kernel.step_interest(run, &task.step).await.unwrap();
    assert_eq!(interest, StepInterest::Over);
}
