//! The reorder workflow as a whole, against a provider with the faults of its trade.

use std::time::Duration;

use serde_json::json;
use surefoot::prelude::*;
use surefoot_inventory::database::{NewItem, add_items};
use surefoot_inventory::events::StockLow;
use surefoot_inventory::provider::wire::card;
use surefoot_inventory::store::sqlx;

use crate::provider;
use crate::shop::{self, Shop, Staff};

/// What the provider's step is called in the plan.
const CHARGE: &str = "steps.4";

struct Scene {
    shop: Shop,
    staff: Staff,
    provider: provider::Running,
}

async fn scene() -> Scene {
    let (shop, provider) = (shop::open().await, provider::start().await);
    let item = |id: &str, price_cents, discontinued| NewItem {
        id: id.to_owned(),
        price_cents,
        discontinued,
        stock: vec![("berlin", 3, 10), ("hamburg", 10, 10), ("munich", 5, 10)],
    };
    let items = [item("bolt", 250, false), item("engine", 20_000, false), item("wick", 5, true)];
    add_items(&shop.store, &items).await.unwrap();
    let bank = provider.bank().patience(Duration::from_millis(200));
    let staff = shop.staff_with(bank).await;
    Scene { shop, staff, provider }
}

impl Scene {
    async fn low(&self, item: &str, card: &str) -> RunId {
        let (item, card) = (item.to_owned(), card.to_owned());
        self.staff.emit(StockLow { item, card }.event()).await
    }

    async fn reserved(&self, item: &str) -> Vec<i64> {
        let mut tx = self.shop.store.begin().await.unwrap();
        let sql = "SELECT reserved FROM stock WHERE item = $1 ORDER BY warehouse";
        sqlx::query_scalar(sql).bind(item).fetch_all(&mut *tx).await.unwrap()
    }

    async fn subjects(&self) -> Vec<String> {
        let mut tx = self.shop.store.begin().await.unwrap();
        let sql = "SELECT subject FROM outbox ORDER BY id";
        sqlx::query_scalar(sql).fetch_all(&mut *tx).await.unwrap()
    }

    async fn said_by(&self, run: RunId) -> SaidBy {
        let journal = self.staff.stored(run).await.journal.unwrap();
        let by = journal.iter().flat_map(|entry| &entry.facts).find_map(|fact| match fact {
            Fact::StepCompleted { step, by, .. } if step.as_str() == CHARGE => Some(*by),
            _ => None,
        });
        by.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_paid_reserved_and_announced() {
    let scene = scene().await;
    let run = scene.low("bolt", card::GOOD).await;
    scene.staff.until(run, RunState::Succeeded).await;
    assert_eq!(scene.reserved("bolt").await, [7, 0, 5]);
    assert_eq!(scene.subjects().await, ["Ordered 12 of bolt, payment ch_000001"]);
    let charges = scene.provider.charges();
    assert_eq!(charges.len(), 1);
    let key = EffectKey::of(run, &CHARGE.into());
    assert_eq!((charges[0].effect_key.as_str(), charges[0].cents), (key.as_str(), 3_000));
    assert_eq!(scene.said_by(run).await, SaidBy::Action);

    // What is ordered is not missing any more.
    let again = scene.low("bolt", card::GOOD).await;
    scene.staff.until(again, RunState::Succeeded).await;
    assert_eq!((scene.reserved("bolt").await, scene.provider.charges().len()), (vec![7, 0, 5], 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_ordered_of_what_is_no_longer_sold() {
    let scene = scene().await;
    let run = scene.low("wick", card::GOOD).await;
    scene.staff.until(run, RunState::Succeeded).await;
    assert_eq!(scene.subjects().await, ["Nothing to order of wick"]);
    assert_eq!(scene.provider.charges(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_order_waits_for_a_person_who_may_say_no() {
    let scene = scene().await;
    let berlin = scene.staff.kernel.scope("berlin");
    let refused = scene.low("engine", card::GOOD).await;
    scene.staff.until(refused, RunState::Waiting).await;
    assert_eq!(scene.provider.charges(), []);
    berlin.signal(Signal::new("approval", refused.to_string()).data(false)).await.unwrap();
    scene.staff.until(refused, RunState::Failed).await;
    assert_eq!(scene.staff.failure(refused).await.code.as_str(), "NOT_APPROVED");

    let approved = scene.low("engine", card::GOOD).await;
    // Said before the run waits, it counts as well.
    berlin.signal(Signal::new("approval", approved.to_string()).data(true)).await.unwrap();
    scene.staff.until(approved, RunState::Succeeded).await;
    assert_eq!(scene.provider.charges().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declined_card_ends_the_run_and_reserves_nothing() {
    let scene = scene().await;
    let run = scene.low("bolt", card::DECLINED).await;
    scene.staff.until(run, RunState::Failed).await;
    assert_eq!(scene.staff.failure(run).await.code.as_str(), "CARD_DECLINED");
    assert_eq!(scene.reserved("bolt").await, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_never_came_is_asked_for_and_the_card_not_charged_again() {
    for silent in [card::NO_ANSWER, card::LATE] {
        let scene = scene().await;
        let run = scene.low("bolt", silent).await;
        scene.staff.until(run, RunState::Succeeded).await;
        assert_eq!(scene.said_by(run).await, SaidBy::Reconcile, "{silent}");
        assert_eq!(scene.provider.charges().len(), 1, "{silent}");
        assert_eq!(scene.reserved("bolt").await, [7, 0, 5], "{silent}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_provider_cannot_tell_waits_for_a_person() {
    let scene = scene().await;
    let run = scene.low("bolt", card::FORGOTTEN).await;
    scene.staff.until(run, RunState::NeedsAttention).await;
    let stored = scene.staff.stored(run).await;
    let effect = stored.run.effect().unwrap();
    assert_eq!((effect.step.as_str(), effect.action.as_str()), (CHARGE, "chargeCard"));
    assert!(effect.state.is_unsettled());
    assert_eq!(scene.provider.charges().len(), 1);
    assert_eq!(scene.subjects().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_not_there_has_charged_nobody() {
    let shop = shop::open().await;
    let stock = vec![("berlin", 0, 1)];
    let bolt = NewItem { id: "bolt".to_owned(), price_cents: 1, discontinued: false, stock };
    add_items(&shop.store, &[bolt]).await.unwrap();
    let staff = shop.staff().await;
    let low = StockLow { item: "bolt".to_owned(), card: card::GOOD.to_owned() };
    let run = staff.emit(low.event()).await;
    staff.until_it(run, "be tried again", |run| run.last_failure.is_some()).await;
    let stored = staff.stored(run).await;
    let failure = stored.run.last_failure.clone().unwrap();
    assert_eq!(failure.code.as_str(), "BANK_UNREACHABLE");
    assert!(!stored.run.has_unsettled_effect(), "nothing happened, and the journal says so");
    let facts = stored.journal.unwrap().into_iter().flat_map(|entry| entry.facts);
    assert!(facts.into_iter().any(|fact| matches!(fact, Fact::NothingHappened { .. })));
}

#[test]
fn both_workflows_compile_without_a_word() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let shop = runtime.block_on(shop::open());
    let nobody = surefoot_inventory::bank::Bank::at("127.0.0.1:1".parse().unwrap());
    let module = surefoot_inventory::module(shop.store.clone(), nobody).unwrap();
    for (key, source) in [surefoot_inventory::REORDER, surefoot_inventory::QUOTE] {
        let findings = compile(source, Some(module.manifest())).findings.to_json();
        assert_eq!(findings, json!({ "ok": true, "findings": [] }), "{key}");
    }
}
