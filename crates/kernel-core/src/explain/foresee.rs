//! What a worker that takes the run would do next: asked of `decide`, not known here.

use super::{Known, Open};
use crate::{
    Code, Collect, Command, Fact, Failure, GroupRow, Held, Input, Lease, Micros, Next, Phase,
    RowInput, RunState, SessionId, Spawn, decide, decide_row,
};

/// Steps that are gone through before giving up: control steps and built-in ones need no worker's help.
const LOOK_AHEAD: usize = 1_000;

/// What comes first.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Foreseen {
    /// An action is called or its provider asked.
    Command {
        command: Command,
        /// A worker may have done so before, ahead of what is durable.
        runs_ahead: bool,
    },
    /// The run ends, or parks, or calls for a person: with this failure, if any.
    Stops(Option<Failure>),
}

/// Claims a copy of the run as soon as a claim fits and has `decide` advance it. `None` where no worker can take
/// the run, or it cannot be read.
pub(super) fn foresee(known: &Known<'_>) -> Option<Foreseen> {
    look_ahead(known, held(known)?)
}

/// What a retry would have done first. `None` where it is not legal, or the run cannot be read.
pub(super) fn retried(known: &Known<'_>) -> Option<Foreseen> {
    let (held, plan) = (held(known)?, known.input.plan?);
    let retried = decide_row(&held.run, RowInput::Retry, known.input.now).ok()?;
    look_ahead(known, held.apply(plan, &retried).ok()?)
}

/// Why a retry would end the run in the same way again, as far as that is known.
pub(super) fn retry_in_vain(known: &Known<'_>) -> Option<String> {
    let command = match retried(known)? {
        Foreseen::Stops(failure) => {
            let Failure { code, message, .. } = failure?;
            let ends = "a retry would end it again without calling anything";
            return Some(format!("{ends}, with {code}: {message}"));
        }
        Foreseen::Command { command, .. } => command,
    };
    let Phase::Failed { error, .. } = &known.input.run.phase else { return None };
    match &command {
        Command::Spawn(Spawn { step, .. }) | Command::Collect(Collect { step, .. }) => {
            let group = known.input.children.iter().find(|group| group.step == *step)?;
            children_in_vain(group, error)
        }
        // What was charged stays charged, and a version keeps its caps.
        Command::Prepare(call) | Command::Call(call) | Command::Transact(call) => {
            let is_same =
                error.code == Code::BUDGET_EXCEEDED && error.step.as_ref() == Some(&call.step);
            is_same.then(|| {
                "a retry would end it again with BUDGET_EXCEEDED: the cap that it met stays as it is".to_owned()
            })
        }
        Command::Reconcile(_) => None,
    }
}

/// Children that have ended are read again as they are.
fn children_in_vain(group: &GroupRow, error: &Failure) -> Option<String> {
    let (failed, canceled) = (group.count(RunState::Failed), group.count(RunState::Canceled));
    if group.live > 0 {
        return None;
    }
    if failed > 0 {
        let (are, them) = if failed == 1 { ("child is", "it") } else { ("children are", "them") };
        return Some(format!(
            "a retry would end it again: {failed} {are} still failed, and step `{}` reads that again; retry {them} first",
            group.step
        ));
    }
    if canceled > 0 {
        let are = if canceled == 1 {
            "child was canceled, and stays"
        } else {
            "children were canceled, and stay"
        };
        return Some(format!("a retry would end it again: {canceled} {are} so"));
    }
    let is_same = error.code == Code::VALUE_TOO_LARGE && error.step.as_ref() == Some(&group.step);
    is_same.then(|| {
        "a retry would end it again with VALUE_TOO_LARGE: the results of its children stay as large as they are"
            .to_owned()
    })
}

fn held(known: &Known<'_>) -> Option<Held> {
    Some(Held { run: known.input.run.clone(), cursor: known.cursor.clone()? })
}

fn look_ahead(known: &Known<'_>, mut held: Held) -> Option<Foreseen> {
    let plan = known.input.plan?;
    let at = held.run.claimable_at()?.max(known.input.now);
    let length = Micros::from_secs(120);
    let lease = Lease { owner: SessionId::from_bytes([0; 16]), until: at.plus(length), length };
    let claimed = decide_row(&held.run, RowInput::Claim { lease }, at).ok()?;
    held = held.apply(plan, &claimed).ok()?;
    for _ in 0..LOOK_AHEAD {
        let decision = decide(&held, plan, Input::Advance, at).ok()?;
        if let Some(command) = decision.command.peek() {
            let runs_ahead = decision.command.is_lazy();
            return Some(Foreseen::Command { command: command.clone(), runs_ahead });
        }
        if let Some(stop) = decision.facts.iter().find_map(stop_of) {
            return Some(stop);
        }
        held = held.apply(plan, &decision.facts).ok()?;
    }
    None
}

fn stop_of(fact: &Fact) -> Option<Foreseen> {
    match fact {
        Fact::Ended { end: crate::End::Failed(failure), .. }
        | Fact::AttentionCalled { error: failure } => Some(Foreseen::Stops(Some(failure.clone()))),
        Fact::Ended { .. } | Fact::Parked { .. } => Some(Foreseen::Stops(None)),
        Fact::InputsComputed { .. }
        | Fact::BranchTaken { .. }
        | Fact::Charged(_)
        | Fact::ValuesResolved { .. }
        | Fact::StepPlanned { .. }
        | Fact::CallMarked { .. }
        | Fact::OutcomeUnknown { .. }
        | Fact::NothingHappened { .. }
        | Fact::StepCompleted { .. }
        | Fact::OutputRefused { .. }
        | Fact::StepFailed { .. }
        | Fact::DeadlineSet { .. }
        | Fact::CancelRequested(_)
        | Fact::ReconcileAsked { .. }
        | Fact::Retried
        | Fact::Claimed { .. }
        | Fact::TakenOver { .. }
        | Fact::FenceRaised
        | Fact::Released { .. }
        | Fact::Requeued { .. }
        | Fact::Woken { .. } => None,
    }
}

/// The action of the open step, if it is one.
pub(super) fn open_action<'k>(known: &'k Known<'_>) -> Option<&'k str> {
    let plan = known.input.plan?;
    match known.cursor.as_ref()?.next(plan).ok()? {
        Next::Step { node, .. } => node.action(),
        Next::Inputs | Next::Broken(_) | Next::Done { .. } => None,
    }
}

/// A sentence on a worker that would end the run instead of going on.
pub(super) fn would_stop(known: &Known<'_>) -> Option<Failure> {
    match known.open {
        Open::Inputs | Open::Step(_) | Open::End => match foresee(known)? {
            Foreseen::Stops(failure) => failure,
            Foreseen::Command { .. } => None,
        },
        Open::Unknown => None,
    }
}
