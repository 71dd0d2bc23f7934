//! Leases and fencing: who may write, on what it was decided, and what a renewal and a takeover are.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::{
    Answer, App, Commit, Dependency, End, Fact, FenceError, Micros, Phase, ReleaseReason, Renewed,
    RowInput, RunId, RunState, RunStore as _, SaidBy, Stamp, StoreError, TxStore as _,
};

use super::StoreFactory;
use super::runs::as_the_core_says;
use super::transactions::Refuser;
use super::world::{LEASE, World, app, cancel, failed, step, succeeded};
use crate::Drive;
use crate::plans::{ambiguous, idempotent, plan, pure, transactional};

/// Every way in which a worker writes, decided on what it holds.
fn writes(held: &Drive) -> Vec<Vec<Fact>> {
    let now = held.run().origin.created_at;
    let end = End::Succeeded { result: json!(1), message: None, step: None };
    let mark = Fact::CallMarked { step: step("steps.0"), action: "a".to_owned(), at: now };
    let output = json!(1);
    let done = Fact::StepCompleted { step: step("steps.0"), output, by: SaidBy::Action };
    let parked = Fact::Parked {
        step: step("steps.0"),
        on: Some(Dependency::on("approval", "7")),
        deadline: None,
        spins: 0,
        at: now,
    };
    let released = Fact::Released { ready_at: now, why: ReleaseReason::HandOver };
    let inputs = Fact::InputsComputed { inputs: json!({}) };
    vec![
        vec![inputs],
        vec![mark],
        vec![done],
        vec![parked],
        vec![released],
        vec![Fact::Ended { end, at: now }],
    ]
}

/// Covers behaviour 89.
/// Covers field fault 15.
/// Covers field fault 20.
/// Covers field fault 21.
/// Covers field fault 44.
pub async fn a_stale_generation_writes_nothing<F: StoreFactory>(world: &World<F>) {
    let stale = world.running(plan(vec![transactional("a")])).await;
    world.pass_secs(121).await;
    let taken = world.rival_claim().await.remove(0);
    let run = taken.id;
    let before = world.all_of(run).await;

    for facts in writes(&stale) {
        let commit = Commit::new(stale.run(), &facts);
        let refused = world.store.run_commit(commit).await;
        assert!(matches!(refused, Err(StoreError::LeaseLost)), "{facts:?}: {refused:?}");
    }
    let mut work = Refuser::default();
    let refused = world.store.run_transact(stale.stamp(), &mut work).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost)), "{refused:?}");
    assert!(!work.was_called, "the work of a stale worker began");
    let renewed = world.renew(world.session, vec![stale.stamp()]).await;
    assert_eq!(renewed, [(run, Renewed::Lost)]);
    let mut open = world.store.begin().await.unwrap();
    let fence = world.store.fence(run, stale.run().generation);
    assert!(matches!(fence.hold(&mut open).await, Err(FenceError::LeaseLost)));
    drop(open);

    assert_eq!(world.all_of(run).await, before);
}

/// Covers field fault 16.
pub async fn a_stolen_lease_is_noticed_before_the_effect<F: StoreFactory>(world: &World<F>) {
    let mut stale = world.running(plan(vec![ambiguous("pay")])).await;
    world.pass_secs(121).await;
    world.rival_claim().await;
    let opened = stale.to_call(&world.store).await;
    assert!(opened.is_err(), "the call was opened: {opened:?}");
    assert!(!world.row(stale.run().id).await.has_unsettled_effect());
}

/// Covers behaviour 105.
pub async fn a_stale_revision_is_a_conflict_and_changes_nothing<F: StoreFactory>(world: &World<F>) {
    let stale = world.running(plan(vec![idempotent("a")])).await;
    let run = stale.run().id;
    world.cancel(run).await;
    let before = world.all_of(run).await;
    for facts in writes(&stale) {
        let commit = Commit::new(stale.run(), &facts);
        let refused = world.store.run_commit(commit).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "{facts:?}: {refused:?}");
    }
    let mut work = Refuser::default();
    let refused = world.store.run_transact(stale.stamp(), &mut work).await;
    assert!(matches!(refused, Err(StoreError::Conflict)) && !work.was_called, "{refused:?}");
    assert_eq!(world.all_of(run).await, before);
}

/// An outcome that meets a cancel request is recorded, and the request honoured, in one commit.
///
/// Covers behaviour 105.
pub async fn after_a_conflict_the_outcome_is_kept_and_the_cancel_honoured<F: StoreFactory>(
    world: &World<F>,
) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let run = drive.run().id;
    drive.to_call(&world.store).await.unwrap();
    drive.flush(&world.store).await.unwrap();
    world.cancel(run).await;
    let lost = drive.clone().answer(&world.store, &step("steps.0"), succeeded(json!(7))).await;
    assert!(matches!(lost, Err(crate::DriveError::Store(StoreError::Conflict))), "{lost:?}");

    let mut reloaded = world.drive(run).await;
    reloaded.answer(&world.store, &step("steps.0"), succeeded(json!(7))).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Canceled);
    let last = world.journal(run).await.pop().unwrap();
    let is_outcome =
        |fact: &Fact| matches!(fact, Fact::StepCompleted { output, .. } if *output == json!(7));
    assert!(last.facts.iter().any(is_outcome) && last.facts.len() == 2, "{last:?}");
}

