//! What stands in the files.

use serde_json::{Value, json};
use surefoot_codec::WithCodec as _;
use surefoot_kernel_core::{
    Event, OperatorStore as _, Phase, RunId, RunState, Signal, StepKey, Verdict,
};
use surefoot_operator::{Operator, Resolve};
use surefoot_worker::Kernel;

use crate::encoded::vault;
use crate::shop::{
    APP, BAD, FLOW, GOOD, HEAR, MARK, PART, SCOPE, Shop, assert_state, detail, low, message,
};

/// Every file of the store, the write-ahead log too.
fn files(shop: &Shop) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(shop.file.folder()).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files.map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[track_caller]
fn assert_no_mark(shop: &Shop) {
    let files = files(shop);
    assert!(files.iter().any(|(_, bytes)| holds(bytes, "surefoot/encoded/1/scope:k1.")));
    for (name, bytes) in files {
        let at = bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes());
        let around = at.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at + 40]));
        assert!(around.is_none(), "{name} has a secret: {around:?}");
    }
}

async fn approve(kernel: &Kernel<impl surefoot_kernel_core::TxStore>, run: RunId) {
    let signal = Signal::new("approval", run.to_string());
    let signal = signal.data(json!({ "note": format!("{MARK}-signal") }));
    kernel.scope(SCOPE).signal(signal).await.unwrap();
}

#[tokio::test]
async fn no_payload_stands_in_the_files() {
    let shop = Shop::new().await;
    let store = shop.store().await.with_codec(vault());
    let kernel = Kernel::new(APP, store.clone());
    for (workflow, source) in [("flow", FLOW), ("part", PART), ("good", GOOD), ("bad", BAD)] {
        shop.publish(&kernel, workflow, source).await;
    }
    let worker = shop.worker(&kernel);
    let north = kernel.scope(SCOPE);
    let run = north.emit(low()).await.unwrap().runs[0];
    let inputs = json!({ "name": format!("{MARK}-start") });
    let good = north.emit(Event::start("good", &inputs)).await.unwrap().runs[0];
    let bad = north.emit(Event::start("bad", &inputs).deferred()).await.unwrap();
    assert!(bad.runs.is_empty());
    shop.work(&worker, 3).await;
    assert_state(&detail(&store, run).await.run, RunState::Waiting);
    approve(&kernel, run).await;
    shop.work(&worker, 5).await;

    let needy = detail(&store, run).await;
    assert_state(&needy.run, RunState::NeedsAttention);
    let evidence = needy.run.effect().unwrap().evidence.clone().unwrap();
    assert!(evidence.contains(MARK), "{evidence}");
    assert_eq!(needy.invocation.actor, Some(json!({ "id": format!("{MARK}-actor") })));
    let journal = serde_json::to_string(
        &needy.journal.unwrap().iter().map(|it| &it.facts).collect::<Vec<_>>(),
    );
    let journal = journal.unwrap();
    for secret in ["data", "card", "output", "item", "booked", "signal", "unknown", "evidence"] {
        assert!(journal.contains(&format!("{MARK}-{secret}")), "{secret} is not in {journal}");
    }
    assert_no_mark(&shop);

    let operator = Operator::new(store.clone(), "ann");
    let output = json!({ "id": format!("{MARK}-paid") });
    let resolve = Resolve {
        run,
        step: StepKey::from("steps.4"),
        seen: needy.run.revision,
        verdict: Verdict::Succeeded { output: output.clone() },
        why: "seen on the statement".to_owned(),
    };
    operator.resolve(resolve).await.unwrap();
    shop.work(&worker, 2).await;
    let Phase::Succeeded { result, .. } = detail(&store, run).await.run.phase else { panic!() };
    assert_eq!(result, output);
    let audit = operator.audit(&APP.into(), None, 10).await.unwrap();
    assert!(serde_json::to_string(&audit).unwrap().contains(&format!("{MARK}-paid")));
    let Phase::Succeeded { message: Some(said), .. } = detail(&store, good).await.run.phase else {
        panic!()
    };
    assert_eq!(said, format!("Done for {MARK}-start"));
    assert_no_mark(&shop);
}

