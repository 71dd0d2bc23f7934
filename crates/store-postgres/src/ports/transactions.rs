//! The application's own transactions.

use std::error::Error;
use std::sync::Arc;

use sqlx::Connection;

use surefoot_kernel_core::{
    ChildrenOn, Committed, Emission, Emit, EmitError, Fence, Publish, PublishError, Published,
    RunId, SendSignal, SignalError, SignalSent, Stamp, StoreError, TxStore, TxWork,
};

use crate::child::create::OnTransaction;
use crate::error::is_transaction_conflict;
use crate::event::{emit, signal};
use crate::fence::PostgresFence;
use crate::plan::publish;
use crate::store::{PostgresStore, now};
use crate::transaction::{PostgresTransaction, PostgresTx};

impl TxStore for PostgresStore {
    type Tx = PostgresTx;
    type Open = PostgresTransaction;

    async fn begin(&self) -> Result<PostgresTransaction, StoreError> {
        self.transactions().begin().await
    }

    async fn commit(&self, open: PostgresTransaction) -> Result<(), StoreError> {
        open.commit().await
    }

    async fn event_emit_in(&self, tx: &mut PostgresTx, emit: Emit) -> Result<Emission, EmitError> {
        in_transaction(tx)?;
        let emit = Emit { eager: None, ..emit };
        emit::emit(tx, &emit, self.clock()).await
    }

    async fn version_publish_in(
        &self,
        tx: &mut PostgresTx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        in_transaction(tx)?;
        let now = now(tx, self.clock()).await?;
        publish::publish(tx, &publish, now).await
    }

    async fn signal_send_in(
        &self,
        tx: &mut PostgresTx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        in_transaction(tx)?;
        let now = now(tx, self.clock()).await?;
        signal::send(tx, &send, now).await
    }

    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<PostgresTx>,
    ) -> Result<Option<Committed>, StoreError> {
        self.transactions().run_transact(before, work).await
    }

    fn children_on(&self) -> Arc<dyn ChildrenOn<PostgresTx>> {
        Arc::new(OnTransaction(self.clone()))
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<PostgresTx>> {
        Arc::new(PostgresFence { run, generation })
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        is_transaction_conflict(error)
    }
}

fn in_transaction(tx: &PostgresTx) -> Result<(), StoreError> {
    if tx.is_in_transaction() { Ok(()) } else { Err(StoreError::NotInTransaction) }
}
