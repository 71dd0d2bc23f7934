//! The children of the modelled run: created by its worker, ended by the script.

use std::collections::BTreeMap;

use serde_json::json;

use super::invariants::Violation;
use super::world::{Checked, Worker, World};
use crate::{
    ChildResult, Fact, Failure, Input, Join, Joined, Phase, RowInput, Run, RunId, RunState, Spawn,
    StepKey, Wake,
};

/// By step: where each child stands; a live one is queued.
#[derive(Debug, Clone, Default)]
pub(super) struct Family(BTreeMap<StepKey, Vec<RunState>>);

impl Family {
    pub(super) fn is_over(&self, step: &StepKey) -> bool {
        self.0.get(step).is_none_or(|children| children.iter().all(|state| state.is_terminal()))
    }

    pub(super) fn join(&self, step: &StepKey, is_list: bool) -> Joined {
        let children = self.0.get(step).map(Vec::as_slice).unwrap_or_default();
        let mut join = Join::new(is_list, u32::try_from(children.len()).unwrap_or(u32::MAX));
        for (index, state) in (0_u32..).zip(children) {
            let failed = *state == RunState::Failed;
            join.add(ChildResult {
                index,
                run: RunId::from_bytes([8; 16]),
                workflow: "child".into(),
                state: *state,
                result: json!(index),
                error: failed.then(|| Failure::new("CHILD", "failed")),
                message: None,
            });
        }
        join.end()
    }

    /// No outcome before the children's, and none but theirs.
    pub(super) fn check<'f>(&self, run: &Run, facts: impl Iterator<Item = &'f Fact>) -> Checked {
        for fact in facts {
            if let Fact::StepCompleted { step, .. } = fact
                && let Some(children) = self.0.get(step)
                && children.iter().any(|state| *state != RunState::Succeeded)
            {
                let text = format!("{} has an outcome of `{step}`: {children:?}", run.id);
                return Err(Violation(text));
            }
        }
        Ok(())
    }
}

impl World {
    /// The worker creates the children of a step. `None`: it died before it could say so, or holds nothing any more.
    pub(super) fn spawn(&mut self, worker: &Worker, spawn: &Spawn, choice: u8) -> Option<Input> {
        let stored = &self.stored;
        let holds = stored.generation == worker.held.run.generation
            && matches!(stored.phase, Phase::Running { .. });
        if !holds || stored.cancel.is_some() || choice % 12 == 11 {
            return None;
        }
        let step = spawn.step.clone();
        if choice % 12 == 10 {
            let result = Err(Failure::new("NO_WORKFLOW", "no such workflow"));
            return Some(Input::Spawned { step, result });
        }
        let new = vec![RunState::Queued; spawn.children.len()];
        self.family.0.entry(step.clone()).or_insert(new);
        (choice % 12 != 9).then_some(Input::Spawned { step, result: Ok(()) })
    }

    /// A live child ends; the last one wakes the parent, if that waits for it.
    pub(super) fn child_ends(&mut self, choice: u8) -> Checked {
        let live = self
            .family
            .0
            .iter_mut()
            .flat_map(|(step, children)| children.iter_mut().map(move |state| (step, state)));
        let mut live: Vec<_> = live.filter(|(_, state)| !state.is_terminal()).collect();
        let chosen = usize::from(choice).checked_rem(live.len());
        let Some((step, state)) = chosen.and_then(|chosen| live.get_mut(chosen)) else {
            return Ok(());
        };
        **state = match choice % 12 {
            11 => RunState::Failed,
            10 => RunState::Canceled,
            _ => RunState::Succeeded,
        };
        let step = step.clone();
        if let Phase::Waiting(wait) = &self.stored.phase
            && wait.on.as_ref().is_some_and(|on| on.is_children_of(&step))
            && self.family.is_over(&step)
            && !self.row(RowInput::Wake { wake: Wake::Children, at_once: false })?
        {
            return Err(Violation("the end of the last child woke nobody".to_owned()));
        }
        Ok(())
    }
}