/// What the application does in transactions of its own, and dry runs.
#[tokio::test]
async fn no_payload_of_a_transaction_or_a_dry_run_stands_in_the_files() {
    let shop = Shop::new().await;
    let store = shop.store().await.with_codec(vault());
    let kernel = Kernel::new(APP, store.clone());
    shop.publish(&kernel, "part", PART).await;
    let north = kernel.scope(SCOPE);
    let mut tx = kernel.begin().await.unwrap();
    let publication = surefoot_worker::Publication::new("flow", FLOW)
        .authorization(json!({ "actor": format!("{MARK}-publisher") }));
    let manifest = shop.module.manifest();
    let flow = north.publish_in(&mut tx, manifest, publication).await.unwrap();
    let emitted = north.emit_in(&mut tx, low()).await.unwrap();
    let signal = Signal::new("approval", "late").data(format!("{MARK}-signal"));
    let scoped = north.signal_in(&mut tx, signal).await.unwrap();
    let app_wide = Signal::new("approval", "early").data(format!("{MARK}-signal"));
    let app_wide = kernel.signal_in(&mut tx, app_wide).await.unwrap();
    kernel.commit(tx).await.unwrap();
    let (flow, emitted) = (flow.committed(), emitted.committed());
    assert!(scoped.committed().new && app_wide.committed().new);

    let bill = north.dry_run(&shop.module, flow.version, low()).await.unwrap();
    let bill = serde_json::to_string(&bill).unwrap();
    assert!(bill.contains(&format!("Ask for {MARK}-data")), "{bill}");
    let invocation = detail(&store, emitted.runs[0]).await.invocation;
    assert_eq!(invocation.trigger, json!({ "name": format!("{MARK}-data") }));
    assert_no_mark(&shop);
}

/// What was stored before there was a codec is read as it is, and encoded as it is written.
#[tokio::test]
async fn a_store_that_was_used_without_a_codec_goes_on() {
    let shop = Shop::new().await;
    let plain = shop.store().await;
    let kernel = Kernel::new(APP, plain.clone());
    let publication = surefoot_worker::Publication::new("bad", BAD);
    kernel.scope(SCOPE).publish(shop.module.manifest(), publication).await.unwrap();
    let inputs = json!({ "name": format!("{MARK}-start") });
    let run = kernel.scope(SCOPE).emit(Event::start("bad", inputs)).await.unwrap().runs[0];

    let store = plain.with_codec(vault());
    let kernel = Kernel::new(APP, store.clone());
    shop.work(&shop.worker(&kernel), 1).await;
    let detail = detail(&store, run).await;
    assert_state(&detail.run, RunState::Failed);
    assert_eq!(message(&detail.run), format!("Nothing for {MARK}-start"));
    let kept = store.inner().run_detail(run).await.unwrap().unwrap().run;
    assert!(message(&kept).starts_with("surefoot/encoded/1/scope:k1."), "{kept:?}");
}

/// Two texts for one payload still are one payload: a repeat of an event is told from another one.
#[tokio::test]
async fn a_repeated_event_is_known_though_each_text_is_another() {
    let shop = Shop::new().await;
    let kernel = Kernel::new(APP, shop.store().await.with_codec(vault()));
    let north = kernel.scope(SCOPE);
    let event = || low().dedupe_key("bolt");
    assert!(north.emit(event()).await.unwrap().new);
    let again = north.emit(event()).await.unwrap();
    assert_eq!((again.new, again.same_payload), (false, true));
    let other = Event::new("inventory.stockLow", Value::Null).dedupe_key("bolt");
    let again = north.emit(other).await.unwrap();
    assert_eq!((again.new, again.same_payload), (false, false));
}

/// A run resumes from a signal without knowing whether that was for the whole app: what is kept says so.
#[tokio::test]
async fn a_run_resumes_from_an_app_wide_signal() {
    let shop = Shop::new().await;
    let store = shop.store().await.with_codec(vault());
    let kernel = Kernel::new(APP, store.clone());
    shop.publish(&kernel, "hear", HEAR).await;
    let run = kernel.scope(SCOPE).emit(Event::start("hear", json!({}))).await.unwrap().runs[0];
    let worker = shop.worker(&kernel);
    shop.work(&worker, 1).await;
    assert_state(&detail(&store, run).await.run, RunState::Waiting);
    let secret = format!("{MARK}-signal");
    kernel.signal(Signal::new("news", "all").data(&secret)).await.unwrap();
    shop.work(&worker, 1).await;
    let Phase::Succeeded { result, .. } = detail(&store, run).await.run.phase else { panic!() };
    assert_eq!(result, json!(secret));
    assert_no_mark(&shop);
}
