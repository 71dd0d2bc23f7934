//! Where in a plan a run stands.

use std::fmt::Write as _;

use serde_json::Value;

use crate::expr::Template;
use crate::plan::{Plan, Step, StepKind};
use crate::{StepKey, Taken};

/// One list of steps that is being worked through; the stack of them is the position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    /// The step of this list that is next, or that was entered.
    pub(super) index: usize,
    /// Set while the run is inside the control step at `index`.
    pub(super) inside: Option<Inside>,
    /// Names visible before this list.
    pub(super) mark: usize,
    /// Output of the last step of this list so far.
    pub(super) last: Value,
}

impl Frame {
    /// The same place, seen from before the control step was entered.
    pub(super) fn outside(&self) -> Self {
        Self { index: self.index, inside: None, mark: self.mark, last: Value::Null }
    }
}

/// What a run is inside of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Inside {
    /// A branch of `if` or `switch`, or the `catch` of an action.
    Branch(Branch),
    /// An iteration of a loop.
    Loop { items: Vec<Value>, index: usize, outputs: Vec<Value>, bytes: usize },
}

/// A branch of `if` or `switch`, or the `catch` of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Branch {
    Then,
    Else,
    Case(usize),
    Default,
    Catch,
}

impl Frame {
    pub(super) fn new(mark: usize) -> Self {
        Self { index: 0, inside: None, mark, last: Value::Null }
    }
}

/// The steps of a branch, if the plan has that branch.
pub(crate) fn branch_of(node: &Step, branch: Branch) -> Option<&[Step]> {
    match (&node.kind, branch) {
        (StepKind::If { then, .. }, Branch::Then) => Some(then),
        (StepKind::If { otherwise, .. }, Branch::Else) => otherwise.as_deref(),
        (StepKind::Switch { cases, .. }, Branch::Case(index)) => {
            cases.get(index).map(|case| case.steps.as_slice())
        }
        (StepKind::Switch { default, .. }, Branch::Default) => default.as_deref(),
        (StepKind::Action { catch, .. }, Branch::Catch) => catch.as_deref(),
        _ => None,
    }
}

/// The branches that a step has, and whether one of them is always taken.
pub(crate) fn branches_of(node: &Step) -> (Vec<Branch>, bool) {
    match &node.kind {
        StepKind::If { otherwise: Some(_), .. } => (vec![Branch::Then, Branch::Else], true),
        StepKind::If { otherwise: None, .. } => (vec![Branch::Then], false),
        StepKind::Switch { cases, default, .. } => {
            let cases = (0..cases.len()).map(Branch::Case);
            (cases.chain(default.as_ref().map(|_| Branch::Default)).collect(), default.is_some())
        }
        StepKind::ForEach { .. }
        | StepKind::Action { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => (Vec::new(), false),
    }
}

/// The steps that `inside` works through.
fn body_of<'p>(node: &'p Step, inside: &Inside) -> Option<&'p [Step]> {
    match (inside, &node.kind) {
        (Inside::Branch(branch), _) => branch_of(node, *branch),
        (Inside::Loop { .. }, StepKind::ForEach { body, .. }) => Some(body),
        (Inside::Loop { .. }, _) => None,
    }
}

/// The list of steps that the frame at `depth` works through.
pub(super) fn list_at<'p>(plan: &'p Plan, frames: &[Frame], depth: usize) -> Option<&'p [Step]> {
    let mut list = plan.steps.as_slice();
    for frame in frames.get(..depth)? {
        list = body_of(list.get(frame.index)?, frame.inside.as_ref()?)?;
    }
    Some(list)
}

/// The key of the step at which the frames stand: `steps.2.cases.0.do.1#3.0`.
pub(super) fn key_of(frames: &[Frame]) -> StepKey {
    let mut path = KeyPath::root();
    for frame in frames {
        path = path.step(frame.index);
        match &frame.inside {
            None => {}
            Some(Inside::Branch(branch)) => path = path.branch(*branch),
            Some(Inside::Loop { index, .. }) => path = path.iteration(*index),
        }
    }
    path.key()
}

