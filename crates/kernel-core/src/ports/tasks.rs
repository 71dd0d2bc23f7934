//! Work that a process of its own does for a waiting step.
//!
//! One row per effect key holds what is to be done, as it was pinned when the step first asked. A worker of tasks takes
//! it, does it, and ends it; the end and the signal that wakes the step are one transaction. The task follows its run: a
//! run that is canceled, has ended or is gone takes its tasks with it, and what comes late changes nothing.

use async_trait::async_trait;

use super::{SendSignal, SignalError, StoreError};
use crate::payload::{Payload, text_for_storage};
use crate::{App, Code, Dependency, EffectKey, Micros, RunId, Scope, Signal, StepKey};

/// The kind of the app-wide signal that the end of a task sends; its key is the effect key of the step.
pub const TASK_SIGNAL: &str = "surefoot.task";

/// What a step wants done.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// The run that waits.
    pub run: RunId,
    /// Its step.
    pub step: StepKey,
    /// Which workers do it.
    pub kind: String,
    /// What is to be done, for them.
    pub request: Payload,
}

impl NewTask {
    /// The effect key of the step: there is one task for it.
    #[must_use]
    pub fn key(&self) -> EffectKey {
        EffectKey::of(self.run, &self.step)
    }
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// The run that waits.
    pub run: RunId,
    /// Its step.
    pub step: StepKey,
    /// Which workers do it.
    pub kind: String,
    /// As it was pinned.
    pub request: Payload,
    /// How often it was taken.
    pub attempts: u32,
    /// Attempts that did not end well, the current one included as long as it has not ended.
    pub failures: u32,
    /// Where it stands.
    pub state: TaskState,
}

impl Task {
    /// The effect key of the step.
    #[must_use]
    pub fn key(&self) -> EffectKey {
        EffectKey::of(self.run, &self.step)
    }

    /// What a step waits for whose task has not ended: its signal, and a look for itself now and then. That the deadline
    /// passes is no limit for the task.
    #[must_use]
    pub fn wait(&self, look_after: std::time::Duration) -> Dependency {
        Dependency::on(TASK_SIGNAL, self.key().as_str()).app_wide().deadline_in(look_after)
    }

    /// Whether this attempt has ended so before, in a call whose answer was lost.
    #[must_use]
    pub fn has_ended_so(&self, hold: &TaskHold, end: &TaskEnd) -> bool {
        self.attempts == hold.attempt
            && match end {
                TaskEnd::Succeeded { output } => {
                    matches!(&self.state, TaskState::Succeeded { output: known } if known == output)
                }
                TaskEnd::Failed { code, .. } => {
                    matches!(&self.state, TaskState::Failed { code: known, .. } if known == code)
                }
                TaskEnd::Again { .. } | TaskEnd::GivenBack { .. } => {
                    self.state == TaskState::Queued
                }
            }
    }

    /// How it ended, with what is kept of it; `None` if it has not, or was canceled.
    #[must_use]
    pub fn end(&self) -> Option<TaskEnd> {
        match self.state.clone() {
            TaskState::Queued | TaskState::Running | TaskState::Canceled => None,
            TaskState::Succeeded { output } => Some(TaskEnd::Succeeded { output }),
            TaskState::Failed { code, message } => Some(TaskEnd::Failed { code, message }),
        }
    }

    /// The right to end this attempt.
    #[must_use]
    pub fn hold(&self) -> TaskHold {
        TaskHold { app: self.app.clone(), key: self.key(), attempt: self.attempts }
    }
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// Nobody does it just now.
    Queued,
    /// A worker does it.
    Running,
    /// It was done.
    Succeeded {
        /// What came of it, for the step.
        output: Payload,
    },
    /// It cannot be done.
    Failed {
        /// The worker's code.
        code: Code,
        /// For people.
        message: String,
    },
    /// Nobody wants it any more.
    Canceled,
}

