//! Events and signals.

use async_trait::async_trait;

use surefoot_kernel_core::{
    App, Dispatched, Emission, Emit, EmitError, EventStore, SendSignal, SignalError, SignalSent,
    StoreError,
};

use crate::event::{dispatch, signal};
use crate::store::PostgresStore;

#[async_trait]
impl EventStore for PostgresStore {
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        self.emits().emit(emit).await
    }

    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        let (of, clock) = (app.clone(), self.clock().clone());
        let is_due = self
            .read(move |conn| Box::pin(async move { dispatch::is_due(conn, &of, &clock).await }));
        if !is_due.await? {
            return Ok(Dispatched::default());
        }
        self.writer().ask(dispatch::DispatchDue { app: app.clone(), limit }).await
    }

    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError> {
        self.writer().ask(signal::Send(send)).await
    }
}
