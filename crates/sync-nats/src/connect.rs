//! Connecting: what the server must be, asked before anything is created on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use surefoot_sync_core::{
    Coordinator, Ephemeral, EphemeralSettings, GroupSettings, Jobs, Mutex, MutexSettings,
    Namespace, Queue, QueueSettings, ResourceId, ScheduleStore, SyncError, Topic, TopicSettings,
    Work, WorkSettings,
};

use crate::api::{Api, Failure};
use crate::ephemeral::NatsEphemeral;
use crate::mutex::NatsMutex;
use crate::schedules::NatsSchedules;
use crate::topics::NatsTopic;
use crate::wake::NatsWake;
use crate::work::{Kind, NatsGroup, NatsWork};

/// The oldest server that keeps what is promised here.
const SERVER_LEAST: (u64, u64, u64) = (2, 14, 3);
/// The same, of whichever server hosts JetStream.
const API_LEVEL_LEAST: u64 = 4;

/// The coordination primitives on NATS JetStream. Clones are one handle.
#[derive(Debug, Clone)]
pub struct Nats {
    pub(crate) api: Api,
    pub(crate) namespace: Namespace,
    pub(crate) replicas: u8,
    /// Of the system account, which knows the servers' settings.
    pub(crate) system: Option<Client>,
    declared: Arc<StdMutex<BTreeMap<String, Declared>>>,
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

impl Nats {
    /// Connects to a server, or to one of several whose URLs are separated by commas, and checks that it can do what is
    /// needed. Nothing is created. A URL may hold `USER:PASSWORD@` or `TOKEN@`; for other credentials see
    /// [`Nats::with_client`].
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if a URL is none, [`SyncError::UnsupportedServer`], [`SyncError::Unauthorized`],
    /// [`SyncError::Unavailable`].
    pub async fn connect(url: &str, namespace: Namespace) -> Result<Self, SyncError> {
        Self::with_client(connected(url, "let us connect").await?, namespace).await
    }

    /// The same on a connection of the application, which has its own credentials and options.
    ///
    /// # Errors
    /// [`SyncError::UnsupportedServer`], [`SyncError::Unavailable`].
    pub async fn with_client(client: Client, namespace: Namespace) -> Result<Self, SyncError> {
        let api = Api::new(client);
        check(&api).await?;
        Ok(Self { api, namespace, replicas: 1, system: None, declared: Arc::default() })
    }

    /// With a connection of the system account as well: what the servers' own settings are is told to no other.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if the URL is none, [`SyncError::Unauthorized`], [`SyncError::Unavailable`].
    pub async fn system_account(mut self, url: &str) -> Result<Self, SyncError> {
        self.system = Some(connected(url, "let us connect as the system account").await?);
        Ok(self)
    }

    /// Keeps what is declared from here on so many times: on one server a crash loses nothing, but the loss of power
    /// may lose the last two minutes unless the server syncs always.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] unless it is 1, 3 or 5.
    pub fn replicas(mut self, count: u8) -> Result<Self, SyncError> {
        if ![1, 3, 5].contains(&count) {
            let why = format!("{count} is not 1, 3 or 5");
            return Err(SyncError::InvalidOption { option: "replicas", why });
        }
        self.replicas = count;
        Ok(self)
    }

    /// Wakes workers of other processes, for a worker's builder.
    #[must_use]
    pub fn wake_bus(&self) -> NatsWake {
        NatsWake::new(self.api.client().clone(), &self.namespace)
    }

    /// Refuses another declaration of this process, before the server is asked.
    fn check_declared(&self, resource: &str, settings: &Declared) -> Result<(), SyncError> {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        if declared.get(resource).is_none_or(|before| before == settings) {
            return Ok(());
        }
        let (resource, field) = (resource.to_owned(), "settings".to_owned());
        Err(SyncError::ConflictingDeclaration { resource, field })
    }

    /// Only what the server has accepted is remembered, so that a declaration that failed can be made again.
    fn remember(&self, resource: String, settings: Declared) {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner).insert(resource, settings);
    }
}

#[async_trait]
impl Coordinator for Nats {
    async fn mutex(&self, settings: MutexSettings) -> Result<Arc<dyn Mutex>, SyncError> {
        let resource = format!("mutex {}", settings.id);
        let declared = Declared::Mutex(settings.clone());
        self.check_declared(&resource, &declared)?;
        let mutex = NatsMutex::declare(self, settings).await?;
        self.remember(resource, declared);
        Ok(Arc::new(mutex))
    }

    async fn jobs(&self, settings: WorkSettings) -> Result<Arc<dyn Jobs>, SyncError> {
        let resource = format!("jobs {}", settings.id);
        let declared = Declared::Jobs(settings.clone());
        self.check_declared(&resource, &declared)?;
        let settings = QueueSettings::new(settings);
        let work = NatsWork::declare(self, Kind::Jobs, settings, json!({})).await?;
        self.remember(resource, declared);
        Ok(Arc::new(work))
    }

    async fn queue(&self, settings: QueueSettings) -> Result<Arc<dyn Queue>, SyncError> {
        let resource = format!("queue {}", settings.work.id);
        let declared = Declared::Queue(settings.clone());
        self.check_declared(&resource, &declared)?;
        let work = NatsWork::declare(self, Kind::Queue, settings, json!({})).await?;
        self.remember(resource, declared);
        Ok(Arc::new(work))
    }

