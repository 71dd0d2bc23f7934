//! The position of a run in its plan, with everything that its next step can see.

use serde_json::{Value, json};

use super::LOOP_VALUE_MAX_BYTES;
use super::env::Env;
use super::position::{Branch, Frame, Inside, key_of, list_at};
use crate::expr::{EvalError, Names, Template};
use crate::plan::{CAUGHT_ERROR, Plan, Step, StepKind};
use crate::{Code, Fact, Failure, Invocation, Run, StepCharge, StepKey, StepValues, Taken};

/// The journal and the plan do not fit: malformed, incomplete, or of another plan. Never guessed around.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot be restored: {what}")]
pub struct RestoreInvalid {
    /// What does not fit, and where.
    pub what: String,
}

/// The next thing to do.
#[derive(Debug, PartialEq)]
pub enum Next<'a> {
    /// Step zero: compute the inputs.
    Inputs,
    /// A step that has neither outcome nor branch yet.
    Step {
        /// Its key.
        key: StepKey,
        /// The step.
        node: &'a Step,
    },
    /// A value that had to be rebuilt is over its limit.
    Broken(&'a Failure),
    /// Every step is over.
    Done {
        /// Output of the last top-level step.
        result: &'a Value,
    },
}

/// Where a run stands in its plan, and what its next step can see.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    env: Env,
    /// Empty before step zero and after the end.
    frames: Vec<Frame>,
    /// The key of the step at which they stand.
    here: StepKey,
    started: bool,
    result: Value,
    failure: Option<Failure>,
    /// Of the step at which the run stands; until its outcome.
    values: StepValues,
}

impl Cursor {
    /// A run of which nothing is recorded.
    #[must_use]
    pub fn new(run: &Run, plan: &Plan, invocation: Invocation) -> Self {
        Self {
            env: Env::new(run.id, plan, invocation, run.origin.occurred_at),
            frames: Vec::new(),
            here: key_of(&[]),
            started: false,
            result: Value::Null,
            failure: None,
            values: StepValues::default(),
        }
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
        &self.env.invocation
    }

    /// What the application's resolver gave to the step at which the run stands, as far as it is recorded.
    #[must_use]
    pub const fn values(&self) -> &StepValues {
        &self.values
    }

    /// What expressions of the next step can see.
    #[must_use]
    pub fn names(&self) -> &dyn Names {
        &self.env
    }

    /// The next thing to do.
    ///
    /// # Errors
    /// [`RestoreInvalid`] if the plan has no step where the journal says that the run stands.
    pub fn next<'a>(&'a self, plan: &'a Plan) -> Result<Next<'a>, RestoreInvalid> {
        if !self.started {
            return Ok(Next::Inputs);
        }
        if let Some(failure) = &self.failure {
            return Ok(Next::Broken(failure));
        }
        if self.frames.is_empty() {
            return Ok(Next::Done { result: &self.result });
        }
        Ok(Next::Step { key: self.here.clone(), node: self.node(plan)? })
    }

    /// Whether no step comes after the one at which the run stands: its output is the run's result.
    pub(crate) fn is_at_last(&self, plan: &Plan) -> bool {
        match &self.frames[..] {
            [frame] => frame.index + 1 == plan.steps.len(),
            [] | [_, _, ..] => false,
        }
    }

    /// Renders a value slot of the next step.
    ///
    /// # Errors
    /// `VALUE_UNAVAILABLE` if a reference leads nowhere, else `EXPRESSION_ERROR`.
    pub fn render(&self, template: &Template) -> Result<Value, Failure> {
        crate::expr::render(template, &self.env).map_err(failure_of)
    }

    /// Renders a value slot that sees one more name.
    ///
    /// # Errors
    /// As [`Cursor::render`].
    pub(crate) fn render_with(
        &self,
        template: &Template,
        (name, value): (&str, &Value),
    ) -> Result<Value, Failure> {
        let names = With { outer: &self.env, name, value };
        crate::expr::render(template, &names).map_err(failure_of)
    }

    /// Evaluates what a control step decides by.
    ///
    /// # Errors
    /// As [`Cursor::render`]; `LIMIT_EXCEEDED` for a loop over too many items.
    pub(crate) fn choose(&self, node: &Step, limit: u32) -> Result<Taken, Failure> {
        choose_by(node, limit, &self.env).map_err(Unchosen::into_failure)
    }

