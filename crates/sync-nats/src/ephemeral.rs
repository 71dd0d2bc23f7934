//! Ephemeral state: a stream with one message for each entry, which the server removes when its time is over.
//!
//! That an entry is gone is a message too, for a while: the server leaves a marker where one expired, and we leave one
//! where one was deleted. A watcher reads on from a place as a reader of a topic does.

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};
use surefoot_sync_core::{
    Change, EntryKey, Ephemeral, EphemeralSettings, Extent, GONE_FOR, Key, ReadTopic, Snapshot,
    SyncError, WatchCursor, Watched,
};
use tokio::time::{Duration, Instant};

use crate::api::{Api, Expect, Publish, Published, Stored};
use crate::clock::ServerClock;
use crate::connect::Nats;
use crate::declare::{self, Stream};
use crate::{names, settings};

const OPERATION: &str = "Sync-Op";
const DELETED: &str = "del";
/// What the server writes where an entry expired.
const MARKER: &str = "Nats-Marker-Reason";
/// How long a hint that got lost may go unnoticed; the server gives none for what expires.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct NatsEphemeral {
    api: Api,
    settings: EphemeralSettings,
    resource: String,
    stream: String,
    subjects: String,
    live: String,
    clock: ServerClock,
}

impl NatsEphemeral {
    pub(crate) async fn declare(
        nats: &Nats,
        settings: EphemeralSettings,
    ) -> Result<Self, SyncError> {
        settings.check()?;
        let id = names::token(settings.id.as_str());
        let stream = names::stream(&nats.namespace, "EPH", &settings.id);
        let subjects = format!("{}.eph.{id}.p", nats.namespace);
        let live = format!("{}.ephlive.{id}", nats.namespace);
        let resource = format!("ephemeral state {}", settings.id);
        let mut config = settings::base(nats, &stream, "ephemeral", settings.id.as_str());
        let fields = json!({
            "subjects": [format!("{subjects}.*.*")],
            "retention": "limits",
            "discard": "old",
            "max_msgs_per_subject": 1,
            "allow_msg_ttl": true,
            "subject_delete_marker_ttl": GONE_FOR.as_secs() * 1_000_000_000,
            "republish": {
                "src": format!("{subjects}.*.*"),
                "dest": format!("{live}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}"),
                "headers_only": true,
            },
        });
        settings::set(&mut config, fields);
        if let Some(Value::Object(metadata)) = config.get_mut("metadata") {
            metadata.insert("sync.ttl".to_owned(), json!(settings.ttl.as_secs().to_string()));
        }
        let api = nats.api.clone();
        let creation = Map::new();
        let info = declare::stream(&api, &Stream { resource: &resource, config, creation }).await?;
        let clock = ServerClock::new(info.now);
        Ok(Self { api, settings, resource, stream, subjects, live, clock })
    }

    fn subject(&self, entry: &EntryKey) -> String {
        let (tenant, key) = (entry.tenant.as_str(), entry.key.as_str());
        format!("{}.{}.{}", self.subjects, names::token(tenant), names::token(key))
    }

    fn of_tenant(&self, tenant: &Key) -> String {
        format!("{}.{}.*", self.subjects, names::token(tenant.as_str()))
    }

    /// What is there, as of now.
    async fn extent(&self) -> Result<Extent, SyncError> {
        let info = declare::stream_info(&self.api, &self.stream).await?;
        self.clock.set(info.now);
        let (incarnation, last_seq) = (info.incarnation, info.last_seq);
        Ok(Extent { incarnation, first_seq: info.first_seq.max(1), last_seq })
    }

    async fn put(
        &self,
        entry: &EntryKey,
        value: Option<&[u8]>,
        expect: Option<Expect>,
    ) -> Result<Published, SyncError> {
        let ttl = if value.is_some() { self.settings.ttl } else { GONE_FOR };
        let mut headers = vec![("Nats-TTL", ttl.as_secs().to_string())];
        if value.is_none() {
            headers.push((OPERATION, DELETED.to_owned()));
        }
        let publish = Publish {
            subject: &self.subject(entry),
            headers,
            body: value.unwrap_or_default().to_vec().into(),
            expect,
            msg_id: None,
            resource: &self.resource,
        };
        self.api.publish(&publish).await
    }

    /// The last message of an entry that is not gone.
    async fn live(&self, entry: &EntryKey) -> Result<Option<Stored>, SyncError> {
        let last = self.api.last(&self.stream, &self.subject(entry)).await?;
        Ok(last.filter(|last| !is_gone(last)))
    }
}