    async fn schedules(&self, id: ResourceId) -> Result<Arc<dyn ScheduleStore>, SyncError> {
        Ok(Arc::new(NatsSchedules::declare(self, id).await?))
    }

    async fn topic(&self, settings: TopicSettings) -> Result<Arc<dyn Topic>, SyncError> {
        let resource = format!("topic {}", settings.id);
        let declared = Declared::Topic(settings.clone());
        self.check_declared(&resource, &declared)?;
        let topic = NatsTopic::declare(self, settings).await?;
        self.remember(resource, declared);
        Ok(Arc::new(topic))
    }

    async fn group(
        &self,
        topic: TopicSettings,
        group: GroupSettings,
    ) -> Result<Arc<dyn Work>, SyncError> {
        let resource = format!("group {}", group.work(&topic)?.id);
        let of_topic = Declared::Topic(topic.clone());
        self.check_declared(&format!("topic {}", topic.id), &of_topic)?;
        let declared = Declared::Group(topic.clone(), group.clone());
        self.check_declared(&resource, &declared)?;
        let work = NatsGroup::declare(self, topic.clone(), &group).await?;
        self.remember(format!("topic {}", topic.id), of_topic);
        self.remember(resource, declared);
        Ok(Arc::new(work))
    }

    async fn ephemeral(
        &self,
        settings: EphemeralSettings,
    ) -> Result<Arc<dyn Ephemeral>, SyncError> {
        let resource = format!("ephemeral state {}", settings.id);
        let declared = Declared::Ephemeral(settings.clone());
        self.check_declared(&resource, &declared)?;
        let state = NatsEphemeral::declare(self, settings).await?;
        self.remember(resource, declared);
        Ok(Arc::new(state))
    }
}

/// A connection, with the user and the password, or the token, of the first URL that has one: the library leaves them out.
async fn connected(url: &str, operation: &'static str) -> Result<Client, SyncError> {
    // A URL may hold a password, and the library's error repeats it.
    let bad = |_| SyncError::InvalidOption {
        option: "url",
        why: "it is written like `nats://127.0.0.1:4222`".to_owned(),
    };
    let servers = url.split(',').map(|url| url.trim().parse::<ServerAddr>());
    let servers: Vec<ServerAddr> = servers.collect::<Result<_, _>>().map_err(bad)?;
    let mut options = ConnectOptions::new();
    if let Some(server) = servers.iter().find(|server| server.has_user_pass()) {
        options = match (server.username(), server.password()) {
            (Some(user), Some(password)) => {
                options.user_and_password(user.to_owned(), password.to_owned())
            }
            (Some(token), None) => options.token(token.to_owned()),
            (None, _) => options,
        };
    }
    let client = options.connect(servers).await;
    client.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            SyncError::Unauthorized { operation, source: error.into() }
        }
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => {
            SyncError::Unavailable { operation, source: error.into() }
        }
    })
}

async fn check(api: &Api) -> Result<(), SyncError> {
    let found = api.client().server_info().version;
    if version(&found).is_none_or(|version| version < SERVER_LEAST) {
        let (major, minor, patch) = SERVER_LEAST;
        return Err(SyncError::UnsupportedServer {
            found: format!("NATS {found}"),
            required: format!("NATS {major}.{minor}.{patch} or newer"),
            feature: "message schedules",
        });
    }
    #[derive(Deserialize)]
    struct Info {
        #[serde(default)]
        api: Level,
    }
    #[derive(Deserialize, Default)]
    struct Level {
        #[serde(default)]
        level: u64,
    }
    let missing = |found: String| SyncError::UnsupportedServer {
        found,
        required: "JetStream, switched on for the server and the account".to_owned(),
        feature: "everything durable",
    };
    match api.ask::<Info>("$JS.API.INFO", &json!({})).await {
        Ok(info) if info.api.level >= API_LEVEL_LEAST => Ok(()),
        Ok(info) => Err(SyncError::UnsupportedServer {
            found: format!("JetStream with API level {}", info.api.level),
            required: format!("API level {API_LEVEL_LEAST} on every server"),
            feature: "message schedules",
        }),
        Err(Failure::Refused(error)) => {
            Err(missing(format!("no JetStream ({})", error.description)))
        }
        Err(Failure::Unanswered(error)) if has_no_responders(&*error) => {
            Err(missing("no JetStream".to_owned()))
        }
        Err(failure) => Err(failure.into_error("tell about JetStream")),
    }
}

fn has_no_responders(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let error = error.downcast_ref::<async_nats::RequestError>();
    error.is_some_and(|error| error.kind() == async_nats::RequestErrorKind::NoResponders)
}

/// Major, minor and patch; what follows is of a build.
fn version(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text.trim_start_matches('v').splitn(3, '.');
    let mut number = || {
        let part = parts.next()?;
        part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    Some((number()?, number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("2.15.1"), Some((2, 15, 1)));
        assert_eq!(version("v2.14.10-RC.2"), Some((2, 14, 10)));
        assert!(version("2.14.10") > Some(SERVER_LEAST));
        assert!(version("2.9.25") < Some(SERVER_LEAST));
        assert_eq!(version("2.15"), None);
        assert_eq!(version("nightly"), None);
    }
}