    /// Moves by one fact. Facts that concern no position change nothing.
    ///
    /// # Errors
    /// [`RestoreInvalid`] if the fact belongs to another step than the next one, or does not fit it.
    pub fn advance(&mut self, plan: &Plan, fact: &Fact) -> Result<(), RestoreInvalid> {
        match fact {
            Fact::InputsComputed { inputs } => self.start(inputs)?,
            Fact::BranchTaken { step, taken } => self.enter(plan, step, taken)?,
            Fact::StepCompleted { step, output, .. } => {
                self.expect(step)?;
                let node = self.node(plan)?;
                if is_control(node) {
                    return Err(invalid(format!("`{step}` is a control step and has no outcome")));
                }
                self.complete(plan, output.clone())?;
            }
            Fact::StepFailed { step, error, caught: true, .. } => self.catch(plan, step, error)?,
            Fact::ValuesResolved { step, values } => {
                self.expect(step)?;
                self.values.keep_all(values);
                return Ok(());
            }
            Fact::Charged(StepCharge { step, .. })
            | Fact::CallMarked { step, .. }
            | Fact::OutcomeUnknown { step, .. }
            | Fact::NothingHappened { step, .. }
            | Fact::OutputRefused { step, .. }
            | Fact::StepFailed { step, caught: false, .. }
            | Fact::DeadlineSet { step, .. }
            | Fact::ReconcileAsked { step } => return self.expect(step),
            Fact::StepPlanned { step, .. } => {
                return Err(invalid(format!("`{step}` was previewed, and this is an execution")));
            }
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
            | Fact::Woken { .. } => return Ok(()),
        }
        self.here = key_of(&self.frames);
        Ok(())
    }

    fn start(&mut self, inputs: &Value) -> Result<(), RestoreInvalid> {
        if self.started {
            return Err(invalid("the inputs are recorded twice".to_owned()));
        }
        self.started = true;
        self.env.invocation.inputs = inputs.clone();
        self.frames.push(Frame::new(self.env.mark()));
        Ok(())
    }

    /// The step at which the run stands.
    fn node<'p>(&self, plan: &'p Plan) -> Result<&'p Step, RestoreInvalid> {
        let depth = self.frames.len().saturating_sub(1);
        let index = self.frames.last().map(|frame| frame.index);
        let list = list_at(plan, &self.frames, depth);
        let node = list.zip(index).and_then(|(list, index)| list.get(index));
        node.ok_or_else(|| invalid(format!("the plan has no step `{}`", key_of(&self.frames))))
    }

    fn expect(&self, step: &StepKey) -> Result<(), RestoreInvalid> {
        if self.frames.is_empty() {
            return Err(invalid(format!("`{step}` is recorded where no step is open")));
        }
        if self.here == *step {
            Ok(())
        } else {
            let here = &self.here;
            Err(invalid(format!("`{step}` is recorded where `{here}` has no outcome yet")))
        }
    }

    fn enter(&mut self, plan: &Plan, step: &StepKey, taken: &Taken) -> Result<(), RestoreInvalid> {
        self.expect(step)?;
        let node = self.node(plan)?;
        let inside =
            Inside::of(node, taken).map_err(|what| invalid(format!("`{step}`: {what}")))?;
        let Some(inside) = inside else {
            let nothing = match taken {
                Taken::Items(_) => Value::Array(Vec::new()),
                Taken::Then | Taken::Else | Taken::Case(_) | Taken::Default | Taken::Nothing => {
                    Value::Null
                }
            };
            return self.complete(plan, nothing);
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.inside = Some(inside);
        }
        self.begin_body(node);
        Ok(())
    }

    /// The step at which the run stands failed for good, and its `catch` goes on: with the error, and nothing else
    /// that the failed step might have bound.
    fn catch(
        &mut self,
        plan: &Plan,
        step: &StepKey,
        error: &Failure,
    ) -> Result<(), RestoreInvalid> {
        self.expect(step)?;
        if self.node(plan)?.catch().is_none() {
            return Err(invalid(format!("`{step}` has no `catch`, and its failure was caught")));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.inside = Some(Inside::Branch(Branch::Catch));
        }
        self.values = StepValues::default();
        let mark = self.env.mark();
        let seen = json!({ "code": error.code.as_str(), "message": error.message });
        self.env.bind(CAUGHT_ERROR, seen);
        self.frames.push(Frame::new(mark));
        Ok(())
    }

    /// Opens the list inside the control step at which the run stands; in a loop, for the current item.
    fn begin_body(&mut self, node: &Step) {
        let mark = self.env.mark();
        if let Some(Frame { inside: Some(Inside::Loop { items, index, .. }), .. }) =
            self.frames.last()
            && let (StepKind::ForEach { item, .. }, Some(value)) = (&node.kind, items.get(*index))
        {
            self.env.bind(item, value.clone());
        }
        self.frames.push(Frame::new(mark));
    }

    /// The step at which the run stands has a value: binds it and moves on, out of every list that is over.
    fn complete(&mut self, plan: &Plan, output: Value) -> Result<(), RestoreInvalid> {
        self.values = StepValues::default();
        let mut output = output;
        loop {
            let node = self.node(plan)?;
            if let Some(name) = name_of(node) {
                self.env.bind(name, output.clone());
            }
            let depth = self.frames.len().saturating_sub(1);
            let length = list_at(plan, &self.frames, depth).map_or(0, <[Step]>::len);
            let Some(frame) = self.frames.last_mut() else { return Ok(()) };
            frame.inside = None;
            frame.last = output;
            frame.index += 1;
            if frame.index < length {
                return Ok(());
            }
            match self.leave(plan)? {
                Some(value) => output = value,
                None => return Ok(()),
            }
        }
    }

    /// The loop at which the run stands has too much to remember.
    fn too_large(&self) -> Failure {
        let text = format!("the loop's list of outputs is over {LOOP_VALUE_MAX_BYTES} bytes");
        let failure = Failure::new(Code::VALUE_TOO_LARGE, text);
        let Some((last, before)) = self.frames.split_last() else { return failure };
        failure.at(&key_of(&[before, &[last.outside()]].concat()))
    }

    /// A list is over. Yields the value of the control step around it, if that is over too.
    fn leave(&mut self, plan: &Plan) -> Result<Option<Value>, RestoreInvalid> {
        let Some(over) = self.frames.pop() else { return Ok(None) };
        self.env.forget_after(over.mark);
        let Some(around) = self.frames.last_mut() else {
            self.result = over.last;
            return Ok(None);
        };
        let Some(Inside::Loop { items, index, outputs, bytes }) = &mut around.inside else {
            return Ok(Some(over.last));
        };
        *bytes = bytes.saturating_add(json_len(&over.last));
        outputs.push(over.last);
        *index += 1;
        if *bytes > LOOP_VALUE_MAX_BYTES {
            self.failure = Some(self.too_large());
            return Ok(None);
        }
        if *index >= items.len() {
            return Ok(Some(Value::Array(std::mem::take(outputs))));
        }
        let node = self.node(plan)?;
        self.begin_body(node);
        Ok(None)
    }
}

