//! Where resources are declared.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Jobs, Mutex, MutexSettings, Queue, QueueSettings, SyncError, WorkSettings};

/// A place where coordination resources live. Declaring one creates it, or finds it with the same settings; it is
/// repeatable, and changes nothing that exists.
///
/// Every method has these errors: [`SyncError::InvalidOption`]; [`SyncError::ConflictingDeclaration`] if this handle
/// declared it otherwise; [`SyncError::ResourceDrift`] if it exists with other settings;
/// [`SyncError::Unavailable`], after which it is declared again as if nothing had been.
#[async_trait]
pub trait Coordinator: Send + Sync {
    /// Locks.
    async fn mutex(&self, settings: MutexSettings) -> Result<Arc<dyn Mutex>, SyncError>;

    /// Jobs.
    async fn jobs(&self, settings: WorkSettings) -> Result<Arc<dyn Jobs>, SyncError>;

    /// A queue.
    async fn queue(&self, settings: QueueSettings) -> Result<Arc<dyn Queue>, SyncError>;
}
