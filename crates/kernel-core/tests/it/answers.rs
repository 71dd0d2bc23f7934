use serde_json::json;
use surefoot_kernel_core::{
    Answer, Code, Command, Durability, EffectClass, EffectState, Failure, Input, Micros, Phase,
    Prepared, ReconcileAnswer, Rejection, RunState, StepKey, Todo, release_backoff,
};

use crate::drive::{Drive, LEASE, action, failed, key, plan, unknown};

fn one(class: EffectClass) -> Drive {
    Drive::begun(plan(vec![action(class)]))
}

#[test]
fn each_class_is_called_as_its_promise_allows() {
    assert!(matches!(one(EffectClass::Pure).command, Some(Command::Call(_))));
    assert_eq!(one(EffectClass::Pure).durability, Durability::Lazy);
    assert!(matches!(one(EffectClass::Transactional).command, Some(Command::Transact(_))));
    assert!(matches!(one(EffectClass::Idempotent).command, Some(Command::Prepare(_))));
    assert!(matches!(one(EffectClass::Ambiguous).command, Some(Command::Prepare(_))));
    // A transaction writes what is pending itself.
    assert_eq!(one(EffectClass::Transactional).durability, Durability::Lazy);
    for class in [EffectClass::Idempotent, EffectClass::Ambiguous] {
        assert_eq!(one(class).durability, Durability::Before, "{class}");
    }
}

/// Covers behaviour 130.
#[test]
fn only_an_ambiguous_call_is_marked_before_it_is_made() {
    let mut drive = one(EffectClass::Idempotent);
    drive.prepared();
    assert!(matches!(drive.command, Some(Command::Call(_))));
    assert_eq!(drive.facts, []);

    let mut drive = one(EffectClass::Ambiguous);
    drive.prepared();
    assert!(matches!(drive.command, Some(Command::Call(_))));
    assert_eq!(drive.durability, Durability::Before);
    let effect = drive.run().effect().unwrap();
    assert_eq!((effect.state, effect.since), (EffectState::Marked, drive.now));
}

#[test]
fn outcomes_are_recorded_with_the_durability_of_their_class() {
    for (class, durability) in [
        (EffectClass::Pure, Durability::Lazy),
        (EffectClass::Transactional, Durability::Now),
        (EffectClass::Idempotent, Durability::Now),
        (EffectClass::Ambiguous, Durability::Now),
    ] {
        let mut drive = one(class);
        drive.succeed(json!(5));
        assert_eq!(drive.durability, durability, "{class}");
        assert_eq!(drive.completed("steps.0"), Some(&json!(5)));
        // The last outcome ends the run, but for one that would be computed again.
        if class == EffectClass::Pure {
            drive.advance();
        }
        let result = Phase::Succeeded { result: json!(5), message: None };
        assert_eq!(drive.run().phase, result);
    }
}

/// Covers behaviour 91.
#[test]
fn a_lost_attempt_runs_again_under_the_same_effect_key() {
    for class in [EffectClass::Pure, EffectClass::Transactional, EffectClass::Idempotent] {
        let mut drive = one(class);
        let call = |drive: &Drive| match drive.command.clone().unwrap() {
            Command::Call(call) | Command::Transact(call) | Command::Prepare(call) => call,
            other @ (Command::Reconcile(_) | Command::Spawn(_) | Command::Collect(_)) => {
                panic!("{other:?}")
            }
        };
        let first = call(&drive);
        drive.crash();
        drive.advance();
        let second = call(&drive);
        assert_eq!(second.effect_key, first.effect_key);
        assert_eq!(second.attempt, first.attempt + 1);
        assert_eq!(second.config, first.config);
    }
}

/// Covers behaviour 133.
#[test]
fn a_lost_ambiguous_attempt_is_asked_about_and_never_called_again() {
    let mut drive = one(EffectClass::Ambiguous);
    drive.prepared();
    let Some(Command::Call(call)) = drive.command.clone() else { panic!() };
    drive.crash();
    drive.advance();
    let Some(Command::Reconcile(asked)) = drive.command.clone() else { panic!() };
    assert_eq!(asked.effect_key, call.effect_key);
    assert_eq!(asked.config, call.config);
    // Whatever is asked of it, the call is not made again while nobody has explained the last one.
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Reconcile(_))));
    let step = key("steps.0");
    let again = drive.give(Input::Prepared {
        step: step.clone(),
        result: Prepared::Ready { cost: Default::default() },
    });
    assert!(matches!(again, Err(Rejection::WrongState { .. })));
    let answer = ReconcileAnswer::Succeeded { output: json!("receipt") };
    drive.give(Input::Reconciled { step, answer }).unwrap();
    assert_eq!(drive.completed("steps.0"), Some(&json!("receipt")));
}

