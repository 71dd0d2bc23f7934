use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{Delay, StepKind};
use surefoot_kernel_core::{
    Answer, Code, Command, Dependency, EffectClass, Fact, Micros, Phase, Rejection, RowInput,
    RunState, Wake, release_backoff,
};

use crate::drive::{Drive, action, failed, key, plan, step};

fn wait_for(timeout: Option<Micros>) -> Drive {
    let literal = |text: &str| Template::Literal(json!(text));
    let (signal, key) = (literal("approval"), literal("7"));
    Drive::begun(plan(vec![step(StepKind::WaitFor { signal, key, timeout })]))
}

fn waiting(answer: Dependency) -> Drive {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    drive.answer(Answer::Waiting { on: answer });
    drive
}

fn wake(drive: &mut Drive, wake: Wake) -> Result<(), Rejection> {
    drive.row(RowInput::Wake { wake, at_once: false })
}

fn signal() -> Wake {
    Wake::Signal(json!("yes"))
}

#[test]
fn a_signal_ends_a_wait_with_its_data() {
    let mut drive = wait_for(None);
    assert_eq!(drive.state(), RunState::Waiting);
    assert_eq!(drive.run().failures, 0, "a park is no failure");
    wake(&mut drive, signal()).unwrap();
    drive.claim();
    drive.advance();
    let result = json!({ "signaled": true, "data": "yes" });
    assert_eq!(drive.run().phase, Phase::Succeeded { result, message: None });
}

#[test]
fn past_its_deadline_a_wait_says_that_no_signal_came() {
    let mut drive = wait_for(Some(Micros::from_secs(60)));
    let deadline = drive.now.plus(Micros::from_secs(60));
    assert!(drive.facts.contains(&Fact::DeadlineSet { step: key("steps.0"), at: deadline }));
    let early = wake(&mut drive, Wake::Deadline);
    assert!(matches!(early, Err(Rejection::NotDue { .. })));
    drive.now = deadline;
    wake(&mut drive, Wake::Deadline).unwrap();
    drive.claim();
    drive.advance();
    let result = json!({ "signaled": false, "data": null });
    assert_eq!(drive.run().phase, Phase::Succeeded { result, message: None });
    assert_eq!(drive.run().deadline, None);
}

#[test]
fn a_wait_without_a_deadline_has_none_to_pass() {
    let mut drive = wait_for(None);
    drive.pass(Micros::from_secs(1_000_000));
    assert!(matches!(wake(&mut drive, Wake::Deadline), Err(Rejection::NotDue { .. })));
}

#[test]
fn delays_park_until_they_are_over() {
    let delay = |delay| Drive::begun(plan(vec![step(StepKind::Delay(delay))]));
    let mut drive = delay(Delay::For(Micros::from_secs(10)));
    assert_eq!(drive.state(), RunState::Waiting);
    assert!(matches!(wake(&mut drive, signal()), Err(Rejection::NotDue { .. })));
    drive.pass(Micros::from_secs(10));
    wake(&mut drive, Wake::Deadline).unwrap();
    drive.claim();
    drive.advance();
    assert_eq!(drive.state(), RunState::Succeeded);

    let until = |text: &str| Delay::Until(Template::Literal(json!(text)));
    let past = delay(until("1970-01-01T00:00:00Z"));
    assert_eq!(past.state(), RunState::Succeeded);
    let far = delay(until("9999-12-31T23:59:59Z"));
    assert_eq!(far.state(), RunState::Waiting);
    let odd = delay(until("tomorrow"));
    assert_eq!(odd.failure().code, Code::EXPRESSION_ERROR);
    let none = delay(Delay::For(Micros::ZERO));
    assert_eq!(none.state(), RunState::Succeeded);
}

/// Covers behaviour 146.
#[test]
fn a_deadline_does_not_fail_a_step_but_runs_it_again_under_the_same_key() {
    let day = Duration::from_secs(86_400);
    let mut drive = waiting(Dependency::on("reply", "7").deadline_in(day));
    let generation = drive.run().generation;
    drive.pass(day.into());
    wake(&mut drive, Wake::Deadline).unwrap();
    drive.claim();
    drive.advance();
    let Some(Command::Prepare(call)) = drive.command.clone() else { panic!() };
    assert_eq!(call.resumed, Some(Wake::Deadline));
    assert_eq!(call.effect_key, drive.run().effect_key(&key("steps.0")));
    assert_eq!(call.attempt, 1, "parks are no attempts");
    assert_eq!(drive.run().generation, generation + 1);
}

#[test]
fn the_first_park_fixes_the_deadline_and_later_ones_keep_it() {
    let minute = Duration::from_secs(60);
    let mut drive = waiting(Dependency::on("reply", "7").deadline_in(minute));
    let deadline = drive.now.plus(minute.into());
    drive.pass(Micros::from_secs(30));
    wake(&mut drive, signal()).unwrap();
    drive.claim();
    drive.advance();
    drive.answer(Answer::Waiting { on: Dependency::on("reply", "8").deadline_in(minute) });
    let Phase::Waiting(wait) = &drive.run().phase else { panic!() };
    assert_eq!(wait.deadline, Some(deadline));
    assert_eq!(wait.on.as_ref().unwrap().key(), "8");
}

