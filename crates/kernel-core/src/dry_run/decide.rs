//! What a dry run does next.

use serde_json::Value;

use super::scope::Foreseen;
use super::survey::Ahead;
use super::{Finding, Survey};
use crate::decide::{exhausted, journal_is_full, policy_of, retry_delay};
use crate::expr::Template;
use crate::interpreter::compute_inputs;
use crate::plan::{ActionPolicy, Plan, RetryPolicy, Step, StepKind};
use crate::{
    Amounts, Answer, Call, Code, EffectClass, End, Fact, Failure, Invocation, JournalEntry, Micros,
    OUTPUT_MAX_BYTES, Phase, RUN_MAX_CONSECUTIVE_FAILURES, Rejection, ReleaseReason,
    RestoreInvalid, RowInput, Run, SaidBy, StepKey, Timestamp, decide_row,
};

/// A dry run in memory: the stored row, and what was found so far.
#[derive(Debug, Clone, PartialEq)]
pub struct DryHeld {
    /// As stored.
    pub run: Run,
    /// Rebuilt, never stored.
    pub survey: Survey,
}

/// What comes to a dry run from the worker that holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum DryInput {
    /// What to do next?
    Advance,
    /// A pure action came back.
    Ran {
        /// The step.
        step: StepKey,
        /// With what.
        answer: Answer,
    },
    /// An action previewed its effect.
    Previewed {
        /// The step.
        step: StepKey,
        /// How.
        previewed: Previewed,
    },
    /// Anything that needs neither plan nor position.
    Row(RowInput),
}

/// What came of a preview.
#[derive(Debug, Clone, PartialEq)]
pub enum Previewed {
    /// This would happen.
    Planned {
        /// In one line.
        summary: String,
        /// What it would charge.
        cost: Amounts,
        /// The output, if it can be foretold.
        output: Option<Value>,
        /// What the action notes.
        issues: Vec<String>,
    },
    /// An execution would fail here: config, authorisation, cost.
    Refused(Failure),
    /// There is no preview.
    Unsupported {
        /// The action's word.
        why: String,
    },
    /// The preview hangs on a value that is not there yet.
    Waits {
        /// On what.
        why: String,
    },
    /// Not this time.
    FailedForNow {
        /// Why.
        failure: Failure,
        /// Not before.
        retry_after: Option<Micros>,
    },
}

/// What the worker does. None of it is an effect.
#[derive(Debug, Clone, PartialEq)]
pub enum DryCommand {
    /// Run a pure action.
    Run(Call),
    /// Check the config, authorise, ask for cost and preview.
    Preview(Call),
}

/// What is done about an input. The facts are committed at once.
#[derive(Debug, Clone, PartialEq)]
pub struct DryDecision {
    /// What was found.
    pub facts: Vec<Fact>,
    /// What the worker does then.
    pub command: Option<DryCommand>,
}

impl DryHeld {
    /// A dry run as a store holds it.
    ///
    /// # Errors
    /// [`RestoreInvalid`] if a row is missing or does not belong where it stands.
    pub fn restore(
        run: Run,
        plan: &Plan,
        invocation: Invocation,
        journal: &[JournalEntry],
    ) -> Result<Self, RestoreInvalid> {
        JournalEntry::check_contiguous(journal, 0, run.seq)?;
        let survey = Survey::new(&run, plan, invocation);
        let facts = journal.iter().flat_map(|entry| &entry.facts);
        Ok(Self { run, survey: survey.restore(plan, facts)? })
    }

    /// Moves by facts: the run and the position together.
    ///
    /// # Errors
    /// [`RestoreInvalid`] if a fact does not belong where the run stands.
    pub fn apply<'f>(
        mut self,
        plan: &Plan,
        facts: impl IntoIterator<Item = &'f Fact>,
    ) -> Result<Self, RestoreInvalid> {
        for fact in facts {
            self.survey.advance(plan, fact)?;
            self.run.apply(fact);
        }
        Ok(self)
    }
}

impl DryDecision {
    fn record(facts: Vec<Fact>) -> Self {
        Self { facts, command: None }
    }

    fn found(step: &StepKey, finding: Finding) -> Self {
        Self::record(vec![Fact::StepPlanned { step: step.clone(), finding }])
    }

    fn known(step: &StepKey, output: Value, by: SaidBy) -> Self {
        Self::record(vec![Fact::StepCompleted { step: step.clone(), output, by }])
    }

    fn command(command: DryCommand) -> Self {
        Self { facts: Vec::new(), command: Some(command) }
    }

