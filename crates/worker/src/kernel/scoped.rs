//! One scope of an application.

use std::fmt;

use surefoot_kernel_core::{
    Emission, Emit, EmitError, Event, PublishError, Published, Scope, Signal, SignalError,
    SignalSent, TxStore,
};
use surefoot_language::Manifest;
use tracing::Instrument as _;

use super::after_commit::{AfterCommit, Tell};
use super::{Kernel, Publication, emit, publish};
use crate::spans;

/// One scope of an application. Cheap to clone.
#[derive(Clone)]
pub struct Scoped<S: TxStore> {
    kernel: Kernel<S>,
    scope: Scope,
}

impl<S: TxStore> Scoped<S> {
    pub(super) const fn new(kernel: Kernel<S>, scope: Scope) -> Self {
        Self { kernel, scope }
    }

    pub(crate) const fn kernel(&self) -> &Kernel<S> {
        &self.kernel
    }

    /// The scope.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Compiles, binds and stores an immutable version of a workflow, and makes it live unless it is a draft.
    ///
    /// Not cancel safe: it may have been stored when the future is dropped.
    ///
    /// # Errors
    /// Everything that is wrong with the source, or the store's word.
    pub async fn publish(
        &self,
        manifest: &Manifest,
        publication: Publication,
    ) -> Result<Published, PublishError> {
        let publish = publish::compiled(&self.kernel, &self.scope, manifest, publication)?;
        publish::store(&self.kernel, publish).await
    }

    /// The same inside the application's transaction.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// Everything that is wrong with the source, or the store's word.
    pub async fn publish_in(
        &self,
        tx: &mut S::Tx,
        manifest: &Manifest,
        publication: Publication,
    ) -> Result<AfterCommit<Published>, PublishError> {
        let publish = publish::compiled(&self.kernel, &self.scope, manifest, publication)?;
        let tell = Tell::Footprint(publish.plan.footprint.clone());
        let published = self.kernel.store().version_publish_in(tx, publish).await?;
        Ok(self.kernel.after_commit(published, tell))
    }

    /// Records an event, creates its runs and wakes workers. On an idle worker of this process they start at once.
    ///
    /// A lost answer is asked for again under the same event id, so the event is recorded once.
    ///
    /// Not cancel safe: it may have been recorded when the future is dropped. With a dedupe key it is repeatable.
    ///
    /// # Errors
    /// The event cannot be kept, or the store's word.
    pub async fn emit(&self, event: Event) -> Result<Emission, EmitError> {
        let span = spans::emit(self.kernel.app(), &self.scope, &event);
        let emitting = async {
            let emit = self.checked(event)?;
            emit::event(&self.kernel, emit).await
        };
        emitting.instrument(span).await
    }

    /// The same inside the application's transaction: both commit, or neither.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// The event cannot be kept, or the store's word.
    pub async fn emit_in(
        &self,
        tx: &mut S::Tx,
        event: Event,
    ) -> Result<AfterCommit<Emission>, EmitError> {
        let span = spans::emit(self.kernel.app(), &self.scope, &event);
        let (dispatch, emission) = async {
            let emit = self.checked(event)?;
            let dispatch = emit.event.dispatch;
            let emission = self.kernel.store().event_emit_in(tx, emit).await?;
            Ok::<_, EmitError>((dispatch, emission))
        }
        .instrument(span)
        .await?;
        let tell = emit::tell(dispatch, &emission);
        Ok(self.kernel.after_commit(emission, tell))
    }

    /// Records an occurrence in this scope, once, and wakes who waits for it.
    ///
    /// Not cancel safe: it may have been recorded when the future is dropped; sending it again is harmless.
    ///
    /// # Errors
    /// The signal cannot be kept, or the store's word.
    pub async fn signal(&self, signal: Signal) -> Result<SignalSent, SignalError> {
        self.kernel.send(Some(self.scope.clone()), signal).await
    }

    /// The same inside the application's transaction.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// The signal cannot be kept, or the store's word.
    pub async fn signal_in(
        &self,
        tx: &mut S::Tx,
        signal: Signal,
    ) -> Result<AfterCommit<SignalSent>, SignalError> {
        self.kernel.send_in(Some(self.scope.clone()), tx, signal).await
    }

    fn checked(&self, event: Event) -> Result<Emit, EmitError> {
        let emit = Emit {
            app: self.kernel.app().clone(),
            scope: self.scope.clone(),
            id: self.kernel.ids().event(),
            event: spans::in_trace(event).check()?,
            eager: None,
        };
        tracing::Span::current().record("event", tracing::field::display(emit.id));
        emit.check_names()?;
        Ok(emit)
    }
}

impl<S: TxStore> fmt::Debug for Scoped<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").field("scope", &self.scope).finish_non_exhaustive()
    }
}
