//! The streams and consumers of jobs and queues.

use std::time::Duration;

use serde_json::{Map, Value, json};
use surefoot_sync_core::{Backoff, Partitions, QueueSettings, ResourceId, SyncError, WorkSettings};

use super::fill::Fill;
use super::{Kind, NatsWork, Subjects};
use crate::api::{Api, Expect, Publish, Published};
use crate::clock::ServerClock;
use crate::connect::Nats;
use crate::declare::{self, Stream, StreamInfo};
use crate::settings::nanos;
use crate::{names, settings};

/// Dead letters are kept so long, and so many bytes of them at most, or as many as of work.
const DEAD_FOR_SECS: u64 = 30 * 86_400;
const DEAD_MAX_BYTES: u64 = 256 << 20;
const NANOS: u64 = 1_000_000_000;

/// What its streams are called, and what people call it.
fn words(kind: Kind) -> (&'static str, &'static str, &'static str) {
    match kind {
        Kind::Jobs => ("JOB", "JOBDLQ", "jobs"),
        Kind::Queue => ("QUEUE", "QUEUEDLQ", "queue"),
        Kind::Group => ("GROUP", "GROUPDLQ", "group"),
    }
}

impl NatsWork {
    /// Creates it, or finds it as it is declared; `about` is kept with it.
    pub(crate) async fn declare(
        nats: &Nats,
        kind: Kind,
        settings: QueueSettings,
        about: Value,
    ) -> Result<Self, SyncError> {
        settings.work.check()?;
        let id = &settings.work.id;
        let (name, dead_name, word) = words(kind);
        let stream = names::stream(&nats.namespace, name, id);
        let dead_stream = names::stream(&nats.namespace, dead_name, id);
        let subjects = Subjects::new(&nats.namespace, kind, id);
        let resource = format!("{word} {id}");
        let api = &nats.api;

        let mut config = work_stream(nats, &stream, word, &settings, &subjects);
        if let (Some(Value::Object(metadata)), Value::Object(about)) =
            (config.get_mut("metadata"), about)
        {
            metadata.extend(about);
        }
        let creation = Map::new();
        let info = declare::stream(api, &Stream { resource: &resource, config, creation }).await?;
        anchor(api, &resource, &subjects).await?;
        let config = dead_stream_config(nats, &dead_stream, word, &settings, &subjects);
        let creation = Map::new();
        declare::stream(api, &Stream { resource: &resource, config, creation }).await?;
        for config in consumers(&settings, &subjects) {
            declare::consumer(api, &resource, &stream, &config).await?;
        }
        Ok(Self::of(nats, kind, settings, &info))
    }

    /// As it is there, with what is kept with it.
    pub(crate) async fn open(
        nats: &Nats,
        kind: Kind,
        id: &ResourceId,
    ) -> Result<Option<(Self, Map<String, Value>)>, SyncError> {
        let stream = names::stream(&nats.namespace, words(kind).0, id);
        let Some((config, info)) = declare::stream_if_there(&nats.api, &stream).await? else {
            return Ok(None);
        };
        let about = config.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let partitions = number(&about, "sync.partitions");
        let consumer = if partitions == 0 { "work" } else { "p000" };
        let consumer = declare::consumer_config(&nats.api, &stream, consumer).await?;
        let settings = found(id.clone(), &config, &about, &consumer)?;
        Ok(Some((Self::of(nats, kind, settings, &info), about)))
    }

    fn of(nats: &Nats, kind: Kind, settings: QueueSettings, info: &StreamInfo) -> Self {
        let id = &settings.work.id;
        let (name, dead_name, word) = words(kind);
        let subjects = Subjects::new(&nats.namespace, kind, id);
        let name_of = |config: &Map<String, Value>| config.get("name")?.as_str().map(str::to_owned);
        let consumers = consumers(&settings, &subjects).iter().filter_map(name_of).collect();
        Self {
            api: nats.api.clone(),
            kind,
            resource: format!("{word} {id}"),
            stream: names::stream(&nats.namespace, name, id),
            dead_stream: names::stream(&nats.namespace, dead_name, id),
            subjects,
            consumers,
            turn: std::sync::atomic::AtomicUsize::new(0),
            clock: ServerClock::new(info.now),
            fill: Fill::new(info.bytes, settings.work.stored_max_bytes),
            settings,
        }
    }
}

/// Stores the message that stays in front of all work, unless it is there. A consumer that has caught up with the
/// beginning of its stream has the server count everything behind it, at each message that it hands out: so none ever
/// does.
async fn anchor(api: &Api, resource: &str, subjects: &Subjects) -> Result<(), SyncError> {
    let publish = Publish {
        subject: &subjects.anchor(),
        headers: vec![("Nats-TTL", "never".to_owned())],
        body: bytes::Bytes::new(),
        expect: Some(Expect::NONE),
        msg_id: None,
        resource,
    };
    match api.publish(&publish).await? {
        Published::Stored { .. } | Published::Conflict { .. } => Ok(()),
    }
}

