//! Work that cannot be done must not take anything else down.

use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{Code, Event, RestoreInvalid, RowInput, RunState, StoreError};
use surefoot_language::Reconciled;
use surefoot_worker::{Publication, Tick};

use crate::actions::{Actions, n};
use crate::plans::act;
use crate::store::{Op, Verdict};
use crate::world::{World, until};

/// Covers field fault 127.
/// Covers field fault 130.
#[tokio::test(start_paused = true)]
async fn an_action_that_kills_its_process_is_not_tried_for_ever() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        std::future::pending::<()>().await;
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    // The first execution recorded the inputs, which is an outcome: eight more may end badly after it.
    for crash in 1..=9 {
        let doomed = world.worker();
        let driving = tokio::spawn(async move { doomed.run_one().await });
        until("the hook runs", || world.log().count("mail.run") == crash).await;
        // Counted at the claim, before anything ran.
        let row = world.run(run).await;
        assert_eq!((row.attempt, row.failures), (crash as u64, crash as u32 - 1));
        driving.abort();
        let _ = driving.await;
        tokio::time::advance(Duration::from_secs(121)).await;
    }
    let worker = world.worker();
    worker.tick(Tick::max_runs(1)).await.unwrap();
    assert_eq!(world.error(run).await.code, Code::RETRY_EXHAUSTED);
    assert_eq!(world.log().count("mail.run"), 9);
    // The worker lives.
    world.publish("other", vec![act("book", n(1))]).await;
    let other = world.emit("other").await;
    assert_eq!(world.settle(&worker, other).await, RunState::Succeeded);
}

/// Covers field fault 10.
#[tokio::test(start_paused = true)]
async fn an_action_that_panics_in_every_hook_ends_with_a_reason() {
    let cases: [(&str, Actions, RunState, Code); 5] = [
        (
            "compute",
            Actions::default().compute(|_| panic!("in run")),
            RunState::Failed,
            Code::ACTION_ERROR,
        ),
        (
            "book",
            Actions::default().book(|_, _| panic!("in run")),
            RunState::Failed,
            Code::ACTION_ERROR,
        ),
        (
            "mail",
            Actions::default().mail(|_, _| async { panic!("in run") }),
            RunState::Failed,
            Code::ACTION_ERROR,
        ),
        (
            "pay",
            Actions::default().may(|_, _| async { panic!("in authorize") }),
            RunState::Failed,
            Code::ACTION_ERROR,
        ),
        (
            "pay",
            Actions::default()
                .pay(|_, _| async { panic!("in run") })
                .find(|_, _| async { panic!("in reconcile") }),
            RunState::NeedsAttention,
            Code::RETRY_EXHAUSTED,
        ),
    ];
    for (action, actions, state, code) in cases {
        let world = World::new(actions);
        let run = world.start(vec![act(action, n(1))]).await;
        assert_eq!(world.settle(&world.worker(), run).await, state, "{action}");
        let error = world.error(run).await;
        assert_eq!(error.code, code);
        assert!(error.message.contains("panicked"), "{}", error.message);
        assert!(world.log().count("pay.run") <= 1);
    }
}

/// Covers field fault 128.
/// Covers behaviour 112.
#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_read_goes_to_a_person_and_others_are_not_affected() {
    let world = World::new(Actions::default());
    world.publish("work", vec![act("mail", n(1))]).await;
    let (bad, good) = (world.emit("work").await, world.emit("work").await);
    world.store.corrupt_run(move |stored| {
        if stored.run.id == bad {
            stored.journal = Err(RestoreInvalid { what: "row 0 is cut off".to_owned() });
        }
    });
    let worker = world.worker();
    worker.tick(Tick::max_runs(2)).await.unwrap();
    assert_eq!(world.state(good).await, RunState::Succeeded);
    let error = world.error(bad).await;
    assert_eq!(
        (world.state(bad).await, error.code),
        (RunState::NeedsAttention, Code::RESTORE_INVALID)
    );
    assert!(error.message.contains("row 0 is cut off"), "{}", error.message);
    assert_eq!(world.log().count("mail.run"), 1);
}

/// Covers field fault 128.
#[tokio::test(start_paused = true)]
async fn a_run_that_the_store_calls_corrupt_goes_to_a_person() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1))]).await;
    // Not with its claim, and not by itself.
    world.store.corrupt_run(|stored| stored.invocation = None);
    world.store.on(move |op| match op {
        Op::Load(run) => {
            let what = "the row's phase is unknown".to_owned();
            Verdict::Fail(StoreError::Corrupt { run: *run, what })
        }
        _ => Verdict::Go,
    });
    world.worker().run_one().await.unwrap();
    world.store.heal();
    assert_eq!(world.state(run).await, RunState::NeedsAttention);
    assert!(world.error(run).await.message.contains("phase is unknown"));
}

