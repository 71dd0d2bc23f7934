//! Resumption: a run that another process takes goes on exactly where its journal ends.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use crate::ClaimRows;
use serde_json::json;
use surefoot_kernel_core::expr::{Expr, Function, Template};
use surefoot_kernel_core::{
    Command, Event, EventStore as _, Fact, Phase, RowInput, RunState, RunStore as _, Timestamp,
};

use super::StoreFactory;
use super::world::{World, app, failed, succeeded};
use crate::plans::{each, idempotent, plan, pure, set, succeed, when};
use crate::{Drive, Reply};

fn list(items: serde_json::Value) -> Template {
    Template::Literal(items)
}

fn yes() -> Expr {
    Expr::Literal(json!(true))
}

/// Covers behaviour 111.
/// Covers behaviour 115.
/// Covers behaviour 116.
pub async fn a_loop_goes_on_at_the_item_that_has_no_outcome<F: StoreFactory>(world: &World<F>) {
    let inner = each(list(json!([1, 2])), "inner", vec![idempotent("a")]);
    let outer = each(list(json!([1, 2, 3])), "outer", vec![inner]);
    let run = world.run(plan(vec![outer, idempotent("b")])).await;
    let mut called: Vec<String> = Vec::new();
    for _ in 0..20 {
        if world.row(run).await.state().is_terminal() {
            break;
        }
        // Every call is made by a worker that dies, or fails, right after the next one began.
        let mut drive = world.claim_run(run).await;
        let command = drive.to_call(&world.store).await.unwrap().unwrap();
        let Command::Call(call) = command else { unreachable!("{command:?}") };
        called.push(call.step.to_string());
        drive.answer(&world.store, &call.step, succeeded(json!(called.len()))).await.unwrap();
        if called.len().is_multiple_of(2)
            && let Some(Command::Call(next)) = drive.to_call(&world.store).await.unwrap()
        {
            drive.answer(&world.store, &next.step, failed(true)).await.unwrap();
        }
        world.pass_secs(301).await;
    }
    let keys = |outer: u32| [0, 1].map(|inner| format!("steps.0.do.0.do.0#{outer}.{inner}"));
    let mut expected: Vec<String> = (0..3).flat_map(keys).collect();
    expected.push("steps.1".to_owned());
    assert_eq!(called, expected, "each item once, in order");
    let result = Phase::Succeeded { result: json!(7), message: None };
    assert_eq!(world.row(run).await.phase, result);
    let restored = Drive::load(&world.other, run).await.unwrap();
    assert_eq!(restored.run(), &world.row(run).await);
}

/// Covers behaviour 117.
pub async fn a_failed_attempt_deep_inside_records_no_outcome_around_it<F: StoreFactory>(
    world: &World<F>,
) {
    let deep =
        when(yes(), vec![each(list(json!([1])), "item", vec![when(yes(), vec![idempotent("a")])])]);
    let mut drive = world.running(plan(vec![deep])).await;
    let run = drive.run().id;
    world.answer(&mut drive, failed(true)).await;
    let facts: Vec<Fact> = world.journal(run).await.into_iter().flat_map(|e| e.facts).collect();
    let is_outcome =
        |fact: &Fact| matches!(fact, Fact::StepCompleted { .. } | Fact::StepFailed { .. });
    assert!(!facts.iter().any(is_outcome), "{facts:?}");
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::BranchTaken { .. })).count(), 3);
}

/// Covers behaviour 119.
pub async fn a_succeed_deep_inside_ends_the_run<F: StoreFactory>(world: &World<F>) {
    let body = vec![idempotent("a"), succeed("enough"), idempotent("never")];
    let steps = vec![when(yes(), vec![each(list(json!([1, 2])), "item", body)]), pure("never")];
    let mut drive = world.running(plan(steps)).await;
    let mut calls = 0;
    let ended = drive.to_end(&world.store, |call| {
        calls += 1;
        assert_eq!(call.action, "a");
        Reply::Answer(succeeded(json!(1)))
    });
    let message = Some("enough".to_owned());
    assert_eq!(ended.await.unwrap().phase, Phase::Succeeded { result: json!(null), message });
    assert_eq!(calls, 1);
}

/// Covers behaviour 45.
pub async fn now_is_the_events_time_however_late_a_step_runs<F: StoreFactory>(world: &World<F>) {
    let now = || Template::Expr(Expr::Call(Function::Now, Vec::new()));
    let both = Template::List(vec![Template::Expr(Expr::Name("before".to_owned())), now()]);
    let steps = vec![set("before", now()), idempotent("a"), set("both", both)];
    world.publish("flow", plan(steps)).await;
    let at = Timestamp::from_micros(1_767_225_600_123_456);
    let event = Event::start("flow", json!({})).occurred_at(at);
    let run = world.emit(event).await.runs[0];
    let mut drive = world.claim_run(run).await;
    drive.to_call(&world.store).await.unwrap();
    world.pass_secs(86_400).await;
    let mut drive = world.claim_run(run).await;
    let ended = drive.to_end(&world.store, |_| Reply::Answer(succeeded(json!(1))));
    let result = json!([at.to_string(), at.to_string()]);
    assert_eq!(ended.await.unwrap().phase, Phase::Succeeded { result, message: None });
}

