//! A key that is lost stops the runs that need it, and no others; and when it is found, nothing of them is lost.

use serde_json::json;
use surefoot_codec::{CodecStore, WithCodec as _};
use surefoot_kernel_core::{
    ChildStore as _, ChildrenRequest, Code, Event, LoadRequest, OperatorStore as _, Phase, Run,
    RunFilter, RunId, RunState, RunStore as _, Signal, StepKey, StoreError,
};
use surefoot_operator::{Abandon, Cancel, Operator, Retry};
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::Kernel;

use crate::shop::{
    APP, BAD, FLOW, GOOD, MARK, PART, SCOPE, Shop, assert_state, detail, low, message,
};
use crate::vault::Vault;

fn old() -> Vault {
    Vault::new([("k1".to_owned(), [1; 32])], "k1")
}

/// The old key is lost.
fn new() -> Vault {
    Vault::new([("k2".to_owned(), [2; 32])], "k2")
}

/// It is found again.
fn both() -> Vault {
    Vault::new([("k1".to_owned(), [1; 32]), ("k2".to_owned(), [2; 32])], "k2")
}

async fn kernel(shop: &Shop, vault: Vault) -> Kernel<CodecStore<SqliteStore>> {
    Kernel::new(APP, shop.store().await.with_codec(vault))
}

async fn published() -> (Shop, Kernel<CodecStore<SqliteStore>>) {
    let shop = Shop::new().await;
    let kernel = kernel(&shop, old()).await;
    for (workflow, source) in [("flow", FLOW), ("part", PART), ("good", GOOD), ("bad", BAD)] {
        shop.publish(&kernel, workflow, source).await;
    }
    (shop, kernel)
}

/// A run that waits for its approval, and that a signal wakes before a worker looks again.
async fn resumed(shop: &Shop, kernel: &Kernel<CodecStore<SqliteStore>>) -> RunId {
    let run = kernel.scope(SCOPE).emit(low()).await.unwrap().runs[0];
    shop.work(&shop.worker(kernel), 3).await;
    let signal = Signal::new("approval", run.to_string()).data(format!("{MARK}-signal"));
    kernel.scope(SCOPE).signal(signal).await.unwrap();
    run
}

async fn kept(kernel: &Kernel<CodecStore<SqliteStore>>, run: RunId) -> Run {
    kernel.store().inner().run_detail(run).await.unwrap().unwrap().run
}

#[tokio::test]
async fn a_lost_key_stops_its_runs_and_no_others_and_a_found_one_lets_them_go_on() {
    let (shop, first) = published().await;
    let run = resumed(&shop, &first).await;
    let before = kept(&first, run).await.resume;
    assert!(before.is_some());

    let second = kernel(&shop, new()).await;
    // What a publication authorizes was encoded when it was published.
    shop.publish(&second, "good", GOOD).await;
    let inputs = json!({ "name": "bolt" });
    let other = second.scope(SCOPE).emit(Event::start("good", inputs)).await.unwrap().runs[0];
    shop.work(&shop.worker(&second), 1).await;
    assert_state(&detail(second.store(), other).await.run, RunState::Succeeded);
    let stopped = detail(second.store(), run).await;
    let Phase::NeedsAttention(attention) = &stopped.run.phase else { panic!("{:?}", stopped.run) };
    assert_eq!(attention.error.code, Code::RESTORE_INVALID);
    assert!(
        attention
            .error
            .message
            .contains("its signal_data cannot be decoded: it needs the key `k1`"),
        "{}",
        attention.error.message
    );
    assert!(stopped.journal.is_err());
    // What it could not read it has not overwritten.
    assert_eq!(kept(&second, run).await.resume, before);

    let third = kernel(&shop, both()).await;
    let operator = Operator::new(third.store().clone(), "ann");
    let seen = detail(third.store(), run).await.run.revision;
    operator.retry(Retry { run, seen, why: "the key is back".to_owned() }).await.unwrap();
    shop.work(&shop.worker(&third), 4).await;
    let read = detail(third.store(), run).await;
    assert_state(&read.run, RunState::NeedsAttention);
    assert_eq!(read.run.effect().unwrap().step, StepKey::from("steps.4"));
    let journal = serde_json::to_string(
        &read.journal.unwrap()[..].iter().map(|it| &it.facts).collect::<Vec<_>>(),
    );
    assert!(journal.unwrap().contains(&format!("{MARK}-signal")));
}

