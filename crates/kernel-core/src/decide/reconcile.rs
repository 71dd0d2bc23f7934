//! What the provider's word on an effect means.

use super::advance::{attention, completed};
use super::answer::{failed_for_good, open_action, open_mark, output_refused, then_cancel};
use super::backoff::retry_delay;
use super::{
    Decision, Durability, Held, RECONCILE_FIRST_AFTER, ReconcileAnswer, Rejection,
    SETTLE_AFTER_DEFAULT, wrong_state,
};
use crate::plan::{ActionPolicy, Plan};
use crate::{
    Code, EffectState, Fact, Failure, Micros, OpenEffect, ReleaseReason, SaidBy, StepKey, Timestamp,
};

/// No pause between two questions to a provider is longer while it does not know the key.
const NOT_FOUND_PAUSE_MAX: Micros = Micros::from_secs(60);

pub(super) fn reconciled(
    held: &Held,
    plan: &Plan,
    step: &StepKey,
    answer: ReconcileAnswer,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let open = open_action(held, plan, step)?;
    let Some(effect) = open_mark(held, step) else {
        return Err(wrong_state(&held.run, "no effect of this step is unexplained"));
    };
    Ok(match answer {
        ReconcileAnswer::Succeeded { output } => {
            let fact = completed(step, output, SaidBy::Reconcile);
            then_cancel(held, vec![fact], Durability::Now, now)
        }
        ReconcileAnswer::OutputRefused { error, evidence } => {
            output_refused(held, (step, open.action), error, evidence, now)
        }
        ReconcileAnswer::Failed { failure } => {
            let effect = Some(EffectState::Failed);
            failed_for_good(held, (step, open.node), failure, effect, SaidBy::Reconcile, now)
        }
        ReconcileAnswer::NotFound => not_found(held, open.policy, effect, now),
        ReconcileAnswer::Unknown { why } => unknown(held, step, &why),
        ReconcileAnswer::Error { message, retry_after } => {
            let failures = held.run.failures.max(1);
            let delay = retry_delay(open.retry, held.run.id, failures, retry_after);
            let failure = Failure::new(Code::EFFECT_RECONCILE_FAILED, message).at(step);
            let why = ReleaseReason::Failed(failure);
            released(held, now.plus(delay), why)
        }
    })
}

/// Proves nothing while an old worker may still send: asked again until the mark's time plus `settle_after`.
fn not_found(held: &Held, policy: &ActionPolicy, effect: &OpenEffect, now: Timestamp) -> Decision {
    let lease = held.run.lease().map_or(Micros::ZERO, |lease| lease.length);
    let two_leases = Micros::new(lease.get().saturating_mul(2));
    let settle_after = policy.settle_after.unwrap_or(SETTLE_AFTER_DEFAULT).max(two_leases);
    let settled_at = effect.since.plus(settle_after);
    if now >= settled_at {
        let seconds = settle_after.get() / 1_000_000;
        let why = format!("the provider did not know the effect key {seconds} s after the call");
        return unknown(held, &effect.step, &why);
    }
    let pause = Micros::new(now.since(effect.since).get() / 2)
        .clamp(RECONCILE_FIRST_AFTER, NOT_FOUND_PAUSE_MAX);
    let ready_at = now.plus(pause).min(settled_at);
    released(held, ready_at, ReleaseReason::NotFoundYet)
}

/// Stays to be reconciled; a cancel request stays flagged.
fn released(held: &Held, ready_at: Timestamp, why: ReleaseReason) -> Decision {
    Decision::record(&held.run, vec![Fact::Released { ready_at, why }], Durability::Now)
}

fn unknown(held: &Held, step: &StepKey, why: &str) -> Decision {
    let text = format!("nobody can tell whether the effect of `{step}` happened: {why}");
    attention(held, Failure::new(Code::EFFECT_OUTCOME_UNKNOWN, text).at(step))
}
