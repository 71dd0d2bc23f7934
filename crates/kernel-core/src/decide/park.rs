//! Waits: how a run parks, and how it wakes.

use serde_json::{Value, json};

use super::advance::{completed, fail, lazily};
use super::backoff::release_backoff;
use super::{Decision, Durability, Held, Rejection, wrong_state};
use crate::expr::Template;
use crate::payload::is_storable;
use crate::plan::{Delay, Step};
use crate::{
    Code, Dependency, End, Fact, Failure, Micros, Phase, Resume, Run, SaidBy, StepKey, Timestamp,
    Wake,
};

/// `delay`: done once its deadline woke it; one in the past does not park.
pub(super) fn delay(
    held: &Held,
    (step, node): (&StepKey, &Step),
    delay: &Delay,
    now: Timestamp,
) -> Decision {
    if resume_of(held, step).is_some() {
        return lazily(held, completed(step, Value::Null, SaidBy::Kernel));
    }
    let until = match delay {
        Delay::For(span) => now.plus(*span),
        Delay::Until(template) => match instant(held, template) {
            Ok(until) => until,
            Err(failure) => return fail(held, (step, node), failure, now),
        },
    };
    if until <= now {
        return lazily(held, completed(step, Value::Null, SaidBy::Kernel));
    }
    park(held, step, None, Some(until), Vec::new(), now)
}

fn instant(held: &Held, template: &Template) -> Result<Timestamp, Failure> {
    let value = held.cursor.render(template)?;
    let text = value.as_str().ok_or_else(|| {
        Failure::new(Code::EXPRESSION_ERROR, "`delay` needs a time as text for `until`")
    })?;
    let parsed = text.parse::<Timestamp>();
    parsed.map_err(|error| Failure::new(Code::EXPRESSION_ERROR, error.to_string()))
}

/// `waitFor`: its outcome says whether the signal or the deadline ended the wait.
pub(super) fn wait_for(
    held: &Held,
    (step, node): (&StepKey, &Step),
    (signal, key): (&Template, &Template),
    timeout: Option<Micros>,
    now: Timestamp,
) -> Decision {
    match resume_of(held, step).map(|resume| &resume.wake) {
        Some(Wake::Signal(data)) => {
            let output = json!({ "signaled": true, "data": data });
            return lazily(held, completed(step, output, SaidBy::Kernel));
        }
        Some(Wake::Deadline) => {
            let output = json!({ "signaled": false, "data": null });
            return lazily(held, completed(step, output, SaidBy::Kernel));
        }
        // No `waitFor` waits for children.
        Some(Wake::Children) | None => {}
    }
    let rendered = text_of(held, signal).and_then(|kind| Ok((kind, text_of(held, key)?)));
    match rendered {
        Ok((kind, key)) => {
            let deadline = timeout.map(|timeout| now.plus(timeout));
            park(held, step, Some(Dependency::on(kind, key)), deadline, Vec::new(), now)
        }
        Err(failure) => fail(held, (step, node), failure, now),
    }
}

/// Keys are text; a scalar of another type is written as text, so `order.id` works as a key.
fn text_of(held: &Held, template: &Template) -> Result<String, Failure> {
    match held.cursor.render(template)? {
        Value::String(text) if !text.is_empty() && is_storable(&text) => Ok(text),
        value @ (Value::Number(_) | Value::Bool(_)) => Ok(crate::canonical::canonical(&value)),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
            let text =
                "`waitFor` needs a text that is not empty, and without NUL, as kind and as key";
            Err(Failure::new(Code::EXPRESSION_ERROR, text))
        }
    }
}

/// An action waits. `facts` settle its mark, if it had one.
pub(super) fn on_dependency(
    held: &Held,
    step: &StepKey,
    on: Dependency,
    facts: Vec<Fact>,
    now: Timestamp,
) -> Decision {
    let deadline = on.timeout().map(|timeout| now.plus(timeout));
    park(held, step, Some(on), deadline, facts, now)
}

fn park(
    held: &Held,
    step: &StepKey,
    on: Option<Dependency>,
    deadline: Option<Timestamp>,
    mut facts: Vec<Fact>,
    now: Timestamp,
) -> Decision {
    if held.run.cancel.is_some() {
        facts.push(Fact::Ended { end: End::Canceled, at: now });
        return Decision::record(&held.run, facts, Durability::Now);
    }
    let first = held.run.deadline.as_ref().filter(|first| first.step == *step);
    let spins = resume_of(held, step).map_or(0, |resume| resume.spins);
    let (deadline, spins) = match (first, deadline) {
        (None, Some(at)) => {
            facts.push(Fact::DeadlineSet { step: step.clone(), at });
            (Some(at), spins)
        }
        // The deadline has passed and the action waits on: it is asked again, each time later.
        (Some(first), _) if first.at <= now => {
            let spins = spins.saturating_add(1);
            (Some(now.plus(release_backoff(held.run.id, spins))), spins)
        }
        (Some(first), _) => (Some(first.at), spins),
        (None, None) => (None, spins),
    };
    facts.push(Fact::Parked { step: step.clone(), on, deadline, spins, at: now });
    Decision::record(&held.run, facts, Durability::Now)
}

pub(super) fn resume_of<'h>(held: &'h Held, step: &StepKey) -> Option<&'h Resume> {
    held.run.resume.as_ref().filter(|resume| resume.step == *step)
}

/// What a waiting run waits for occurred; a deadline only once it has passed.
///
/// A run that parked on what had already occurred is not claimed at once for ever: each such park in a row waits
/// for the release backoff.
pub(super) fn wake(
    run: &Run,
    wake: Wake,
    at_once: bool,
    now: Timestamp,
) -> Result<Vec<Fact>, Rejection> {
    let Phase::Waiting(wait) = &run.phase else {
        return Err(wrong_state(run, "only a waiting run wakes"));
    };
    let due = match (&wake, wait.deadline) {
        (Wake::Deadline, Some(deadline)) => deadline <= now,
        (Wake::Deadline, None) => false,
        (Wake::Signal(_), _) => wait.on.as_ref().is_some_and(Dependency::is_signal),
        (Wake::Children, _) => wait.on.as_ref().is_some_and(|on| !on.is_signal()),
    };
    if !due {
        return Err(Rejection::NotDue { run: run.id });
    }
    let delay =
        if at_once && wait.spins > 0 { release_backoff(run.id, wait.spins) } else { Micros::ZERO };
    Ok(vec![Fact::Woken { wake, ready_at: now.plus(delay), at_once }])
}
