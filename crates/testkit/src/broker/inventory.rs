//! What is there, in memory.

use std::sync::Arc;

use async_trait::async_trait;
use surefoot_sync_core::{
    BrokerFact, Coordinator as _, Inventory, QueueSettings, Resource, ResourceId, ResourceKind,
    ScheduleStore, SyncError, Topic, TopicSettings, Work,
};

use super::work::MemoryWork;
use super::{Declared, MemoryBroker};

impl Declared {
    fn resource(&self) -> Option<Resource> {
        let (kind, id) = match self {
            Self::Jobs(work) => (ResourceKind::Jobs, work.id.clone()),
            Self::Queue(queue) => (ResourceKind::Queue, queue.work.id.clone()),
            Self::Mutex(mutex) => (ResourceKind::Mutex, mutex.id.clone()),
            Self::Topic(topic) => (ResourceKind::Topic, topic.id.clone()),
            Self::Ephemeral(entries) => (ResourceKind::Ephemeral, entries.id.clone()),
            Self::Group(topic, group) => (ResourceKind::Group, group.work(topic).ok()?.id),
        };
        Some(Resource { kind, id })
    }
}

#[async_trait]
impl Inventory for MemoryBroker {
    async fn resources(&self) -> Result<Vec<Resource>, SyncError> {
        let data = self.shared.data();
        let declared = data.declared.values().filter_map(Declared::resource);
        let kind = ResourceKind::Schedules;
        let sets = data.schedules.sets.iter().map(|id| Resource { kind, id: id.clone() });
        let mut all: Vec<Resource> = declared.chain(sets).collect();
        all.sort();
        Ok(all)
    }

    async fn work(&self, resource: &Resource) -> Result<Arc<dyn Work>, SyncError> {
        if !resource.kind.is_work() {
            let why = format!("{resource} holds no work");
            return Err(SyncError::InvalidOption { option: "resource", why });
        }
        let name = format!("{} {}", resource.kind.as_str(), resource.id);
        let found = self.shared.data().declared.get(&name).cloned();
        let missing = || SyncError::NotFound { what: resource.to_string() };
        let shared = self.shared.clone();
        Ok(Arc::new(match found.ok_or_else(missing)? {
            Declared::Jobs(work) => MemoryWork::new(shared, name, QueueSettings::new(work)),
            Declared::Queue(queue) => MemoryWork::new(shared, name, queue),
            Declared::Group(topic, group) => {
                MemoryWork::group(shared, name, group.work(&topic)?, topic.id)
            }
            Declared::Mutex(_) | Declared::Topic(_) | Declared::Ephemeral(_) => {
                return Err(missing());
            }
        }))
    }

    async fn schedule_set(&self, id: &ResourceId) -> Result<Arc<dyn ScheduleStore>, SyncError> {
        if !self.shared.data().schedules.sets.contains(id) {
            let what = format!("set of schedules `{id}`");
            return Err(SyncError::NotFound { what });
        }
        self.schedules(id.clone()).await
    }

    async fn journal_if_there(&self) -> Result<Option<Arc<dyn Topic>>, SyncError> {
        let settings = TopicSettings::journal()?;
        let kind = ResourceKind::Topic;
        let journal = Resource { kind, id: settings.id.clone() };
        if !self.resources().await?.contains(&journal) {
            return Ok(None);
        }
        Ok(Some(self.topic(settings).await?))
    }

    async fn journal(&self) -> Result<Arc<dyn Topic>, SyncError> {
        self.topic(TopicSettings::journal()?).await
    }

    /// It keeps nothing.
    async fn facts(&self) -> Result<Vec<BrokerFact>, SyncError> {
        Ok(vec![BrokerFact {
            name: "memory".to_owned(),
            ok: false,
            found: "everything is kept by this process alone".to_owned(),
            wanted: "a server, where anything must survive".to_owned(),
        }])
    }
}
