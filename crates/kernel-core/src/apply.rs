//! How facts change a run. The only place that does.

use crate::{
    Attention, EffectState, End, Fact, Failure, Lease, OpenEffect, Phase, ReleaseReason, Resume,
    Run, SaidBy, StepDeadline, StepKey, Timestamp, Todo, Wait, Wake,
};

/// The only way in which a run changes. Total: a fact that does not fit leaves the run as it is, and succeeded
/// and canceled runs absorb everything.
///
/// Works on journaled facts alone too: folding the journal over a new run gives the stored row, its scheduling
/// fields aside.
#[must_use]
pub fn apply(mut run: Run, fact: &Fact) -> Run {
    run.apply(fact);
    run
}

impl Run {
    /// As [`apply`], in place.
    pub fn apply(&mut self, fact: &Fact) {
        let run = self;
        if matches!(run.phase, Phase::Succeeded { .. } | Phase::Canceled { .. }) {
            return;
        }
        if fact.is_journaled() {
            run.seq += 1;
        }
        match fact {
            Fact::InputsComputed { .. } | Fact::BranchTaken { .. } | Fact::StepPlanned { .. } => {
                progressed(run);
            }
            Fact::Charged(charge) => run.charged = Some(charge.clone()),
            // No outcome: it only lets the next attempt be like this one.
            Fact::ValuesResolved { .. } => {}
            Fact::CallMarked { step, action, at } => mark(run, step, action, *at),
            Fact::OutcomeUnknown { evidence, .. } => outcome_unknown(run, evidence.as_ref()),
            Fact::NothingHappened { by, .. } => nothing_happened(run, *by),
            Fact::StepCompleted { .. } => {
                // A step that failed keeps it: an operator may have it tried again, and it has paid.
                run.charged = None;
                outcome(run);
                progressed(run);
            }
            Fact::OutputRefused { step, action, error, evidence, at } => {
                output_refused(run, (step, action), error, evidence, *at);
            }
            Fact::StepFailed { caught: true, .. } => {
                outcome(run);
                progressed(run);
            }
            Fact::StepFailed { caught: false, .. } => outcome(run),
            Fact::DeadlineSet { step, at } => {
                run.deadline = Some(StepDeadline { step: step.clone(), at: *at });
            }
            Fact::CancelRequested(request) => {
                run.cancel.get_or_insert_with(|| request.clone());
            }
            Fact::AttentionCalled { error } => {
                let effect = run.effect().cloned();
                run.phase = Phase::NeedsAttention(Attention { error: error.clone(), effect });
            }
            Fact::ReconcileAsked { .. } => {
                run.failures = 0;
                requeue(run, Timestamp::default());
            }
            Fact::Retried => retried(run),
            Fact::Ended { end, at } => ended(run, end, *at),
            Fact::Claimed { lease, at } => claimed(run, lease, *at),
            Fact::TakenOver { lease } => taken_over(run, lease),
            Fact::FenceRaised => run.generation += 1,
            Fact::Released { ready_at, why } => released(run, *ready_at, why),
            Fact::Requeued { ready_at } => requeue(run, *ready_at),
            Fact::Parked { step, on, deadline, spins, at } => {
                let (step, on) = (step.clone(), on.clone());
                park(run, Wait { step, on, deadline: *deadline, since: *at, spins: *spins });
            }
            Fact::Woken { wake, ready_at, at_once } => woken(run, wake, *ready_at, *at_once),
        }
    }
}

/// An outcome explains its effect, and ends what belonged to its step.
fn outcome(run: &mut Run) {
    explained(run);
    step_over(run);
}

/// A newly recorded outcome: the executions before it were not in vain.
fn progressed(run: &mut Run) {
    run.failures = 0;
    run.last_failure = None;
    run.step_attempt = u32::from(matches!(run.phase, Phase::Running { .. }));
}

/// What belonged to the open step ends with it.
fn step_over(run: &mut Run) {
    run.deadline = None;
    run.resume = None;
}

fn mark(run: &mut Run, step: &StepKey, action: &str, at: Timestamp) {
    let effect = OpenEffect {
        step: step.clone(),
        action: action.to_owned(),
        state: EffectState::Marked,
        since: at,
        evidence: None,
    };
    if let Phase::Queued { todo, .. } | Phase::Running { todo, .. } = &mut run.phase {
        *todo = Todo::Reconcile(effect);
    }
}

fn outcome_unknown(run: &mut Run, evidence: Option<&String>) {
    if let Phase::Queued { todo: Todo::Reconcile(effect), .. }
    | Phase::Running { todo: Todo::Reconcile(effect), .. } = &mut run.phase
    {
        effect.state = EffectState::Ambiguous;
        effect.evidence = evidence.cloned();
    }
}

