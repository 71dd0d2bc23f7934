//! Where resources are declared.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Ephemeral, EphemeralSettings, Jobs, Mutex, MutexSettings, Queue, QueueSettings, ResourceId,
    ScheduleStore, SyncError, Topic, TopicSettings, WorkSettings,
};

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

    /// A set of schedules.
    async fn schedules(&self, id: ResourceId) -> Result<Arc<dyn ScheduleStore>, SyncError>;

    /// A topic.
    async fn topic(&self, settings: TopicSettings) -> Result<Arc<dyn Topic>, SyncError>;

    /// A set of entries that expire.
    async fn ephemeral(&self, settings: EphemeralSettings)
    -> Result<Arc<dyn Ephemeral>, SyncError>;
}