/// The names of a step, and one more.
struct With<'a> {
    outer: &'a Env,
    name: &'a str,
    value: &'a Value,
}

impl Names for With<'_> {
    fn root(&self, name: &str) -> Option<&Value> {
        if name == self.name { Some(self.value) } else { self.outer.root(name) }
    }

    fn now(&self) -> crate::Timestamp {
        self.outer.now()
    }
}

/// Why a control step chose nothing.
#[derive(Debug)]
pub(crate) enum Unchosen {
    /// An expression has no value.
    Eval(EvalError),
    /// It has one that is of no use.
    Unfit(Failure),
}

impl Unchosen {
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Eval(error) => failure_of(error),
            Self::Unfit(failure) => failure,
        }
    }
}

impl From<EvalError> for Unchosen {
    fn from(error: EvalError) -> Self {
        Self::Eval(error)
    }
}

/// What a control step chooses by these names.
pub(crate) fn choose_by(node: &Step, limit: u32, names: &dyn Names) -> Result<Taken, Unchosen> {
    match &node.kind {
        StepKind::If { condition, otherwise, .. } => {
            let holds = crate::expr::evaluate_condition(condition, names)?;
            Ok(match (holds, otherwise) {
                (true, _) => Taken::Then,
                (false, Some(_)) => Taken::Else,
                (false, None) => Taken::Nothing,
            })
        }
        StepKind::Switch { on, cases, default } => {
            let value = crate::expr::render(on, names)?;
            for (index, case) in (0_u32..).zip(cases) {
                let when = crate::expr::render(&case.when, names)?;
                if crate::expr::equal(&value, &when)? {
                    return Ok(Taken::Case(index));
                }
            }
            Ok(if default.is_some() { Taken::Default } else { Taken::Nothing })
        }
        StepKind::ForEach { over, .. } => {
            items_of(crate::expr::render(over, names)?, limit).map_err(Unchosen::Unfit)
        }
        StepKind::Action { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => {
            let text = "this step has no branches";
            Err(Unchosen::Unfit(Failure::new(Code::RESTORE_INVALID, text)))
        }
    }
}

/// The name that a step's output is bound to.
pub(crate) fn name_of(node: &Step) -> Option<&str> {
    match &node.kind {
        StepKind::SetVariable { name, .. } => Some(name),
        StepKind::Action { .. }
        | StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::ForEach { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => node.save_as.as_deref(),
    }
}

/// Whether a step has branches or items instead of an outcome.
const fn is_control(node: &Step) -> bool {
    match &node.kind {
        StepKind::If { .. } | StepKind::Switch { .. } | StepKind::ForEach { .. } => true,
        StepKind::Action { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => false,
    }
}

fn items_of(value: Value, limit: u32) -> Result<Taken, Failure> {
    let Value::Array(items) = value else {
        let text = "`forEach` needs a list, its value is something else";
        return Err(Failure::new(Code::EXPRESSION_ERROR, text));
    };
    if items.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
        let text = format!("`forEach` has {} items, the limit is {limit}", items.len());
        return Err(Failure::new(Code::LIMIT_EXCEEDED, text));
    }
    Ok(Taken::Items(items))
}

pub(crate) fn failure_of(error: EvalError) -> Failure {
    let code = match error {
        EvalError::Missing { .. } | EvalError::Waiting(_) => Code::VALUE_UNAVAILABLE,
        EvalError::Invalid { .. } => Code::EXPRESSION_ERROR,
    };
    Failure::new(code, error.to_string())
}

/// Bytes of a value as compact JSON, without keeping the text.
pub(crate) fn json_len(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

fn invalid(what: String) -> RestoreInvalid {
    RestoreInvalid { what }
}
