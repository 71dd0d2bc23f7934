//! What a run that a worker holds does next.

use super::answer::failed_for_good;
use super::{
    Call, Command, Decision, Durability, Held, JOURNAL_MAX_BYTES, OUTPUT_MAX_BYTES, Rejection,
    children, park, wrong_state,
};
use crate::interpreter::compute_inputs;
use crate::plan::{ActionPolicy, Plan, RetryPolicy, Step, StepKind};
use crate::{
    Code, EffectClass, End, Fact, Failure, LOOP_VALUE_MAX_BYTES, Next, OpenEffect, Phase,
    RESOLVED_STEP_MAX_BYTES, RUN_MAX_CONSECUTIVE_FAILURES, RestoreInvalid, Run, SaidBy, StepKey,
    Timestamp, Todo,
};

pub(super) fn advance(held: &Held, plan: &Plan, now: Timestamp) -> Result<Decision, Rejection> {
    let Phase::Running { todo, .. } = &held.run.phase else {
        return Err(wrong_state(&held.run, "only a running run advances"));
    };
    match todo {
        Todo::Reconcile(effect) => Ok(ask_provider(held, plan, effect)),
        Todo::Steps if held.run.cancel.is_some() => Ok(end(held, End::Canceled, now)),
        Todo::Steps => Ok(match held.cursor.next(plan) {
            Ok(next) => step_on(held, plan, next, now),
            Err(RestoreInvalid { what }) => {
                attention(held, Failure::new(Code::RESTORE_INVALID, what))
            }
        }),
    }
}

fn step_on(held: &Held, plan: &Plan, next: Next<'_>, now: Timestamp) -> Decision {
    if let Some(decision) = too_much(held, plan, &next, now) {
        return decision;
    }
    match next {
        Next::Inputs => {
            let trigger = held.run.origin.trigger.as_deref();
            let at = held.cursor.names().now();
            match compute_inputs(plan, trigger, held.cursor.invocation(), &|| at) {
                Ok(inputs) => lazily(held, Fact::InputsComputed { inputs }),
                Err(failure) => end(held, End::Failed(failure), now),
            }
        }
        Next::Broken(failure) => end(held, End::Failed(failure.clone()), now),
        Next::Done { result } => {
            let end_ = End::Succeeded { result: result.clone(), message: None, step: None };
            end(held, end_, now)
        }
        Next::Step { key, node } => step(held, plan, &key, node, now),
    }
}

/// Whether the run may not go on: too many bad executions in a row, or a full journal.
fn too_much(held: &Held, plan: &Plan, next: &Next<'_>, now: Timestamp) -> Option<Decision> {
    let stop = |failure: Failure| match next {
        Next::Step { key, node } => fail(held, (key, node), failure, now),
        Next::Inputs | Next::Broken(_) | Next::Done { .. } => end(held, End::Failed(failure), now),
    };
    let retry = match next {
        Next::Step { node, .. } => plan.retry_of(node),
        Next::Inputs | Next::Broken(_) | Next::Done { .. } => None,
    };
    if let Some(failure) = exhausted(&held.run, attempts_of(retry)) {
        return Some(stop(failure));
    }
    // The results of a list of children are one outcome.
    let outcome = match next {
        Next::Step { node: Step { kind: StepKind::RunWorkflows { .. }, .. }, .. } => {
            LOOP_VALUE_MAX_BYTES
        }
        Next::Step { .. } | Next::Inputs | Next::Broken(_) | Next::Done { .. } => OUTPUT_MAX_BYTES,
    };
    journal_is_full(&held.run, outcome).map(stop)
}

/// Whether the journal has no room for an outcome of so many bytes, and what belongs to it.
pub(crate) fn journal_is_full(run: &Run, outcome: usize) -> Option<Failure> {
    let room = (outcome + RESOLVED_STEP_MAX_BYTES + OUTPUT_MAX_BYTES) as u64;
    (run.journal_bytes.saturating_add(room) > JOURNAL_MAX_BYTES).then(|| {
        let text = format!(
            "the journal has no room for another step: its limit is {JOURNAL_MAX_BYTES} bytes"
        );
        Failure::new(Code::JOURNAL_FULL, text)
    })
}

fn attempts_of(retry: Option<&RetryPolicy>) -> u32 {
    retry.map_or(RUN_MAX_CONSECUTIVE_FAILURES, |retry| retry.attempts)
}

/// Whether too many executions in a row ended badly for another one.
pub(crate) fn exhausted(run: &Run, attempts: u32) -> Option<Failure> {
    (run.failures > attempts).then(|| {
        let last = run.last_failure.as_ref().map_or_else(
            || "no execution lived long enough to say why".to_owned(),
            |failure| format!("the last one with {}: {}", failure.code, failure.message),
        );
        let text = format!("{attempts} executions in a row ended badly; {last}");
        Failure::new(Code::RETRY_EXHAUSTED, text)
    })
}

