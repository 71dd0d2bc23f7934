//! Children of a step, as its action creates and reads them.

use surefoot_kernel_core::{
    BoxFuture, Child, Children, ChildrenCreated, ChildrenError, ChildrenPage, Dependency,
    FenceError, StoreError,
};

use super::{Detached, IdempotentCx, StepCx, TransactionalCx};
use crate::answer::Stop;
use crate::binding::Binding;

/// Creates children on the transaction of a step: they exist if it commits. The worker behind a
/// [`TransactionalCx`].
pub trait ChildrenOnStep<Tx>: Send + Sync {
    /// Creates those that do not exist yet.
    fn create<'a>(
        &'a self,
        tx: &'a mut Tx,
        children: Children,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>>;
}

impl<Tx: Send> ChildrenOnStep<Tx> for Detached {
    fn create<'a>(
        &'a self,
        _tx: &'a mut Tx,
        children: Children,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(std::future::ready(Ok(created(&children))))
    }
}

/// As if all of them were new: what nobody behind a context says.
pub(super) fn created(children: &Children) -> ChildrenCreated {
    let total = u32::try_from(children.len()).unwrap_or(u32::MAX);
    ChildrenCreated { new: total, total }
}

impl<Tx> TransactionalCx<'_, Tx> {
    /// Creates runs of other workflows in the same scope; they exist if and only if this step's outcome does. They go
    /// on by themselves: a step whose work is undone when it waits cannot wait for them, a later one that is
    /// idempotent can.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// A limit is passed, a workflow has no live version, or this worker may not go on.
    pub async fn create_children(
        &mut self,
        children: impl IntoIterator<Item = Child> + Send,
    ) -> Result<ChildrenCreated, Stop> {
        let children = Children::check(children).map_err(|error| stop(&self.step, error))?;
        let created = self.children.create(self.tx, children).await;
        created.map_err(|error| stop(&self.step, error))
    }

    /// The children of this step that earlier transactions have created, by index, with their results.
    ///
    /// Cancel safe: dropping it forgets the answer.
    ///
    /// # Errors
    /// The store's word.
    pub async fn children(&self, from: u32, limit: u32) -> Result<ChildrenPage, Stop> {
        self.step.read_children(from, limit).await
    }
}

impl<B: Binding> IdempotentCx<B> {
    /// Creates runs of other workflows in the same scope, all or none. Those that exist already, from an earlier
    /// attempt, are left as they are.
    ///
    /// Not cancel safe: they may exist when it is dropped; the next attempt finds them.
    ///
    /// # Errors
    /// A limit is passed, a workflow has no live version, or this worker may not go on.
    pub async fn create_children(
        &self,
        children: impl IntoIterator<Item = Child> + Send,
    ) -> Result<ChildrenCreated, Stop> {
        let children = Children::check(children).map_err(|error| stop(&self.step, error))?;
        let created = self.step.0.data.port.children_create(children).await;
        created.map_err(|error| stop(&self.step, error))
    }

    /// The children of this step, by index, with their results. A page ends at its limit, or once it has about 1 MiB
    /// of results; `next` says where the next one begins.
    ///
    /// Cancel safe: dropping it forgets the answer.
    ///
    /// # Errors
    /// The store's word.
    pub async fn children(&self, from: u32, limit: u32) -> Result<ChildrenPage, Stop> {
        self.step.read_children(from, limit).await
    }

    /// Parks the run until every child of this step has ended: `return Err(cx.wait_for_children())`. The step runs
    /// again then, under the same effect key, and finds [`resumed`](StepCx::resumed) set.
    #[must_use]
    pub fn wait_for_children(&self) -> Stop {
        Stop::wait_for(Dependency::on_children(self.step.step_key()))
    }
}

impl StepCx {
    async fn read_children(&self, from: u32, limit: u32) -> Result<ChildrenPage, Stop> {
        let page = self.0.data.port.children_read(from, limit).await;
        page.map_err(|error| Stop::from(FenceError::Store(error)))
    }
}

/// What an action makes of a refusal. The fence's words keep their meaning: no failure is recorded.
fn stop(step: &StepCx, error: ChildrenError) -> Stop {
    if let Some(failure) = error.failure() {
        return Stop::fail(failure.code, failure.message);
    }
    let ChildrenError::Store(error) = error else { return Stop::from(error) };
    let fence = if matches!(error, StoreError::LeaseLost) {
        FenceError::LeaseLost
    } else if matches!(error, StoreError::Canceled) {
        FenceError::Canceled
    } else {
        FenceError::Store(error)
    };
    step.0.note_refusal(&fence);
    Stop::from(fence)
}
