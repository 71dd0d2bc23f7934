//! Children: their inputs on the way in, their results on the way out.

use std::sync::Arc;

use async_trait::async_trait;
use surefoot_kernel_core::{
    BoxFuture, ChildStore, ChildrenCreated, ChildrenError, ChildrenOn, ChildrenPage,
    ChildrenRequest, CreateChildren, GroupRow, RunId, RunStore, StoreError, TxStore,
};

use crate::store::Site;
use crate::{CodecStore, View};

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: RunStore + ChildStore, V: View> ChildStore for CodecStore<S, V> {
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError> {
        let create = self.encode_children(create).await?;
        self.inner.children_create(create).await
    }

    /// A step cannot do without the result of a child: one that cannot be decoded is the error of the read.
    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError> {
        let parent = request.parent;
        let mut page = self.inner.children_read(request).await?;
        if page.children.is_empty() {
            return Ok(page);
        }
        // They are in their parent's app and scope.
        let Some(origin) = self.origin_of(parent).await? else { return Ok(page) };
        for child in &mut page.children {
            let mut decoder = self.decoder(Site::of(&origin));
            decoder.child(child);
            if let Some(fault) = decoder.take_fault() {
                return Err(fault.of_run(child.run));
            }
        }
        Ok(page)
    }

    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError> {
        self.inner.children_groups(parent).await
    }
}

impl<S: RunStore, V: View> CodecStore<S, V> {
    async fn encode_children(&self, create: CreateChildren) -> Result<CreateChildren, StoreError> {
        let origin = self.origin_of(create.before.run).await?.ok_or(StoreError::LeaseLost)?;
        let children = self.encoder(Site::of(&origin)).children(&create.children)?;
        Ok(CreateChildren { children, ..create })
    }
}

/// Children on somebody's transaction.
pub(super) struct OnTransaction<S: TxStore> {
    pub(super) store: CodecStore<S>,
    pub(super) inner: Arc<dyn ChildrenOn<S::Tx>>,
}

#[deny(clippy::missing_trait_methods)]
impl<S: TxStore> ChildrenOn<S::Tx> for OnTransaction<S> {
    fn create<'a>(
        &'a self,
        tx: &'a mut S::Tx,
        create: CreateChildren,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(async move {
            let create = self.store.encode_children(create).await?;
            self.inner.create(tx, create).await
        })
    }
}