    fn end(end: End, now: Timestamp) -> Self {
        Self::record(vec![Fact::Ended { end, at: now }])
    }

    /// An execution would fail at this step.
    fn fails(step: &StepKey, failure: Failure) -> Self {
        Self::found(step, Finding::Ends { failure: Some(failure.at(step)), message: None })
    }
}

/// Decides what a dry run does about an input. Total, as [`decide`](crate::decide).
///
/// # Errors
/// [`Rejection`] if the run is not where the input needs it.
pub fn decide_dry_run(
    held: &DryHeld,
    plan: &Plan,
    input: DryInput,
    now: Timestamp,
) -> Result<DryDecision, Rejection> {
    if let DryInput::Row(input) = input {
        return Ok(DryDecision::record(decide_row(&held.run, input, now)?));
    }
    if !matches!(held.run.phase, Phase::Running { .. }) {
        let why = "only a running run goes on";
        return Err(Rejection::WrongState { run: held.run.id, state: held.run.state(), why });
    }
    if held.run.cancel.is_some() {
        return Ok(DryDecision::end(End::Canceled, now));
    }
    let ahead = match held.survey.next(plan) {
        Ok(ahead) => ahead,
        Err(RestoreInvalid { what }) => {
            let error = Failure::new(Code::RESTORE_INVALID, what);
            return Ok(DryDecision::record(vec![Fact::AttentionCalled { error }]));
        }
    };
    match (input, ahead) {
        (DryInput::Advance, ahead) => Ok(advance(held, plan, ahead, now)),
        (DryInput::Ran { step, answer }, Ahead::Step { key, node }) if key == step => {
            Ok(ran(held, plan, (&key, node), answer, now))
        }
        (DryInput::Previewed { step, previewed }, Ahead::Step { key, node }) if key == step => {
            Ok(previewed_as(held, plan, (&key, node), previewed, now))
        }
        (DryInput::Ran { step, .. } | DryInput::Previewed { step, .. }, _) => {
            let open = "another step".to_owned();
            Err(Rejection::WrongStep { run: held.run.id, got: step, open })
        }
        (DryInput::Row(_), _) => Ok(DryDecision::record(Vec::new())),
    }
}

fn advance(held: &DryHeld, plan: &Plan, ahead: Ahead<'_>, now: Timestamp) -> DryDecision {
    let attempts = match &ahead {
        Ahead::Step { node, .. } => attempts_of(plan, node),
        Ahead::Inputs | Ahead::Done => RUN_MAX_CONSECUTIVE_FAILURES,
    };
    if let Some(failure) =
        exhausted(&held.run, attempts).or_else(|| journal_is_full(&held.run, OUTPUT_MAX_BYTES))
    {
        return DryDecision::end(End::Failed(failure), now);
    }
    match ahead {
        Ahead::Inputs => {
            let (trigger, at) = (held.run.origin.trigger.as_deref(), held.survey.now());
            match compute_inputs(plan, trigger, held.survey.invocation(), &|| at) {
                Ok(inputs) => DryDecision::record(vec![Fact::InputsComputed { inputs }]),
                Err(failure) => DryDecision::end(End::Failed(failure), now),
            }
        }
        Ahead::Done => {
            let bill = held.survey.bill();
            let message = Some(bill.headline());
            // A bill holds text, numbers and lists: writing it cannot fail.
            let result = serde_json::to_value(&bill).unwrap_or_default();
            DryDecision::end(End::Succeeded { result, message, step: None }, now)
        }
        Ahead::Step { key, node } => look_at(held, plan, &key, node),
    }
}

fn attempts_of(plan: &Plan, node: &Step) -> u32 {
    plan.retry_of(node).map_or(RUN_MAX_CONSECUTIVE_FAILURES, |retry| retry.attempts)
}