/// Covers field fault 15.
pub async fn of_two_commits_on_the_same_state_one_wins<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    for _ in 0..20 {
        let run = world.start("flow").await;
        let drive = world.claim_run(run).await;
        let inputs = [Fact::InputsComputed { inputs: json!({}) }];
        let commit = Commit::new(drive.run(), &inputs);
        let (one, two) = tokio::join!(
            world.store.run_commit(commit.clone()),
            world.other.run_commit(commit.clone()),
        );
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let lost = one.err().or(two.err());
        assert!(matches!(lost, Some(StoreError::Conflict)), "{lost:?}");
        let (row, journal) = world.all_of(run).await;
        assert_eq!((row.seq, journal.len()), (1, 1));
    }
}

/// Covers behaviour 98.
/// Covers field fault 17.
/// Covers field fault 18.
pub async fn a_renewed_lease_is_taken_by_nobody<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![idempotent("a")])).await;
    for _ in 0..90 {
        world.pass_secs(40).await;
        let renewed = world.renew(world.session, vec![drive.stamp()]).await;
        let now = world.now().await;
        let [(run, Renewed::Held { until, canceled: false })] = renewed[..] else {
            unreachable!("{renewed:?}")
        };
        assert_eq!(run, drive.run().id);
        assert!(until <= now.plus(LEASE) && now.plus(Micros::from_secs(100)) < until);
        assert!(world.rival_claim().await.is_empty());
    }
    world.pass_secs(121).await;
    assert_eq!(world.rival_claim().await.len(), 1);
}

/// A renewal is no write of the run: what was decided before it can be committed after it.
pub async fn a_renewal_changes_only_the_end_of_the_lease<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a")])).await;
    let before = world.all_of(drive.run().id).await;
    world.pass_secs(40).await;
    world.renew(world.session, vec![drive.stamp()]).await;
    let (mut after, journal) = world.all_of(drive.run().id).await;
    assert!(after.lease().unwrap().until > before.0.lease().unwrap().until);
    let Phase::Running { lease, .. } = &mut after.phase else { unreachable!() };
    *lease = before.0.lease().unwrap().clone();
    assert_eq!((after, journal), before);
    world.answer(&mut drive, succeeded(json!(1))).await;
}

/// Covers field fault 45.
pub async fn a_commit_keeps_the_lease_that_was_renewed_meanwhile<F: StoreFactory>(
    world: &World<F>,
) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    world.pass_secs(60).await;
    let renewed = world.renew(world.session, vec![drive.stamp()]).await;
    let [(_, Renewed::Held { until, .. })] = renewed[..] else { unreachable!("{renewed:?}") };
    world.answer(&mut drive, succeeded(json!(1))).await;
    assert_eq!(drive.run().lease().unwrap().until, until);
    assert_eq!(world.row(drive.run().id).await.lease().unwrap().until, until);
    world.pass_secs(90).await;
    assert!(world.rival_claim().await.is_empty(), "the commit put the old lease back");
    world.answer(&mut drive, succeeded(json!(2))).await;
}

/// Covers field fault 45.
pub async fn a_renewal_brings_back_no_lease_that_was_given_up<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    for answer in [
        succeeded(json!(1)),
        failed(false),
        failed(true),
        Answer::Waiting { on: Dependency::on("approval", "7") },
    ] {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        let held = drive.stamp();
        world.answer(&mut drive, answer).await;
        drive.to_end(&world.store, |_| crate::Reply::Answer(failed(false))).await.unwrap();
        let before = world.all_of(run).await;
        for stamp in [held, drive.stamp()] {
            let renewed = world.renew(world.session, vec![stamp]).await;
            assert_eq!(renewed, [(run, Renewed::Lost)]);
        }
        assert_eq!(world.all_of(run).await, before);
    }
}

