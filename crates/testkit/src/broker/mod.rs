//! The coordination primitives in memory: real ones, on tokio's clock, so that paused time passes at once.

mod ephemeral;
mod inventory;
mod limit;
mod mutex;
mod schedules;
mod topics;
mod work;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use surefoot_kernel_core::{Micros, Timestamp};
use surefoot_sync_core::{
    Coordinator, Ephemeral, EphemeralSettings, GroupSettings, GroupStart, Jobs, Mutex,
    MutexSettings, Queue, QueueSettings, ResourceId, ScheduleStore, SyncError, Topic,
    TopicSettings, Work, WorkSettings,
};
use tokio::sync::Notify;
use tokio::time::Instant;

use ephemeral::{Entries, MemoryEphemeral};
pub use limit::MemoryRateLimit;
use mutex::{MemoryMutex, Mutexes};
use schedules::{MemorySchedules, Schedules};
use topics::{MemoryTopic, Topics};
use work::{MemoryWork, Works};

/// What a server would hold, in memory. Every handle is what another process would have.
#[derive(Debug)]
pub struct MemoryBroker {
    shared: Arc<Shared>,
    /// What this handle declared.
    declared: StdMutex<BTreeMap<String, Declared>>,
}

#[derive(Debug)]
struct Shared {
    data: StdMutex<Data>,
    /// Something was stored, settled or given up.
    changed: Notify,
    start: (Timestamp, Instant),
}

#[derive(Debug, Default)]
struct Data {
    declared: BTreeMap<String, Declared>,
    works: Works,
    mutexes: Mutexes,
    schedules: Schedules,
    topics: Topics,
    entries: Entries,
}

/// The settings of a resource, of any kind.
#[derive(Debug, Clone, PartialEq)]
enum Declared {
    Jobs(WorkSettings),
    Queue(QueueSettings),
    Mutex(MutexSettings),
    Topic(TopicSettings),
    Ephemeral(EphemeralSettings),
    Group(TopicSettings, GroupSettings),
}

impl Shared {
    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timestamp(&self) -> Timestamp {
        self.at(Instant::now())
    }

    fn at(&self, at: Instant) -> Timestamp {
        let (start, since) = self.start;
        start.plus(Micros::from(at.saturating_duration_since(since)))
    }
}

/// Its clock begins with the year 2026.
impl Default for MemoryBroker {
    fn default() -> Self {
        Self::starting_at(Timestamp::from_micros(1_767_225_600_000_000))
    }
}

impl MemoryBroker {
    /// An empty one; its clock begins at an instant.
    ///
    /// Must be called in a tokio runtime with time.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let start = (start, Instant::now());
        let shared = Shared { data: StdMutex::default(), changed: Notify::new(), start };
        Self { shared: Arc::new(shared), declared: StdMutex::default() }
    }

    /// Another handle on the same data.
    #[must_use]
    pub fn handle(&self) -> Self {
        Self { shared: self.shared.clone(), declared: StdMutex::default() }
    }

    fn declare(&self, resource: &str, settings: Declared) -> Result<(), SyncError> {
        let resource = resource.to_owned();
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        if declared.get(&resource).is_some_and(|before| *before != settings) {
            return Err(SyncError::ConflictingDeclaration { resource, field: "settings".into() });
        }
        let mut data = self.shared.data();
        if let Some(found) = data.declared.get(&resource).filter(|found| **found != settings) {
            return Err(SyncError::ResourceDrift {
                resource,
                field: "settings".into(),
                declared: format!("{settings:?}"),
                found: format!("{found:?}"),
                remedy: "declare it as it is, or under another id",
            });
        }
        data.declared.insert(resource.clone(), settings.clone());
        declared.insert(resource, settings);
        Ok(())
    }
}

#[async_trait]
impl Coordinator for MemoryBroker {
    async fn mutex(&self, settings: MutexSettings) -> Result<Arc<dyn Mutex>, SyncError> {
        self.declare(&format!("mutex {}", settings.id), Declared::Mutex(settings.clone()))?;
        Ok(Arc::new(MemoryMutex::new(self.shared.clone(), settings)))
    }

    async fn jobs(&self, settings: WorkSettings) -> Result<Arc<dyn Jobs>, SyncError> {
        settings.check()?;
        let resource = format!("jobs {}", settings.id);
        self.declare(&resource, Declared::Jobs(settings.clone()))?;
        let settings = QueueSettings::new(settings);
        Ok(Arc::new(MemoryWork::new(self.shared.clone(), resource, settings)))
    }

    async fn queue(&self, settings: QueueSettings) -> Result<Arc<dyn Queue>, SyncError> {
        settings.work.check()?;
        let resource = format!("queue {}", settings.work.id);
        self.declare(&resource, Declared::Queue(settings.clone()))?;
        Ok(Arc::new(MemoryWork::new(self.shared.clone(), resource, settings)))
    }

    async fn schedules(&self, id: ResourceId) -> Result<Arc<dyn ScheduleStore>, SyncError> {
        self.shared.data().schedules.sets.insert(id.clone());
        Ok(Arc::new(MemorySchedules::new(self.shared.clone(), id)))
    }

    async fn topic(&self, settings: TopicSettings) -> Result<Arc<dyn Topic>, SyncError> {
        settings.check()?;
        self.declare(&format!("topic {}", settings.id), Declared::Topic(settings.clone()))?;
        Ok(Arc::new(MemoryTopic::new(self.shared.clone(), settings)))
    }

    async fn group(
        &self,
        topic: TopicSettings,
        group: GroupSettings,
    ) -> Result<Arc<dyn Work>, SyncError> {
        let work = group.work(&topic)?;
        let messages = self.topic(topic.clone()).await?;
        let begin = match group.start {
            GroupStart::All => messages.tail().await?,
            GroupStart::New => messages.head().await?,
        };
        let resource = format!("group {}", work.id);
        let is_new = !self.shared.data().declared.contains_key(&resource);
        self.declare(&resource, Declared::Group(topic.clone(), group))?;
        let group = MemoryWork::group(self.shared.clone(), resource, work, topic.id);
        if is_new {
            group.begin_behind(begin.seq());
        }
        Ok(Arc::new(group))
    }

    async fn ephemeral(
        &self,
        settings: EphemeralSettings,
    ) -> Result<Arc<dyn Ephemeral>, SyncError> {
        settings.check()?;
        let declared = Declared::Ephemeral(settings.clone());
        self.declare(&format!("ephemeral state {}", settings.id), declared)?;
        Ok(Arc::new(MemoryEphemeral::new(self.shared.clone(), settings)))
    }
}
