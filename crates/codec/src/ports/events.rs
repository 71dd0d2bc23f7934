//! Events and signals.

use async_trait::async_trait;
use surefoot_kernel_core::{
    App, Dispatched, Emission, Emit, EmitError, EventStore, Plans, SendSignal, SignalError,
    SignalSent, StoreError,
};

use crate::store::Site;
use crate::{CodecFault, CodecStore, View};

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: EventStore, V: View> EventStore for CodecStore<S, V> {
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        let mut emit = self.encode_emit(emit).map_err(StoreError::from)?;
        if let Some(eager) = &mut emit.eager {
            // Inputs are computed from what can be read, which is not what the store has.
            eager.plans = Plans::default();
        }
        let mut emission = self.inner.event_emit(emit).await?;
        for stored in &mut emission.started {
            self.decode_if_possible(stored);
        }
        Ok(emission)
    }

    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        self.inner.event_dispatch(app, limit).await
    }

    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError> {
        let send = self.encode_signal(send).map_err(StoreError::from)?;
        self.inner.signal_send(send).await
    }
}

impl<S, V> CodecStore<S, V> {
    pub(super) fn encode_emit(&self, mut emit: Emit) -> Result<Emit, CodecFault> {
        let site = Site { app: &emit.app, scope: Some(&emit.scope) };
        emit.event = self.encoder(site).event(emit.event)?;
        Ok(emit)
    }

    pub(super) fn encode_signal(&self, mut send: SendSignal) -> Result<SendSignal, CodecFault> {
        let site = Site { app: &send.app, scope: send.scope.as_ref() };
        send.signal = self.encoder(site).signal(send.signal)?;
        Ok(send)
    }
}