impl TaskState {
    /// As stores keep it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// The opposite of [`as_str`](Self::as_str), with what else a store keeps; `None` if it is none.
    #[must_use]
    pub fn of(word: &str, output: Option<Payload>, failure: (String, String)) -> Option<Self> {
        Some(match word {
            "queued" => Self::Queued,
            "running" => Self::Running,
            "succeeded" => Self::Succeeded { output: output? },
            "failed" => Self::Failed { code: Code::from(failure.0), message: failure.1 },
            "canceled" => Self::Canceled,
            _ => return None,
        })
    }
}

/// The right to end one attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskHold {
    /// Whose.
    pub app: App,
    /// Which task.
    pub key: EffectKey,
    /// Which attempt.
    pub attempt: u32,
}

/// Asks for tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimTasks {
    /// Whose.
    pub app: App,
    /// Which this worker does.
    pub kind: String,
    /// At most so many.
    pub limit: u32,
    /// For how long they are this worker's without a sign of life.
    pub lease: Micros,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEnd {
    /// It was done.
    Succeeded {
        /// What came of it.
        output: Payload,
    },
    /// It cannot be done.
    Failed {
        /// The worker's code.
        code: Code,
        /// For people. Kept as it is: [`TaskEnd::failed`] makes a text of it that can be kept.
        message: String,
    },
    /// Another attempt may do it.
    Again {
        /// Not before so long.
        after: Micros,
    },
    /// It was begun and let go, for another worker: no failure.
    GivenBack {
        /// Not before so long.
        after: Micros,
    },
}

impl TaskEnd {
    /// It cannot be done. The message is cut and escaped so that every store can keep it.
    #[must_use]
    pub fn failed(code: impl Into<Code>, message: impl AsRef<str>) -> Self {
        Self::Failed { code: code.into(), message: text_for_storage(message.as_ref()) }
    }

    /// What wakes the step, if the task has ended with it.
    ///
    /// # Errors
    /// Never, for the key of a step.
    pub fn signal(&self, hold: &TaskHold) -> Result<Option<SendSignal>, SignalError> {
        let signal = match self {
            Self::Succeeded { .. } | Self::Failed { .. } => {
                Signal::new(TASK_SIGNAL, hold.key.as_str()).check()?
            }
            Self::Again { .. } | Self::GivenBack { .. } => return Ok(None),
        };
        Ok(Some(SendSignal { app: hold.app.clone(), scope: None, signal }))
    }
}

/// What became of an end. Exhaustive on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnded {
    /// Recorded now; the step is woken, unless there will be another attempt.
    Recorded,
    /// This attempt had ended so before; the step is woken again.
    Known,
    /// The task is another worker's, or nobody wants it any more. Nothing was changed, nobody is woken.
    Lost,
}

/// Keeps tasks, beside the runs that wait for them.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Writes a task, or finds the one that its step has already: that one keeps what was pinned. One that failed or was
    /// canceled before its run was retried is queued again, with no failure counted.
    async fn task_open(&self, new: NewTask) -> Result<Task, StoreError>;

    /// The task of a step.
    async fn task_find(&self, app: &App, key: &EffectKey) -> Result<Option<Task>, StoreError>;

    /// Takes tasks that are due: queued ones, and those whose worker has shown no sign of life for its lease. The longest
    /// due first.
    async fn task_claim(&self, claim: ClaimTasks) -> Result<Vec<Task>, StoreError>;

    /// Renews leases. What is not among the answers is lost: stop doing it.
    async fn task_keep(
        &self,
        held: Vec<TaskHold>,
        lease: Micros,
    ) -> Result<Vec<TaskHold>, StoreError>;

    /// Ends an attempt and, if the task has ended with it, sends its signal in the same transaction. Repeatable: after an
    /// unknown outcome, end it again.
    async fn task_end(&self, hold: TaskHold, end: TaskEnd) -> Result<TaskEnded, StoreError>;

    /// Cancels tasks, at most so many, that nobody wants any more: their run is gone, has ended, or is to be canceled.
    async fn task_sweep(&self, app: &App, limit: u32) -> Result<u32, StoreError>;
}
