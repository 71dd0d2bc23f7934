//! Creates and reads the children of steps: of built-in ones as the core asks, of actions as they ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use surefoot_kernel_core::{
    BoxFuture, Children, ChildrenCreated, ChildrenError, ChildrenOn, ChildrenPage, ChildrenRequest,
    Collect, CreateChildren, Input, Join, Spawn, Stamp, StepKey, StoreError, TxStore,
};
use surefoot_language::ChildrenOnStep;

use super::book::Book;
use super::commit::{Trouble, trouble};
use super::{Driver, Left, defect};
use crate::engine::life::with_causes;
use crate::engine::pace::Pause;

/// Children of one page. Their results bound it as well.
const PAGE: u32 = 500;

impl<S: TxStore> Driver<S> {
    /// Creates what a built-in step wants. Asked again where nobody knows: what exists is not created twice.
    pub(super) async fn spawn(&self, book: &mut Book<S::Tx>, spawn: Spawn) -> Result<Input, Left> {
        let Spawn { step, children, parallel } = spawn;
        let mut pause = Pause::store();
        loop {
            let create = CreateChildren {
                before: book.before,
                step: step.clone(),
                children: children.clone(),
                parallel,
            };
            let error = match self.engine.kernel.store().children_create(create).await {
                Ok(_) => {
                    self.engine.wake(false);
                    return Ok(Input::Spawned { step, result: Ok(()) });
                }
                Err(ChildrenError::Store(error)) => error,
                Err(refused) => {
                    let failure = refused.failure().ok_or_else(|| defect(refused))?;
                    return Ok(Input::Spawned { step, result: Err(failure) });
                }
            };
            match trouble(&error) {
                Trouble::Changed => {
                    self.reload(book).await?;
                    return Ok(Input::Advance);
                }
                Trouble::Lost => {
                    self.hold.lose(self.hold.generation());
                    return Err(Left::Lost);
                }
                Trouble::Unknown | Trouble::Later => {
                    if !self.may_wait(&mut pause).await {
                        return Err(Left::LetGo(with_causes(&error)));
                    }
                }
                Trouble::OverBudget(_) | Trouble::Refused | Trouble::Hopeless => {
                    return Err(Left::LetGo(with_causes(&error)));
                }
            }
        }
    }

    /// Reads what the children came to, page by page.
    pub(super) async fn collect(&self, collect: Collect) -> Result<Input, Left> {
        let Collect { step, is_list } = collect;
        let mut from = 0;
        let mut join: Option<Join> = None;
        loop {
            let page = self.children_page(&step, from).await?;
            let total = page.total;
            let join = join.get_or_insert_with(|| Join::new(is_list, total));
            page.children.into_iter().for_each(|child| join.add(child));
            match page.next {
                Some(next) => from = next,
                None => break,
            }
        }
        let joined = join.unwrap_or_else(|| Join::new(is_list, 0)).end();
        Ok(Input::Joined { step, joined })
    }

    async fn children_page(&self, step: &StepKey, from: u32) -> Result<ChildrenPage, Left> {
        let mut pause = Pause::store();
        loop {
            let (parent, step) = (self.hold.run(), step.clone());
            let request = ChildrenRequest { parent, step, from, limit: PAGE };
            let error = match self.engine.kernel.store().children_read(request).await {
                Ok(page) => return Ok(page),
                Err(error) => error,
            };
            let is_transient = matches!(trouble(&error), Trouble::Later | Trouble::Unknown);
            if !is_transient || !self.may_wait(&mut pause).await {
                return Err(Left::LetGo(with_causes(&error)));
            }
        }
    }

    /// What a transactional step creates children with.
    pub(super) fn children_on(&self, before: Stamp, step: &StepKey) -> StepChildren<S::Tx> {
        StepChildren {
            store: self.engine.kernel.store().children_on(),
            before,
            step: step.clone(),
            any: AtomicBool::new(false),
        }
    }
}

/// Creates children of one step on its transaction.
pub(super) struct StepChildren<Tx> {
    store: Arc<dyn ChildrenOn<Tx>>,
    before: Stamp,
    step: StepKey,
    any: AtomicBool,
}

impl<Tx> StepChildren<Tx> {
    /// Whether there are any: then somebody may claim them once they are committed.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }
}

impl<Tx: Send> ChildrenOnStep<Tx> for StepChildren<Tx> {
    fn create<'a>(
        &'a self,
        tx: &'a mut Tx,
        children: Children,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>> {
        let (before, step) = (self.before, self.step.clone());
        let create = CreateChildren { before, step, children, parallel: None };
        self.any.store(true, Ordering::Relaxed);
        self.store.create(tx, create)
    }
}

/// What is asked of the store in the name of a step that holds its run.
pub(super) fn create_request(before: Stamp, step: &StepKey, children: Children) -> CreateChildren {
    CreateChildren { before, step: step.clone(), children, parallel: None }
}

/// A page of a step's children.
pub(super) fn read_request(
    before: Stamp,
    step: &StepKey,
    from: u32,
    limit: u32,
) -> ChildrenRequest {
    ChildrenRequest { parent: before.run, step: step.clone(), from, limit }
}

/// The outcome of a write in doubt is found by asking again.
pub(super) const fn is_in_doubt(error: &ChildrenError) -> bool {
    matches!(error, ChildrenError::Store(StoreError::UnknownOutcome(_)))
}
