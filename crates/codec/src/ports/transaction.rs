//! What needs the application's transaction.

use std::error::Error;
use std::sync::Arc;

use surefoot_kernel_core::{
    BoxFuture, ChildrenOn, Committed, Emission, Emit, EmitError, Fence, Locked, Publish,
    PublishError, Published, RunId, SendSignal, SignalError, SignalSent, Stamp, StoreError,
    TxStore, TxWork, Work,
};

use super::children::OnTransaction;
use crate::CodecStore;
use crate::hidden::HiddenParts;
use crate::store::Site;

#[deny(clippy::missing_trait_methods)]
impl<S: TxStore> TxStore for CodecStore<S> {
    type Tx = S::Tx;
    type Open = S::Open;

    async fn begin(&self) -> Result<Self::Open, StoreError> {
        self.inner.begin().await
    }

    async fn commit(&self, open: Self::Open) -> Result<(), StoreError> {
        self.inner.commit(open).await
    }

    async fn event_emit_in(&self, tx: &mut Self::Tx, emit: Emit) -> Result<Emission, EmitError> {
        let emit = self.encode_emit(emit).map_err(StoreError::from)?;
        self.inner.event_emit_in(tx, emit).await
    }

    async fn version_publish_in(
        &self,
        tx: &mut Self::Tx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        let publish = self.encode_publish(publish).map_err(StoreError::from)?;
        self.inner.version_publish_in(tx, publish).await
    }

    async fn signal_send_in(
        &self,
        tx: &mut Self::Tx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        let send = self.encode_signal(send).map_err(StoreError::from)?;
        self.inner.signal_send_in(tx, send).await
    }

    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<Self::Tx>,
    ) -> Result<Option<Committed>, StoreError> {
        let mut work = EncodedWork { store: self, inner: work, failed: None };
        let done = self.inner.run_transact(before, &mut work).await;
        if let Some(error) = work.failed {
            return Err(error);
        }
        let mut done = done?;
        done.iter_mut().for_each(|committed| self.decode_row(&mut committed.run));
        Ok(done)
    }

    fn children_on(&self) -> Arc<dyn ChildrenOn<Self::Tx>> {
        Arc::new(OnTransaction { store: self.clone(), inner: self.inner.children_on() })
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<Self::Tx>> {
        self.inner.fence(run, generation)
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        self.inner.is_transaction_conflict(error)
    }
}

/// The work of a transactional step, on the decoded row; its commit is encoded. Where either fails, all is rolled back.
struct EncodedWork<'w, S: TxStore> {
    store: &'w CodecStore<S>,
    inner: &'w mut dyn TxWork<S::Tx>,
    failed: Option<StoreError>,
}

#[deny(clippy::missing_trait_methods)]
impl<S: TxStore> TxWork<S::Tx> for EncodedWork<'_, S> {
    fn work<'a>(&'a mut self, tx: &'a mut S::Tx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(async move {
            self.encoded(tx, locked).await.unwrap_or_else(|error| {
                self.failed = Some(error);
                Work::Rollback
            })
        })
    }
}

impl<S: TxStore> EncodedWork<'_, S> {
    async fn encoded(&mut self, tx: &mut S::Tx, mut locked: Locked) -> Result<Work, StoreError> {
        let origin = locked.run.origin.clone();
        let site = Site::of(&origin);
        let mut decoder = self.store.decoder(site);
        decoder.run(&mut locked.run);
        if let Some(fault) = decoder.take_fault() {
            return Err(fault.of_run(locked.run.id));
        }
        match self.inner.work(tx, locked).await {
            Work::Rollback => Ok(Work::Rollback),
            Work::Commit(commit) => {
                let commit = self.store.encoder(site).commit(*commit, HiddenParts::default())?;
                Ok(Work::Commit(Box::new(commit)))
            }
        }
    }
}
