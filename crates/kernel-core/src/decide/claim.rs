//! How a run comes to a worker and leaves it.

use super::{Rejection, wrong_state};
use crate::{
    Code, End, Fact, Failure, Lease, Phase, ReleaseReason, Run, RunState, Timestamp, Todo,
};

type Facts = Result<Vec<Fact>, Rejection>;

/// Queued and due, or running with a lease that ran out.
pub(super) fn claim(run: &Run, lease: Lease, now: Timestamp) -> Facts {
    match run.claimable_at() {
        None => Err(wrong_state(run, "only queued and lapsed runs are claimed")),
        Some(at) if at > now => Err(Rejection::NotDue { run: run.id }),
        // With nothing to explain, cancel is finalised by recovery, without a worker.
        Some(_) if run.cancel.is_some() && !run.has_unsettled_effect() => {
            Err(wrong_state(run, "cancel was requested"))
        }
        Some(_) => Ok(vec![Fact::Claimed { lease, at: now }]),
    }
}

/// A worker takes over from itself, wherever its lost commit has brought the run. From nobody else: a claim since,
/// even one of the same session, has fenced the lost commit out already. Succeeded and canceled runs absorb it.
pub(super) fn take_over(run: &Run, generation: u64, lease: Lease) -> Facts {
    if run.generation != generation {
        return Err(wrong_state(run, "it was claimed since, which has settled the lost commit"));
    }
    match run.state() {
        RunState::Succeeded | RunState::Canceled => Ok(Vec::new()),
        RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::Failed
        | RunState::NeedsAttention => Ok(vec![Fact::TakenOver { lease }]),
    }
}

/// Between two steps; never with an open mark.
pub(super) fn hand_over(run: &Run, now: Timestamp) -> Facts {
    match &run.phase {
        Phase::Running { todo: Todo::Steps, .. } if run.cancel.is_some() => {
            Ok(vec![Fact::Ended { end: End::Canceled, at: now }])
        }
        Phase::Running { todo: Todo::Steps, .. } => {
            Ok(vec![Fact::Released { ready_at: now, why: ReleaseReason::HandOver }])
        }
        Phase::Running { todo: Todo::Reconcile(_), .. }
        | Phase::Queued { .. }
        | Phase::Waiting(_)
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => {
            Err(wrong_state(run, "only a running run without an open mark is handed over"))
        }
    }
}

/// A child that was held back may be claimed from now on.
pub(super) fn let_go(run: &Run, now: Timestamp) -> Facts {
    if run.is_held() {
        Ok(vec![Fact::Requeued { ready_at: now }])
    } else {
        Err(wrong_state(run, "it is not held back"))
    }
}

/// Never guessed: a person mends what is stored, then retries.
pub(super) fn unreadable(run: &Run, what: &str) -> Facts {
    if run.state() != RunState::Running {
        return Err(wrong_state(run, "only the worker that holds a run reads its journal"));
    }
    Ok(vec![Fact::AttentionCalled { error: Failure::new(Code::RESTORE_INVALID, what) }])
}

/// Recovery finalises a cancel whose worker is gone. Raises the generation, so the worker cannot come back.
pub(super) fn lease_gone(run: &Run, now: Timestamp) -> Facts {
    let Phase::Running { lease, todo } = &run.phase else {
        return Err(wrong_state(run, "only a running run has a lease"));
    };
    if lease.until > now {
        return Err(Rejection::NotDue { run: run.id });
    }
    if run.cancel.is_none() {
        return Err(wrong_state(run, "a worker claims it: no cancel was requested"));
    }
    let then = match todo {
        Todo::Steps => Fact::Ended { end: End::Canceled, at: now },
        Todo::Reconcile(_) => Fact::Released { ready_at: now, why: ReleaseReason::ToReconcile },
    };
    Ok(vec![Fact::FenceRaised, then])
}