/// Each lease of a batch gets its own answer.
pub async fn a_renewal_answers_for_each_lease<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let mut drives = Vec::new();
    for _ in 0..3 {
        let run = world.start("flow").await;
        drives.push(world.claim_run(run).await);
    }
    world.cancel(drives[1].run().id).await;
    let unknown = Stamp { run: RunId::from_bytes([9; 16]), ..drives[0].stamp() };
    let old = Stamp { generation: 0, ..drives[2].stamp() };
    let stamps = vec![drives[0].stamp(), drives[1].stamp(), unknown, old];
    let renewed = world.renew(world.session, stamps).await;
    let of = |run| renewed.iter().find(|(of, _)| *of == run).unwrap().1;
    assert_eq!(renewed.len(), 4);
    assert!(matches!(of(drives[0].run().id), Renewed::Held { canceled: false, .. }));
    // Covers the flag that each renewal brings: the worker learns of a cancel even if it commits nothing.
    assert!(matches!(of(drives[1].run().id), Renewed::Held { canceled: true, .. }));
    assert_eq!((of(unknown.run), of(old.run)), (Renewed::Lost, Renewed::Lost));
    let theirs = world.renew(world.rival, vec![drives[0].stamp()]).await;
    assert_eq!(theirs[0].1, Renewed::Lost, "another session's lease was renewed");
}

/// One question tells for all runs of a worker who of them is to stop; a stale worker is told nothing.
pub async fn one_question_finds_the_canceled<F: StoreFactory>(world: &World<F>) {
    let mut runs = Vec::new();
    for name in ["a", "b", "c"] {
        runs.push(world.running(plan(vec![ambiguous(name)])).await.stamp());
    }
    assert!(world.store.cancel_list(&runs).await.unwrap().is_empty());
    world.cancel(runs[1].run).await;

    assert_eq!(world.store.cancel_list(&runs).await.unwrap(), [runs[1].run]);
    let stale = Stamp { generation: runs[1].generation - 1, ..runs[1] };
    assert!(world.store.cancel_list(&[stale]).await.unwrap().is_empty());
    assert!(world.store.cancel_list(&[]).await.unwrap().is_empty());
}

/// Whoever waits for many runs asks once which of them go on.
pub async fn one_question_finds_the_runs_that_go_on<F: StoreFactory>(world: &World<F>) {
    let ended = world.running(plan(vec![idempotent("a")])).await.run().id;
    world.cancel(ended).await;
    world.pass_secs(121).await;
    world.recover().await;
    let running = world.running(plan(vec![idempotent("a")])).await.run().id;
    let queued = world.start("flow").await;
    let nobody = RunId::from_bytes([9; 16]);
    let open = async |app: &App, runs: &[RunId]| {
        let mut open = world.store.run_open(app, runs).await.unwrap();
        open.sort_unstable();
        open
    };
    let mut expected = vec![running, queued];
    expected.sort_unstable();
    assert_eq!(open(&app(), &[queued, nobody, ended, running]).await, expected);
    assert_eq!(open(&App::from("bank"), &[queued]).await, []);
    assert_eq!(open(&app(), &[]).await, []);
}

/// Covers behaviour 105.
pub async fn a_renewal_tells_of_a_cancel_request<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![idempotent("a")])).await;
    let flagged = world.cancel(drive.run().id).await;
    assert_eq!(flagged.run.state(), RunState::Running);
    assert_eq!(flagged.run.generation, drive.run().generation, "a request is no takeover");
    let renewed = world.renew(world.session, vec![drive.stamp()]).await;
    assert!(matches!(renewed[..], [(_, Renewed::Held { canceled: true, .. })]), "{renewed:?}");
}

/// A lease that ran out, and that nobody took over, still writes and is still renewed.
pub async fn a_lapsed_lease_still_writes_while_nobody_claimed<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    world.pass_secs(500).await;
    world.answer(&mut drive, succeeded(json!(1))).await;
    let renewed = world.renew(world.session, vec![drive.stamp()]).await;
    assert!(matches!(renewed[..], [(_, Renewed::Held { .. })]));
    assert!(world.rival_claim().await.is_empty());
}

/// Covers behaviour 101.
/// Covers field fault 26.
pub async fn a_takeover_finds_what_the_lost_commit_did<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let run = drive.run().id;
    let in_doubt = drive.clone();
    world.answer(&mut drive, succeeded(json!({ "paid": true }))).await;

    let row = world.row(run).await;
    let generation = in_doubt.run().generation;
    let taken = world.take_over(run, generation).await.unwrap();
    let input = |lease| RowInput::TakeOver { generation, lease };
    assert_eq!(taken, as_the_core_says(&row, input, &taken));
    assert_eq!((taken.attempt, taken.failures), (row.attempt, row.failures), "nothing is counted");
    assert!(taken.generation > generation);
    let again = world.take_over(run, generation).await.unwrap();
    assert_eq!(again, taken, "a takeover whose answer got lost is found again");
    let mut drive = world.drive(run).await;
    let command = drive.to_call(&world.store).await.unwrap();
    assert!(
        matches!(command, Some(surefoot_kernel_core::Command::Call(call)) if call.step == step("steps.1"))
    );
}

