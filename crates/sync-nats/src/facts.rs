//! What decides whether acknowledged work survives a loss of power.
//!
//! A server writes to its disk every two minutes by default, and acknowledges before. So what is kept once, by such a
//! server, may be lost with its power; what is kept three times is lost with that of two.

use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use surefoot_sync_core::{BrokerFact, SyncError};

use crate::connect::Nats;
use crate::inventory::resource_of;

/// For so long servers may answer, and so long nothing more may come.
const FIRST_WITHIN: Duration = Duration::from_secs(5);
const MORE_WITHIN: Duration = Duration::from_millis(500);
/// So often a loss of one server loses nothing.
const REPLICAS_SAFE: u64 = 3;

pub(crate) fn replicas(stream: &Map<String, Value>) -> u64 {
    stream.get("num_replicas").and_then(Value::as_u64).unwrap_or(1)
}

/// How one server treats its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Disk {
    server: String,
    always: bool,
    every: Duration,
}

pub(crate) async fn of(nats: &Nats) -> Result<Vec<BrokerFact>, SyncError> {
    let disks = match &nats.system {
        Some(client) => Some(disks(client).await?),
        None => None,
    };
    let mut facts = Vec::new();
    for disk in disks.iter().flatten() {
        facts.push(BrokerFact {
            name: format!("disk of {}", disk.server),
            // Whether it matters depends on what is kept how often.
            ok: true,
            found: disk.found(),
            wanted: String::new(),
        });
    }
    for stream in nats.streams().await? {
        if let Some(resource) = resource_of(&stream) {
            facts.push(judge(&resource.to_string(), &stream, disks.as_deref()));
        }
    }
    Ok(facts)
}

impl Disk {
    fn found(&self) -> String {
        if self.always {
            "everything is written before it is acknowledged".to_owned()
        } else {
            format!("written every {:?}, and acknowledged before", self.every)
        }
    }
}

fn judge(name: &str, stream: &Map<String, Value>, disks: Option<&[Disk]>) -> BrokerFact {
    let replicas = replicas(stream);
    let in_memory = stream.get("storage").and_then(Value::as_str) == Some("memory");
    let always = disks.is_some_and(|disks| !disks.is_empty() && disks.iter().all(|it| it.always));
    let ok = replicas >= REPLICAS_SAFE || (always && !in_memory);
    let disk = if in_memory {
        "in memory, which a restart empties".to_owned()
    } else {
        match disks {
            _ if always => "on a disk that is written before anything is acknowledged".to_owned(),
            Some(disks) => {
                let longest = disks.iter().map(|disk| disk.every).max().unwrap_or_default();
                format!("on a disk that is written every {longest:?}")
            }
            None => "on a disk, and how often that is written is told to the system account alone"
                .to_owned(),
        }
    };
    let times = if replicas == 1 { "once".to_owned() } else { format!("{replicas} times") };
    BrokerFact {
        name: format!("durability of {name}"),
        ok,
        found: format!("kept {times}, {disk}"),
        wanted: "what was acknowledged just before a loss of power may be lost: keep it three \
                 times, on three servers, or set `jetstream { sync_interval: always }`"
            .to_owned(),
    }
}

/// Asks all servers that can be reached.
async fn disks(client: &Client) -> Result<Vec<Disk>, SyncError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        server: Server,
        #[serde(default)]
        data: Data,
    }
    #[derive(Deserialize, Default)]
    struct Server {
        #[serde(default)]
        name: String,
    }
    #[derive(Deserialize, Default)]
    struct Data {
        #[serde(default)]
        disabled: bool,
        #[serde(default)]
        config: Config,
    }
    #[derive(Deserialize, Default)]
    struct Config {
        #[serde(default)]
        sync_interval: u64,
        #[serde(default)]
        sync_always: bool,
    }
    let operation = "tell how servers write to their disks";
    let unavailable = |source| SyncError::Unavailable { operation, source };
    let inbox = client.new_inbox();
    let answers = client.subscribe(inbox.clone()).await;
    let mut answers = answers.map_err(|error| unavailable(error.into()))?;
    let subject = "$SYS.REQ.SERVER.PING.JSZ";
    let asked = client.publish_with_reply(subject, inbox, "{}".into()).await;
    asked.map_err(|error| unavailable(error.into()))?;
    let (mut disks, mut within) = (Vec::new(), FIRST_WITHIN);
    while let Ok(Some(message)) = tokio::time::timeout(within, answers.next()).await {
        within = MORE_WITHIN;
        let Ok(Answer { server, data }) = serde_json::from_slice(&message.payload) else {
            continue;
        };
        if !data.disabled {
            let Config { sync_interval, sync_always: always } = data.config;
            let every = Duration::from_nanos(sync_interval);
            disks.push(Disk { server: server.name, always, every });
        }
    }
    if disks.is_empty() {
        let why = "no server answered: is this the system account?";
        return Err(unavailable(why.into()));
    }
    Ok(disks)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(stream: Value, disks: Option<&[Disk]>) -> (bool, String) {
        let Value::Object(stream) = stream else { unreachable!() };
        let fact = judge("jobs:mail", &stream, disks);
        (fact.ok, fact.found)
    }

    /// Covers field fault 144.
    #[test]
    fn what_is_kept_once_is_safe_only_where_the_disk_is_always_written() {
        let disk =
            |always| Disk { server: "a".to_owned(), always, every: Duration::from_secs(120) };
        let (once, thrice) = (json!({ "num_replicas": 1 }), json!({ "num_replicas": 3 }));
        let memory = json!({ "num_replicas": 1, "storage": "memory" });
        let (always, lazy) = ([disk(true)], [disk(true), disk(false)]);
        assert!(judged(once.clone(), Some(&always)).0);
        assert_eq!(
            judged(once.clone(), Some(&lazy)),
            (false, "kept once, on a disk that is written every 120s".to_owned())
        );
        assert!(!judged(once, None).0);
        assert!(judged(thrice.clone(), Some(&lazy)).0 && judged(thrice, None).0);
        assert!(!judged(memory, Some(&always)).0);
    }
}
