//! What people may do to a run.

use super::advance::completed;
use super::{Rejection, Verdict, wrong_state};
use crate::{
    Attention, CancelRequest, Code, EffectState, End, Fact, Failure, OpenEffect, Phase, Run,
    SaidBy, StepKey, Timestamp, Todo,
};

type Facts = Result<Vec<Fact>, Rejection>;

/// Ends what can be ended at once, flags the rest. On a run that has ended, or is flagged already, nothing.
pub(super) fn cancel(run: &Run, actor: String, reason: &str, now: Timestamp) -> Vec<Fact> {
    let reason = crate::payload::text_for_storage(reason);
    let requested = Fact::CancelRequested(CancelRequest { actor, reason, at: now });
    let at_once = match &run.phase {
        Phase::Succeeded { .. } | Phase::Failed { .. } | Phase::Canceled { .. } => {
            return Vec::new();
        }
        Phase::Queued { todo: Todo::Steps, .. } | Phase::Waiting(_) => true,
        Phase::Queued { todo: Todo::Reconcile(_), .. } | Phase::Running { .. } => false,
        Phase::NeedsAttention(_) => !run.has_unsettled_effect(),
    };
    if at_once {
        return vec![Fact::FenceRaised, requested, Fact::Ended { end: End::Canceled, at: now }];
    }
    if run.cancel.is_some() { Vec::new() } else { vec![requested] }
}

/// An operator says what became of an effect.
pub(super) fn resolve(run: &Run, step: &StepKey, verdict: Verdict, now: Timestamp) -> Facts {
    let effect = effect_in_attention(run, step)?;
    let mut facts = vec![Fact::FenceRaised];
    match verdict {
        Verdict::Succeeded { output } => {
            facts.push(completed(step, output, SaidBy::Operator));
            facts.push(queued_or_canceled(run, now));
        }
        // The effect is known to have happened: only its output is missing.
        Verdict::Failed { .. } | Verdict::NotPerformed if !effect.state.is_unsettled() => {
            return Err(Rejection::OutputNeeded { run: run.id, step: step.clone() });
        }
        Verdict::Failed { code, message } => {
            let code = code.unwrap_or(Code::EFFECT_CONFIRMED_FAILED);
            let error = Failure::new(code, message).at(step);
            let canceled = run.cancel.is_some();
            let end = if canceled { End::Canceled } else { End::Failed(error.clone()) };
            facts.push(Fact::StepFailed {
                step: step.clone(),
                error,
                effect: Some(EffectState::Failed),
                by: SaidBy::Operator,
                caught: false,
            });
            facts.push(Fact::Ended { end, at: now });
        }
        Verdict::NotPerformed => {
            facts.push(Fact::NothingHappened { step: step.clone(), by: SaidBy::Operator });
            facts.push(queued_or_canceled(run, now));
        }
    }
    Ok(facts)
}

/// Has a worker ask the provider again.
pub(super) fn ask_reconcile(run: &Run, step: &StepKey, now: Timestamp) -> Facts {
    let effect = effect_in_attention(run, step)?;
    if !effect.state.is_unsettled() {
        return Err(Rejection::OutputNeeded { run: run.id, step: step.clone() });
    }
    Ok(vec![
        Fact::FenceRaised,
        Fact::ReconcileAsked { step: step.clone() },
        Fact::Requeued { ready_at: now },
    ])
}

/// Tries a failed run again; outcomes and effect keys stay.
pub(super) fn retry(run: &Run, now: Timestamp) -> Facts {
    match &run.phase {
        Phase::Failed { abandoned: Some(effect), .. } => {
            Err(Rejection::GivenUp { run: run.id, step: effect.step.clone() })
        }
        Phase::NeedsAttention(Attention { effect: Some(effect), .. }) => {
            let (id, step) = (run.id, effect.step.clone());
            Err(if effect.state.is_unsettled() {
                Rejection::EffectUnsettled { run: id, step }
            } else {
                Rejection::OutputNeeded { run: id, step }
            })
        }
        Phase::Failed { abandoned: None, .. }
        | Phase::NeedsAttention(Attention { effect: None, .. }) => {
            Ok(vec![Fact::FenceRaised, Fact::Retried, Fact::Requeued { ready_at: now }])
        }
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::Waiting(_)
        | Phase::Succeeded { .. }
        | Phase::Canceled { .. } => {
            Err(wrong_state(run, "only failed runs, and runs in attention, are retried"))
        }
    }
}

/// Gives a run up. With an unsettled effect only by explicit acceptance; that effect stays listed.
pub(super) fn abandon(run: &Run, accept_unknown: bool, unclaimable: bool, now: Timestamp) -> Facts {
    let may = match &run.phase {
        Phase::NeedsAttention(_) => true,
        Phase::Queued { .. } => unclaimable,
        Phase::Running { .. }
        | Phase::Waiting(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => false,
    };
    if !may {
        let why =
            "only runs in attention, and queued runs that no live worker can take, are abandoned";
        return Err(wrong_state(run, why));
    }
    if let Some(effect) = run.effect().filter(|effect| effect.state.is_unsettled())
        && !accept_unknown
    {
        return Err(Rejection::EffectUnsettled { run: run.id, step: effect.step.clone() });
    }
    let failure = Failure::new(Code::ABANDONED, "an operator gave the run up");
    Ok(vec![Fact::FenceRaised, Fact::Ended { end: End::Abandoned(failure), at: now }])
}

fn effect_in_attention<'r>(run: &'r Run, step: &StepKey) -> Result<&'r OpenEffect, Rejection> {
    let Phase::NeedsAttention(Attention { effect: Some(effect), .. }) = &run.phase else {
        return Err(wrong_state(run, "no effect of it waits for a person's word"));
    };
    if effect.step == *step {
        Ok(effect)
    } else {
        let open = format!("`{}`", effect.step);
        Err(Rejection::WrongStep { run: run.id, got: step.clone(), open })
    }
}

/// Explained: queued again, unless a cancel request ends it instead.
fn queued_or_canceled(run: &Run, now: Timestamp) -> Fact {
    if run.cancel.is_none() {
        Fact::Requeued { ready_at: now }
    } else {
        Fact::Ended { end: End::Canceled, at: now }
    }
}