/// Covers behaviour 101.
pub async fn a_takeover_fences_out_a_commit_that_comes_late<F: StoreFactory>(world: &World<F>) {
    let mut late = world.running(plan(vec![idempotent("a")])).await;
    let run = late.run().id;
    world.take_over(run, late.run().generation).await.unwrap();
    let before = world.all_of(run).await;
    let inputs = [Fact::InputsComputed { inputs: json!({}) }];
    let refused = world.store.run_commit(Commit::new(late.run(), &inputs)).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost)), "{refused:?}");
    assert_eq!(world.all_of(run).await, before);
    late = world.drive(run).await;
    world.answer(&mut late, succeeded(json!(1))).await;
}

/// Where the lost commit has ended or parked the run, the takeover shows it and fences; the run stays as it is.
///
/// Covers behaviour 101.
pub async fn a_takeover_works_in_every_state<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    for (answer, state) in [
        (succeeded(json!(1)), RunState::Succeeded),
        (failed(false), RunState::Failed),
        (failed(true), RunState::Queued),
        (Answer::Waiting { on: Dependency::on("approval", "7") }, RunState::Waiting),
    ] {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        world.answer(&mut drive, answer).await;
        drive.to_end(&world.store, |_| crate::Reply::Answer(failed(false))).await.unwrap();
        let (before, journal) = world.all_of(run).await;
        let taken = world.take_over(run, before.generation).await.unwrap();
        assert_eq!((taken.state(), &taken.phase), (state, &before.phase));
        assert_eq!(world.all_of(run).await, (taken.clone(), journal));
        if state == RunState::Succeeded {
            assert_eq!(taken, before, "nothing is left to fence out");
        } else {
            assert_eq!(taken.generation, before.generation + 1);
            let late = world.store.run_commit(Commit::new(&before, &[Fact::FenceRaised])).await;
            assert!(matches!(late, Err(StoreError::LeaseLost)), "{late:?}");
        }
    }
}

/// A worker that was away for long does not steal the run from whoever claimed it since, not even from itself.
pub async fn a_takeover_takes_nothing_from_a_later_claim<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![idempotent("a")])).await;
    let (run, lost) = (drive.run().id, drive.run().generation);
    for is_own in [false, true] {
        world.pass_secs(121).await;
        let claims = if is_own { world.claim().await } else { world.rival_claim().await };
        assert_eq!(claims.len(), 1);
        assert_eq!(world.take_over(run, lost).await.unwrap(), claims[0]);
        assert_eq!(world.row(run).await, claims[0]);
    }
    let held = world.row(run).await.generation;
    assert_eq!(world.take_over(run, held).await.unwrap().generation, held + 1);
}

/// Covers field fault 6.
/// Covers field fault 132.
pub async fn an_ended_run_absorbs_every_write<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![pure("a")])).await;
    let succeeded_run = world.start("flow").await;
    let mut drive = world.claim_run(succeeded_run).await;
    drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1)))).await.unwrap();
    let canceled = world.start("flow").await;
    world.cancel(canceled).await;
    for run in [succeeded_run, canceled] {
        let (before, journal) = world.all_of(run).await;
        let held = world.drive(run).await;
        for facts in writes(&held).into_iter().chain([vec![Fact::FenceRaised, Fact::Retried]]) {
            let row = world.row(run).await;
            let _ = world.store.run_commit(Commit::new(&row, &facts)).await;
        }
        let _ = world.input(run, cancel()).await;
        let (after, journal_after) = world.all_of(run).await;
        assert_eq!(
            (&after.phase, after.seq, after.ended_at),
            (&before.phase, before.seq, before.ended_at)
        );
        assert_eq!(journal_after, journal);
    }
}

/// Covers field fault 64.
/// Covers field fault 65.
pub async fn a_clock_that_goes_back_delays_and_never_repeats<F: StoreFactory>(world: &World<F>) {
    let mut waiting = world.running(plan(vec![idempotent("a")])).await;
    let on = Dependency::on("approval", "7").deadline_in(std::time::Duration::from_secs(60));
    world.park(&mut waiting, on).await;
    let run = world.start("flow").await;
    let held = world.claim_run(run).await;
    world.factory.turn_back(Micros::from_secs(7_200)).await;

    assert!(world.rival_claim().await.is_empty(), "the lease has not ended");
    assert!(world.recover().await.woken.is_empty(), "the deadline has not passed");
    let queued = world.start("flow").await;
    assert_eq!(world.claim().await.iter().map(|run| run.id).collect::<Vec<_>>(), [queued]);
    let renewed = world.renew(world.session, vec![held.stamp()]).await;
    assert!(matches!(renewed[..], [(_, Renewed::Held { .. })]));
    world.pass_secs(7_200 + 121).await;
    assert_eq!(world.recover().await.woken, [waiting.run().id]);
    assert_eq!(world.rival_claim().await.len(), 3);
    assert!(world.recover().await.woken.is_empty());
}
