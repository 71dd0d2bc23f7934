//! Tasks in memory.

use async_trait::async_trait;
use surefoot_kernel_core::{
    App, ClaimTasks, EffectKey, Micros, NewTask, RunId, SignalError, StoreError, TASK_SIGNAL, Task,
    TaskEnd, TaskEnded, TaskHold, TaskState, TaskStore, Timestamp,
};

use super::MemoryStore;
use super::state::{SignalKey, State};

/// A task, and when it may be taken; of one that has ended, when it ended.
#[derive(Debug, Clone)]
pub(super) struct TaskEntry {
    task: Task,
    due_at: Timestamp,
    no: usize,
    /// Whether its run was tried again since it ended.
    retried: bool,
}

impl TaskEntry {
    pub(super) fn run(&self) -> RunId {
        self.task.run
    }

    fn is_open(&self) -> bool {
        match self.task.state {
            TaskState::Queued | TaskState::Running => true,
            TaskState::Succeeded { .. } | TaskState::Failed { .. } | TaskState::Canceled => false,
        }
    }

    fn is_held(&self, hold: &TaskHold) -> bool {
        self.task.state == TaskState::Running && self.task.attempts == hold.attempt
    }
}

impl TaskEntry {
    fn end(&mut self, end: &TaskEnd, now: Timestamp) {
        self.due_at = now;
        self.task.state = match end {
            TaskEnd::Succeeded { output } => TaskState::Succeeded { output: output.clone() },
            TaskEnd::Failed { code, message } => {
                TaskState::Failed { code: code.clone(), message: message.clone() }
            }
            TaskEnd::Again { after } => {
                self.due_at = now.plus(*after);
                TaskState::Queued
            }
            TaskEnd::GivenBack { after } => {
                self.due_at = now.plus(*after);
                self.task.failures = self.task.failures.saturating_sub(1);
                TaskState::Queued
            }
        };
    }
}

#[async_trait]
impl TaskStore for MemoryStore {
    async fn task_open(&self, new: NewTask) -> Result<Task, StoreError> {
        Ok(self.write(|state, now| state.task_open(new, now)).await)
    }

    async fn task_find(&self, app: &App, key: &EffectKey) -> Result<Option<Task>, StoreError> {
        let key = (app.clone(), key.clone());
        Ok(self.read().tasks.get(&key).map(|entry| entry.task.clone()))
    }

    async fn task_claim(&self, claim: ClaimTasks) -> Result<Vec<Task>, StoreError> {
        Ok(self.write(|state, now| state.task_claim(&claim, now)).await)
    }

    async fn task_keep(
        &self,
        held: Vec<TaskHold>,
        lease: Micros,
    ) -> Result<Vec<TaskHold>, StoreError> {
        Ok(self.write(|state, now| state.task_keep(held, now.plus(lease))).await)
    }

    async fn task_end(&self, hold: TaskHold, end: TaskEnd) -> Result<TaskEnded, StoreError> {
        self.write(|state, now| state.task_end(&hold, end, now)).await
    }

    async fn task_sweep(&self, app: &App, limit: u32) -> Result<u32, StoreError> {
        Ok(self.write(|state, _| state.task_sweep(app, limit)).await)
    }
}

impl State {
    fn task_open(&mut self, new: NewTask, now: Timestamp) -> Task {
        let no = self.tasks.len();
        let (key, kind) = ((new.app.clone(), new.key()), new.kind.clone());
        let entry = self.tasks.entry(key).or_insert_with(|| {
            let NewTask { app, scope, run, step, kind, request } = new;
            let state = TaskState::Queued;
            let task =
                Task { app, scope, run, step, kind, request, attempts: 0, failures: 0, state };
            TaskEntry { task, due_at: now, no, retried: false }
        });
        if std::mem::take(&mut entry.retried) {
            entry.due_at = now;
            let task = &mut entry.task;
            (task.kind, task.state, task.failures) = (kind, TaskState::Queued, 0);
        }
        entry.task.clone()
    }

    /// What the steps of a run asked for and did not get is done afresh, should one of them ask again.
    pub(super) fn retry_tasks(&mut self, run: RunId) {
        for entry in self.tasks.values_mut().filter(|entry| entry.task.run == run) {
            entry.retried = match entry.task.state {
                TaskState::Failed { .. } | TaskState::Canceled => true,
                TaskState::Queued | TaskState::Running | TaskState::Succeeded { .. } => false,
            };
            if entry.retried {
                self.signals.remove(&SignalKey {
                    app: entry.task.app.clone(),
                    scope: None,
                    kind: TASK_SIGNAL.to_owned(),
                    key: entry.task.key().as_str().to_owned(),
                });
            }
        }
    }

    fn task_claim(&mut self, claim: &ClaimTasks, now: Timestamp) -> Vec<Task> {
        let of_claim = |entry: &&mut TaskEntry| {
            entry.task.app == claim.app
                && entry.task.kind == claim.kind
                && entry.is_open()
                && entry.due_at <= now
        };
        let mut due: Vec<&mut TaskEntry> = self.tasks.values_mut().filter(of_claim).collect();
        due.sort_by_key(|entry| (entry.due_at, entry.no));
        let limit = usize::try_from(claim.limit).unwrap_or(usize::MAX);
        let taken = due.into_iter().take(limit).map(|entry| {
            entry.task.state = TaskState::Running;
            entry.task.attempts += 1;
            entry.task.failures += 1;
            entry.due_at = now.plus(claim.lease);
            entry.task.clone()
        });
        taken.collect()
    }

    fn task_keep(&mut self, held: Vec<TaskHold>, until: Timestamp) -> Vec<TaskHold> {
        let mut kept = held;
        kept.retain(|hold| match self.tasks.get_mut(&(hold.app.clone(), hold.key.clone())) {
            Some(entry) if entry.is_held(hold) => {
                entry.due_at = until;
                true
            }
            Some(_) | None => false,
        });
        kept
    }

    fn task_end(
        &mut self,
        hold: &TaskHold,
        end: TaskEnd,
        now: Timestamp,
    ) -> Result<TaskEnded, StoreError> {
        let key = (hold.app.clone(), hold.key.clone());
        let Some(entry) = self.tasks.get_mut(&key) else { return Ok(TaskEnded::Lost) };
        let ended = if entry.is_held(hold) {
            entry.end(&end, now);
            TaskEnded::Recorded
        } else if entry.task.has_ended_so(hold, &end) {
            TaskEnded::Known
        } else {
            return Ok(TaskEnded::Lost);
        };
        let refused = |error: SignalError| {
            let SignalError::Store(error) = error else {
                return StoreError::Refused(Box::new(error));
            };
            error
        };
        if let Some(send) = end.signal(hold).map_err(refused)? {
            self.signal_send(&send, now).map_err(refused)?;
        }
        Ok(ended)
    }

    fn task_sweep(&mut self, app: &App, limit: u32) -> u32 {
        let runs = &self.runs;
        let is_unwanted = |entry: &&mut TaskEntry| {
            entry.task.app == *app
                && entry.is_open()
                && runs.get(&entry.task.run).is_none_or(|stored| {
                    stored.run.cancel.is_some() || stored.run.state().is_terminal()
                })
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut canceled = 0;
        for entry in self.tasks.values_mut().filter(is_unwanted).take(limit) {
            entry.task.state = TaskState::Canceled;
            canceled += 1;
        }
        canceled
    }
}
