//! What ends.

use async_trait::async_trait;

use surefoot_kernel_core::{
    App, Delete, Deleted, Expired, Place, Prune, Pruned, Redrive, Redriven, RetentionError,
    RetentionStore, StoreError,
};

use crate::retention::{delete, expire, prune, redrive};
use crate::store::PostgresStore;

#[async_trait]
impl RetentionStore for PostgresStore {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        let app = app.clone();
        let found = self.read_now(move |conn, now| {
            Box::pin(async move { expire::expired(conn, &app, limit, now).await })
        });
        let (events, more) = found.await?;
        if events.is_empty() {
            return Ok(Expired::default());
        }
        self.writer().ask(expire::Empty { events, more }).await
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.writer().ask(redrive::RedriveEvent(redrive)).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        let asked = prune.clone();
        let found = self.read(move |conn| Box::pin(async move { prune::find(conn, &asked).await }));
        let found = found.await?;
        self.writer().ask(prune::Carry { prune, found }).await
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.writer().ask(delete::Begin(delete)).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        let what = format!("deletion of {place} that has begun");
        let part =
            self.read(move |conn| Box::pin(async move { delete::find(conn, &place, limit).await }));
        match part.await? {
            Some(part) => self.writer().ask(delete::Carry { part, limit }).await,
            None => Err(RetentionError::NotFound { what }),
        }
    }
}