fn look_at(held: &DryHeld, plan: &Plan, key: &StepKey, node: &Step) -> DryDecision {
    match &node.kind {
        StepKind::If { .. } | StepKind::Switch { .. } | StepKind::ForEach { .. } => {
            match held.survey.choose(node, plan.limits.loop_items) {
                Ok(Some(taken)) => {
                    DryDecision::record(vec![Fact::BranchTaken { step: key.clone(), taken }])
                }
                Ok(None) => DryDecision::found(key, Finding::Undecided { why: undecided(node) }),
                Err(failure) => DryDecision::fails(key, failure),
            }
        }
        StepKind::Action { action, config, .. } => {
            let call = policy_of(plan, action)
                .and_then(|policy| Ok((policy, held.survey.render(config)?)));
            match call {
                Ok((policy, config)) => action_ahead(held, key, (action, policy), config),
                Err(failure) => fails(plan, (key, node), failure),
            }
        }
        StepKind::SetVariable { value, .. } => match held.survey.render(value) {
            Ok(Foreseen::Known(output)) => DryDecision::known(key, output, SaidBy::Kernel),
            Ok(Foreseen::Planned(output)) => {
                DryDecision::found(key, Finding::Value { output: Some(output) })
            }
            Ok(Foreseen::Unknown) => DryDecision::found(key, Finding::Value { output: None }),
            Err(failure) => DryDecision::fails(key, failure),
        },
        StepKind::Succeed { message } => match held.survey.render(message) {
            Ok(message) => {
                let message = text_of(message);
                DryDecision::found(key, Finding::Ends { failure: None, message })
            }
            Err(failure) => DryDecision::fails(key, failure),
        },
        StepKind::Fail { message, code } => match held.survey.render(message) {
            Ok(message) => {
                let text =
                    text_of(message).unwrap_or_else(|| "its message is not known".to_owned());
                DryDecision::fails(key, Failure::new(code.clone().unwrap_or(Code::FAILED), text))
            }
            Err(failure) => DryDecision::fails(key, failure),
        },
        // Neither parks here: a delay is over, and nobody knows what a wait will bring.
        StepKind::Delay(_) => DryDecision::known(key, Value::Null, SaidBy::Kernel),
        StepKind::WaitFor { .. } => DryDecision::found(key, Finding::Value { output: None }),
        StepKind::RunWorkflow { workflow, .. } => {
            let of = workflow_of(held, workflow);
            DryDecision::found(key, Finding::Children { what: format!("a run of {of}") })
        }
        StepKind::RunWorkflows { workflow, each, .. } => {
            let of = workflow_of(held, workflow);
            let number = match held.survey.render(each) {
                Ok(Foreseen::Known(Value::Array(items))) => items.len().to_string(),
                Ok(Foreseen::Known(_) | Foreseen::Planned(_) | Foreseen::Unknown) | Err(_) => {
                    "an unknown number of".to_owned()
                }
            };
            DryDecision::found(key, Finding::Children { what: format!("{number} runs of {of}") })
        }
    }
}

/// The workflow of child runs, for people.
fn workflow_of(held: &DryHeld, workflow: &Template) -> String {
    match held.survey.render(workflow) {
        Ok(Foreseen::Known(Value::String(key))) => {
            format!("workflow `{}`", crate::payload::text_for_storage(&key))
        }
        // Where it hangs on the item, each child may have another one.
        Ok(Foreseen::Known(_) | Foreseen::Planned(_) | Foreseen::Unknown) | Err(_) => {
            "a workflow that is not known yet".to_owned()
        }
    }
}

/// What the certain failure of an action means: the end, or, where the author handles it, a gap in the bill.
fn fails(plan: &Plan, (key, node): (&StepKey, &Step), failure: Failure) -> DryDecision {
    match (node.catch(), open(plan, node)) {
        (Some(_), Some((action, policy))) => {
            let Failure { code, message, .. } = failure;
            let why = format!(
                "it would fail with {code}, which its `catch` handles, and the steps there are not in this \
                 bill: {message}"
            );
            indeterminate(key, action, policy.class, &why)
        }
        (None, _) | (Some(_), None) => DryDecision::fails(key, failure),
    }
}

fn undecided(node: &Step) -> String {
    match &node.kind {
        StepKind::ForEach { .. } => {
            "the items hang on a value that is not known: the body is analysed once".to_owned()
        }
        StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::Action { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => {
            "the choice hangs on a value that is not known: every branch is analysed".to_owned()
        }
    }
}

fn text_of(message: Foreseen) -> Option<String> {
    let value = match message {
        Foreseen::Known(value) | Foreseen::Planned(value) => value,
        Foreseen::Unknown => return None,
    };
    let text = value.as_str().map_or_else(|| crate::canonical::canonical(&value), str::to_owned);
    Some(crate::payload::text_for_storage(&text))
}

fn action_ahead(
    held: &DryHeld,
    key: &StepKey,
    (action, policy): (&str, &ActionPolicy),
    config: Foreseen,
) -> DryDecision {
    let is_pure = policy.class == EffectClass::Pure;
    let config = match config {
        Foreseen::Known(config) | Foreseen::Planned(config) => config,
        Foreseen::Unknown if is_pure => {
            return DryDecision::found(key, Finding::Value { output: None });
        }
        Foreseen::Unknown => {
            return indeterminate(
                key,
                action,
                policy.class,
                "its config hangs on an unknown value",
            );
        }
    };
    let call = Call {
        config,
        effect_key: held.run.effect_key(key),
        step: key.clone(),
        action: action.to_owned(),
        class: policy.class,
        attempt: held.run.step_attempt.max(1),
        resumed: None,
        timeout: None,
    };
    DryDecision::command(if is_pure { DryCommand::Run(call) } else { DryCommand::Preview(call) })
}

fn indeterminate(key: &StepKey, action: &str, class: EffectClass, why: &str) -> DryDecision {
    let (action, why) = (action.to_owned(), crate::payload::text_for_storage(why));
    DryDecision::found(key, Finding::Indeterminate { action, class, why })
}

/// Whether the config of an open step is what an execution would have.
fn is_certain(held: &DryHeld, node: &Step) -> bool {
    let StepKind::Action { config, .. } = &node.kind else { return false };
    matches!(held.survey.render(config), Ok(Foreseen::Known(_)))
}

/// The action of an open step, and its policy.
fn open<'p>(plan: &'p Plan, node: &'p Step) -> Option<(&'p str, &'p ActionPolicy)> {
    let StepKind::Action { action, .. } = &node.kind else { return None };
    Some((action, plan.policies.get(action)?))
}

