//! What an action's answer means, by its class.

use serde_json::Value;

use super::advance::{call, completed, policy_of};
use super::backoff::retry_delay;
use super::{
    Answer, Command, Decision, Durability, Held, Prepared, RECONCILE_FIRST_AFTER, Rejection, park,
    wrong_state,
};
use crate::plan::{ActionPolicy, Plan, RetryPolicy, Step, StepKind};
use crate::{
    Amounts, Code, EffectClass, EffectState, End, Fact, Failure, Next, Phase, ReleaseReason,
    SaidBy, StepCharge, StepKey, StepValues, Timestamp, Todo,
};

/// All that comes before the call is done.
pub(super) fn prepared(
    held: &Held,
    plan: &Plan,
    step: &StepKey,
    result: Prepared,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let open = open_action(held, plan, step)?;
    if open_mark(held, step).is_some() {
        return Err(wrong_state(&held.run, "the call is marked already"));
    }
    match result {
        Prepared::Stopped(answer) => Ok(without_effect((held, plan), open, step, answer, now)),
        Prepared::Ready { .. } if held.run.cancel.is_some() => {
            Ok(super::advance::end(held, End::Canceled, now))
        }
        Prepared::Ready { cost } => {
            let facts = charge(held, step, cost).into_iter().collect();
            Ok(make_call(held, plan, (step, open), facts, now))
        }
    }
}

/// The resolver gave values to a step that its action may see. The first one of a reference stays.
pub(super) fn resolved(
    held: &Held,
    plan: &Plan,
    step: StepKey,
    values: StepValues,
) -> Result<Decision, Rejection> {
    let open = open_action(held, plan, &step)?;
    if open.policy.class.may_run_ahead() {
        return Err(wrong_state(&held.run, "a pure action resolves nothing"));
    }
    let values = values.unknown_to(held.cursor.values());
    let new = (!values.is_empty()).then_some(Fact::ValuesResolved { step, values });
    Ok(Decision::record(&held.run, new.into_iter().collect(), Durability::Lazy))
}

/// What a step pays, unless it costs nothing or has paid already.
fn charge(held: &Held, step: &StepKey, amounts: Amounts) -> Option<Fact> {
    let is_due = !amounts.is_nothing() && !held.run.has_paid(step);
    is_due.then(|| Fact::Charged(StepCharge { step: step.clone(), amounts }))
}

