//! The position of a dry run in its plan, with what it has found so far.

use serde_json::Value;

use super::scope::{Foreseen, Scope};
use super::{Bill, Finding};
use crate::expr::{EvalError, Template};
use crate::interpreter::{Branch, KeyPath, Unchosen, branch_of, branches_of, choose_by, name_of};
use crate::plan::{Plan, Step, StepKind};
use crate::{Fact, Failure, Invocation, RestoreInvalid, Run, StepKey, Taken, Timestamp};

/// Where a dry run stands in its plan, and what it has found so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    scope: Scope,
    /// Empty before step zero and after the end.
    frames: Vec<Frame>,
    started: bool,
    /// Whether an execution may have ended before, on a way that could not be decided.
    may_be_over: bool,
    bill: Bill,
}

/// The next thing to look at.
#[derive(Debug, PartialEq)]
pub(super) enum Ahead<'p> {
    Inputs,
    Step { key: StepKey, node: &'p Step },
    Done,
}

/// One list of steps that is being worked through.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    index: usize,
    inside: Option<Inside>,
    mark: usize,
    last: Foreseen,
}

#[derive(Debug, Clone, PartialEq)]
enum Inside {
    /// The branch that an execution takes.
    Branch(Branch),
    /// The items that an execution has.
    Loop { items: Vec<Value>, index: usize, outputs: Vec<Foreseen> },
    /// One branch after the other, since nobody knows which an execution takes.
    Every {
        branches: Vec<Branch>,
        at: usize,
        /// Whether an execution can come to what is behind.
        goes_on: bool,
    },
    /// The body of a loop whose items nobody knows.
    Once,
}

impl Survey {
    /// A dry run of which nothing is recorded.
    #[must_use]
    pub fn new(run: &Run, plan: &Plan, invocation: Invocation) -> Self {
        let scope = Scope::new(run, plan, invocation);
        let (frames, bill) = (Vec::new(), Bill::default());
        Self { scope, frames, started: false, may_be_over: false, bill }
    }