/// Covers field fault 128.
/// Covers field fault 129.
#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_be_read_is_run_from_the_original_bytes_once_it_is_mended() {
    for newer in [false, true] {
        let world = World::new(Actions::default());
        let run = world.start(vec![act("mail", n(1))]).await;
        world.store.corrupt_plan(move |stored| {
            if newer {
                stored.plan = stored.plan.replacen("\"schema\":1", "\"schema\":99", 1);
            } else {
                stored.plan.truncate(20);
            }
        });
        let worker = world.worker();
        worker.run_one().await.unwrap();
        let error = world.error(run).await;
        assert_eq!(
            (world.state(run).await, error.code),
            (RunState::NeedsAttention, Code::RESTORE_INVALID)
        );
        assert_eq!(error.message.contains("upgrade this program"), newer, "{}", error.message);
        worker.tick(Tick::max_runs(5)).await.unwrap();
        assert_eq!(world.log().lines().len(), 0);

        world.store.heal();
        world.act_on(run, RowInput::Retry).await.unwrap();
        assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
        assert_eq!(world.outputs(run).await, [n(1)]);
    }
}

/// Covers behaviour 112.
#[tokio::test(start_paused = true)]
async fn a_journal_of_another_plan_is_never_guessed_around() {
    let world = World::new(
        Actions::default()
            .mail(|_, _| async { Err(surefoot_language::Stop::retry("BUSY", "429")) }),
    );
    let run = world.start(vec![act("compute", n(1)), act("mail", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let facts = world.facts(run).await.len();
    world.store.corrupt_run(|stored| {
        if let Ok(journal) = &mut stored.journal {
            journal.clear();
        }
    });
    // A worker that does not remember the run folds the journal, and finds the gap.
    let fresh = world.builder().build().unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    fresh.tick(Tick::max_runs(1)).await.unwrap();
    assert_eq!(world.error(run).await.code, Code::RESTORE_INVALID);
    assert_eq!((world.log().count("compute.run"), world.log().count("mail.run")), (1, 1));
    assert!(world.facts(run).await.len() > facts);
}

/// Covers field fault 95.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_the_store_refuses_ends_with_a_reason() {
    for (action, state) in [("mail", RunState::NeedsAttention), ("compute", RunState::Failed)] {
        let world = World::new(Actions::default());
        let run = world.start(vec![act(action, json!({ "n": "bad" }))]).await;
        world.store.on(|op| match op {
            Op::Commit(_) if op.facts().contains("\"output\"") => {
                Verdict::Fail(StoreError::Refused("invalid byte sequence".into()))
            }
            _ => Verdict::Go,
        });
        world.worker().run_one().await.unwrap();
        let left = world.run(run).await;
        if action == "mail" {
            assert_eq!((left.state(), world.error(run).await.code), (state, Code::OUTPUT_INVALID));
        } else {
            // A pure outcome is refused with the commit that takes it along: nothing is written, the lease lapses.
            assert_eq!(left.state(), RunState::Running);
        }
    }
}

/// Covers field fault 98.
#[tokio::test(start_paused = true)]
async fn an_error_text_of_any_content_and_size_ends_the_run_cleanly() {
    for text in ["\0nul\0", "\u{feff}\u{202e}", &"ä".repeat(5_000_000)] {
        let text = text.to_owned();
        let world = World::new(Actions::default().mail(move |_, _| {
            let text = text.clone();
            async move { Err(surefoot_language::Stop::fail("BAD", text)) }
        }));
        let run = world.start(vec![act("mail", n(1))]).await;
        assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
        let message = world.error(run).await.message;
        assert!(message.len() <= 8 * 1024 && !message.contains('\0'));
    }
}

/// Never guessed: what the provider answered with an output that does not fit is a person's matter.
#[tokio::test(start_paused = true)]
async fn an_output_of_reconcile_is_judged_too() {
    let world = World::new(
        Actions::default()
            .pay(|_, _| async { Err(std::io::Error::other("reset"))? })
            .find(|_, _| async { Ok(Reconciled::Succeeded(json!("x".repeat(1024 * 1024)))) }),
    );
    let run = world.start(vec![act("pay", n(1))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::NeedsAttention);
    assert_eq!(world.error(run).await.code, Code::OUTPUT_TOO_LARGE);
}

/// Runs of one scope fail again and again, and those of another scope and key go on as if nothing were.
///
/// Covers behaviour 218.
#[tokio::test(start_paused = true)]
async fn a_step_that_fails_again_and_again_delays_nobody_else() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        match config["n"] == 1 {
            true => Err(surefoot_language::Stop::retry("BUSY", "429")),
            false => Ok(config),
        }
    }));
    world.publish("bad", vec![act("mail", n(1))]).await;
    let hamburg = world.other().scope("hamburg");
    let good = Publication::new("good", "steps:\n  - mail: { n: 2 }\n");
    hamburg.publish(world.module.manifest(), good).await.unwrap();
    let mut bad = Vec::new();
    for _ in 0..40 {
        bad.push(world.emit_quietly("bad").await);
    }
    // One slot, and a second is no time: whoever has to wait for a retry is seen.
    let worker = world.builder().concurrency(1).build().unwrap();
    let mut failures = 0;
    while failures < 40 * 3 {
        worker.tick(Tick::max_runs(100)).await.unwrap();
        let emission = hamburg.emit(Event::start("good", json!({}))).await.unwrap();
        let good = emission.runs[0];
        let ticked = worker.tick(Tick::max_runs(1)).await.unwrap();
        assert_eq!(ticked.runs, [good], "it is the only one that is due");
        assert_eq!(world.state(good).await, RunState::Succeeded);
        failures = world.log().lines().iter().filter(|line| line.starts_with("mail.run")).count();
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    for run in bad {
        let row = world.run(run).await;
        assert!(row.failures > 0 && row.state() == RunState::Queued, "{row:?}");
    }
}