fn step(held: &Held, plan: &Plan, key: &StepKey, node: &Step, now: Timestamp) -> Decision {
    match &node.kind {
        StepKind::If { .. } | StepKind::Switch { .. } | StepKind::ForEach { .. } => {
            match held.cursor.choose(node, plan.limits.loop_items) {
                Ok(taken) => lazily(held, Fact::BranchTaken { step: key.clone(), taken }),
                Err(failure) => fail(held, (key, node), failure, now),
            }
        }
        StepKind::Action { .. } => match call(held, plan, key, node) {
            Ok(call) => begin(held, call),
            Err(failure) => fail(held, (key, node), failure, now),
        },
        StepKind::SetVariable { value, .. } => match held.cursor.render(value) {
            Ok(output) => lazily(held, completed(key, output, SaidBy::Kernel)),
            Err(failure) => fail(held, (key, node), failure, now),
        },
        StepKind::Succeed { message } => match sentence(held, message) {
            Ok(message) => {
                let (result, message) = (serde_json::Value::Null, Some(message));
                end(held, End::Succeeded { result, message, step: Some(key.clone()) }, now)
            }
            Err(failure) => fail(held, (key, node), failure, now),
        },
        StepKind::Fail { message, code } => match sentence(held, message) {
            Ok(message) => {
                let code = code.clone().unwrap_or(Code::FAILED);
                fail(held, (key, node), Failure::new(code, message), now)
            }
            Err(failure) => fail(held, (key, node), failure, now),
        },
        StepKind::Delay(delay) => park::delay(held, (key, node), delay, now),
        StepKind::WaitFor { signal, key: of, timeout } => {
            park::wait_for(held, (key, node), (signal, of), *timeout, now)
        }
        StepKind::RunWorkflow { .. } | StepKind::RunWorkflows { .. } => {
            children::step(held, key, node, now)
        }
    }
}

/// A message for people: always text.
fn sentence(held: &Held, template: &crate::expr::Template) -> Result<String, Failure> {
    let value = held.cursor.render(template)?;
    let text = value.as_str().map_or_else(|| crate::canonical::canonical(&value), str::to_owned);
    Ok(crate::payload::text_for_storage(&text))
}

/// The first command of an action's step, by what its class allows.
fn begin(held: &Held, call: Call) -> Decision {
    match call.class {
        EffectClass::Pure => {
            Decision::command(held, Vec::new(), Command::Call(call), Durability::Lazy)
        }
        // Its transaction writes what is pending together with the outcome.
        EffectClass::Transactional => {
            Decision::command(held, Vec::new(), Command::Transact(call), Durability::Lazy)
        }
        EffectClass::Idempotent | EffectClass::Ambiguous => {
            Decision::command(held, Vec::new(), Command::Prepare(call), Durability::Before)
        }
    }
}

/// The call of a step: config resolved from recorded values only, so it is the same for every attempt.
pub(super) fn call(held: &Held, plan: &Plan, step: &StepKey, node: &Step) -> Result<Call, Failure> {
    let StepKind::Action { action, config, timeout, .. } = &node.kind else {
        return Err(Failure::new(Code::RESTORE_INVALID, "only actions are called"));
    };
    let policy = policy_of(plan, action)?;
    let resumed = held.run.resume.as_ref().filter(|resume| resume.step == *step);
    Ok(Call {
        config: held.cursor.render(config)?,
        effect_key: held.run.effect_key(step),
        step: step.clone(),
        action: action.clone(),
        class: policy.class,
        attempt: held.run.step_attempt.max(1),
        resumed: resumed.map(|resume| resume.wake.clone()),
        timeout: *timeout,
    })
}

pub(crate) fn policy_of<'p>(plan: &'p Plan, action: &str) -> Result<&'p ActionPolicy, Failure> {
    plan.policies.get(action).ok_or_else(|| {
        let text =
            format!("the plan has no policy for action `{action}`: publish the workflow again");
        Failure::new(Code::ACTION_POLICY_MISSING, text)
    })
}

/// An effect is unexplained: nothing else is done before the provider was asked.
fn ask_provider(held: &Held, plan: &Plan, effect: &OpenEffect) -> Decision {
    let node = match held.cursor.next(plan) {
        Ok(Next::Step { key, node }) if key == effect.step => node,
        Ok(_) => {
            let text = format!(
                "the effect of `{}` is open, but the run does not stand there",
                effect.step
            );
            return attention(held, Failure::new(Code::RESTORE_INVALID, text));
        }
        Err(RestoreInvalid { what }) => {
            return attention(held, Failure::new(Code::RESTORE_INVALID, what));
        }
    };
    // An action's attempts are calls, and a question is none: it is asked however few calls are allowed.
    let attempts = attempts_of(plan.retry_of(node)).max(RUN_MAX_CONSECUTIVE_FAILURES);
    if let Some(failure) = exhausted(&held.run, attempts) {
        return attention(held, failure.at(&effect.step));
    }
    match call(held, plan, &effect.step, node) {
        Ok(call) => {
            Decision::command(held, Vec::new(), Command::Reconcile(call), Durability::Before)
        }
        Err(failure) => attention(held, failure.at(&effect.step)),
    }
}

pub(super) fn completed(step: &StepKey, output: serde_json::Value, by: SaidBy) -> Fact {
    Fact::StepCompleted { step: step.clone(), output, by }
}

pub(super) fn lazily(held: &Held, fact: Fact) -> Decision {
    Decision::record(&held.run, vec![fact], Durability::Lazy)
}

/// Ends the run.
pub(super) fn end(held: &Held, end: End, now: Timestamp) -> Decision {
    Decision::record(&held.run, vec![Fact::Ended { end, at: now }], Durability::Now)
}

/// A step failed for good before its action was called, as far as this execution knows.
pub(super) fn fail(
    held: &Held,
    at: (&StepKey, &Step),
    failure: Failure,
    now: Timestamp,
) -> Decision {
    failed_for_good(held, at, failure, None, SaidBy::Kernel, now)
}

pub(super) fn attention(held: &Held, error: Failure) -> Decision {
    Decision::record(&held.run, vec![Fact::AttentionCalled { error }], Durability::Now)
}
