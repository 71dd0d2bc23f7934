//! Where the payloads are in a run, in a fact and in what started a run: the one place that knows.
//!
//! Fields are named one by one, without `..`, so that a new one stops the build here: it is a payload, or it is not.

use serde_json::Value;
use surefoot_kernel_core::{
    Attention, ChildResult, End, Fact, Failure, Finding, Invocation, OpenEffect, Phase,
    ReleaseReason, Resume, Run, RunState, StepValues, Taken, Todo, Wait, Wake,
};

use crate::{CodecFault, PayloadKind};

/// One payload.
pub(crate) enum Part<'p> {
    Text(&'p mut String),
    Value(&'p mut Value),
}

impl Part<'_> {
    /// The same one, for a moment.
    pub(crate) fn reborrow(&mut self) -> Part<'_> {
        match self {
            Self::Text(text) => Part::Text(text),
            Self::Value(value) => Part::Value(value),
        }
    }

    /// Its text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Value(value) => value.as_str(),
        }
    }

    /// Its value; a text is one too.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::String((*text).clone()),
            Self::Value(value) => (*value).clone(),
        }
    }

    pub(crate) fn take(&mut self) -> Value {
        match self {
            Self::Text(text) => Value::String(std::mem::take(text)),
            Self::Value(value) => value.take(),
        }
    }

    /// Where a text stands, a value that is none becomes its JSON.
    pub(crate) fn set(&mut self, new: Value) {
        match (self, new) {
            (Self::Text(text), Value::String(new)) => **text = new,
            (Self::Text(text), new) => **text = new.to_string(),
            (Self::Value(value), new) => **value = new,
        }
    }

    pub(crate) fn is(&self, value: &Value) -> bool {
        match self {
            Self::Text(text) => value.as_str() == Some(text),
            Self::Value(own) => **own == *value,
        }
    }
}

/// Looks at payloads one after the other and may replace them.
pub(crate) type Visit<'v> = dyn FnMut(PayloadKind, Part<'_>) -> Result<(), CodecFault> + 'v;

type Visited = Result<(), CodecFault>;

/// Actors and reasons stay plain: who did what and why is read without keys.
pub(crate) fn of_run(run: &mut Run, visit: &mut Visit<'_>) -> Visited {
    let Run {
        id: _,
        origin: _,
        generation: _,
        revision: _,
        seq: _,
        journal_bytes: _,
        attempt: _,
        failures: _,
        step_attempt: _,
        started_at: _,
        ended_at: _,
        cancel: _,
        deadline: _,
        charged: _,
        resume,
        last_failure,
        phase,
    } = run;
    if let Some(Resume { step: _, wake, spins: _ }) = resume {
        of_wake(wake, visit)?;
    }
    if let Some(failure) = last_failure {
        of_failure(failure, visit)?;
    }
    of_phase(phase, visit)
}