fn ran(
    held: &DryHeld,
    plan: &Plan,
    (key, node): (&StepKey, &Step),
    answer: Answer,
    now: Timestamp,
) -> DryDecision {
    let Some((action, policy)) = open(plan, node) else { return DryDecision::record(Vec::new()) };
    let retry = plan.retry_of(node).unwrap_or(&policy.retry);
    let certain = is_certain(held, node);
    match answer {
        Answer::Succeeded { output } if certain => DryDecision::known(key, output, SaidBy::Action),
        Answer::Succeeded { output } => {
            DryDecision::found(key, Finding::Value { output: Some(output) })
        }
        Answer::Failed { failure, retryable: true, retry_after } => {
            release(held, retry, failure.at(key), retry_after, now)
        }
        Answer::Failed { failure, .. } | Answer::OutputRefused { error: failure, .. }
            if certain =>
        {
            fails(plan, (key, node), failure)
        }
        Answer::Failed { failure, .. } | Answer::OutputRefused { error: failure, .. } => {
            indeterminate(key, action, policy.class, &failure.message)
        }
        Answer::Waiting { on } => {
            let why = format!("it waits for `{}` of `{}`", on.kind(), on.key());
            indeterminate(key, action, policy.class, &why)
        }
        Answer::Unknown { message, .. } => {
            fails(plan, (key, node), Failure::new(Code::ACTION_ERROR, message))
        }
        Answer::NotCalled => {
            let why = ReleaseReason::HandOver;
            DryDecision::record(vec![Fact::Released { ready_at: now, why }])
        }
    }
}

fn previewed_as(
    held: &DryHeld,
    plan: &Plan,
    (key, node): (&StepKey, &Step),
    previewed: Previewed,
    now: Timestamp,
) -> DryDecision {
    let Some((action, policy)) = open(plan, node) else { return DryDecision::record(Vec::new()) };
    let retry = plan.retry_of(node).unwrap_or(&policy.retry);
    let kept = |text: String| crate::payload::text_for_storage(&text);
    match previewed {
        Previewed::Planned { summary, cost, output, issues } => {
            let (action, class, summary) = (action.to_owned(), policy.class, kept(summary));
            let issues = issues.into_iter().map(kept).collect();
            let finding = Finding::Effect { action, class, summary, cost, output, issues };
            DryDecision::found(key, finding)
        }
        Previewed::Refused(failure) if is_certain(held, node) => fails(plan, (key, node), failure),
        Previewed::Refused(failure) => indeterminate(key, action, policy.class, &failure.message),
        Previewed::Unsupported { why } => {
            let (action, class, why) = (action.to_owned(), policy.class, kept(why));
            DryDecision::found(key, Finding::Unsupported { action, class, why })
        }
        Previewed::Waits { why } => indeterminate(key, action, policy.class, &why),
        Previewed::FailedForNow { failure, retry_after } => {
            release(held, retry, failure.at(key), retry_after, now)
        }
    }
}

fn release(
    held: &DryHeld,
    retry: &RetryPolicy,
    failure: Failure,
    retry_after: Option<Micros>,
    now: Timestamp,
) -> DryDecision {
    let failures = held.run.failures.max(1);
    let delay = retry_delay(retry, held.run.id, failures, retry_after);
    let why = ReleaseReason::Failed(failure);
    DryDecision::record(vec![Fact::Released { ready_at: now.plus(delay), why }])
}