/// A number among texts; 0 if there is none.
fn number(about: &Map<String, Value>, name: &str) -> u64 {
    let text = about.get(name).and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The settings that a resource was declared with.
fn found(
    id: ResourceId,
    stream: &Map<String, Value>,
    about: &Map<String, Value>,
    consumer: &Map<String, Value>,
) -> Result<QueueSettings, SyncError> {
    let of = |config: &Map<String, Value>, field: &str| {
        config.get(field).and_then(Value::as_u64).unwrap_or_default()
    };
    let span = |config, field| Duration::from_nanos(of(config, field));
    let waits = about.get("sync.backoff").and_then(Value::as_str).unwrap_or_default();
    let waits = waits.split(',').filter_map(|text| text.parse().ok()).map(Duration::from_millis);
    let work = WorkSettings {
        ack_wait: span(consumer, "ack_wait"),
        attempts_max: u32::try_from(number(about, "sync.attempts")).unwrap_or(u32::MAX),
        backoff: Backoff::new(waits.collect()),
        dedupe_window: span(stream, "duplicate_window"),
        payload_max_bytes: usize::try_from(number(about, "sync.payload")).unwrap_or(usize::MAX),
        retention: span(stream, "max_age"),
        stored_max_bytes: of(stream, "max_bytes"),
        held_max: u32::try_from(of(consumer, "max_ack_pending")).unwrap_or(u32::MAX),
        ..WorkSettings::new(id)
    };
    let partitions = u16::try_from(number(about, "sync.partitions")).unwrap_or(u16::MAX);
    let partitions = (partitions > 0).then(|| Partitions::new(partitions)).transpose()?;
    Ok(QueueSettings { work, partitions })
}

fn work_stream(
    nats: &Nats,
    name: &str,
    kind: &str,
    settings: &QueueSettings,
    subjects: &Subjects,
) -> Map<String, Value> {
    let QueueSettings { work, partitions } = settings;
    let mut config = settings::base(nats, name, kind, work.id.as_str());
    settings::set(
        &mut config,
        json!({
            "subjects": subjects.all(),
            "retention": "workqueue",
            // The server schedules only where the oldest makes room; `Fill` sees to it that this never happens.
            "discard": "old",
            "max_age": nanos(work.retention),
            "max_bytes": work.stored_max_bytes,
            "duplicate_window": nanos(work.dedupe_window),
            "allow_msg_ttl": true,
            "allow_msg_schedules": true,
            "allow_direct": true,
        }),
    );
    // What the server does not enforce itself, but all who declare it must agree on.
    if let Some(Value::Object(metadata)) = config.get_mut("metadata") {
        let partitions = partitions.map_or(0, |partitions| partitions.count());
        metadata.insert("sync.attempts".to_owned(), json!(work.attempts_max.to_string()));
        let backoff: Vec<String> = work.backoff.millis().iter().map(u128::to_string).collect();
        metadata.insert("sync.backoff".to_owned(), json!(backoff.join(",")));
        metadata.insert("sync.payload".to_owned(), json!(work.payload_max_bytes.to_string()));
        metadata.insert("sync.partitions".to_owned(), json!(partitions.to_string()));
    }
    config
}

fn dead_stream_config(
    nats: &Nats,
    name: &str,
    kind: &str,
    settings: &QueueSettings,
    subjects: &Subjects,
) -> Map<String, Value> {
    let kind = format!("{kind} dead letters");
    let mut config = settings::base(nats, name, &kind, settings.work.id.as_str());
    settings::set(
        &mut config,
        json!({
            "subjects": [subjects.dead_all()],
            // A letter that is being sent again says so in place of itself.
            "max_msgs_per_subject": 1,
            "retention": "limits",
            "discard": "old",
            "max_age": DEAD_FOR_SECS * NANOS,
            "max_bytes": DEAD_MAX_BYTES.min(settings.work.stored_max_bytes),
        }),
    );
    config
}

/// One for all work, or one per lane that holds one message at a time.
fn consumers(settings: &QueueSettings, subjects: &Subjects) -> Vec<Map<String, Value>> {
    let consumer = |name: String, filter: String, held_max: u32| {
        let mut config = Map::new();
        settings::set(
            &mut config,
            json!({
                "name": name,
                "durable_name": name,
                "filter_subject": filter,
                "deliver_policy": "all",
                "ack_policy": "explicit",
                "ack_wait": nanos(settings.work.ack_wait),
                // Attempts are counted by us: what the server gives up stays in the stream, and nobody ever sees it.
                "max_deliver": -1,
                "max_ack_pending": held_max,
                "replay_policy": "instant",
            }),
        );
        config
    };
    match settings.partitions {
        None => vec![consumer("work".to_owned(), subjects.ready_all(), settings.work.held_max)],
        Some(partitions) => (0..partitions.count())
            .map(|lane| consumer(format!("p{lane:03}"), subjects.ready_lane(&lane.to_string()), 1))
            .collect(),
    }
}