/// Charge and mark are one commit, durable before the call.
fn make_call(
    held: &Held,
    plan: &Plan,
    (step, open): (&StepKey, Open<'_>),
    mut facts: Vec<Fact>,
    now: Timestamp,
) -> Decision {
    match call(held, plan, step, open.node) {
        Ok(call) => {
            if call.class.is_marked_before_call() {
                let action = call.action.clone();
                facts.push(Fact::CallMarked { step: step.clone(), action, at: now });
            }
            Decision::command(held, facts, Command::Call(call), Durability::Before)
        }
        Err(failure) => super::advance::fail(held, (step, open.node), failure, now),
    }
}

/// A transactional action has done its work: charge and outcome are written in the transaction of the work.
pub(super) fn worked(
    held: &Held,
    plan: &Plan,
    step: &StepKey,
    cost: Amounts,
    output: Value,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let open = open_action(held, plan, step)?;
    if open.policy.class != EffectClass::Transactional {
        return Err(wrong_state(&held.run, "only a transactional step works in a transaction"));
    }
    let facts: Vec<Fact> = charge(held, step, cost).into_iter().collect();
    Ok(succeeded((held, plan), step, output, facts, now))
}

/// The action came back.
pub(super) fn answered(
    held: &Held,
    plan: &Plan,
    step: &StepKey,
    answer: Answer,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let open = open_action(held, plan, step)?;
    let answer = answer.that_can_be_kept();
    match (open.policy.class, open_mark(held, step)) {
        (EffectClass::Ambiguous, None) => {
            Err(wrong_state(&held.run, "no call of this step is marked"))
        }
        (EffectClass::Ambiguous, Some(_)) => Ok(after_mark((held, plan), open, step, answer, now)),
        (EffectClass::Idempotent, _) => match answer {
            Answer::OutputRefused { error, evidence } => {
                Ok(output_refused(held, (step, open.action), error, evidence, now))
            }
            answer @ (Answer::Succeeded { .. }
            | Answer::Failed { .. }
            | Answer::Waiting { .. }
            | Answer::Unknown { .. }
            | Answer::NotCalled) => Ok(without_effect((held, plan), open, step, answer, now)),
        },
        (EffectClass::Pure | EffectClass::Transactional, _) => {
            Ok(without_effect((held, plan), open, step, answer, now))
        }
    }
}

/// The outcome of a step that is no pure one. If it was the last, the end of the run needs no commit of its own.
fn succeeded(
    (held, plan): (&Held, &Plan),
    step: &StepKey,
    output: Value,
    mut facts: Vec<Fact>,
    now: Timestamp,
) -> Decision {
    let is_last = held.run.cancel.is_none() && held.cursor.is_at_last(plan);
    let end = is_last.then(|| End::Succeeded { result: output.clone(), message: None, step: None });
    facts.push(completed(step, output, SaidBy::Action));
    facts.extend(end.map(|end| Fact::Ended { end, at: now }));
    then_cancel(held, facts, Durability::Now, now)
}

/// The answer of a step that has no open mark.
fn without_effect(
    (held, plan): (&Held, &Plan),
    open: Open<'_>,
    step: &StepKey,
    answer: Answer,
    now: Timestamp,
) -> Decision {
    match answer {
        Answer::Succeeded { output } => match open.policy.class {
            EffectClass::Pure => {
                let facts = vec![completed(step, output, SaidBy::Action)];
                then_cancel(held, facts, Durability::Lazy, now)
            }
            EffectClass::Transactional | EffectClass::Idempotent | EffectClass::Ambiguous => {
                succeeded((held, plan), step, output, Vec::new(), now)
            }
        },
        Answer::OutputRefused { error, .. } => {
            failed_for_good(held, (step, open.node), error, None, SaidBy::Action, now)
        }
        Answer::Failed { failure, retryable: false, .. } => {
            failed_for_good(held, (step, open.node), failure, None, SaidBy::Action, now)
        }
        Answer::Failed { failure, retryable: true, retry_after } => {
            let failures = held.run.failures.max(1);
            let delay = retry_delay(open.retry, held.run.id, failures, retry_after);
            let why = ReleaseReason::Failed(failure.at(step));
            release(held, Vec::new(), now.plus(delay), why, now)
        }
        Answer::Unknown { message, .. } => {
            let failure = Failure::new(Code::ACTION_ERROR, message);
            failed_for_good(held, (step, open.node), failure, None, SaidBy::Action, now)
        }
        Answer::Waiting { on } => park::on_dependency(held, step, on, Vec::new(), now),
        Answer::NotCalled => release(held, Vec::new(), now, ReleaseReason::HandOver, now),
    }
}

/// The answer of an ambiguous action, whose call was marked.
fn after_mark(
    (held, plan): (&Held, &Plan),
    open: Open<'_>,
    step: &StepKey,
    answer: Answer,
    now: Timestamp,
) -> Decision {
    let nothing = || vec![Fact::NothingHappened { step: step.clone(), by: SaidBy::Action }];
    match answer {
        Answer::Succeeded { output } => succeeded((held, plan), step, output, Vec::new(), now),
        Answer::OutputRefused { error, evidence } => {
            output_refused(held, (step, open.action), error, evidence, now)
        }
        Answer::Failed { failure, retryable: false, .. } => {
            let effect = Some(EffectState::Failed);
            failed_for_good(held, (step, open.node), failure, effect, SaidBy::Action, now)
        }
        Answer::Failed { failure, retryable: true, retry_after } => {
            let failures = held.run.failures.max(1);
            let delay = retry_delay(open.retry, held.run.id, failures, retry_after);
            let why = ReleaseReason::Failed(failure.at(step));
            release(held, nothing(), now.plus(delay), why, now)
        }
        Answer::Waiting { on } => park::on_dependency(held, step, on, nothing(), now),
        Answer::NotCalled => release(held, nothing(), now, ReleaseReason::HandOver, now),
        Answer::Unknown { message, evidence } => {
            let message = crate::payload::text_for_storage(&message);
            let evidence = evidence.map(|text| crate::payload::text_for_storage(&text));
            let facts = vec![
                Fact::OutcomeUnknown { step: step.clone(), message, evidence },
                Fact::Released {
                    ready_at: now.plus(RECONCILE_FIRST_AFTER),
                    why: ReleaseReason::ToReconcile,
                },
            ];
            // Cancel stays flagged: an unexplained effect is explained first.
            Decision::record(&held.run, facts, Durability::Now)
        }
    }
}

/// The action at which a run stands.
#[derive(Clone, Copy)]
pub(super) struct Open<'p> {
    pub(super) action: &'p str,
    pub(super) policy: &'p ActionPolicy,
    /// What holds here: the step's own policy, or the action's.
    pub(super) retry: &'p RetryPolicy,
    pub(super) node: &'p Step,
}

