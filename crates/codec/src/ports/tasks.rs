//! Tasks: what is asked, what came of it, and why it could not be done.

use async_trait::async_trait;
use surefoot_kernel_core::{
    App, ClaimTasks, EffectKey, Micros, NewTask, StoreError, Task, TaskEnd, TaskEnded, TaskHold,
    TaskStore,
};

use crate::store::Site;
use crate::{CodecFault, CodecStore};

/// For those that do the work and those that wait for it: a redacted handle has no tasks.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TaskStore> TaskStore for CodecStore<S> {
    async fn task_open(&self, new: NewTask) -> Result<Task, StoreError> {
        let (app, scope) = (new.app.clone(), new.scope.clone());
        let new = self.encoder(Site { app: &app, scope: Some(&scope) }).task(new)?;
        self.decoded(self.inner.task_open(new).await?)
    }

    async fn task_find(&self, app: &App, key: &EffectKey) -> Result<Option<Task>, StoreError> {
        let found = self.inner.task_find(app, key).await?;
        found.map(|task| self.decoded(task)).transpose()
    }

    /// One that cannot be decoded is left for later, and for whoever has the key; the others are not kept waiting for it.
    async fn task_claim(&self, claim: ClaimTasks) -> Result<Vec<Task>, StoreError> {
        let later = TaskEnd::GivenBack { after: claim.lease };
        let mut readable = Vec::new();
        for mut task in self.inner.task_claim(claim).await? {
            match self.decode_task(&mut task) {
                None => readable.push(task),
                // Without an answer its lease ends by itself.
                Some(_) => drop(self.inner.task_end(task.hold(), later.clone()).await),
            }
        }
        Ok(readable)
    }

    async fn task_keep(
        &self,
        held: Vec<TaskHold>,
        lease: Micros,
    ) -> Result<Vec<TaskHold>, StoreError> {
        self.inner.task_keep(held, lease).await
    }

    /// Told twice, one end has two texts. So it is the plain ends that are compared, and the kept one that is told again.
    async fn task_end(&self, hold: TaskHold, end: TaskEnd) -> Result<TaskEnded, StoreError> {
        let Some(task) = self.inner.task_find(&hold.app, &hold.key).await? else {
            return Ok(TaskEnded::Lost);
        };
        let site = Site { app: &task.app, scope: Some(&task.scope) };
        let kept = self.encoder(site).task_end(end.clone())?;
        let ended = self.inner.task_end(hold.clone(), kept).await?;
        if ended != TaskEnded::Lost {
            return Ok(ended);
        }
        // Read anew: the first call, whose answer was lost, may have come late.
        let Some(mut task) = self.inner.task_find(&hold.app, &hold.key).await? else {
            return Ok(TaskEnded::Lost);
        };
        let Some(kept) = task.end() else { return Ok(TaskEnded::Lost) };
        if let Some(fault) = self.decode_task(&mut task) {
            return Err(fault.of_run(task.run));
        }
        match task.has_ended_so(&hold, &end) {
            true => self.inner.task_end(hold, kept).await,
            false => Ok(TaskEnded::Lost),
        }
    }

    async fn task_sweep(&self, app: &App, limit: u32) -> Result<u32, StoreError> {
        self.inner.task_sweep(app, limit).await
    }
}

impl<S> CodecStore<S> {
    fn decoded(&self, mut task: Task) -> Result<Task, StoreError> {
        match self.decode_task(&mut task) {
            None => Ok(task),
            Some(fault) => Err(fault.of_run(task.run)),
        }
    }

    fn decode_task(&self, task: &mut Task) -> Option<CodecFault> {
        let (app, scope) = (task.app.clone(), task.scope.clone());
        let mut decoder = self.decoder(Site { app: &app, scope: Some(&scope) });
        decoder.task(task);
        decoder.take_fault()
    }
}