fn marked() -> Drive {
    let mut drive = one(EffectClass::Ambiguous);
    drive.answer(unknown());
    drive
}

/// Covers behaviour 131.
#[test]
fn after_an_unknown_outcome_the_provider_is_asked_a_second_later() {
    let drive = marked();
    let Phase::Queued { ready_at, todo: Todo::Reconcile(effect) } = &drive.run().phase else {
        panic!("{:?}", drive.run().phase);
    };
    assert_eq!(*ready_at, drive.now.plus(Micros::from_secs(1)));
    assert_eq!(effect.state, EffectState::Ambiguous);
    assert_eq!(effect.evidence.as_deref(), Some("half"));
}

fn reconcile(drive: &mut Drive, answer: ReconcileAnswer) {
    drive.claim();
    drive.advance();
    drive.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
}

#[test]
fn a_provider_that_does_not_know_the_key_is_asked_until_it_should_and_then_a_person_is() {
    let mut drive = marked();
    let since = drive.run().effect().unwrap().since;
    let mut asked = 0;
    while drive.state() != RunState::NeedsAttention {
        reconcile(&mut drive, ReconcileAnswer::NotFound);
        if drive.state() == RunState::Queued {
            assert_eq!(drive.run().failures, 1, "the first execution is the only bad one");
            let age = drive.now.since(since);
            let pause = drive.run().claimable_at().unwrap().since(drive.now);
            let half = Micros::new(age.get() / 2);
            let wanted = half.clamp(Micros::from_secs(1), Micros::from_secs(60));
            let left = Micros::new(Micros::from_secs(600).get() - age.get());
            assert_eq!(pause, wanted.min(left), "{age:?} after the call");
        }
        asked += 1;
        assert!(asked < 40, "asked far too often");
    }
    assert_eq!(drive.now, since.plus(Micros::from_secs(600)));
    assert_eq!(drive.failure().code, Code::EFFECT_OUTCOME_UNKNOWN);
    assert_eq!(
        drive.failure().message,
        "nobody can tell whether the effect of `steps.0` happened: the provider did not know the effect key 600 s \
         after the call"
    );
    assert!(asked > 10, "asked only {asked} times");
}

#[test]
fn no_settle_time_is_under_two_leases() {
    let mut plan = plan(vec![action(EffectClass::Ambiguous)]);
    plan.policies.get_mut("ambiguous").unwrap().settle_after = Some(Micros::from_secs(1));
    let mut drive = Drive::begun(plan);
    drive.answer(unknown());
    let since = drive.run().effect().unwrap().since;
    while drive.state() != RunState::NeedsAttention {
        reconcile(&mut drive, ReconcileAnswer::NotFound);
    }
    assert_eq!(drive.now, since.plus(Micros::new(2 * LEASE.get())));
}

/// Covers behaviour 134.
#[test]
fn an_error_while_asking_is_tried_again_with_backoff_and_never_calls() {
    let mut drive = marked();
    for failures in 2..=8 {
        let error = ReconcileAnswer::Error { message: "down".to_owned(), retry_after: None };
        reconcile(&mut drive, error);
        let due = drive.now.plus(release_backoff(drive.run().id, failures));
        assert_eq!(drive.run().claimable_at(), Some(due));
        let last = drive.run().last_failure.as_ref().unwrap();
        assert_eq!(last.code, Code::EFFECT_RECONCILE_FAILED);
    }
    drive.claim();
    drive.advance();
    assert_eq!(drive.state(), RunState::NeedsAttention);
    assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
    assert!(drive.run().has_unsettled_effect());
}

#[test]
fn a_provider_that_refuses_the_key_or_cannot_tell_ends_the_asking() {
    let mut drive = marked();
    let failure = Failure::new("CARD_DECLINED", "51");
    reconcile(&mut drive, ReconcileAnswer::Failed { failure });
    assert_eq!(drive.state(), RunState::Failed);
    assert_eq!(drive.failure().code.as_str(), "CARD_DECLINED");
    assert_eq!(drive.failure().step, Some(key("steps.0")));

    let mut drive = marked();
    reconcile(&mut drive, ReconcileAnswer::Unknown { why: "forgotten".to_owned() });
    assert_eq!(drive.state(), RunState::NeedsAttention);
    assert!(drive.failure().message.contains("forgotten"));
}

