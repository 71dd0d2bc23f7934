//! What is there, for those who look after it and declare nothing.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use crate::{ResourceId, ScheduleStore, SyncError, Topic, Work};

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// Work with a key.
    Jobs,
    /// Messages, settled one by one.
    Queue,
    /// Readers of a topic that share its messages.
    Group,
    /// A set of schedules.
    Schedules,
    /// A retained stream.
    Topic,
    /// Locks.
    Mutex,
    /// Entries that expire.
    Ephemeral,
}

impl ResourceKind {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::Jobs,
        Self::Queue,
        Self::Group,
        Self::Schedules,
        Self::Topic,
        Self::Mutex,
        Self::Ephemeral,
    ];

    /// As people type it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Queue => "queue",
            Self::Group => "group",
            Self::Schedules => "schedules",
            Self::Topic => "topic",
            Self::Mutex => "mutex",
            Self::Ephemeral => "ephemeral",
        }
    }

    /// Whether it holds work that can be given up.
    #[must_use]
    pub const fn is_work(self) -> bool {
        match self {
            Self::Jobs | Self::Queue | Self::Group => true,
            Self::Schedules | Self::Topic | Self::Mutex | Self::Ephemeral => false,
        }
    }
}

/// A resource that is there: `jobs:thumbnails`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// Which one.
    pub id: ResourceId,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.id)
    }
}

impl FromStr for Resource {
    type Err = SyncError;

    fn from_str(text: &str) -> Result<Self, SyncError> {
        let named = text.split_once(':').and_then(|(kind, id)| {
            let kind = ResourceKind::ALL.into_iter().find(|it| it.as_str() == kind)?;
            Some((kind, id))
        });
        let Some((kind, id)) = named else {
            let why = "it is written KIND:ID, as in `jobs:thumbnails` or `queue:orders`".to_owned();
            return Err(SyncError::InvalidOption { option: "resource", why });
        };
        Ok(Self { kind, id: ResourceId::new(id)? })
    }
}

/// Something about the server that decides what is lost with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokerFact {
    /// Of what.
    pub name: String,
    /// Whether it keeps what it has acknowledged.
    pub ok: bool,
    /// How it is.
    pub found: String,
    /// What would be better, and how to get it.
    pub wanted: String,
}

/// The resources of a namespace, whoever declared them.
#[async_trait]
pub trait Inventory: Send + Sync {
    /// All of them, in order.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn resources(&self) -> Result<Vec<Resource>, SyncError>;

    /// Jobs, a queue or a group, with the settings that it has.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::InvalidOption`] for a resource that is no work,
    /// [`SyncError::Unavailable`].
    async fn work(&self, resource: &Resource) -> Result<Arc<dyn Work>, SyncError>;

    /// A set of schedules.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::Unavailable`].
    async fn schedule_set(&self, id: &ResourceId) -> Result<Arc<dyn ScheduleStore>, SyncError>;

    /// The topic in which stands what people did to resources, if anybody did anything yet. Creates nothing.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn journal_if_there(&self) -> Result<Option<Arc<dyn Topic>>, SyncError>;

    /// The same, created by the first who writes to it.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn journal(&self) -> Result<Arc<dyn Topic>, SyncError>;

    /// What decides how safe acknowledged work is.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn facts(&self) -> Result<Vec<BrokerFact>, SyncError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_typed_as_it_is_shown() {
        for kind in ResourceKind::ALL {
            let resource = Resource { kind, id: ResourceId::new("a:b/c").unwrap() };
            assert_eq!(resource.to_string().parse::<Resource>().unwrap(), resource);
        }
        for wrong in ["", "orders", "queues:orders", "queue:", ":orders"] {
            assert!(wrong.parse::<Resource>().is_err(), "{wrong}");
        }
    }
}