fn is_gone(stored: &Stored) -> bool {
    stored.headers.get(MARKER).is_some() || stored.headers.get(OPERATION) == Some(DELETED)
}

fn corrupt(stored: &Stored, why: String) -> SyncError {
    SyncError::Corrupt { what: format!("the entry {}", stored.subject), why }
}

fn key_of(stored: &Stored) -> Result<Key, SyncError> {
    let token = stored.last_token();
    let text = names::text_of(token);
    Key::new(text.ok_or_else(|| corrupt(stored, format!("its key is `{token}`")))?)
}

fn value_of(stored: &Stored) -> Result<Value, SyncError> {
    serde_json::from_slice(&stored.data).map_err(|error| corrupt(stored, error.to_string()))
}

fn change_of(stored: &Stored) -> Result<Change, SyncError> {
    let key = key_of(stored)?;
    match is_gone(stored) {
        true => Ok(Change::Gone(key)),
        false => Ok(Change::Upserted(key, value_of(stored)?)),
    }
}

#[async_trait]
impl Ephemeral for NatsEphemeral {
    fn settings(&self) -> &EphemeralSettings {
        &self.settings
    }

    async fn upsert(&self, entry: &EntryKey, value: Value) -> Result<(), SyncError> {
        self.settings.check_value(&value)?;
        self.put(entry, Some(value.to_string().as_bytes()), None).await.map(|_| ())
    }

    async fn touch(&self, entry: &EntryKey) -> Result<bool, SyncError> {
        let Some(there) = self.live(entry).await? else { return Ok(false) };
        let expect = Some(Expect { seq: there.seq, subject: None });
        match self.put(entry, Some(&there.data), expect).await? {
            Published::Stored { .. } => Ok(true),
            // Somebody set it, which keeps it up as well, or deleted it.
            Published::Conflict { .. } => Ok(self.live(entry).await?.is_some()),
        }
    }

    async fn delete(&self, entry: &EntryKey) -> Result<bool, SyncError> {
        let was_live = self.live(entry).await?.is_some();
        self.put(entry, None, None).await?;
        Ok(was_live)
    }

    async fn snapshot(&self, tenant: &Key, prefix: &str) -> Result<Snapshot, SyncError> {
        // The place is read first: what changes meanwhile is seen again by who watches from there.
        let extent = self.extent().await?;
        let limit = self.settings.entries_max;
        let mut entries = Vec::new();
        for stored in self.api.lasts(&self.stream, &self.of_tenant(tenant)).await? {
            let key = key_of(&stored)?;
            if key.as_str().starts_with(prefix) && !is_gone(&stored) {
                if entries.len() >= limit {
                    return Err(SyncError::SnapshotOverflow { limit });
                }
                entries.push((key, value_of(&stored)?));
            }
        }
        entries.sort_by(|(one, _), (two, _)| one.cmp(two));
        Ok(Snapshot { entries, cursor: WatchCursor::at_end_of(&extent, self.clock.now()) })
    }

    async fn watch(
        &self,
        tenant: &Key,
        after: &WatchCursor,
        request: ReadTopic,
    ) -> Result<Watched, SyncError> {
        let deadline = Instant::now() + request.wait;
        let mut hints = None;
        loop {
            let extent = self.extent().await?;
            let now = self.clock.now();
            let Some(from) = after.next_in(&extent, now) else {
                return Ok(Watched::ResyncRequired);
            };
            let filter = self.of_tenant(tenant);
            let places = (from, extent.last_seq);
            let stored = self.api.between(&self.stream, &filter, places).await?;
            let changes = stored.iter().map(change_of).collect::<Result<Vec<Change>, _>>()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !changes.is_empty() || left.is_zero() {
                return Ok(Watched::Changes(changes, WatchCursor::at_end_of(&extent, now)));
            }
            // Listened for before the next look, so that nothing comes in between.
            let Some(hints) = &mut hints else {
                let tenant = names::token(tenant.as_str());
                let hinted = self.api.client().subscribe(format!("{}.{tenant}.*", self.live)).await;
                let operation = "tell about changes";
                hints =
                    Some(hinted.map_err(|error| SyncError::Unavailable {
                        operation,
                        source: error.into(),
                    })?);
                continue;
            };
            let _ = tokio::time::timeout(left.min(LOOK_EVERY), hints.next()).await;
        }
    }
}
