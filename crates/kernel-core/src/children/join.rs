//! What the results of a group are to the step that waits for them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::interpreter::{LOOP_VALUE_MAX_BYTES, json_len};
use crate::{Code, Failure, Phase, Run, RunId, RunState, WorkflowKey};

/// How one child ended, or where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildResult {
    /// Its place among the children of its step.
    pub index: u32,
    /// Its id.
    pub run: RunId,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// Where it stands.
    pub state: RunState,
    /// Its result, if it succeeded.
    pub result: Value,
    /// Why it failed or needs a person.
    pub error: Option<Failure>,
    /// Its sentence for people.
    pub message: Option<String>,
}

/// The results of a group, read page by page. Keeps no more than the outcome of the step can hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    is_list: bool,
    expected: u32,
    pub(super) results: Vec<Value>,
    bytes: usize,
    states: BTreeMap<RunState, u32>,
    failed: Option<ChildResult>,
    canceled: Option<ChildResult>,
}

/// What a group came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Joined {
    /// Some have not ended after all.
    Live,
    /// Every child succeeded: the outcome of the step.
    Done(Value),
    /// At least one failed or was canceled, or the results are too large.
    Failed(Failure),
}

impl Join {
    /// Of one child, or of a list of them.
    #[must_use]
    pub const fn new(is_list: bool, expected: u32) -> Self {
        Self {
            is_list,
            expected,
            results: Vec::new(),
            bytes: 0,
            states: BTreeMap::new(),
            failed: None,
            canceled: None,
        }
    }

    /// Takes the next child, by index.
    pub fn add(&mut self, child: ChildResult) {
        *self.states.entry(child.state).or_default() += 1;
        match child.state {
            RunState::Succeeded if self.keeps() => {
                self.bytes = self.bytes.saturating_add(json_len(&child.result)).saturating_add(1);
                self.results.push(child.result);
            }
            RunState::Failed if self.failed.is_none() => self.failed = Some(child),
            RunState::Canceled if self.canceled.is_none() => self.canceled = Some(child),
            RunState::Succeeded
            | RunState::Failed
            | RunState::Canceled
            | RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::NeedsAttention => {}
        }
        if !self.keeps() {
            self.results = Vec::new();
        }
    }

    /// Whether results are still of use: nothing went wrong so far.
    fn keeps(&self) -> bool {
        self.failed.is_none() && self.canceled.is_none() && !self.is_too_large()
    }

    fn is_too_large(&self) -> bool {
        self.bytes > LOOP_VALUE_MAX_BYTES
    }

    /// What they came to. A failure outranks a cancel, which outranks a size: the first by index is named.
    #[must_use]
    pub fn end(mut self) -> Joined {
        let known: u32 = self.states.values().sum();
        if self.states.keys().any(|state| !state.is_terminal()) {
            return Joined::Live;
        }
        if known != self.expected || known == 0 {
            let text = format!("{known} of {} children can be read", self.expected);
            return Joined::Failed(Failure::new(Code::VALUE_UNAVAILABLE, text));
        }
        if let Some(child) = self.failed.take() {
            return Joined::Failed(self.failure(&child));
        }
        if let Some(child) = self.canceled.take() {
            return Joined::Failed(self.failure(&child));
        }
        if self.is_too_large() {
            let text = format!("the children's results are over {LOOP_VALUE_MAX_BYTES} bytes");
            return Joined::Failed(Failure::new(Code::VALUE_TOO_LARGE, text));
        }
        let value = if self.is_list {
            Value::Array(self.results)
        } else {
            self.results.pop().unwrap_or(Value::Null)
        };
        if crate::payload::is_too_deep(&value) {
            let text = "the children's results are nested deeper than a payload may be";
            return Joined::Failed(Failure::new(Code::VALUE_TOO_LARGE, text));
        }
        Joined::Done(value)
    }

    /// A child that did not succeed, as the failure of the step: under its own code, and with the numbers of all.
    fn failure(&self, child: &ChildResult) -> Failure {
        let unsaid = Failure::new(Code::CHILD_CANCELED, "");
        let error = child.error.as_ref().unwrap_or(&unsaid);
        let reason = child.message.as_deref().unwrap_or("no reason was kept");
        let what = match child.state {
            RunState::Canceled => format!("was canceled: {reason}"),
            RunState::Failed
            | RunState::Succeeded
            | RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::NeedsAttention => format!("failed: {}", error.message),
        };
        let mut text = format!("child run {} of workflow `{}` {what}", child.run, child.workflow);
        let count = |state| self.states.get(&state).copied().unwrap_or_default();
        let (failed, canceled) = (count(RunState::Failed), count(RunState::Canceled));
        if self.is_list {
            text.push_str(&format!(
                "; of {} children {failed} failed and {canceled} were canceled",
                self.expected
            ));
        }
        let details = json!({
            "run": child.run.to_string(),
            "index": child.index,
            "total": self.expected,
            "succeeded": count(RunState::Succeeded),
            "failed": failed,
            "canceled": canceled,
            "error": error.details,
        });
        Failure::new(error.code.clone(), text).details(details)
    }
}

impl ChildResult {
    /// What a run is to the step that waits for it.
    #[must_use]
    pub fn of(run: &Run, index: u32) -> Self {
        let (result, error, message) = match &run.phase {
            Phase::Succeeded { result, message } => (result.clone(), None, message.clone()),
            Phase::Failed { error, .. } => (Value::Null, Some(error.clone()), None),
            Phase::NeedsAttention(attention) => (Value::Null, Some(attention.error.clone()), None),
            Phase::Canceled { message } => (Value::Null, None, message.clone()),
            Phase::Queued { .. } | Phase::Running { .. } | Phase::Waiting(_) => {
                (Value::Null, None, None)
            }
        };
        let workflow = run.origin.workflow.clone();
        Self { index, run: run.id, workflow, state: run.state(), result, error, message }
    }
}
