//! A plan as people see it: what stands where, without a run.

use serde::Serialize;

use super::walk::branches_of;
use crate::EffectClass;
use crate::interpreter::{Branch, KeyPath};
use crate::plan::{Plan, Step, StepKind};

/// One step of a plan, in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    /// Its place; a step's key without the iterations.
    pub place: String,
    /// The action, or the word of a built-in step.
    pub action: String,
    /// What the action promises; built-in steps have none.
    pub class: Option<EffectClass>,
    /// The author's label.
    pub label: Option<String>,
    /// The name its output is bound to.
    pub save_as: Option<String>,
    /// Where in the source, from 1.
    pub line: u32,
    /// What is inside of it.
    pub branches: Vec<PlanBranch>,
}

/// A list of steps inside a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanBranch {
    /// As authors know it: `then`, `else`, `case 1`, `default`, `catch`, `each`.
    pub name: String,
    /// In order.
    pub steps: Vec<PlanStep>,
}

/// The steps of a plan in their places, at most `limit` of them; and how many are left out.
#[must_use]
pub fn outline(plan: &Plan, limit: usize) -> (Vec<PlanStep>, usize) {
    let mut outline = Outline { plan, room: limit, omitted: 0 };
    let steps = outline.list(&plan.steps, &KeyPath::root());
    (steps, outline.omitted)
}

struct Outline<'p> {
    plan: &'p Plan,
    room: usize,
    omitted: usize,
}

impl Outline<'_> {
    fn list(&mut self, steps: &[Step], path: &KeyPath) -> Vec<PlanStep> {
        let mut listed = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let has_room = self.room > 0;
            self.room = self.room.saturating_sub(1);
            self.omitted += usize::from(!has_room);
            let shown = self.step(step, &path.clone().step(index));
            if has_room {
                listed.push(shown);
            }
        }
        listed
    }

    fn step(&mut self, step: &Step, path: &KeyPath) -> PlanStep {
        let mut branches: Vec<PlanBranch> = Vec::new();
        for (branch, steps) in branches_of(step) {
            let steps = self.list(steps, &path.clone().branch(branch));
            branches.push(PlanBranch { name: name_of(branch), steps });
        }
        if let StepKind::ForEach { body, .. } = &step.kind {
            let steps = self.list(body, &path.clone().body());
            branches.push(PlanBranch { name: "each".to_owned(), steps });
        }
        let class = step.action().and_then(|action| self.plan.policies.get(action));
        PlanStep {
            place: path.place().to_owned(),
            action: step.does().to_owned(),
            class: class.map(|policy| policy.class),
            label: step.label.clone(),
            save_as: step.save_as.clone(),
            line: step.line,
            branches,
        }
    }
}

fn name_of(branch: Branch) -> String {
    match branch {
        Branch::Then => "then".to_owned(),
        Branch::Else => "else".to_owned(),
        Branch::Case(index) => format!("case {}", index.saturating_add(1)),
        Branch::Default => "default".to_owned(),
        Branch::Catch => "catch".to_owned(),
    }
}