/// Covers behaviour 132.
#[test]
fn retryable_from_an_ambiguous_action_is_its_word_that_nothing_happened() {
    let mut drive = one(EffectClass::Ambiguous);
    drive.answer(failed(true));
    assert_eq!(drive.run().effect(), None);
    assert_eq!(drive.state(), RunState::Queued);
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Prepare(_))));
}

#[test]
fn a_definite_no_from_an_ambiguous_action_fails_the_run() {
    let mut drive = one(EffectClass::Ambiguous);
    drive.answer(failed(false));
    assert_eq!(drive.state(), RunState::Failed);
    assert_eq!(drive.run().effect(), None);
}

#[test]
fn a_call_that_was_not_made_settles_its_mark_and_counts_nothing() {
    let mut drive = one(EffectClass::Ambiguous);
    drive.answer(Answer::NotCalled);
    let due = Phase::Queued { ready_at: drive.now, todo: Todo::Steps };
    assert_eq!(drive.run().phase, due);
    assert_eq!(drive.run().failures, 0);
}

#[test]
fn a_retryable_failure_waits_for_the_backoff_or_for_what_the_provider_asks() {
    let mut drive = one(EffectClass::Idempotent);
    drive.answer(failed(true));
    let delay = release_backoff(drive.run().id, 1);
    assert_eq!(drive.run().claimable_at(), Some(drive.now.plus(delay)));
    drive.claim();
    drive.advance();
    let hour = Micros::from_secs(3_600);
    let failure = Failure::new("BUSY", "429");
    drive.answer(Answer::Failed { failure, retryable: true, retry_after: Some(hour) });
    assert_eq!(drive.run().claimable_at(), Some(drive.now.plus(hour)));
}

#[test]
fn an_output_that_cannot_be_kept_fails_where_nothing_happened_and_asks_where_it_did() {
    let refused = || Answer::OutputRefused {
        error: Failure::new(Code::OUTPUT_INVALID, "not a number"),
        evidence: "\"odd\"".to_owned(),
    };
    for class in [EffectClass::Pure, EffectClass::Transactional] {
        let mut drive = one(class);
        drive.answer(refused());
        assert_eq!(drive.state(), RunState::Failed, "{class}");
        assert_eq!(drive.failure().code, Code::OUTPUT_INVALID);
    }
    for class in [EffectClass::Idempotent, EffectClass::Ambiguous] {
        let mut drive = one(class);
        drive.answer(refused());
        assert_eq!(drive.state(), RunState::NeedsAttention, "{class}");
        let effect = drive.run().effect().unwrap();
        assert_eq!(effect.state, EffectState::Succeeded);
        assert_eq!(effect.evidence.as_deref(), Some("\"odd\""));
        assert_eq!(effect.since, drive.now);
    }
}

/// Covers behaviour 135.
#[test]
fn a_refusal_before_the_call_leaves_no_mark() {
    for class in [EffectClass::Idempotent, EffectClass::Ambiguous] {
        let mut drive = one(class);
        let failure = Failure::new(Code::FORBIDDEN, "not yours");
        let answer = Answer::Failed { failure, retryable: false, retry_after: None };
        let result = Prepared::Stopped(answer);
        drive.give(Input::Prepared { step: key("steps.0"), result }).unwrap();
        assert_eq!(drive.failure().code, Code::FORBIDDEN);
        assert_eq!(drive.run().effect(), None);
    }
}

#[test]
fn an_answer_for_another_step_or_from_nobody_is_rejected() {
    let mut drive = one(EffectClass::Idempotent);
    let other = StepKey::from("steps.1");
    let answer = Answer::Succeeded { output: json!(1) };
    let wrong = drive.give(Input::Answer { step: other, answer: answer.clone() });
    assert!(matches!(wrong, Err(Rejection::WrongStep { .. })));
    let mut queued = Drive::new(plan(vec![action(EffectClass::Pure)]));
    let wrong = queued.give(Input::Answer { step: key("steps.0"), answer });
    assert!(matches!(wrong, Err(Rejection::WrongState { .. })));
    let mut unmarked = one(EffectClass::Ambiguous);
    let answer = Answer::Succeeded { output: json!(1) };
    let wrong = unmarked.give(Input::Answer { step: key("steps.0"), answer });
    assert!(matches!(wrong, Err(Rejection::WrongState { .. })));
}
