//! What ends: nothing of it reads a payload, so nothing needs a key, and what cannot be decoded any more can be deleted.

use async_trait::async_trait;
use surefoot_kernel_core::{
    App, Delete, Deleted, Expired, Place, Prune, Pruned, Redrive, Redriven, RetentionError,
    RetentionStore, StoreError,
};

use crate::{CodecStore, View};

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: RetentionStore, V: View> RetentionStore for CodecStore<S, V> {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        self.inner.event_expire(app, limit).await
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.inner.event_redrive(redrive).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        self.inner.prune(prune).await
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.inner.delete_begin(delete).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        self.inner.delete_pass(place, limit).await
    }
}