/// The effect happened; only its output is missing.
fn output_refused(
    run: &mut Run,
    (step, action): (&StepKey, &str),
    error: &Failure,
    evidence: &str,
    at: Timestamp,
) {
    let effect = OpenEffect {
        step: step.clone(),
        action: action.to_owned(),
        state: EffectState::Succeeded,
        since: run.effect().map_or(at, |effect| effect.since),
        evidence: Some(evidence.to_owned()),
    };
    run.phase = Phase::NeedsAttention(Attention { error: error.clone(), effect: Some(effect) });
    step_over(run);
}

/// The effect is explained: nothing is open any more, and a run that stood in attention for it is queued.
fn explained(run: &mut Run) {
    match &mut run.phase {
        Phase::Queued { todo, .. } | Phase::Running { todo, .. } => *todo = Todo::Steps,
        Phase::NeedsAttention(_) => {
            run.phase = Phase::Queued { ready_at: Timestamp::default(), todo: Todo::Steps };
        }
        Phase::Waiting(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => {}
    }
}

/// The call can be made again. On a person's word the count of bad executions starts anew, or the next claim might
/// find it full and fail the run instead.
fn nothing_happened(run: &mut Run, by: SaidBy) {
    if by == SaidBy::Operator {
        run.failures = 0;
        run.last_failure = None;
    }
    explained(run);
}

/// What has to be explained first, wherever the run stands now.
fn todo_of(run: &Run) -> Todo {
    match run.effect() {
        Some(effect) if effect.state.is_unsettled() => Todo::Reconcile(effect.clone()),
        Some(_) | None => Todo::Steps,
    }
}

fn requeue(run: &mut Run, ready_at: Timestamp) {
    let todo = todo_of(run);
    run.phase = Phase::Queued { ready_at, todo };
}

/// The count of bad executions starts again; attempts of the open step go on, since none may be one too few.
fn retried(run: &mut Run) {
    run.failures = 0;
    run.ended_at = None;
    run.last_failure = None;
    requeue(run, Timestamp::default());
}

/// Counted before it runs: an execution that kills its process has been counted.
fn claimed(run: &mut Run, lease: &Lease, at: Timestamp) {
    run.generation += 1;
    run.attempt += 1;
    run.failures = run.failures.saturating_add(1);
    run.step_attempt = run.step_attempt.saturating_add(1);
    run.started_at.get_or_insert(at);
    let todo = todo_of(run);
    run.phase = Phase::Running { lease: lease.clone(), todo };
}

fn taken_over(run: &mut Run, lease: &Lease) {
    run.generation += 1;
    if let Phase::Running { lease: held, .. } = &mut run.phase {
        *held = lease.clone();
    }
}

fn park(run: &mut Run, wait: Wait) {
    run.phase = Phase::Waiting(wait);
    run.resume = None;
    not_counted(run);
}

fn woken(run: &mut Run, wake: &Wake, ready_at: Timestamp, at_once: bool) {
    let Phase::Waiting(wait) = &run.phase else { return };
    let spins = match (at_once, wake) {
        (true, _) => wait.spins.saturating_add(1),
        (false, Wake::Deadline) => wait.spins,
        (false, Wake::Signal(_) | Wake::Children) => 0,
    };
    run.resume = Some(Resume { step: wait.step.clone(), wake: wake.clone(), spins });
    run.phase = Phase::Queued { ready_at, todo: Todo::Steps };
}

fn released(run: &mut Run, ready_at: Timestamp, why: &ReleaseReason) {
    match why {
        ReleaseReason::Failed(_) | ReleaseReason::ToReconcile => {
            // An outcome of this execution set the count to zero; its end was bad all the same.
            run.failures = run.failures.max(1);
        }
        ReleaseReason::NotFoundYet | ReleaseReason::HandOver => not_counted(run),
    }
    if let ReleaseReason::Failed(failure) = why {
        run.last_failure = Some(failure.clone());
    }
    requeue(run, ready_at);
}

/// The present execution did not end badly: it is taken out of the counts that its claim raised.
fn not_counted(run: &mut Run) {
    run.failures = run.failures.saturating_sub(1);
    run.step_attempt = run.step_attempt.saturating_sub(1);
}

fn ended(run: &mut Run, end: &End, at: Timestamp) {
    run.ended_at = Some(at);
    run.phase = match end {
        End::Succeeded { result, message, .. } => {
            Phase::Succeeded { result: result.clone(), message: message.clone() }
        }
        End::Failed(error) => Phase::Failed { error: error.clone(), abandoned: None },
        End::Abandoned(error) => {
            // Kept whatever is known of it: a retry would repeat it.
            let abandoned = run.effect().cloned().map(|mut effect| {
                if effect.state.is_unsettled() {
                    effect.state = EffectState::AbandonedUnknown;
                }
                effect
            });
            Phase::Failed { error: error.clone(), abandoned }
        }
        End::Canceled => {
            let message = run.cancel.as_ref().map(|request| request.reason.clone());
            Phase::Canceled { message }
        }
    };
    step_over(run);
}