/// Covers behaviour 217.
#[test]
fn an_action_that_waits_past_its_deadline_is_asked_again_each_time_later() {
    let mut drive = waiting(Dependency::on("reply", "7").deadline_in(Duration::from_secs(60)));
    drive.pass(Micros::from_secs(60));
    for spins in 1..=9 {
        wake(&mut drive, Wake::Deadline).unwrap();
        drive.claim();
        drive.advance();
        let on = Dependency::on("reply", "7").deadline_in(Duration::from_secs(60));
        drive.answer(Answer::Waiting { on });
        let Phase::Waiting(wait) = drive.run().phase.clone() else { panic!() };
        let pause = release_backoff(drive.run().id, spins);
        assert_eq!((wait.spins, wait.deadline), (spins, Some(drive.now.plus(pause))));
        drive.pass(pause);
    }
    assert_eq!(drive.run().failures, 0);
}

#[test]
fn parking_on_what_has_occurred_slows_down_until_a_wait_really_waits() {
    let mut drive = waiting(Dependency::on("reply", "7"));
    let at_once = |drive: &mut Drive| {
        drive.row(RowInput::Wake { wake: signal(), at_once: true }).unwrap();
        let delay = drive.run().claimable_at().unwrap().since(drive.now);
        drive.claim();
        drive.advance();
        drive.answer(Answer::Waiting { on: Dependency::on("reply", "7") });
        delay
    };
    assert_eq!(at_once(&mut drive), Micros::ZERO);
    assert_eq!(at_once(&mut drive), release_backoff(drive.run().id, 1));
    assert_eq!(at_once(&mut drive), release_backoff(drive.run().id, 2));
    wake(&mut drive, signal()).unwrap();
    assert_eq!(drive.run().claimable_at(), Some(drive.now));
    drive.claim();
    drive.advance();
    drive.answer(Answer::Waiting { on: Dependency::on("reply", "7") });
    assert_eq!(at_once(&mut drive), Micros::ZERO, "a wait that waited starts from zero");
}

/// Covers behaviour 138.
#[test]
fn waiting_from_an_ambiguous_action_settles_its_mark() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    drive.answer(Answer::Waiting { on: Dependency::on("reply", "7") });
    assert_eq!(drive.state(), RunState::Waiting);
    let nothing = drive.facts.iter().any(|fact| matches!(fact, Fact::NothingHappened { .. }));
    assert!(nothing);
    wake(&mut drive, signal()).unwrap();
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Prepare(_))));
}

#[test]
fn a_retry_after_a_wake_still_knows_what_woke_it() {
    let mut drive = waiting(Dependency::on("reply", "7"));
    wake(&mut drive, signal()).unwrap();
    drive.claim();
    drive.advance();
    drive.answer(failed(true));
    drive.claim();
    drive.advance();
    let Some(Command::Prepare(call)) = drive.command.clone() else { panic!() };
    assert_eq!(call.resumed, Some(signal()));
    assert_eq!(call.attempt, 2);
    drive.succeed(json!(1));
    assert_eq!(drive.run().resume, None);
}

#[test]
fn only_waiting_runs_wake() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Pure)]));
    assert!(matches!(wake(&mut drive, signal()), Err(Rejection::WrongState { .. })));
}

#[test]
fn keys_are_text_and_never_empty() {
    let with_key = |key: serde_json::Value| {
        let (signal, key) = (Template::Literal(json!("approval")), Template::Literal(key));
        Drive::begun(plan(vec![step(StepKind::WaitFor { signal, key, timeout: None })]))
    };
    let number = with_key(json!(7));
    let Phase::Waiting(wait) = &number.run().phase else { panic!() };
    assert_eq!(wait.on.as_ref().unwrap().key(), "7");
    for odd in [json!(""), json!(null), json!([1]), json!({})] {
        assert_eq!(with_key(odd).failure().code, Code::EXPRESSION_ERROR);
    }
}

/// A wait on what no signal can be named would never end; PostgreSQL could not even keep it.
#[test]
fn a_wait_for_a_text_with_nul_fails_at_once() {
    let drive = waiting(Dependency::on("approval", "a\0b"));
    assert_eq!((drive.state(), &drive.failure().code), (RunState::Failed, &Code::ACTION_ERROR));
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    drive.answer(Answer::Waiting { on: Dependency::on("\0", "7") });
    assert_eq!((drive.state(), &drive.failure().code), (RunState::Failed, &Code::ACTION_ERROR));
    let literal = |text: &str| Template::Literal(json!(text));
    let (signal, key) = (literal("approval"), literal("\0"));
    let drive = Drive::begun(plan(vec![step(StepKind::WaitFor { signal, key, timeout: None })]));
    assert_eq!((drive.state(), &drive.failure().code), (RunState::Failed, &Code::EXPRESSION_ERROR));
}
