//! The outbox: one row for each effect key, whoever comes at the same time.

use std::sync::Arc;

use surefoot::prelude::*;
use surefoot_inventory::mail::{Mail, MailError, SendEmail, Sent, put};
use surefoot_inventory::store::sqlx;
use tokio::sync::Barrier;

use crate::shop::{self, Always, Never, Shop};

const RUN: RunId = RunId::from_bytes([7; 16]);

fn mail(subject: &str) -> Mail {
    Mail { to: "buyer@example.com".to_owned(), subject: subject.to_owned() }
}

fn key(step: &str) -> EffectKey {
    EffectKey::of(RUN, &step.into())
}

async fn put_once(
    shop: &Shop,
    key: &EffectKey,
    run: RunId,
    mail: &Mail,
) -> Result<Sent, MailError> {
    let mut tx = shop.store.begin().await.unwrap();
    let sent = put(&mut tx, key, run, mail).await;
    tx.commit().await.unwrap();
    sent
}

async fn outbox(shop: &Shop) -> Vec<(i64, String)> {
    let mut tx = shop.store.begin().await.unwrap();
    let rows = sqlx::query_as("SELECT id, subject FROM outbox ORDER BY id");
    rows.fetch_all(&mut *tx).await.unwrap()
}

/// Covers behaviour 137.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_identical_mails_at_once_are_one_row_that_both_see() {
    let shop = shop::open().await;
    for round in 0..20 {
        let (key, mail) = (key(&format!("steps.{round}")), mail(&format!("round {round}")));
        let both = Arc::new(Barrier::new(2));
        let callers = [0, 1].map(|_| {
            let (shop, key, mail, both) = (shop.clone(), key.clone(), mail.clone(), both.clone());
            tokio::spawn(async move {
                both.wait().await;
                put_once(&shop, &key, RUN, &mail).await
            })
        });
        let [first, second] = callers;
        let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
        assert_eq!(first, second, "both see the one row");
        assert_eq!(outbox(&shop).await.len(), round + 1);
    }
}

/// Covers behaviour 137.
#[tokio::test]
async fn a_row_with_other_values_is_a_conflict_by_either_rule() {
    let shop = shop::open().await;
    let sent = put_once(&shop, &key("steps.0"), RUN, &mail("Ordered")).await.unwrap();

    let under_the_same_key = put_once(&shop, &key("steps.0"), RUN, &mail("Something else")).await;
    let rule = "this effect key";
    assert!(matches!(under_the_same_key, Err(MailError::Conflict { rule: it }) if it == rule));

    let of_the_same_run = put_once(&shop, &key("steps.1"), RUN, &mail("Ordered")).await;
    let rule = "this run, recipient and subject";
    assert!(matches!(of_the_same_run, Err(MailError::Conflict { rule: it }) if it == rule));

    assert_eq!(outbox(&shop).await, [(sent.mail, "Ordered".to_owned())], "nothing was changed");
    let another_run = RunId::from_bytes([8; 16]);
    let key = EffectKey::of(another_run, &"steps.0".into());
    put_once(&shop, &key, another_run, &mail("Ordered")).await.unwrap();
}

#[tokio::test]
async fn a_step_that_runs_again_finds_its_mail() {
    let shop = shop::open().await;
    let action = SendEmail { store: shop.store.clone() };
    let step = || StepCx::new(StepData::detached(RUN, "steps.4"));
    let first = action.run(&IdempotentCx::fenced(step(), Always::shared()), mail("Ordered")).await;
    let again = action.run(&IdempotentCx::fenced(step(), Always::shared()), mail("Ordered")).await;
    assert_eq!(first.unwrap(), again.unwrap());
    assert_eq!(outbox(&shop).await.len(), 1);
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_writes_no_mail() {
    let shop = shop::open().await;
    let action = SendEmail { store: shop.store.clone() };
    let cx = IdempotentCx::fenced(StepCx::new(StepData::detached(RUN, "steps.4")), Never::shared());
    let stop = action.run(&cx, mail("Ordered")).await.unwrap_err();
    assert_eq!(stop.halt(), Some(Halt::LeaseLost));
    assert_eq!(outbox(&shop).await, []);
}