/// [`of_run`] for who refuses none.
pub(crate) fn all_of_run(run: &mut Run, mut look: impl FnMut(PayloadKind, Part<'_>)) {
    let _ = of_run(run, &mut |kind, part| {
        look(kind, part);
        Ok(())
    });
}

fn of_phase(phase: &mut Phase, visit: &mut Visit<'_>) -> Visited {
    match phase {
        Phase::Queued { ready_at: _, todo } | Phase::Running { lease: _, todo } => match todo {
            Todo::Steps => Ok(()),
            Todo::Reconcile(effect) => of_effect(effect, visit),
        },
        Phase::Waiting(Wait { step: _, on: _, deadline: _, since: _, spins: _ }) => Ok(()),
        Phase::NeedsAttention(Attention { error, effect }) => {
            of_failure(error, visit)?;
            effect.as_mut().map_or(Ok(()), |effect| of_effect(effect, visit))
        }
        Phase::Succeeded { result, message } => {
            visit(PayloadKind::Result, Part::Value(result))?;
            of_text(PayloadKind::ResultMessage, message.as_mut(), visit)
        }
        Phase::Failed { error, abandoned } => {
            of_failure(error, visit)?;
            abandoned.as_mut().map_or(Ok(()), |effect| of_effect(effect, visit))
        }
        // The reason of the cancel.
        Phase::Canceled { message: _ } => Ok(()),
    }
}

pub(crate) fn of_effect(effect: &mut OpenEffect, visit: &mut Visit<'_>) -> Visited {
    let OpenEffect { step: _, action: _, state: _, since: _, evidence } = effect;
    of_text(PayloadKind::Evidence, evidence.as_mut(), visit)
}

fn of_failure(failure: &mut Failure, visit: &mut Visit<'_>) -> Visited {
    let Failure { code: _, message, step: _, details } = failure;
    visit(PayloadKind::Message, Part::Text(message))?;
    details.as_mut().map_or(Ok(()), |details| visit(PayloadKind::Details, Part::Value(details)))
}

fn of_wake(wake: &mut Wake, visit: &mut Visit<'_>) -> Visited {
    match wake {
        Wake::Signal(data) => visit(PayloadKind::SignalData, Part::Value(data)),
        Wake::Deadline | Wake::Children => Ok(()),
    }
}

fn of_text(kind: PayloadKind, text: Option<&mut String>, visit: &mut Visit<'_>) -> Visited {
    text.map_or(Ok(()), |text| visit(kind, Part::Text(text)))
}

pub(crate) fn of_fact(fact: &mut Fact, visit: &mut Visit<'_>) -> Visited {
    match fact {
        Fact::InputsComputed { inputs } => visit(PayloadKind::Inputs, Part::Value(inputs)),
        Fact::BranchTaken { step: _, taken } => of_taken(taken, visit),
        Fact::ValuesResolved { step: _, values } => of_values(values, visit),
        Fact::OutcomeUnknown { step: _, message, evidence } => {
            visit(PayloadKind::Message, Part::Text(message))?;
            of_text(PayloadKind::Evidence, evidence.as_mut(), visit)
        }
        Fact::StepCompleted { step: _, output, by: _ } => {
            visit(PayloadKind::Output, Part::Value(output))
        }
        Fact::OutputRefused { step: _, action: _, error, evidence, at: _ } => {
            of_failure(error, visit)?;
            visit(PayloadKind::Evidence, Part::Text(evidence))
        }
        Fact::StepFailed { step: _, error, effect: _, by: _, caught: _ }
        | Fact::AttentionCalled { error } => of_failure(error, visit),
        Fact::StepPlanned { step: _, finding } => of_finding(finding, visit),
        Fact::Ended { end, at: _ } => of_end(end, visit),
        Fact::Released { ready_at: _, why } => match why {
            ReleaseReason::Failed(failure) => of_failure(failure, visit),
            ReleaseReason::ToReconcile | ReleaseReason::NotFoundYet | ReleaseReason::HandOver => {
                Ok(())
            }
        },
        Fact::Woken { wake, ready_at: _, at_once: _ } => of_wake(wake, visit),
        Fact::Charged(_)
        | Fact::CallMarked { step: _, action: _, at: _ }
        | Fact::NothingHappened { step: _, by: _ }
        | Fact::DeadlineSet { step: _, at: _ }
        | Fact::CancelRequested(_)
        | Fact::ReconcileAsked { step: _ }
        | Fact::Retried
        | Fact::Claimed { lease: _, at: _ }
        | Fact::TakenOver { lease: _ }
        | Fact::FenceRaised
        | Fact::Requeued { ready_at: _ }
        | Fact::Parked { step: _, on: _, deadline: _, spins: _, at: _ } => Ok(()),
    }
}

fn of_taken(taken: &mut Taken, visit: &mut Visit<'_>) -> Visited {
    match taken {
        Taken::Items(items) => {
            items.iter_mut().try_for_each(|item| visit(PayloadKind::Item, Part::Value(item)))
        }
        Taken::Then | Taken::Else | Taken::Case(_) | Taken::Default | Taken::Nothing => Ok(()),
    }
}

/// References stay plain: they name what was asked for.
fn of_values(values: &mut StepValues, visit: &mut Visit<'_>) -> Visited {
    let mut visited = StepValues::default();
    for (reference, value) in values.iter() {
        let mut value = value.clone();
        visit(PayloadKind::ResolvedValue, Part::Value(&mut value))?;
        visited.keep(reference, value);
    }
    *values = visited;
    Ok(())
}

fn of_end(end: &mut End, visit: &mut Visit<'_>) -> Visited {
    match end {
        End::Succeeded { result, message, step: _ } => {
            visit(PayloadKind::Result, Part::Value(result))?;
            of_text(PayloadKind::ResultMessage, message.as_mut(), visit)
        }
        End::Failed(failure) | End::Abandoned(failure) => of_failure(failure, visit),
        End::Canceled => Ok(()),
    }
}

fn of_finding(finding: &mut Finding, visit: &mut Visit<'_>) -> Visited {
    match finding {
        Finding::Effect { action: _, class: _, summary, cost: _, output, issues } => {
            visit(PayloadKind::Finding, Part::Text(summary))?;
            of_output(output.as_mut(), visit)?;
            issues.iter_mut().try_for_each(|issue| visit(PayloadKind::Finding, Part::Text(issue)))
        }
        Finding::Value { output } => of_output(output.as_mut(), visit),
        Finding::Unsupported { action: _, class: _, why }
        | Finding::Indeterminate { action: _, class: _, why }
        | Finding::Undecided { why }
        | Finding::Children { what: why } => visit(PayloadKind::Finding, Part::Text(why)),
        Finding::Ends { failure, message } => {
            failure.as_mut().map_or(Ok(()), |failure| of_failure(failure, visit))?;
            of_text(PayloadKind::ResultMessage, message.as_mut(), visit)
        }
    }
}

fn of_output(output: Option<&mut Value>, visit: &mut Visit<'_>) -> Visited {
    output.map_or(Ok(()), |output| visit(PayloadKind::Output, Part::Value(output)))
}

/// Of what a store gives back; the inputs are computed from it and never stored with it.
pub(crate) fn of_invocation(invocation: &mut Invocation, visit: &mut Visit<'_>) -> Visited {
    let Invocation { trigger, inputs: _, context, actor, trace: _ } = invocation;
    visit(PayloadKind::EventData, Part::Value(trigger))?;
    visit(PayloadKind::EventContext, Part::Value(context))?;
    actor.as_mut().map_or(Ok(()), |actor| visit(PayloadKind::Actor, Part::Value(actor)))
}

pub(crate) fn of_child(child: &mut ChildResult, visit: &mut Visit<'_>) -> Visited {
    let ChildResult { index: _, run: _, workflow: _, state, result, error, message } = child;
    visit(PayloadKind::Result, Part::Value(result))?;
    if let Some(error) = error {
        of_failure(error, visit)?;
    }
    // Of a canceled child it is the reason.
    let message = message.as_mut().filter(|_| *state == RunState::Succeeded);
    of_text(PayloadKind::ResultMessage, message, visit)
}
