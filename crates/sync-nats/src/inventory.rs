//! What is there in the namespace, whoever declared it. Nothing is compared, and nothing is changed.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use surefoot_sync_core::{
    BrokerFact, Inventory, Resource, ResourceId, ResourceKind, ScheduleStore, SyncError, Topic,
    TopicSettings, Work,
};

use crate::connect::Nats;
use crate::schedules::NatsSchedules;
use crate::topics::NatsTopic;
use crate::work::{Kind, NatsGroup, NatsWork};
use crate::{declare, facts};

impl Nats {
    /// The settings of our streams.
    pub(crate) async fn streams(&self) -> Result<Vec<Map<String, Value>>, SyncError> {
        let mut streams = declare::streams(&self.api).await?;
        let owner = Some(self.namespace.as_str());
        streams.retain(|config| about(config, "sync.owner") == owner);
        Ok(streams)
    }

    async fn opened(&self, resource: &Resource) -> Result<Option<Arc<dyn Work>>, SyncError> {
        let kind = match resource.kind {
            ResourceKind::Jobs => Kind::Jobs,
            ResourceKind::Queue => Kind::Queue,
            ResourceKind::Group => {
                let group = NatsGroup::open(self, &resource.id).await?;
                return Ok(group.map(|group| Arc::new(group) as Arc<dyn Work>));
            }
            ResourceKind::Schedules
            | ResourceKind::Topic
            | ResourceKind::Mutex
            | ResourceKind::Ephemeral => {
                let why = format!("{resource} holds no work");
                return Err(SyncError::InvalidOption { option: "resource", why });
            }
        };
        let work = NatsWork::open(self, kind, &resource.id).await?;
        Ok(work.map(|(work, _)| Arc::new(work) as Arc<dyn Work>))
    }
}

fn about<'a>(config: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    config.get("metadata")?.get(name)?.as_str()
}

/// The resource of a stream; `None` for one that only belongs to a resource.
pub(crate) fn resource_of(config: &Map<String, Value>) -> Option<Resource> {
    let kind = about(config, "sync.kind")?;
    let kind = ResourceKind::ALL.into_iter().find(|it| it.as_str() == kind)?;
    Some(Resource { kind, id: ResourceId::new(about(config, "sync.id")?).ok()? })
}

#[async_trait]
impl Inventory for Nats {
    async fn resources(&self) -> Result<Vec<Resource>, SyncError> {
        let streams = self.streams().await?;
        let mut all: Vec<Resource> = streams.iter().filter_map(resource_of).collect();
        all.sort();
        Ok(all)
    }

    async fn work(&self, resource: &Resource) -> Result<Arc<dyn Work>, SyncError> {
        let work = self.opened(resource).await?;
        work.ok_or_else(|| SyncError::NotFound { what: resource.to_string() })
    }

    async fn schedule_set(&self, id: &ResourceId) -> Result<Arc<dyn ScheduleStore>, SyncError> {
        let set = NatsSchedules::open(self, id.clone()).await?;
        let what = || format!("set of schedules `{id}`");
        Ok(Arc::new(set.ok_or_else(|| SyncError::NotFound { what: what() })?))
    }

    async fn journal_if_there(&self) -> Result<Option<Arc<dyn Topic>>, SyncError> {
        let topic = NatsTopic::open(self, TopicSettings::journal()?).await?;
        Ok(topic.map(|topic| Arc::new(topic) as Arc<dyn Topic>))
    }

    async fn journal(&self) -> Result<Arc<dyn Topic>, SyncError> {
        if let Some(topic) = self.journal_if_there().await? {
            return Ok(topic);
        }
        let settings = TopicSettings::journal()?;
        // Kept as often as what it tells about.
        let replicas = self.streams().await?.iter().map(facts::replicas).max().unwrap_or(1);
        let replicas = u8::try_from(replicas).unwrap_or(1);
        let as_often = self.clone().replicas(replicas)?;
        Ok(Arc::new(NatsTopic::declare(&as_often, settings).await?))
    }

    async fn facts(&self) -> Result<Vec<BrokerFact>, SyncError> {
        facts::of(self).await
    }
}
