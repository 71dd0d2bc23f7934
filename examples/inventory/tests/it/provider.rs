//! The provider does what its cards say, and the client understands each answer.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use surefoot::{EffectKey, RunId};
use surefoot_inventory::bank::{Answer, Bank, BankError, Found};
use surefoot_inventory::payment::CardCharge;
use surefoot_inventory::provider::wire::{Charge, Receipt, card};
use surefoot_inventory::provider::{CHARGES_FILE, Provider};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A provider with its own folder. It ends with the test's runtime.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

pub(crate) async fn start() -> Running {
    let folder = TempDir::new().unwrap();
    let address = serve(folder.path()).await;
    Running { address, folder }
}

async fn serve(folder: &Path) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let provider = Provider::open(folder).unwrap();
    tokio::spawn(provider.serve(listener, std::future::pending()));
    address
}

impl Running {
    pub(crate) fn bank(&self) -> Bank {
        Bank::at(self.address)
    }

    pub(crate) fn charges(&self) -> Vec<Charge> {
        let log = std::fs::read_to_string(self.folder.path().join(CHARGES_FILE)).unwrap();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const RUN: RunId = RunId::from_bytes([7; 16]);

fn key(step: &str) -> EffectKey {
    EffectKey::of(RUN, &step.into())
}

async fn charge(bank: Bank, key: &EffectKey, card: &str) -> Result<Answer, BankError> {
    let charge = CardCharge { cents: 1250, currency: "EUR".to_owned(), card: card.to_owned() };
    bank.connect().await?.charge(key, RUN, &charge).await
}

fn receipt(id: &str) -> Answer {
    Answer::Charged(Receipt { id: id.to_owned(), cents: 1250 })
}

#[tokio::test]
async fn a_good_card_is_charged_and_found() {
    let provider = start().await;
    let key = key("steps.0");
    assert_eq!(provider.bank().find(&key).await.unwrap(), Found::Nothing);
    assert_eq!(charge(provider.bank(), &key, card::GOOD).await.unwrap(), receipt("ch_000001"));
    assert_eq!(provider.bank().find(&key).await.unwrap(), Found::Answer(receipt("ch_000001")));
    let log = provider.charges();
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].effect_key.as_str(), log[0].cents), (key.as_str(), 1250));
    assert_eq!(log[0].reference, RUN.to_string());
}

#[tokio::test]
async fn a_repeat_is_carried_out_again_and_can_be_seen() {
    let provider = start().await;
    let key = key("steps.0");
    charge(provider.bank(), &key, card::GOOD).await.unwrap();
    charge(provider.bank(), &key, card::GOOD).await.unwrap();
    assert_eq!(provider.charges().len(), 2, "this provider protects nobody from repeating");
}

#[tokio::test]
async fn a_declined_card_is_a_definite_no_also_later() {
    let provider = start().await;
    let answer = charge(provider.bank(), &key("steps.0"), card::DECLINED).await.unwrap();
    assert_eq!(answer, Answer::Declined("the bank declined the card".to_owned()));
    assert_eq!(provider.bank().find(&key("steps.0")).await.unwrap(), Found::Answer(answer));
    assert_eq!(provider.charges(), []);
}

#[tokio::test]
async fn an_answer_that_never_comes_leaves_a_charge_that_is_found() {
    let provider = start().await;
    let key = key("steps.0");
    let waiting = {
        let (bank, key) = (provider.bank().patience(Duration::from_secs(60)), key.clone());
        tokio::spawn(async move { charge(bank, &key, card::NO_ANSWER).await })
    };
    let call = loop {
        let calls = provider.bank().open_calls().await.unwrap();
        if let Some(call) = calls.into_iter().find(|call| call.carried_out) {
            break call;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((call.effect_key.as_str(), call.worker), (key.as_str(), std::process::id()));
    waiting.abort();
    assert_eq!(provider.bank().find(&key).await.unwrap(), Found::Answer(receipt("ch_000001")));
    while !provider.bank().open_calls().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn patience_ends() {
    let provider = start().await;
    let bank = provider.bank().patience(Duration::from_millis(50));
    let answer = charge(bank, &key("steps.0"), card::NO_ANSWER).await;
    assert!(matches!(answer, Err(BankError::Silent { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_forgetful_provider_charges_and_cannot_tell() {
    let provider = start().await;
    let answer = charge(provider.bank(), &key("steps.0"), card::FORGOTTEN).await;
    assert!(matches!(answer, Err(BankError::Unclear { status: 500, .. })), "{answer:?}");
    assert_eq!(provider.charges().len(), 1);
    let found = provider.bank().find(&key("steps.0")).await.unwrap();
    assert!(matches!(found, Found::CannotTell(_)), "{found:?}");
}

#[tokio::test]
async fn a_late_charge_is_not_known_and_then_is() {
    let provider = start().await;
    let answer = charge(provider.bank(), &key("steps.0"), card::LATE).await;
    assert!(matches!(answer, Err(BankError::Unclear { status: 504, .. })), "{answer:?}");
    assert_eq!(provider.bank().find(&key("steps.0")).await.unwrap(), Found::Nothing);
    while provider.bank().find(&key("steps.0")).await.unwrap() == Found::Nothing {
        tokio::task::yield_now().await;
    }
    assert_eq!(provider.charges().len(), 1);
}

#[tokio::test]
async fn the_books_outlive_the_process() {
    let provider = start().await;
    charge(provider.bank(), &key("steps.0"), card::GOOD).await.unwrap();
    let again = Bank::at(serve(provider.folder.path()).await);
    assert_eq!(again.find(&key("steps.0")).await.unwrap(), Found::Answer(receipt("ch_000001")));
    assert_eq!(charge(again, &key("steps.1"), card::GOOD).await.unwrap(), receipt("ch_000002"));
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_told_apart_from_one_that_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = Bank::at(listener.local_addr().unwrap());
    drop(listener);
    assert!(matches!(nobody.connect().await, Err(BankError::Unreachable(_))));
}
