//! Fidelity: what is stored comes back as it was, and what cannot be is refused before it is written.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use crate::ClaimRows;
use serde_json::{Value, json};
use surefoot_kernel_core::payload::{PAYLOAD_MAX_DEPTH, Payload, STORED_TEXT_MAX_BYTES};
use surefoot_kernel_core::{
    Answer, App, Audit, Child, ChildStore as _, Children, Code, CreateChildren, Dependency,
    EmitError, Event, EventFilter, EventStore as _, Failure, OUTPUT_MAX_BYTES, OperatorStore as _,
    Page, Phase, RowInput, RunFilter, RunId, RunState, RunStore as _, SIGNAL_MAX_DATA_BYTES, Scope,
    Signal, SignalError, TraceContext, Wake, WorkflowKey,
};

use super::StoreFactory;
use super::world::{World, app, failed, step, succeeded, unknown};
use crate::plans::{ambiguous, idempotent, plan, pure, triggered};

/// Of the W3C recommendation.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// JSON texts that stores, drivers and readers have spoilt somewhere.
const TEXTS: &[&str] = &[
    "null",
    "false",
    "0",
    "-0",
    "-0.0",
    "1",
    "1.0",
    "\"\"",
    "\"done\"",
    "[]",
    "{}",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "3544790567247868102",
    "9007199254740993",
    "0.30000000000000004",
    "1.7976931348623157e308",
    "2.2250738585072014e-308",
    "5e-324",
    "123456.00000000001",
    "0.1",
    "2.0200219e+07",
    r#""\u0000""#,
    r#""a\u0000b\u0000""#,
    r#""\ud83d\ude00 \u202e \ufeff \ufffd \uffff é e\u0301 \u007f \u001f \n\t\r \" \\ \/""#,
    r#""'; drop table run; -- %s {} $1 :name ?""#,
    r#"{"":1,"a.b":2,"$type":3,"__proto__":4,"\u0000":5,"é":6,"e\u0301":7}"#,
    r#"{"b":1,"a":2,"c":{"z":[1,1.5,null,true],"y":{}}}"#,
];

fn values() -> Vec<Value> {
    let mut values: Vec<Value> =
        TEXTS.iter().map(|text| Payload::parse(text).unwrap().into_value()).collect();
    let lists = PAYLOAD_MAX_DEPTH - 1;
    let deep = format!("{}7{}", "[".repeat(lists), "]".repeat(lists));
    values.push(Payload::parse(&deep).unwrap().into_value());
    let objects = format!("{}7{}", "{\"a\":".repeat(lists), "}".repeat(lists));
    values.push(Payload::parse(&objects).unwrap().into_value());
    let floats: Vec<f64> = (1..2_000).map(|number| f64::from(number) / 7.0 * 1e-3).collect();
    values.push(json!(floats));
    values
}

/// As strict as text: `1` is not `1.0`, and `-0.0` is not `0.0`.
fn same(one: &Value, two: &Value) -> bool {
    one == two
        && surefoot_kernel_core::canonical::canonical(one)
            == surefoot_kernel_core::canonical::canonical(two)
        && one.to_string().len() == two.to_string().len()
}

/// Covers field fault 96.
/// Covers field fault 99.
pub async fn an_events_payload_comes_back_as_it_was<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", triggered(plan(vec![pure("a")]), "low", "low")).await;
    for value in values() {
        for deferred in [false, true] {
            let event = Event::new("low", &value).context(&value);
            let event = if deferred { event.deferred() } else { event };
            let emission = world.emit(event).await;
            if deferred {
                world.store.event_dispatch(&app(), 10).await.unwrap();
            }
            let request = world.claim_request(1).await;
            let run = world.store.claim_rows(request).await.remove(0).id;
            assert!(emission.runs.is_empty() == deferred);
            let invocation = world.stored(run).await.invocation.unwrap();
            assert!(same(&invocation.trigger, &value), "{value} became {}", invocation.trigger);
            assert!(same(&invocation.context, &value), "{value} became {}", invocation.context);
        }
    }
}