/// Builds step keys from the outside to the inside; the one place that knows how they are written.
#[derive(Debug, Clone)]
pub(crate) struct KeyPath {
    path: String,
    iterations: String,
}

impl KeyPath {
    /// The list of top-level steps.
    pub(crate) fn root() -> Self {
        Self { path: "steps".to_owned(), iterations: String::new() }
    }

    /// A step of the list.
    pub(crate) fn step(mut self, index: usize) -> Self {
        let _ = write!(self.path, ".{index}");
        self
    }

    /// The list of a branch of the step.
    pub(crate) fn branch(mut self, branch: Branch) -> Self {
        match branch {
            Branch::Then => self.path.push_str(".then"),
            Branch::Else => self.path.push_str(".else"),
            Branch::Case(index) => {
                let _ = write!(self.path, ".cases.{index}.do");
            }
            Branch::Default => self.path.push_str(".default"),
            Branch::Catch => self.path.push_str(".catch"),
        }
        self
    }

    /// The body of the loop that the step is, in one of its iterations.
    pub(crate) fn iteration(self, index: usize) -> Self {
        let mut body = self.body();
        let separator = if body.iterations.is_empty() { '#' } else { '.' };
        let _ = write!(body.iterations, "{separator}{index}");
        body
    }

    /// The body of the loop that the step is, in no iteration: the place in the plan, not a key of a run.
    pub(crate) fn body(mut self) -> Self {
        self.path.push_str(".do");
        self
    }

    /// The place in the plan, without iterations.
    pub(crate) fn place(&self) -> &str {
        &self.path
    }

    /// As a key.
    pub(crate) fn key(&self) -> StepKey {
        format!("{}{}", self.path, self.iterations).into()
    }
}

impl Plan {
    /// The config of an action's step as it is written; `None` if the key names no such step.
    #[must_use]
    pub fn config(&self, step: &StepKey) -> Option<&Template> {
        self.step(step)?.config()
    }

    /// The step that a key names, in whatever iteration; `None` if the plan has no such place.
    #[must_use]
    pub fn step(&self, key: &StepKey) -> Option<&Step> {
        let place = key.as_str().split('#').next()?;
        let mut words = place.split('.');
        let mut list = (words.next()? == "steps").then_some(self.steps.as_slice())?;
        loop {
            let node = list.get(words.next()?.parse::<usize>().ok()?)?;
            list = match words.next() {
                None => return Some(node),
                Some("then") => branch_of(node, Branch::Then)?,
                Some("else") => branch_of(node, Branch::Else)?,
                Some("default") => branch_of(node, Branch::Default)?,
                Some("catch") => branch_of(node, Branch::Catch)?,
                Some("cases") => {
                    let case = branch_of(node, Branch::Case(words.next()?.parse().ok()?))?;
                    (words.next()? == "do").then_some(case)?
                }
                Some("do") => {
                    let StepKind::ForEach { body, .. } = &node.kind else { return None };
                    body
                }
                Some(_) => return None,
            };
        }
    }
}

