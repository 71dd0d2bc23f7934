//! Versions and activations.

use async_trait::async_trait;

use surefoot_kernel_core::{
    Activate, ActivationSet, App, PlanStore, Publish, PublishError, Published, Schedules, Scope,
    SetActivation, StoreError, StoredVersion, VersionId, WorkflowKey, WorkflowRow,
};

use crate::plan::{list, publish, switch};
use crate::store::PostgresStore;

#[async_trait]
impl PlanStore for PostgresStore {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.writer().ask(publish::WriteVersion(publish)).await
    }

    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.writer().ask(publish::MakeLive(activate)).await
    }

    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.writer().ask(switch::Switch(set)).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        let load =
            self.read(move |conn| Box::pin(async move { list::version(conn, version).await }));
        load.await
    }

    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        let (app, scope) = (app.clone(), scope.cloned());
        let list = self.read(move |conn| {
            Box::pin(async move { list::workflows(conn, &app, scope.as_ref()).await })
        });
        list.await
    }

    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        let app = app.clone();
        let list = self.read_now(move |conn, now| {
            Box::pin(async move { list::schedules(conn, &app, now).await })
        });
        list.await
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        let (app, scope, workflow) = (app.clone(), scope.clone(), workflow.clone());
        let list = self.read(move |conn| {
            Box::pin(async move { list::versions(conn, &app, &scope, &workflow).await })
        });
        list.await
    }
}
