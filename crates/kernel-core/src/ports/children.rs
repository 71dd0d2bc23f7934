//! Children of a step: created, counted, read.

use async_trait::async_trait;

use super::{BoxFuture, StoreError};
use crate::{ChildResult, Children, ChildrenError, RunId, RunState, Stamp, StepKey};

/// Creates and reads the children of steps.
///
/// What a commit of a child means to its group is part of [`RunStore::run_commit`](super::RunStore::run_commit): in
/// the same transaction the end of a child lowers the count of live ones, lets held siblings go, and wakes a parent
/// that waits for the last one; see [`ChildMove`](crate::ChildMove) and [`ChildGroup`](crate::ChildGroup).
#[async_trait]
pub trait ChildStore: Send + Sync {
    /// Creates the children of a step, all or none, with the parent's row locked first. Those that exist already are
    /// left as they are: the same call again creates nothing.
    ///
    /// Each is pinned to the live version of its workflow in the parent's app and scope. Context, actor and
    /// authorization are the parent's.
    ///
    /// # Errors
    /// `LeaseLost` if another generation holds the parent, or nobody does; `Canceled` if cancel was requested.
    /// `UnknownOutcome`: repeat the call.
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError>;

    /// Children of a step with their results, by index. A page ends at its limit, or once it has about 1 MiB of
    /// results; it has at least one row if there is one.
    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError>;

    /// The groups of a run, by step.
    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError>;
}

/// Children to create.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateChildren {
    /// The parent; its revision is not looked at.
    pub before: Stamp,
    /// The step.
    pub step: StepKey,
    /// The children, in order.
    pub children: Children,
    /// At most so many of the group are unfinished at once; absent is all of them. The first call of a step decides.
    pub parallel: Option<u32>,
}

/// What a call created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildrenCreated {
    /// By this call.
    pub new: u32,
    /// Children of the step now.
    pub total: u32,
}

/// Which children to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildrenRequest {
    /// The parent.
    pub parent: RunId,
    /// Its step.
    pub step: StepKey,
    /// Only from this index on.
    pub from: u32,
    /// At most so many, 1 to 1,000.
    pub limit: u32,
}

/// A page of children.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildrenPage {
    /// By index.
    pub children: Vec<ChildResult>,
    /// Children of the step.
    pub total: u32,
    /// The index at which the next page begins.
    pub next: Option<u32>,
}

/// The children of a step in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// The step.
    pub step: StepKey,
    /// Created so far.
    pub total: u32,
    /// Not ended.
    pub live: u32,
    /// Held back until a sibling ends.
    pub held: u32,
    /// At most so many are unfinished at once.
    pub parallel: u32,
    /// Every state, and how many children are in it.
    pub states: Vec<(RunState, u32)>,
}

impl GroupRow {
    /// How many children are in a state.
    #[must_use]
    pub fn count(&self, state: RunState) -> u32 {
        self.states.iter().find(|(of, _)| *of == state).map_or(0, |(_, count)| *count)
    }
}

/// Creates children on somebody's transaction: they exist if it commits.
pub trait ChildrenOn<Tx>: Send + Sync {
    /// [`ChildStore::children_create`] inside the transaction.
    fn create<'a>(
        &'a self,
        tx: &'a mut Tx,
        create: CreateChildren,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>>;
}