#[tokio::test]
async fn a_run_whose_key_is_lost_can_be_given_up_and_its_effect_keeps_its_evidence() {
    let (shop, first) = published().await;
    let run = resumed(&shop, &first).await;
    shop.work(&shop.worker(&first), 5).await;
    let before = kept(&first, run).await;
    assert_state(&before, RunState::NeedsAttention);

    let second = kernel(&shop, new()).await;
    let store = second.store();
    let effects = store.effect_list(&APP.into(), None, 10).await.unwrap();
    let shown = effects[0].effect.evidence.as_deref().unwrap();
    assert!(shown.starts_with("(cannot be decoded"), "{shown}");
    let runs = store.run_list(RunFilter { limit: 10, ..RunFilter::default() }).await.unwrap();
    assert_eq!(runs.rows.len(), 1);

    let operator = Operator::new(store.clone(), "ann");
    assert!(operator.show(run).await.unwrap().unreadable.is_some());
    operator.explain(run).await.unwrap();
    let (seen, why) = (before.revision, "nobody has the key".to_owned());
    operator.abandon(Abandon { run, seen, accept_unknown: true, why }).await.unwrap();
    let after = kept(&second, run).await;
    assert_state(&after, RunState::Failed);
    let evidence = |run: &Run| run.effect().unwrap().evidence.clone();
    assert_eq!(evidence(&after), evidence(&before));
    // And is read again once the key is found.
    let third = kernel(&shop, both()).await;
    let read = detail(third.store(), run).await.run;
    assert!(evidence(&read).unwrap().contains(&format!("{MARK}-evidence")));
}

#[tokio::test]
async fn a_run_whose_key_is_lost_can_be_canceled() {
    let (shop, first) = published().await;
    let run = resumed(&shop, &first).await;
    let second = kernel(&shop, new()).await;
    let operator = Operator::new(second.store().clone(), "ann");
    let cancel = Cancel { run, seen: None, why: "nobody has the key".to_owned() };
    operator.cancel(cancel).await.unwrap();
    assert_state(&kept(&second, run).await, RunState::Canceled);
}

/// Whoever asks for what a run came to must not be given something else.
#[tokio::test]
async fn an_end_that_cannot_be_decoded_is_an_error_that_names_run_and_place() {
    let (shop, first) = published().await;
    let inputs = json!({ "name": "bolt" });
    let run = first.scope(SCOPE).emit(Event::start("bad", inputs)).await.unwrap().runs[0];
    shop.work(&shop.worker(&first), 1).await;
    let second = kernel(&shop, new()).await;
    let error = second.store().run_load(LoadRequest { run, after: None }).await.unwrap_err();
    let StoreError::Corrupt { run: of, what } = error else { panic!("{error}") };
    assert_eq!(of, run);
    assert!(what.starts_with("its message cannot be decoded: it needs the key `k1`"), "{what}");
    let read = detail(second.store(), run).await;
    assert!(message(&read.run).starts_with("(cannot be decoded"), "{:?}", read.run);
}

#[tokio::test]
async fn the_result_of_a_child_that_cannot_be_decoded_is_an_error_that_names_the_child() {
    let (shop, first) = published().await;
    let run = resumed(&shop, &first).await;
    shop.work(&shop.worker(&first), 5).await;
    let request =
        ChildrenRequest { parent: run, step: StepKey::from("steps.3"), from: 0, limit: 10 };
    let children = first.store().children_read(request.clone()).await.unwrap().children;
    assert_eq!(children[0].result, json!(format!("{MARK}-booked {MARK}-data")));
    let second = kernel(&shop, new()).await;
    let error = second.store().children_read(request).await.unwrap_err();
    let StoreError::Corrupt { run: of, what } = error else { panic!("{error}") };
    assert_eq!((of, what.starts_with("its result cannot be decoded")), (children[0].run, true));
}
