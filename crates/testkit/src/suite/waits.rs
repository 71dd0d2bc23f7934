//! Waits: deadlines that neither fail a step nor start anew, and what a park costs.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Answer, Command, Dependency, Fact, Micros, Phase, RowInput, Run, RunState, RunStore as _,
    Signal, StoreError, Timestamp, Wake, apply, decide_row, release_backoff,
};

use super::StoreFactory;
use super::world::{World, cancel, failed, step, succeeded};
use crate::plans::{delay, idempotent, plan, pure};

fn approval(seconds: u64) -> Dependency {
    Dependency::on("approval", "7").deadline_in(Duration::from_secs(seconds))
}

/// Covers behaviour 146.
pub async fn a_deadline_runs_the_step_again_under_the_same_effect_key<F: StoreFactory>(
    world: &World<F>,
) {
    let mut drive = world.running(plan(vec![idempotent("approve")])).await;
    let (run, generation) = (drive.run().id, drive.run().generation);
    world.park(&mut drive, approval(60)).await;
    world.pass_secs(50).await;
    assert!(world.recover().await.woken.is_empty(), "the deadline has not passed");
    world.pass_secs(11).await;
    let before = world.row(run).await;
    assert_eq!(world.recover().await.woken, [run]);
    let woken = world.row(run).await;
    let Phase::Queued { ready_at, .. } = woken.phase else { unreachable!("{woken:?}") };
    let input = RowInput::Wake { wake: Wake::Deadline, at_once: false };
    let expected = decide_row(&before, input, ready_at).unwrap().iter().fold(before.clone(), apply);
    assert_eq!(woken, Run { revision: before.revision + 1, ..expected });

    let mut drive = world.claim_run(run).await;
    assert!(drive.run().generation > generation);
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
    assert_eq!(call.resumed, Some(Wake::Deadline));
    assert_eq!(call.effect_key, drive.run().effect_key(&step("steps.0")));
    assert!(
        !world
            .journal(run)
            .await
            .iter()
            .flat_map(|e| &e.facts)
            .any(|fact| matches!(fact, Fact::StepFailed { .. }))
    );
}

/// The first park fixes the deadline of a step; later ones read it.
pub async fn the_first_park_fixes_the_deadline<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("approve")])).await;
    let run = drive.run().id;
    world.park(&mut drive, approval(600)).await;
    let first = drive.run().deadline.clone().unwrap();
    world.signal(Signal::new("approval", "7")).await;
    world.pass_secs(60).await;
    let mut drive = world.claim_run(run).await;
    let later = Dependency::on("payment", "7").deadline_in(Duration::from_secs(600));
    world.park(&mut drive, later).await;
    let Phase::Waiting(wait) = &world.row(run).await.phase else { unreachable!() };
    assert_eq!(wait.deadline, Some(first.at));
    assert_eq!(world.row(run).await.deadline, Some(first));
    let facts: Vec<Fact> = world.journal(run).await.into_iter().flat_map(|e| e.facts).collect();
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::DeadlineSet { .. })).count(), 1);
}

/// A deadline that has passed while the signal came is the signal's wake.
///
/// Covers behaviour 147.
pub async fn a_late_deadline_does_not_hide_the_signal<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("approve")])).await;
    let run = drive.run().id;
    world.park(&mut drive, approval(60)).await;
    world.pass_secs(100).await;
    let sent = world.signal(Signal::new("approval", "7").data(json!("yes"))).await;
    assert_eq!(sent.woken, [run]);
    let before = world.row(run).await;
    assert!(world.recover().await.woken.is_empty(), "the deadline belongs to a wait that is over");
    assert_eq!(world.row(run).await, before);
    assert_eq!(before.resume.unwrap().wake, Wake::Signal(json!("yes")));
}

/// A signal, a deadline and a cancel at the same moment: one wins, the others change nothing.
///
/// Covers behaviour 110.
pub async fn of_signal_deadline_and_cancel_one_wins<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("approve")])).await;
    for round in 0..20 {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        let on = Dependency::on("approval", format!("{round}"));
        world.park(&mut drive, on.deadline_in(Duration::from_secs(60))).await;
        world.pass_secs(61).await;
        let canceling = world.decided(run, cancel()).await;
        let before = world.row(run).await;
        let (canceled, sent, recovered) = tokio::join!(
            world.other.run_commit(canceling),
            world.signal(Signal::new("approval", format!("{round}"))),
            world.recover(),
        );
        let row = world.row(run).await;
        let wakes = sent.woken.len() + recovered.woken.len();
        match canceled {
            Ok(_) => assert_eq!((wakes, row.state()), (0, RunState::Canceled)),
            Err(StoreError::Conflict | StoreError::LeaseLost) => {
                assert_eq!((wakes, row.state()), (1, RunState::Queued));
                world.cancel(run).await;
            }
            Err(other) => unreachable!("{other:?}"),
        }
        assert_eq!(row.revision, before.revision + 1, "exactly one of them wrote");
    }
}