/// A failure that was caught is an outcome: another process goes on with the steps that handle it.
pub async fn a_caught_failure_goes_on_in_another_process<F: StoreFactory>(world: &World<F>) {
    let code = |name: &str| Expr::Member(Box::new(Expr::Name(name.to_owned())), "code".to_owned());
    let seen = set("seen", Template::Expr(code("error")));
    let first = idempotent("a").catch(vec![idempotent("mend"), seen]).save_as("handled");
    let last = set("last", Template::Expr(Expr::Name("handled".to_owned())));
    let mut drive = world.running(plan(vec![first, last])).await;
    let run = drive.run().id;
    world.answer(&mut drive, failed(false)).await;
    assert_eq!(world.row(run).await.failures, 0);
    world.pass_secs(301).await;
    let mut drive = world.claim_run(run).await;
    let mut called = Vec::new();
    let ended = drive.to_end(&world.other, |call| {
        called.push(call.step.to_string());
        Reply::Answer(succeeded(json!(1)))
    });
    let ended = ended.await.unwrap();
    assert_eq!(called, ["steps.0.catch.0"]);
    let result = json!("PROVIDER_DOWN");
    assert_eq!(ended.phase, Phase::Succeeded { result, message: None });
}

/// A worker that stops in order gives its runs back at once, and nothing is counted against them.
pub async fn an_orderly_hand_over_is_no_failure<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let run = drive.run().id;
    world.answer(&mut drive, succeeded(json!(1))).await;
    let released = world.input(run, RowInput::HandOver).await.unwrap().run;
    assert_eq!((released.state(), released.failures), (RunState::Queued, 0));
    let claimed = world.rival_claim().await.remove(0);
    assert_eq!((claimed.id, claimed.failures, claimed.generation), (run, 1, 2));
}

/// Covers field fault 73.
pub async fn what_one_process_wrote_another_reads<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    for round in 0..20 {
        let emit = world.emission(Event::start("flow", json!({})));
        let (here, there) = if round % 2 == 0 {
            (&world.store, &world.other)
        } else {
            (&world.other, &world.store)
        };
        let run = here.event_emit(emit).await.unwrap().runs[0];
        let claimed = there.claim_rows(world.claim_request(1).await).await;
        assert_eq!(claimed[0].id, run);
        let mut drive = Drive::load(here, run).await.unwrap();
        assert_eq!(drive.run(), &claimed[0]);
        let command = drive.to_call(here).await.unwrap();
        assert!(matches!(command, Some(Command::Call(_))), "{command:?}");
        let mut drive = Drive::load(there, run).await.unwrap();
        let ended = drive.to_end(there, |_| Reply::Answer(succeeded(json!(round))));
        assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
        assert_eq!(Drive::load(here, run).await.unwrap().held(), drive.held());
    }
}

/// Covers field fault 161.
pub async fn many_writers_at_once_surface_no_error<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a"), idempotent("b")])).await;
    let request = {
        world.start("flow").await;
        world.claim_request(1).await
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16_u64 {
        let store = if writer % 2 == 0 { world.store.clone() } else { world.other.clone() };
        let emits: Vec<_> =
            (0..5).map(|_| world.emission(Event::start("flow", json!({})))).collect();
        let session = surefoot_kernel_core::Ids::session(&world.ids);
        let request = surefoot_kernel_core::ClaimRequest { session, ..request.clone() };
        writers.spawn(async move {
            for (nonce, emit) in emits.into_iter().enumerate() {
                store.event_emit(emit).await.unwrap();
                let nonce = nonce as u64;
                let request = surefoot_kernel_core::ClaimRequest { nonce, ..request.clone() };
                for run in store.claim_rows(request).await {
                    let mut drive = Drive::load(&store, run.id).await.unwrap();
                    let reply = Reply::Answer(succeeded(json!(writer)));
                    drive.to_end(&store, |_| reply.clone()).await.unwrap();
                }
                let scan = surefoot_kernel_core::Scan { app: app(), limit: 10 };
                store.run_recover(scan).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    // A claim comes back empty where others take all that it sees: the next one finds what is left.
    loop {
        let left = world.claim().await;
        if left.is_empty() {
            break;
        }
        for run in left {
            let mut drive = Drive::load(&world.store, run.id).await.unwrap();
            drive.to_end(&world.store, |_| Reply::Answer(succeeded(json!(1)))).await.unwrap();
        }
    }
    let runs = super::invariants::all_runs(&world.store).await;
    let ended = runs.iter().filter(|run| run.state() == RunState::Succeeded).count();
    assert_eq!((ended, runs.len()), (81, 81));
}