/// Trace context is kept byte for byte: by runs of every kind of dispatch, by their children, and by dry runs.
pub async fn trace_context_comes_back_as_it_was<F: StoreFactory>(world: &World<F>) {
    let trace = TraceContext::new(TRACEPARENT).unwrap();
    let trace = trace.with_state("congo=a\"\\ b ,\trojo@x=~!").unwrap();
    world.publish("flow", triggered(plan(vec![idempotent("a")]), "low", "low")).await;
    world.publish("part", plan(vec![pure("a")])).await;
    for (deferred, given) in [(false, Some(&trace)), (true, Some(&trace)), (false, None)] {
        let event = Event::new("low", "bolt");
        let event = given.map_or(event.clone(), |trace| event.trace_context(trace.clone()));
        let emission = world.emit(if deferred { event.deferred() } else { event }).await;
        if deferred {
            let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
            assert_eq!(pass.traces, [(emission.event, trace.clone())]);
        }
        let request = world.claim_request(1).await;
        let run = world.store.claim_rows(request).await.remove(0);
        let read = world.stored(run.id).await.invocation.unwrap().trace;
        assert_eq!(read.as_ref(), given, "{deferred}");
        let children = Children::check([Child::new("part", "bolt").key("one")]).unwrap();
        let create =
            CreateChildren { before: run.stamp(), step: step("steps.0"), children, parallel: None };
        world.store.children_create(create).await.unwrap();
        let child = RunId::of_child(&run, &step("steps.0"), "one");
        let read = world.stored(child).await.invocation.unwrap().trace;
        assert_eq!(read.as_ref(), given, "{deferred}");
        let other = crate::Drive::load(&world.other, child).await.unwrap();
        assert_eq!(other.held().cursor.invocation().trace.as_ref(), given);
        // Not in the way of the next claim.
        world.cancel(child).await;
    }
}

/// Covers behaviour 122.
pub async fn an_output_and_a_result_come_back_as_they_were<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let run = world.start("flow").await;
    world.claim_run(run).await;
    for value in values() {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        drive
            .to_end(&world.store, |_| crate::Reply::Answer(succeeded(value.clone())))
            .await
            .unwrap();
        let Phase::Succeeded { result, .. } = world.row(run).await.phase else { unreachable!() };
        assert!(same(&result, &value), "{value} became {result}");
        let restored = crate::Drive::load(&world.other, run).await.unwrap();
        assert_eq!(restored.held(), drive.held());
    }
}

/// A signal's data come back in the wake, and in the list.
pub async fn a_signals_data_come_back_as_they_were<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let mut values = values();
    values.truncate(TEXTS.len() + 2);
    values.push(json!("x".repeat(SIGNAL_MAX_DATA_BYTES - 2)));
    for (number, value) in values.into_iter().enumerate() {
        let key = format!("{number}");
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        world.park(&mut drive, Dependency::on("approval", &key)).await;
        world.signal(Signal::new("approval", &key).data(&value)).await;
        let listed = world.store.signal_list(&app(), None, 1_000).await.unwrap();
        let listed = listed.iter().find(|row| row.key == key).unwrap();
        assert!(same(&listed.data, &value), "{value} became {}", listed.data);
        let Some(Wake::Signal(data)) = world.row(run).await.resume.map(|resume| resume.wake) else {
            unreachable!()
        };
        assert!(same(&data, &value), "{value} became {data}");
        world.cancel(run).await;
    }
}

/// Covers field fault 95.
/// Covers field fault 98.
pub async fn an_error_of_any_text_and_size_is_kept<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let texts = [
        "",
        "\0",
        "a\0b",
        "'; --",
        "😀\u{202e}\u{fffd}",
        "\\u0000 \\ud800",
        &"\0".repeat(10_000_000),
    ];
    for text in texts {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        let failure =
            Failure::new(text.replace('\0', "0").chars().take(50).collect::<String>(), text);
        let details = json!({ "pointer": "/a", "text": text.chars().take(50).collect::<String>() });
        let failure = failure.details(details);
        let answer =
            Answer::Failed { failure: failure.clone(), retryable: false, retry_after: None };
        world.answer(&mut drive, answer).await;
        let Phase::Failed { error, .. } = world.row(run).await.phase else { unreachable!() };
        assert_eq!(error, failure.at(&step("steps.0")));
        assert!(error.message.len() <= STORED_TEXT_MAX_BYTES);
        let (row, journal) = world.all_of(run).await;
        assert!(row.state() == RunState::Failed && !journal.is_empty());
    }
}

/// People's words are kept as they wrote them.
pub async fn what_people_write_is_kept<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![pure("a")])).await;
    let text = "weil's »so« ist: '; -- \u{202e} 😀\n".repeat(50);
    let cancel = RowInput::Cancel { actor: text.clone(), reason: text.clone() };
    let audit = Audit {
        actor: text.clone(),
        verb: "cancel".to_owned(),
        reason: text.clone(),
        details: json!({ "text": text }).to_string(),
    };
    let commit = world.decided(run, cancel).await.audited(audit);
    let committed = world.store.run_commit(commit).await.unwrap();
    assert_eq!(world.row(run).await, committed.run);
    assert_eq!(committed.run.cancel.as_ref().unwrap().reason, text);
    let row = world.store.audit_list(&app(), None, 1).await.unwrap().remove(0);
    assert_eq!((&row.actor, &row.reason), (&text, &text));
    assert_eq!(serde_json::from_str::<Value>(&row.details).unwrap(), json!({ "text": text }));
}

