//! The streams and consumers of jobs and queues.

use serde_json::{Map, Value, json};
use surefoot_sync_core::{QueueSettings, SyncError, WorkSettings};

use super::fill::Fill;
use super::{Kind, NatsWork, Subjects};
use crate::clock::ServerClock;
use crate::connect::Nats;
use crate::declare::{self, Stream, StreamInfo};
use crate::{names, settings};

/// Dead letters are kept so long, and so many bytes of them at most, or as many as of work.
const DEAD_FOR_SECS: u64 = 30 * 86_400;
const DEAD_MAX_BYTES: u64 = 256 << 20;
const NANOS: u64 = 1_000_000_000;

impl NatsWork {
    pub(crate) async fn declare_jobs(
        nats: &Nats,
        settings: WorkSettings,
    ) -> Result<Self, SyncError> {
        Self::declare(nats, Kind::Jobs, QueueSettings::new(settings)).await
    }

    pub(crate) async fn declare_queue(
        nats: &Nats,
        settings: QueueSettings,
    ) -> Result<Self, SyncError> {
        Self::declare(nats, Kind::Queue, settings).await
    }

    async fn declare(nats: &Nats, kind: Kind, settings: QueueSettings) -> Result<Self, SyncError> {
        settings.work.check()?;
        let id = &settings.work.id;
        let (name, dead_name, word) = match kind {
            Kind::Jobs => ("JOB", "JOBDLQ", "jobs"),
            Kind::Queue => ("QUEUE", "QUEUEDLQ", "queue"),
        };
        let stream = names::stream(&nats.namespace, name, id);
        let dead_stream = names::stream(&nats.namespace, dead_name, id);
        let subjects = Subjects::new(&nats.namespace, kind, id);
        let resource = format!("{word} {id}");
        let api = nats.api.clone();

        let config = work_stream(nats, &stream, word, &settings, &subjects);
        let creation = Map::new();
        let info = declare::stream(&api, &Stream { resource: &resource, config, creation }).await?;
        let config = dead_stream_config(nats, &dead_stream, word, &settings, &subjects);
        let creation = Map::new();
        declare::stream(&api, &Stream { resource: &resource, config, creation }).await?;
        let consumers = consumers(&settings, &subjects);
        for config in &consumers {
            declare::consumer(&api, &resource, &stream, config).await?;
        }
        let name_of = |config: &Map<String, Value>| config.get("name")?.as_str().map(str::to_owned);
        let StreamInfo { now, bytes, .. } = info;
        Ok(Self {
            api,
            kind,
            resource,
            stream,
            dead_stream,
            subjects,
            consumers: consumers.iter().filter_map(name_of).collect(),
            turn: std::sync::atomic::AtomicUsize::new(0),
            clock: ServerClock::new(now),
            fill: Fill::new(bytes, settings.work.stored_max_bytes),
            settings,
        })
    }
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

fn nanos(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