impl Inside {
    /// What a control step is inside of after it chose; `Ok(None)` if there is nothing to do in it.
    pub(super) fn of(node: &Step, taken: &Taken) -> Result<Option<Self>, String> {
        let branch = |branch: Branch| match branch_of(node, branch) {
            Some(_) => Ok(Some(Self::Branch(branch))),
            None => Err(format!("the plan has no branch {branch:?} here")),
        };
        match (&node.kind, taken) {
            (StepKind::If { .. }, Taken::Then) => branch(Branch::Then),
            (StepKind::If { .. }, Taken::Else) => branch(Branch::Else),
            (StepKind::If { otherwise: None, .. }, Taken::Nothing)
            | (StepKind::Switch { default: None, .. }, Taken::Nothing) => Ok(None),
            (StepKind::Switch { .. }, Taken::Case(index)) => {
                branch(Branch::Case(usize::try_from(*index).unwrap_or(usize::MAX)))
            }
            (StepKind::Switch { .. }, Taken::Default) => branch(Branch::Default),
            (StepKind::ForEach { .. }, Taken::Items(items)) if items.is_empty() => Ok(None),
            (StepKind::ForEach { .. }, Taken::Items(items)) => Ok(Some(Self::Loop {
                items: items.clone(),
                index: 0,
                outputs: Vec::new(),
                bytes: 0,
            })),
            _ => Err("the recorded branch does not fit the step".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::expr::Template;
    use crate::plan::{Case, Footprint, Hashes, ModuleRef, PLAN_SCHEMA, PlanLimits};

    fn step(kind: StepKind) -> Step {
        Step { kind, save_as: None, label: None, line: 1 }
    }

    fn wait(name: &str) -> Step {
        let text = Template::Literal(Value::from(name));
        step(StepKind::WaitFor { signal: text.clone(), key: text, timeout: None })
    }

    /// A plan with every kind of branch: its third step fails into a `catch` that has an `if` in it.
    fn nested() -> Plan {
        let over = Template::Literal(Value::Array(Vec::new()));
        let each = StepKind::ForEach { over, item: "it".to_owned(), body: vec![wait("inner")] };
        let case = Case { when: Template::Literal(Value::Null), steps: vec![step(each)] };
        let switch = StepKind::Switch {
            on: Template::Literal(Value::Null),
            cases: vec![case],
            default: Some(vec![wait("other")]),
        };
        let either = StepKind::If {
            condition: crate::expr::Expr::Literal(Value::Bool(true)),
            then: vec![wait("so")],
            otherwise: Some(vec![wait("not so")]),
        };
        let action = StepKind::Action {
            action: "pay".to_owned(),
            config: Template::Literal(Value::Null),
            timeout: None,
            retry: None,
            catch: Some(vec![wait("caught"), step(either)]),
        };
        Plan {
            schema: PLAN_SCHEMA,
            language: 1,
            module: ModuleRef { id: "m".to_owned(), version: 1 },
            hashes: Hashes {
                source: String::new(),
                manifest: String::new(),
                catalog: String::new(),
            },
            footprint: Footprint { module: "m".to_owned(), uses: BTreeMap::new() },
            policies: BTreeMap::new(),
            inputs: BTreeMap::new(),
            triggers: BTreeMap::new(),
            steps: vec![wait("first"), step(switch), step(action)],
            bindings: BTreeMap::new(),
            limits: PlanLimits { loop_items: 3 },
        }
    }

    #[test]
    fn a_key_names_the_step_that_it_was_built_for() {
        let plan = nested();
        let root = KeyPath::root();
        let case = root.clone().step(1).branch(Branch::Case(0));
        let catch = root.clone().step(2).branch(Branch::Catch);
        let either = catch.clone().step(1);
        for (key, name) in [
            (root.clone().step(0).key(), "first"),
            (root.clone().step(1).branch(Branch::Default).step(0).key(), "other"),
            (case.step(0).iteration(7).step(0).key(), "inner"),
            (catch.step(0).key(), "caught"),
            (either.clone().branch(Branch::Then).step(0).key(), "so"),
            (either.branch(Branch::Else).step(0).key(), "not so"),
        ] {
            assert_eq!(plan.step(&key), Some(&wait(name)), "{key}");
        }
    }

    #[test]
    fn a_key_of_another_plan_names_nothing() {
        let plan = nested();
        for key in [
            "",
            "steps",
            "steps.3",
            "steps.0.then.0",
            "steps.0.catch.0",
            "steps.1.cases.1.do.0",
            "steps.1.cases.0",
            "steps.2.catch.2",
        ] {
            assert_eq!(plan.step(&StepKey::from(key)), None, "{key}");
        }
    }
}