/// An output of the largest size is one fact, and a run may have many.
pub async fn an_output_of_full_size_is_kept<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let output = json!("ü".repeat((OUTPUT_MAX_BYTES - 2) / 2));
    let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(output.clone())));
    let bytes = ended.await.unwrap().journal_bytes;
    assert!(bytes > 3 * OUTPUT_MAX_BYTES as u64);
    assert_eq!(
        &crate::Drive::load(&world.other, drive.run().id).await.unwrap().run(),
        &drive.run()
    );
}

/// A row reads back as the core has it, wherever the run stands.
pub async fn a_row_reads_back_as_the_core_has_it<F: StoreFactory>(world: &World<F>) {
    let flow = plan(vec![idempotent("a"), ambiguous("pay")]);
    world.publish("flow", flow).await;
    let answers = [
        vec![],
        vec![failed(true)],
        vec![failed(false)],
        vec![succeeded(json!(1))],
        vec![Answer::Waiting { on: Dependency::on("a", "b").app_wide() }],
        vec![Answer::Waiting {
            on: Dependency::on("a", "b").deadline_in(std::time::Duration::from_micros(7)),
        }],
        vec![succeeded(json!(1)), unknown()],
        vec![succeeded(json!(1)), Answer::NotCalled],
        vec![succeeded(json!(1)), succeeded(json!({ "receipt": 7 }))],
        vec![
            succeeded(json!(1)),
            Answer::OutputRefused {
                error: Failure::new(Code::OUTPUT_TOO_LARGE, "too much"),
                evidence: "x".repeat(100),
            },
        ],
    ];
    for answers in answers {
        let run = world.start("flow").await;
        let request = world.claim_request(100).await;
        let claimed = world.store.claim_rows(request).await;
        assert!(claimed.iter().any(|claimed| claimed.id == run));
        let mut drive = world.drive(run).await;
        for answer in answers {
            world.answer(&mut drive, answer).await;
        }
        assert_eq!(&world.row(run).await, drive.run());
        let detail = world.other.run_detail(run).await.unwrap().unwrap();
        assert_eq!(&detail.run, drive.run());
        canceled(world, run).await;
    }
}

/// And once cancel is requested.
async fn canceled<F: StoreFactory>(world: &World<F>, run: RunId) {
    let commit = world.decided(run, super::world::cancel()).await;
    if let Ok(committed) = world.store.run_commit(commit).await {
        assert_eq!(world.row(run).await, committed.run);
    }
}

/// PostgreSQL holds no NUL in a text and refuses a question with one; an emit with one is refused before it gets there.
pub async fn a_text_that_no_store_can_keep_fits_nothing<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", triggered(plan(vec![pure("a")]), "low", "low")).await;
    world.emit(Event::new("low", "bolt").tag("urgent")).await;
    let runs = || RunFilter { app: Some(app()), limit: 10, ..RunFilter::default() };
    for filter in [
        RunFilter { tag: Some("urg\0ent".to_owned()), ..runs() },
        RunFilter { app: Some(App::from("\0")), ..runs() },
        RunFilter { scope: Some(Scope::from("\0")), ..runs() },
        RunFilter { workflow: Some(WorkflowKey::from("fl\0ow")), ..runs() },
    ] {
        assert_eq!(
            world.store.run_list(filter.clone()).await.unwrap(),
            Page::empty(),
            "{filter:?}"
        );
    }
    let events = || EventFilter { app: Some(app()), limit: 10, ..EventFilter::default() };
    for filter in [
        EventFilter { kind: Some("lo\0w".to_owned()), ..events() },
        EventFilter { app: Some(App::from("\0")), ..events() },
        EventFilter { scope: Some(Scope::from("\0")), ..events() },
    ] {
        assert_eq!(
            world.store.event_list(filter.clone()).await.unwrap(),
            Page::empty(),
            "{filter:?}"
        );
    }
    for event in [Event::new("\0", 1), Event::new("low", 1).dedupe_key("a\0")] {
        assert!(matches!(event.check(), Err(EmitError::Nul { .. })));
    }
    for signal in [Signal::new("a\0", "b"), Signal::new("a", "\0")] {
        assert!(matches!(signal.check(), Err(SignalError::Nul { .. })));
    }
}