    /// Folds recorded facts over this position, in order.
    ///
    /// # Errors
    /// [`RestoreInvalid`] at the first fact that does not belong where it stands.
    pub fn restore<'f>(
        mut self,
        plan: &Plan,
        facts: impl IntoIterator<Item = &'f Fact>,
    ) -> Result<Self, RestoreInvalid> {
        for fact in facts {
            self.advance(plan, fact)?;
        }
        Ok(self)
    }

    /// What started the run, with its inputs once step zero is over.
    #[must_use]
    pub fn invocation(&self) -> &Invocation {
        self.scope.invocation()
    }

    /// What was found so far.
    #[must_use]
    pub fn bill(&self) -> Bill {
        self.bill.clone().summed()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.scope.now()
    }

    pub(super) fn next<'p>(&self, plan: &'p Plan) -> Result<Ahead<'p>, RestoreInvalid> {
        if !self.started {
            return Ok(Ahead::Inputs);
        }
        if self.frames.is_empty() {
            return Ok(Ahead::Done);
        }
        Ok(Ahead::Step { key: self.key(), node: self.node(plan)? })
    }

    pub(super) fn render(&self, template: &Template) -> Result<Foreseen, Failure> {
        self.scope.render(template)
    }

    /// What a control step chooses; `None` if that hangs on a value that is not known.
    pub(super) fn choose(&self, node: &Step, limit: u32) -> Result<Option<Taken>, Failure> {
        match choose_by(node, limit, &self.scope.certain()) {
            Ok(taken) => Ok(Some(taken)),
            Err(Unchosen::Eval(EvalError::Waiting(_))) => Ok(None),
            Err(other) => Err(other.into_failure()),
        }
    }

    /// Moves by one fact. Facts that concern no position change nothing.
    ///
    /// # Errors
    /// [`RestoreInvalid`] if the fact belongs to another step than the next one, or does not fit it.
    pub fn advance(&mut self, plan: &Plan, fact: &Fact) -> Result<(), RestoreInvalid> {
        match fact {
            Fact::InputsComputed { inputs } => {
                self.started = true;
                self.scope.set_inputs(inputs.clone());
                self.push();
                Ok(())
            }
            Fact::BranchTaken { step, taken } => {
                self.expect(step)?;
                self.enter(plan, taken)
            }
            Fact::StepCompleted { step, output, .. } => {
                self.expect(step)?;
                self.complete(plan, Foreseen::Known(output.clone()))
            }
            Fact::StepPlanned { step, finding } => {
                self.expect(step)?;
                let is_sure = self.is_sure();
                self.bill.add(step, finding, is_sure);
                self.found(plan, finding)
            }
            Fact::StepFailed { step, .. } | Fact::DeadlineSet { step, .. } => self.expect(step),
            Fact::Charged(charge) => Err(no_dry_run(&charge.step)),
            Fact::ValuesResolved { step, .. }
            | Fact::CallMarked { step, .. }
            | Fact::OutcomeUnknown { step, .. }
            | Fact::NothingHappened { step, .. }
            | Fact::OutputRefused { step, .. }
            | Fact::ReconcileAsked { step } => Err(no_dry_run(step)),
            Fact::CancelRequested(_)
            | Fact::AttentionCalled { .. }
            | Fact::Retried
            | Fact::Ended { .. }
            | Fact::Claimed { .. }
            | Fact::TakenOver { .. }
            | Fact::FenceRaised
            | Fact::Released { .. }
            | Fact::Requeued { .. }
            | Fact::Parked { .. }
            | Fact::Woken { .. } => Ok(()),
        }
    }

    fn found(&mut self, plan: &Plan, finding: &Finding) -> Result<(), RestoreInvalid> {
        match finding {
            Finding::Effect { output, .. } | Finding::Value { output } => {
                let value = output.clone().map_or(Foreseen::Unknown, Foreseen::Planned);
                self.complete(plan, value)
            }
            Finding::Unsupported { .. }
            | Finding::Indeterminate { .. }
            | Finding::Children { .. } => self.complete(plan, Foreseen::Unknown),
            Finding::Undecided { .. } => self.enter_all(plan),
            Finding::Ends { .. } => {
                self.may_be_over |= !self.is_sure();
                let left = self.leave(plan, true)?;
                left.map_or(Ok(()), |value| self.complete(plan, value))
            }
        }
    }

    /// Whether an execution comes here for sure, once.
    fn is_sure(&self) -> bool {
        let forks =
            |frame: &Frame| matches!(frame.inside, Some(Inside::Every { .. } | Inside::Once));
        !self.may_be_over && !self.frames.iter().any(forks)
    }

    fn key(&self) -> StepKey {
        let mut path = KeyPath::root();
        for frame in &self.frames {
            path = path.step(frame.index);
            path = match &frame.inside {
                None => path,
                Some(Inside::Branch(branch)) => path.branch(*branch),
                Some(Inside::Loop { index, .. }) => path.iteration(*index),
                Some(Inside::Every { branches, at, .. }) => match branches.get(*at) {
                    Some(branch) => path.branch(*branch),
                    None => path,
                },
                Some(Inside::Once) => path.iteration(0),
            };
        }
        path.key()
    }

    /// The list that the innermost frame works through.
    fn list<'p>(&self, plan: &'p Plan) -> Option<&'p [Step]> {
        let mut list = plan.steps.as_slice();
        let (_, around) = self.frames.split_last()?;
        for frame in around {
            let node = list.get(frame.index)?;
            list = match frame.inside.as_ref()? {
                Inside::Branch(branch) => branch_of(node, *branch)?,
                Inside::Every { branches, at, .. } => branch_of(node, *branches.get(*at)?)?,
                Inside::Loop { .. } | Inside::Once => body_of(node)?,
            };
        }
        Some(list)
    }

    fn node<'p>(&self, plan: &'p Plan) -> Result<&'p Step, RestoreInvalid> {
        let index = self.frames.last().map(|frame| frame.index);
        let node = self.list(plan).zip(index).and_then(|(list, index)| list.get(index));
        node.ok_or_else(|| invalid(format!("the plan has no step `{}`", self.key())))
    }

    fn expect(&self, step: &StepKey) -> Result<(), RestoreInvalid> {
        let here = self.key();
        if !self.frames.is_empty() && here == *step {
            return Ok(());
        }
        Err(invalid(format!("`{step}` is recorded where `{here}` is looked at")))
    }

    fn push(&mut self) {
        let mark = self.scope.mark();
        self.frames.push(Frame {
            index: 0,
            inside: None,
            mark,
            last: Foreseen::Known(Value::Null),
        });
    }

    /// Goes into what an execution would go into.
    fn enter(&mut self, plan: &Plan, taken: &Taken) -> Result<(), RestoreInvalid> {
        let node = self.node(plan)?;
        let inside = match (&node.kind, taken) {
            (StepKind::ForEach { .. }, Taken::Items(items)) if items.is_empty() => {
                return self.complete(plan, Foreseen::Known(Value::Array(Vec::new())));
            }
            (StepKind::ForEach { .. }, Taken::Items(items)) => {
                Inside::Loop { items: items.clone(), index: 0, outputs: Vec::new() }
            }
            (_, Taken::Nothing) => return self.complete(plan, Foreseen::Known(Value::Null)),
            (_, Taken::Then) => Inside::Branch(Branch::Then),
            (_, Taken::Else) => Inside::Branch(Branch::Else),
            (_, Taken::Case(index)) => {
                Inside::Branch(Branch::Case(usize::try_from(*index).unwrap_or(usize::MAX)))
            }
            (_, Taken::Default) => Inside::Branch(Branch::Default),
            (_, Taken::Items(_)) => return Err(invalid("only a loop has items".to_owned())),
        };
        if let Inside::Branch(branch) = &inside
            && branch_of(node, *branch).is_none()
        {
            return Err(invalid(format!("the plan has no branch {branch:?} here")));
        }
        self.begin(node, inside);
        Ok(())
    }

    /// Goes into every branch, one after the other; into the body of a loop once.
    fn enter_all(&mut self, plan: &Plan) -> Result<(), RestoreInvalid> {
        let node = self.node(plan)?;
        if body_of(node).is_some() {
            self.begin(node, Inside::Once);
            return Ok(());
        }
        let (branches, is_complete) = branches_of(node);
        if branches.is_empty() {
            return Err(invalid(format!("`{}` has no branches", self.key())));
        }
        // Where no branch is taken an execution goes on behind the step.
        self.begin(node, Inside::Every { branches, at: 0, goes_on: !is_complete });
        Ok(())
    }

    fn begin(&mut self, node: &Step, inside: Inside) {
        if let Some(frame) = self.frames.last_mut() {
            frame.inside = Some(inside);
        }
        self.begin_body(node);
    }

    /// Opens the list inside the control step at which the survey stands; in a loop, for the current item.
    fn begin_body(&mut self, node: &Step) {
        let mark = self.scope.mark();
        if let StepKind::ForEach { item, .. } = &node.kind {
            let value = match self.frames.last().and_then(|frame| frame.inside.as_ref()) {
                Some(Inside::Loop { items, index, .. }) => items.get(*index).cloned(),
                Some(Inside::Branch(_) | Inside::Every { .. } | Inside::Once) | None => None,
            };
            self.scope.bind(item, value.map_or(Foreseen::Unknown, Foreseen::Known));
        }
        let last = Foreseen::Known(Value::Null);
        self.frames.push(Frame { index: 0, inside: None, mark, last });
    }

    /// The step has a value: binds it and moves on, out of every list that is over.
    fn complete(&mut self, plan: &Plan, value: Foreseen) -> Result<(), RestoreInvalid> {
        let mut value = value;
        loop {
            if let Some(name) = name_of(self.node(plan)?) {
                self.scope.bind(name, value.clone());
            }
            let length = self.list(plan).map_or(0, <[Step]>::len);
            let Some(frame) = self.frames.last_mut() else { return Ok(()) };
            frame.inside = None;
            frame.last = value;
            frame.index += 1;
            if frame.index < length {
                return Ok(());
            }
            match self.leave(plan, false)? {
                Some(outer) => value = outer,
                None => return Ok(()),
            }
        }
    }

    /// A list is over, at its end or, where `ends`, since the run would end there. Yields the value of the control step
    /// around it, if that is over too.
    fn leave(&mut self, plan: &Plan, ends: bool) -> Result<Option<Foreseen>, RestoreInvalid> {
        loop {
            let Some(over) = self.frames.pop() else { return Ok(None) };
            self.scope.forget_after(over.mark);
            let Some(around) = self.frames.last_mut() else { return Ok(None) };
            match &mut around.inside {
                None | Some(Inside::Branch(_)) if ends => {}
                None | Some(Inside::Branch(_)) => return Ok(Some(over.last)),
                Some(Inside::Once) => return Ok(Some(Foreseen::Unknown)),
                Some(Inside::Loop { .. }) if ends => {}
                Some(Inside::Loop { items, index, outputs }) => {
                    outputs.push(over.last);
                    *index += 1;
                    if *index >= items.len() {
                        return Ok(Some(Foreseen::list(std::mem::take(outputs))));
                    }
                    return self.again(plan);
                }
                Some(Inside::Every { branches, at, goes_on }) => {
                    *goes_on |= !ends;
                    *at += 1;
                    if *at < branches.len() {
                        return self.again(plan);
                    }
                    if *goes_on {
                        return Ok(Some(Foreseen::Unknown));
                    }
                    // Every branch ends the run: nothing behind is reached.
                    around.inside = None;
                }
            }
        }
    }

    fn again(&mut self, plan: &Plan) -> Result<Option<Foreseen>, RestoreInvalid> {
        let node = self.node(plan)?;
        self.begin_body(node);
        Ok(None)
    }
}

fn body_of(node: &Step) -> Option<&[Step]> {
    if let StepKind::ForEach { body, .. } = &node.kind { Some(body) } else { None }
}

fn no_dry_run(step: &StepKey) -> RestoreInvalid {
    invalid(format!("`{step}` was executed, and this is a dry run"))
}

fn invalid(what: String) -> RestoreInvalid {
    RestoreInvalid { what }
}
