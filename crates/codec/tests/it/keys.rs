//! Keys: they change, each tenant has its own, and a text belongs to one place.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use surefoot_codec::{CodecError, PayloadCodec, PayloadKind, PayloadPlace, WithCodec as _};
use surefoot_kernel_core::{App, Event, OperatorStore as _, Phase, RunState, Scope, StoreError};
use surefoot_worker::Kernel;

use crate::shop::{APP, BAD, GOOD, SCOPE, Shop, assert_state, detail, message};
use crate::vault::Vault;

fn key(number: u8) -> (String, [u8; 32]) {
    (format!("k{number}"), [number; 32])
}

fn named(name: &str) -> Value {
    json!({ "name": name })
}

/// A run that began under the old key ends under the new one, and both stay readable.
#[tokio::test]
async fn a_new_key_takes_over_and_the_old_one_stays_readable() {
    let shop = Shop::new().await;
    let old = shop.store().await.with_codec(Vault::new([key(1)], "k1"));
    let kernel = Kernel::new(APP, old.clone());
    for (workflow, source) in [("good", GOOD), ("bad", BAD)] {
        shop.publish(&kernel, workflow, source).await;
    }
    let north = kernel.scope(SCOPE);
    let ended = north.emit(Event::start("bad", named("bolt"))).await.unwrap().runs[0];
    shop.work(&shop.worker(&kernel), 1).await;
    let begun = north.emit(Event::start("bad", named("nut"))).await.unwrap().runs[0];

    let new = shop.store().await.with_codec(Vault::new([key(1), key(2)], "k2"));
    let kernel = Kernel::new(APP, new.clone());
    shop.work(&shop.worker(&kernel), 1).await;
    for (run, said, key) in [(ended, "Nothing for bolt", "k1"), (begun, "Nothing for nut", "k2")] {
        let read = detail(&new, run).await;
        assert_state(&read.run, RunState::Failed);
        assert_eq!(message(&read.run), said);
        assert!(read.journal.is_ok());
        let kept = new.inner().run_detail(run).await.unwrap().unwrap();
        let head = format!("surefoot/encoded/1/scope:{key}.");
        assert!(message(&kept.run).starts_with(&head), "{:?}", kept.run);
    }
    // Whoever has only the new key cannot read what the old one wrote.
    let young = shop.store().await.with_codec(Vault::new([key(2)], "k2"));
    let read = detail(&young, begun).await;
    let invalid = read.journal.unwrap_err();
    assert!(invalid.what.contains("needs the key `k1`"), "{invalid}");
}

/// A text that was moved to another place does not decode there, even under the same key.
#[test]
fn a_text_belongs_to_its_place() {
    let vault = Vault::new([key(1)], "k1");
    let (app, north, south) = (App::from(APP), Scope::from("north"), Scope::from("south"));
    let place = |scope, kind| PayloadPlace { app: &app, scope, kind };
    let own = place(Some(&north), PayloadKind::Output);
    let kept = vault.encode(&own, "bolt").unwrap();
    assert_eq!(vault.decode(&own, &kept).unwrap(), "bolt");
    for other in [
        place(Some(&south), PayloadKind::Output),
        place(None, PayloadKind::Output),
        place(Some(&north), PayloadKind::Result),
    ] {
        let error = vault.decode(&other, &kept).unwrap_err();
        assert!(matches!(error, CodecError::Damaged { .. }), "{error}");
    }
    for broken in ["", "k1", "k1.", "k1.AAAA", "k1.%", &kept[..kept.len() - 4]] {
        assert!(vault.decode(&own, broken).is_err(), "{broken}");
    }
}

/// One vault for each scope.
struct Tenants(BTreeMap<String, Vault>);

impl Tenants {
    fn of(&self, place: &PayloadPlace<'_>) -> Result<&Vault, CodecError> {
        let scope = place.scope.map_or("no scope", Scope::as_str);
        let why = format!("{scope} has no keys");
        self.0.get(scope).ok_or(CodecError::Refused { why })
    }
}

impl PayloadCodec for Tenants {
    fn encode(&self, place: &PayloadPlace<'_>, plain: &str) -> Result<String, CodecError> {
        self.of(place)?.encode(place, plain)
    }

    fn decode(&self, place: &PayloadPlace<'_>, kept: &str) -> Result<String, CodecError> {
        self.of(place)?.decode(place, kept)
    }

    fn redact(&self, _: &PayloadPlace<'_>, value: Value) -> Value {
        value
    }
}

#[tokio::test]
async fn each_tenant_has_its_own_keys_and_one_without_any_is_refused() {
    let shop = Shop::new().await;
    let vaults = ["north", "south"].map(|scope| {
        let name = format!("{scope}-1");
        let number = scope.len() as u8 + scope.as_bytes()[0];
        (scope.to_owned(), Vault::new([(name.clone(), [number; 32])], &name))
    });
    let store = shop.store().await.with_codec(Tenants(BTreeMap::from(vaults)));
    let kernel = Kernel::new(APP, store.clone());
    for scope in ["north", "south"] {
        let publication = surefoot_worker::Publication::new("good", GOOD);
        kernel.scope(scope).publish(shop.module.manifest(), publication).await.unwrap();
        let run = kernel.scope(scope).emit(Event::start("good", named("bolt"))).await.unwrap();
        shop.work(&shop.worker(&kernel), 1).await;
        let read = detail(&store, run.runs[0]).await;
        let Phase::Succeeded { message, .. } = read.run.phase else { panic!("{:?}", read.run) };
        assert_eq!(message.as_deref(), Some("Done for bolt"));
        let kept = store.inner().run_detail(run.runs[0]).await.unwrap().unwrap();
        let head = format!("surefoot/encoded/1/scope:{scope}-1.");
        assert!(kept.invocation.trigger.as_str().unwrap().starts_with(&head));
    }
    let refused = kernel.scope("west").emit(Event::start("good", named("bolt"))).await.unwrap_err();
    let surefoot_kernel_core::EmitError::Store(StoreError::Refused(why)) = refused else {
        panic!("{refused}")
    };
    assert_eq!(why.to_string(), "its event_data cannot be encoded");
    assert_eq!(
        std::error::Error::source(&*why).unwrap().to_string(),
        "the codec refuses it: west has no keys"
    );
}

#[test]
fn the_documentation_shows_this_vault() {
    let page = include_str!("../../../../docs/payload-codec.md");
    let source = include_str!("vault.rs");
    let (_, code) = source.split_once("\nuse ").unwrap();
    assert!(page.contains(code.trim_end()));
}
