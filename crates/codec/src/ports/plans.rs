//! Versions and activations: plans and sources stay plain, the fallback authorization does not.

use async_trait::async_trait;
use surefoot_kernel_core::{
    Activate, ActivationSet, App, PlanStore, Publish, PublishError, Published, Schedules, Scope,
    SetActivation, StoreError, StoredVersion, VersionId, WorkflowKey, WorkflowRow,
};

use crate::store::Site;
use crate::{CodecFault, CodecStore, View};

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: PlanStore, V: View> PlanStore for CodecStore<S, V> {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        let publish = self.encode_publish(publish).map_err(StoreError::from)?;
        self.inner.version_publish(publish).await
    }

    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.inner.version_activate(activate).await
    }

    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.inner.activation_set(set).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        self.inner.version_load(version).await
    }

    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        self.inner.workflow_list(app, scope).await
    }

    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        self.inner.schedule_list(app).await
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        self.inner.version_list(app, scope, workflow).await
    }
}

impl<S, V> CodecStore<S, V> {
    pub(super) fn encode_publish(&self, mut publish: Publish) -> Result<Publish, CodecFault> {
        let site = Site { app: &publish.app, scope: Some(&publish.scope) };
        publish.authorization = self.encoder(site).authorization(publish.authorization)?;
        Ok(publish)
    }
}
