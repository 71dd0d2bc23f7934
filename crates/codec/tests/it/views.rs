//! What an operator sees who must not see payloads.

use serde_json::json;
use surefoot_codec::WithCodec as _;
use surefoot_kernel_core::{
    Event, OperatorStore as _, Phase, RunFilter, RunState, Signal, StepKey, Verdict,
};
use surefoot_operator::{Operator, Resolve, Retry};
use surefoot_worker::Kernel;

use crate::encoded::vault;
use crate::shop::{
    APP, BAD, FLOW, GOOD, MARK, PART, SCOPE, Shop, assert_state, detail, low, message,
};

#[tokio::test]
async fn a_redacted_handle_shows_no_payload_and_its_verbs_lose_none() {
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
    let bad = north.emit(Event::start("bad", &inputs)).await.unwrap().runs[0];
    let good = north.emit(Event::start("good", &inputs)).await.unwrap().runs[0];
    shop.work(&worker, 3).await;
    north.signal(Signal::new("approval", "unused").data(format!("{MARK}-signal"))).await.unwrap();
    let signal = Signal::new("approval", run.to_string()).data(format!("{MARK}-signal"));
    north.signal(signal).await.unwrap();
    shop.work(&worker, 5).await;
    let before = detail(&store, run).await.run;
    assert_state(&before, RunState::NeedsAttention);

    let operator = Operator::new(store.redacted(), "ann");
    let app = APP.into();
    let mut seen = Vec::new();
    let filter = RunFilter { limit: 10, ..RunFilter::default() };
    seen.push(format!("{:?}", operator.runs(filter).await.unwrap()));
    seen.push(format!("{:?}", operator.effects(&app, None, Default::default(), 10).await.unwrap()));
    seen.push(format!("{:?}", operator.signals(&app, None, 10).await.unwrap()));
    for run in [run, bad, good] {
        seen.push(format!("{:?}", operator.show(run).await.unwrap()));
        seen.push(format!("{:?}", operator.explain(run).await.unwrap()));
        seen.push(format!("{:?}", operator.watch(run, 0).await.unwrap()));
    }
    let again =
        Retry { run: bad, seen: detail(&store, bad).await.run.revision, why: "x".to_owned() };
    seen.push(format!("{:?}", operator.retry(again).await.unwrap()));

    // What the handle did not show is there still, through a verb that keeps it.
    let step = StepKey::from("steps.4");
    let ask = surefoot_operator::Reconcile {
        run,
        step: step.clone(),
        seen: before.revision,
        why: "ask again".to_owned(),
    };
    seen.push(format!("{:?}", operator.reconcile(ask).await.unwrap()));
    let after = detail(&store, run).await.run;
    assert_state(&after, RunState::Queued);
    assert_eq!(after.effect(), before.effect());
    shop.work(&worker, 2).await;
    let needy = detail(&store, run).await.run;
    let verdict = Verdict::Succeeded { output: json!({ "id": format!("{MARK}-paid") }) };
    let why = "seen on the statement".to_owned();
    let resolve = Resolve { run, step, seen: needy.revision, verdict, why };
    seen.push(format!("{:?}", operator.resolve(resolve).await.unwrap()));
    seen.push(format!("{:?}", operator.audit(&app, None, 10).await.unwrap()));
    shop.work(&worker, 1).await;
    seen.push(format!("{:?}", operator.show(run).await.unwrap()));

    for text in &seen {
        assert!(!text.contains(MARK), "{text}");
    }
    assert!(seen.iter().filter(|text| text.contains("[redacted]")).count() > 8, "{seen:#?}");
    let Phase::Succeeded { result, .. } = detail(&store, run).await.run.phase else { panic!() };
    assert_eq!(result, json!({ "id": format!("{MARK}-paid") }));
    assert_eq!(message(&detail(&store, bad).await.run), format!("Nothing for {MARK}-start"));
    let listed = store.redacted().audit_list(&app, None, 10).await.unwrap();
    assert!(listed.iter().any(|row| row.details == "\"[redacted]\""), "{listed:?}");
}