/// Covers behaviour 149.
pub async fn deadlines_outlive_the_process<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![delay(Micros::from_secs(3_600)), pure("a")])).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        assert_eq!(drive.to_call(&world.store).await.unwrap(), None);
        runs.push(run);
        world.pass_secs(1).await;
    }
    world.pass_secs(3_600).await;
    let restarted = world.factory.open().await;
    let scan = surefoot_kernel_core::Scan { app: super::world::app(), limit: 10 };
    let woken: BTreeSet<_> = restarted.run_recover(scan).await.unwrap().woken.into_iter().collect();
    assert_eq!(woken, runs.iter().copied().collect());
    for run in runs {
        let mut drive = world.claim_run(run).await;
        let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1))));
        assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
    }
}

/// Covers behaviour 103.
pub async fn a_wake_before_the_worker_reports_is_normal<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("approve")])).await;
    let parked = drive.stamp();
    world.park(&mut drive, approval(1)).await;
    world.pass_secs(2).await;
    world
        .other
        .run_recover(surefoot_kernel_core::Scan { app: super::world::app(), limit: 10 })
        .await
        .unwrap();
    let renewed = world.renew(world.session, vec![parked]).await;
    assert_eq!(renewed, [(drive.run().id, surefoot_kernel_core::Renewed::Lost)]);
    assert_eq!(world.row(drive.run().id).await.state(), RunState::Queued);
}

/// Any number of waits is free: a park takes its execution out of the count of failures.
pub async fn parks_are_no_failures<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![idempotent("approve")])).await;
    for round in 0..20 {
        let mut drive = world.claim_run(run).await;
        assert_eq!((drive.run().failures, drive.run().step_attempt), (1, 1));
        let key = format!("{round}");
        world.park(&mut drive, Dependency::on("approval", &key)).await;
        assert_eq!(drive.run().failures, 0);
        assert_eq!(world.signal(Signal::new("approval", &key)).await.woken, [run]);
    }
    assert_eq!(world.row(run).await.attempt, 20);
}

/// A step that waits again and again on what has occurred is run more and more seldom, and fails nothing.
pub async fn waiting_on_what_has_occurred_slows_down<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![idempotent("approve")])).await;
    world.signal(Signal::new("approval", "7")).await;
    for spins in 0..5_u32 {
        let mut drive = world.claim_run(run).await;
        let before = world.now().await;
        world.park(&mut drive, Dependency::on("approval", "7")).await;
        let Phase::Queued { ready_at, .. } = drive.run().phase else { unreachable!() };
        let pause = if spins == 0 { Micros::ZERO } else { release_backoff(run, spins) };
        assert!(before.plus(pause) <= ready_at && ready_at <= world.now().await.plus(pause));
        assert_eq!(drive.run().resume.as_ref().unwrap().spins, spins + 1);
        assert_eq!(drive.run().failures, 0, "a fruitless wait is no failure");
        world.pass(pause).await;
    }
    let mut drive = world.claim_run(run).await;
    world.answer(&mut drive, failed(true)).await;
    world.pass_secs(301).await;
    let mut drive = world.claim_run(run).await;
    world.answer(&mut drive, succeeded(json!(1))).await;
    assert_eq!(drive.run().resume, None);
}

/// Covers field fault 58.
pub async fn deadlines_may_lie_anywhere<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("approve")])).await;
    let spans = [
        Duration::ZERO,
        Duration::from_millis(1),
        Duration::from_secs(10 * 365 * 86_400),
        Duration::MAX,
    ];
    let mut runs = Vec::new();
    for span in spans {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        let on = Dependency::on("approval", "7").deadline_in(span);
        world.answer(&mut drive, Answer::Waiting { on }).await;
        assert_eq!(world.row(run).await, *drive.run());
        runs.push(run);
    }
    let last = world.row(runs[3]).await;
    let Phase::Waiting(wait) = last.phase else { unreachable!("{last:?}") };
    assert_eq!(wait.deadline, Some(Timestamp::MAX));
    world.pass_secs(1).await;
    let woken: BTreeSet<_> = world.recover().await.woken.into_iter().collect();
    assert_eq!(woken, runs[..2].iter().copied().collect());
    world.pass_secs(10 * 365 * 86_400).await;
    assert_eq!(world.recover().await.woken, [runs[2]]);
    assert_eq!(world.signal(Signal::new("approval", "7")).await.woken, [runs[3]]);
}

/// Covers field fault 165.
pub async fn a_deadline_is_kept_to_the_microsecond<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("approve")])).await;
    drive.to_call(&world.store).await.unwrap();
    drive.flush(&world.store).await.unwrap();
    for odd in [1, 999_999, 1_000_001] {
        let deadline = Some(world.now().await.plus(Micros::new(3_600_000_000 + odd)));
        let (step, at) = (step("steps.0"), Timestamp::from_micros(1_767_225_600_000_001 + odd));
        let on = Some(Dependency::on("approval", "7"));
        let parked = Fact::Parked { step, on, deadline, spins: 3, at };
        let commit = surefoot_kernel_core::Commit::new(&world.row(drive.run().id).await, &[parked]);
        let run = world.store.run_commit(commit).await.unwrap().run;
        let Phase::Waiting(wait) = &run.phase else { unreachable!("{run:?}") };
        assert_eq!((wait.deadline, wait.since, wait.spins), (deadline, at, 3));
        assert_eq!(world.row(run.id).await, run);
    }
}
