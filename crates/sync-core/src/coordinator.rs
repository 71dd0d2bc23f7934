//! Where resources are declared.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Ephemeral, EphemeralSettings, GroupSettings, Jobs, Mutex, MutexSettings, Queue, QueueSettings,
    ResourceId, ScheduleStore, SyncError, Topic, TopicSettings, Work, WorkSettings,
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

    /// Readers of a topic that share its messages: each is delivered until one of them has settled it, or given it up.
    /// Messages that the topic keeps no more are not delivered. The topic is declared with it.
    async fn group(
        &self,
        topic: TopicSettings,
        group: GroupSettings,
    ) -> Result<Arc<dyn Work>, SyncError>;

    /// A set of entries that expire.
    async fn ephemeral(&self, settings: EphemeralSettings)
    -> Result<Arc<dyn Ephemeral>, SyncError>;
}
