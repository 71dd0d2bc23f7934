//! What a dry run says is what an execution then does.

use serde_json::json;
use surefoot::prelude::*;
use surefoot_inventory::database::{NewItem, add_items};
use surefoot_inventory::events::StockLow;
use surefoot_inventory::provider::wire::card;
use surefoot_inventory::{APP, REORDER, module};

use crate::provider;
use crate::shop::{self, Shop};

/// No condition of it reads a value that only an execution has.
const RESTOCK: &str = "
inputs:
  items: { type: list, required: true }
steps:
  - chargeCard: { cents: 3000, currency: EUR, card: '${{ context.card }}' }
  - forEach: '${{ inputs.items }}'
    as: item
    do:
      - loadItem: { item: '${{ item }}' }
      - if: \"${{ item == 'bolt' }}\"
        then:
          - reserveStock: { item: '${{ item }}', warehouse: berlin, pieces: 2 }
        else:
          - chargeCard: { cents: 500, currency: EUR, card: '${{ context.card }}' }
  - sendEmail: { to: buyer@example.com, subject: Restocked }
";

async fn stocked() -> Shop {
    let shop = shop::open().await;
    let item = |id: &str| NewItem {
        id: id.to_owned(),
        price_cents: 250,
        discontinued: false,
        stock: vec![("berlin", 3, 10)],
    };
    add_items(&shop.store, &[item("bolt"), item("nut")]).await.unwrap();
    shop
}

async fn used(staff: &shop::Staff, run: RunId) -> Vec<BudgetLine> {
    staff.kernel.store().run_detail(run).await.unwrap().unwrap().budget.lines()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bill_is_what_an_execution_then_charges_effect_by_effect() {
    let (shop, provider) = (stocked().await, provider::start().await);
    let staff = shop.staff_with(provider.bank()).await;
    let inventory = module(shop.store.clone(), provider.bank()).unwrap();
    let berlin = staff.kernel.scope("berlin");
    let restock = Publication::new("restock", RESTOCK).budget("payments", 3);
    let version = berlin.publish(inventory.manifest(), restock).await.unwrap().version;
    let event = || {
        let start = Event::start("restock", json!({ "items": ["bolt", "nut"] }));
        start.context(json!({ "card": card::GOOD }))
    };

    let bill = berlin.dry_run(&inventory, version, event()).await.unwrap();
    assert!(bill.code.is_none() && bill.issues.is_empty(), "{bill:?}");
    assert!(provider.charges().is_empty(), "a dry run paid");

    let run = staff.emit(event()).await;
    staff.until(run, RunState::Succeeded).await;
    let journal = staff.stored(run).await.journal.unwrap();
    let facts: Vec<Fact> = journal.into_iter().flat_map(|entry| entry.facts).collect();
    let done: Vec<String> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::StepCompleted { step, .. } => Some(step.to_string()),
            _ => None,
        })
        .collect();
    let planned: Vec<String> = bill.effects.iter().map(|effect| effect.step.to_string()).collect();
    assert_eq!(planned, done, "effect by effect");
    assert!(bill.effects.iter().all(|effect| effect.is_sure));
    let charged: Vec<(String, Amounts)> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Charged(charge) => Some((charge.step.to_string(), charge.amounts.clone())),
            _ => None,
        })
        .collect();
    let costs = bill.effects.iter().filter(|effect| !effect.cost.is_empty());
    let costs: Vec<_> = costs.map(|it| (it.step.to_string(), it.cost.clone())).collect();
    assert_eq!(costs, charged, "unit by unit");
    let used = used(&staff, run).await;
    assert_eq!((used[0].used, used[0].dimension.as_str()), (bill.costs[0].sure, "payments"));
    assert_eq!(bill.costs[0].sure.to_string(), "2");
}

/// Its conditions hang on the stock, which an execution reads anew: the bill says what may happen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bill_of_a_reorder_says_what_may_happen() {
    let (shop, provider) = (stocked().await, provider::start().await);
    let inventory = module(shop.store.clone(), provider.bank()).unwrap();
    let kernel = Kernel::new(APP, shop.store.clone());
    let berlin = kernel.scope("berlin");
    let (key, yaml) = REORDER;
    let reorder = Publication::new(key, yaml).budget("payments", 3).draft();
    let version = berlin.publish(inventory.manifest(), reorder).await.unwrap().version;
    let low = StockLow { item: "bolt".to_owned(), card: card::GOOD.to_owned() };
    let bill = berlin.dry_run(&inventory, version, low.event()).await.unwrap();
    let charge = bill.effects.iter().find(|effect| effect.action == "chargeCard").unwrap();
    assert_eq!(charge.summary.as_deref(), Some("Charge 17.50 EUR to card-good"));
    assert!(!charge.is_sure, "an execution may end before it");
    assert_eq!(bill.costs[0].all.to_string(), "1");
    assert_eq!(bill.code, Some(Code::DRY_RUN_INDETERMINATE));
    assert!(provider.charges().is_empty());
}
