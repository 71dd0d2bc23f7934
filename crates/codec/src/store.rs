//! The decorator.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use surefoot_kernel_core::{
    App, LoadRequest, Micros, Origin, PassTime, Run, RunId, RunStore, Scope, StoreError, TxStore,
};

use crate::decode::Decoder;
use crate::encode::Encoder;
use crate::hidden::{self, HiddenParts};
use crate::{PayloadCodec, PayloadKind, PayloadPlace};

/// A store behind a codec: payloads are encoded on the way in and decoded on the way out, and everything else is the
/// store's own. Clones are handles of the same store.
///
/// Payloads that were stored before there was a codec are read as they are.
pub struct CodecStore<S, V = Exact> {
    pub(crate) inner: S,
    codec: Arc<dyn PayloadCodec>,
    view: PhantomData<V>,
}

/// What a handle shows to people: [`Exact`] or [`Redacted`].
pub trait View: sealed::Sealed + Send + Sync + 'static {
    /// Whether what is read is redacted.
    const REDACTS: bool;
}

/// Shows payloads as they are.
#[derive(Debug, Clone, Copy)]
pub struct Exact;

/// Shows what the codec's `redact` leaves of payloads.
#[derive(Debug, Clone, Copy)]
pub struct Redacted;

impl View for Exact {
    const REDACTS: bool = false;
}

impl View for Redacted {
    const REDACTS: bool = true;
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::Exact {}
    impl Sealed for super::Redacted {}
}

/// Puts a codec around any store.
pub trait WithCodec: TxStore {
    /// The store behind this codec.
    fn with_codec(self, codec: impl PayloadCodec) -> CodecStore<Self> {
        CodecStore::new(self, Arc::new(codec))
    }
}

impl<S: TxStore> WithCodec for S {}

impl<S> CodecStore<S> {
    /// A store behind a codec that others may share. See [`WithCodec::with_codec`].
    #[must_use]
    pub fn new(inner: S, codec: Arc<dyn PayloadCodec>) -> Self {
        Self { inner, codec, view: PhantomData }
    }

    /// A handle for operators who must not see payloads: all that it reads is redacted. Their verbs work as ever: what
    /// the handle does not show of a run is kept as it is when the run is written. A worker, which needs a
    /// [`TxStore`], does not take such a handle.
    #[must_use]
    pub fn redacted(&self) -> CodecStore<S, Redacted>
    where
        S: Clone,
    {
        CodecStore { inner: self.inner.clone(), codec: self.codec.clone(), view: PhantomData }
    }
}

impl<S, V> CodecStore<S, V> {
    /// The store behind the codec, for what only that kind of store offers. What its ports read is encoded.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    pub(crate) fn encoder<'c>(&'c self, site: Site<'c>) -> Encoder<'c> {
        Encoder::new(&*self.codec, site)
    }
}

impl<S, V: View> CodecStore<S, V> {
    pub(crate) fn decoder<'c>(&'c self, site: Site<'c>) -> Decoder<'c> {
        Decoder::new(&*self.codec, site, V::REDACTS)
    }

    /// A row with placeholders for what cannot be decoded: whoever acts on it loads the run first.
    pub(crate) fn decode_row(&self, run: &mut Run) {
        let origin = run.origin.clone();
        self.decoder(Site::of(&origin)).run(run);
    }
}

impl<S: RunStore, V: View> CodecStore<S, V> {
    /// What a run was created as, which never changes.
    pub(crate) async fn origin_of(&self, run: RunId) -> Result<Option<Arc<Origin>>, StoreError> {
        Ok(self.kept_row(run).await?.map(|run| run.origin))
    }

    /// What this handle does not show of a run that is about to be written, so that the write does not lose it.
    pub(crate) async fn hidden_of(&self, run: &mut Run) -> Result<HiddenParts, StoreError> {
        if !V::REDACTS && !hidden::has_placeholders(run) {
            return Ok(HiddenParts::default());
        }
        let Some(row) = self.kept_row(run.id).await? else { return Ok(HiddenParts::default()) };
        let origin = row.origin.clone();
        Ok(HiddenParts::of(row, self.decoder(Site::of(&origin))))
    }

    async fn kept_row(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        // No journal is that long: only the row is read.
        let request = LoadRequest { run, after: Some(u64::from(u32::MAX)) };
        Ok(self.inner.run_load(request).await?.map(|stored| stored.run))
    }
}

impl<S: Clone, V> Clone for CodecStore<S, V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), codec: self.codec.clone(), view: PhantomData }
    }
}

impl<S: fmt::Debug, V> fmt::Debug for CodecStore<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodecStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S: PassTime, V: View> PassTime for CodecStore<S, V> {
    fn pass_time(&self, span: Micros) {
        self.inner.pass_time(span);
    }
}

/// Whose payloads they are.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) app: &'a App,
    pub(crate) scope: Option<&'a Scope>,
}

impl<'a> Site<'a> {
    /// Of a run.
    pub(crate) fn of(origin: &'a Origin) -> Self {
        Self { app: &origin.app, scope: Some(&origin.scope) }
    }

    pub(crate) const fn place(self, kind: PayloadKind) -> PayloadPlace<'a> {
        PayloadPlace { app: self.app, scope: self.scope, kind }
    }
}