/// The step at which the run stands is this one, it is an action, and a worker holds the run.
pub(super) fn open_action<'p>(
    held: &'p Held,
    plan: &'p Plan,
    step: &StepKey,
) -> Result<Open<'p>, Rejection> {
    if !matches!(held.run.phase, Phase::Running { .. }) {
        return Err(wrong_state(&held.run, "only a running run takes answers"));
    }
    let wrong = |open: String| Rejection::WrongStep { run: held.run.id, got: step.clone(), open };
    let (key, node) = match held.cursor.next(plan) {
        Ok(Next::Step { key, node }) => (key, node),
        Ok(Next::Inputs) => return Err(wrong("its inputs".to_owned())),
        Ok(Next::Done { .. } | Next::Broken(_)) => return Err(wrong("its end".to_owned())),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let (true, StepKind::Action { action, .. }) = (key == *step, &node.kind) else {
        return Err(wrong(format!("`{key}`")));
    };
    match policy_of(plan, action) {
        Ok(policy) => {
            let retry = plan.retry_of(node).unwrap_or(&policy.retry);
            Ok(Open { action, policy, retry, node })
        }
        Err(failure) => Err(wrong(failure.message)),
    }
}

/// The open mark of this step.
pub(super) fn open_mark<'h>(held: &'h Held, step: &StepKey) -> Option<&'h crate::OpenEffect> {
    match &held.run.phase {
        Phase::Running { todo: Todo::Reconcile(effect), .. } if effect.step == *step => {
            Some(effect)
        }
        Phase::Running { .. }
        | Phase::Queued { .. }
        | Phase::Waiting(_)
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => None,
    }
}

/// Records, and honours a cancel request in the same commit.
pub(super) fn then_cancel(
    held: &Held,
    mut facts: Vec<Fact>,
    durability: Durability,
    now: Timestamp,
) -> Decision {
    if held.run.cancel.is_none() {
        return Decision::record(&held.run, facts, durability);
    }
    facts.push(Fact::Ended { end: End::Canceled, at: now });
    Decision::record(&held.run, facts, Durability::Now)
}

/// Gives the run back, unless cancel was requested: a canceled run is never queued with nothing to explain.
pub(super) fn release(
    held: &Held,
    mut facts: Vec<Fact>,
    ready_at: Timestamp,
    why: ReleaseReason,
    now: Timestamp,
) -> Decision {
    if held.run.cancel.is_none() {
        facts.push(Fact::Released { ready_at, why });
    } else {
        facts.push(Fact::Ended { end: End::Canceled, at: now });
    }
    Decision::record(&held.run, facts, Durability::Now)
}

/// The step failed. Its `catch` goes on where it has one, else the run fails with it; a cancel request wins over both.
pub(super) fn failed_for_good(
    held: &Held,
    (step, node): (&StepKey, &Step),
    failure: Failure,
    effect: Option<EffectState>,
    by: SaidBy,
    now: Timestamp,
) -> Decision {
    let error = failure.at(step);
    let caught = held.run.cancel.is_none() && node.catch().is_some() && !ends_run(&error, by);
    let failed = Fact::StepFailed { step: step.clone(), error: error.clone(), effect, by, caught };
    if caught {
        return Decision::record(&held.run, vec![failed], Durability::Now);
    }
    let end = if held.run.cancel.is_some() { End::Canceled } else { End::Failed(error) };
    Decision::record(&held.run, vec![failed, Fact::Ended { end, at: now }], Durability::Now)
}

/// What is wrong with the run or its plan, and not with the step: no `catch` could go on from there.
fn ends_run(error: &Failure, by: SaidBy) -> bool {
    by == SaidBy::Kernel && [Code::JOURNAL_FULL, Code::ACTION_POLICY_MISSING].contains(&error.code)
}

/// The effect happened and its output cannot be kept: never recorded as a failure of the effect.
pub(super) fn output_refused(
    held: &Held,
    (step, action): (&StepKey, &str),
    error: Failure,
    evidence: String,
    now: Timestamp,
) -> Decision {
    let fact = Fact::OutputRefused {
        step: step.clone(),
        action: action.to_owned(),
        error: error.at(step),
        evidence: crate::payload::text_for_storage(&evidence),
        at: now,
    };
    then_cancel(held, vec![fact], Durability::Now, now)
}
