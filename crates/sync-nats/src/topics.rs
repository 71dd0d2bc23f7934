//! Topics: a stream that keeps what it has, read by place.
//!
//! Whoever reads asks for the messages behind a place; the server keeps nothing of readers, so nothing is lost with
//! a server's consumer, and a missing message is seen as a hole between two places. New messages are waited for where the
//! server repeats what it has stored; that only says that it is worth asking.

use std::sync::atomic::{AtomicU64, Ordering};

use async_nats::Subscriber;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Map, json};
use surefoot_sync_core::{
    Cursor, EventPublished, Extent, Key, LiveMessage, LiveMessages, ReadTopic, SyncError, Topic,
    TopicEvent, TopicMessage, TopicSettings,
};
use tokio::time::{Duration, Instant};

use crate::api::{ASK_AT_ONCE, Api, Headers, Publish, Published, Stored};
use crate::connect::Nats;
use crate::declare::{self, Stream, StreamInfo};
use crate::settings::nanos;
use crate::{names, settings};

/// How long a hint that got lost may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct NatsTopic {
    api: Api,
    settings: TopicSettings,
    resource: String,
    stream: String,
    subjects: String,
    /// Where the server repeats what it has stored.
    live: String,
    /// As it was last seen: a topic that is made anew under this handle is another one, and its cursors are refused.
    incarnation: AtomicU64,
}

pub(crate) fn subjects(nats: &Nats, settings: &TopicSettings) -> String {
    format!("{}.topic.{}.e", nats.namespace, names::token(settings.id.as_str()))
}

fn live(nats: &Nats, settings: &TopicSettings) -> String {
    format!("{}.live.{}", nats.namespace, names::token(settings.id.as_str()))
}

impl NatsTopic {
    pub(crate) async fn declare(nats: &Nats, settings: TopicSettings) -> Result<Self, SyncError> {
        settings.check()?;
        let stream = names::stream(&nats.namespace, "TOPIC", &settings.id);
        let subjects = subjects(nats, &settings);
        let resource = format!("topic {}", settings.id);
        let mut config = settings::base(nats, &stream, "topic", settings.id.as_str());
        // No limit per subject and no age per message: what is missing between two places is a hole.
        let live = live(nats, &settings);
        let fields = json!({
            "subjects": [format!("{subjects}.*")],
            "retention": "limits",
            "discard": "old",
            "max_age": nanos(settings.retention),
            "max_bytes": settings.stored_max_bytes,
            "duplicate_window": nanos(settings.dedupe_window),
            // What is stored, and only that, is told to who waits.
            "republish": { "src": format!("{subjects}.*"), "dest": format!("{live}.{{{{wildcard(1)}}}}") },
        });
        settings::set(&mut config, fields);
        let api = nats.api.clone();
        let creation = Map::new();
        let info = declare::stream(&api, &Stream { resource: &resource, config, creation }).await?;
        Ok(Self::of(nats, settings, &info))
    }

    /// The topic as it is there, whatever its settings are.
    pub(crate) async fn open(
        nats: &Nats,
        settings: TopicSettings,
    ) -> Result<Option<Self>, SyncError> {
        let stream = names::stream(&nats.namespace, "TOPIC", &settings.id);
        let there = declare::stream_if_there(&nats.api, &stream).await?;
        Ok(there.map(|(_, info)| Self::of(nats, settings, &info)))
    }

    fn of(nats: &Nats, settings: TopicSettings, info: &StreamInfo) -> Self {
        Self {
            api: nats.api.clone(),
            resource: format!("topic {}", settings.id),
            stream: names::stream(&nats.namespace, "TOPIC", &settings.id),
            subjects: subjects(nats, &settings),
            live: live(nats, &settings),
            incarnation: AtomicU64::new(info.incarnation),
            settings,
        }
    }

    async fn extent(&self) -> Result<Extent, SyncError> {
        let info = declare::stream_info(&self.api, &self.stream).await?;
        self.incarnation.store(info.incarnation, Ordering::Relaxed);
        Ok(extent(&info))
    }

    /// The messages behind a place, up to the first hole.
    async fn after(
        &self,
        from: u64,
        extent: &Extent,
        max: usize,
    ) -> Result<Vec<TopicMessage>, SyncError> {
        let count = extent.last_seq.saturating_add(1).saturating_sub(from);
        let max = u64::try_from(max).unwrap_or(u64::MAX).min(count);
        let places = from..from.saturating_add(max);
        let asked = places.map(|seq| async move { (seq, self.api.at(&self.stream, seq).await) });
        let mut answers = stream::iter(asked).buffered(ASK_AT_ONCE);
        let mut messages = Vec::new();
        while let Some((seq, stored)) = answers.next().await {
            let Some(stored) = stored? else {
                if messages.is_empty() {
                    // It is gone since the extent was read.
                    let first_available = self.extent().await?.first_seq.max(seq + 1);
                    return Err(SyncError::RetentionGap { requested: seq, first_available });
                }
                break;
            };
            messages.push(message(&stored, extent.incarnation)?);
        }
        Ok(messages)
    }
}

struct Listener {
    messages: Subscriber,
    incarnation: u64,
}

#[async_trait]
impl LiveMessages for Listener {
    async fn next(&mut self) -> Option<LiveMessage> {
        loop {
            let message = self.messages.next().await?;
            match live_message(&message, self.incarnation) {
                Some(live) => return Some(live),
                None => {
                    let subject = message.subject.as_str();
                    tracing::debug!(subject, "a message that passed by cannot be read");
                }
            }
        }
    }
}

fn live_message(message: &async_nats::Message, incarnation: u64) -> Option<LiveMessage> {
    let tenant = names::text_of(message.subject.rsplit('.').next()?)?;
    let seq = Headers::of(message.headers.as_ref()).number("Nats-Sequence");
    Some(LiveMessage {
        cursor: Cursor::new(incarnation, seq),
        tenant: Key::new(tenant).ok()?,
        data: serde_json::from_slice(&message.payload).ok()?,
    })
}

fn extent(info: &StreamInfo) -> Extent {
    let StreamInfo { first_seq, last_seq, .. } = *info;
    // An empty stream says 0 until something was stored.
    Extent { incarnation: info.incarnation, first_seq: first_seq.max(1), last_seq }
}

fn message(stored: &Stored, incarnation: u64) -> Result<TopicMessage, SyncError> {
    let corrupt = |why: String| SyncError::Corrupt { what: format!("message {}", stored.seq), why };
    let token = stored.last_token();
    let tenant =
        names::text_of(token).ok_or_else(|| corrupt(format!("its tenant is `{token}`")))?;
    Ok(TopicMessage {
        cursor: Cursor::new(incarnation, stored.seq),
        tenant: Key::new(tenant)?,
        data: serde_json::from_slice(&stored.data).map_err(|error| corrupt(error.to_string()))?,
        at: stored.time,
    })
}

#[async_trait]
impl Topic for NatsTopic {
    fn settings(&self) -> &TopicSettings {
        &self.settings
    }

    async fn publish(&self, event: TopicEvent) -> Result<EventPublished, SyncError> {
        let msg_id = event.idempotency_key.map(|key| names::hashed(&["key", key.as_str()]));
        // Without a key of the sender, a repetition of this very call is recognised all the same.
        let msg_id = msg_id.unwrap_or_else(|| nuid::next().to_string());
        let publish = Publish {
            subject: &format!("{}.{}", self.subjects, names::token(event.tenant.as_str())),
            headers: Vec::new(),
            body: event.data.to_string().into(),
            expect: None,
            msg_id: Some(&msg_id),
            resource: &self.resource,
        };
        let (bytes, limit_bytes) = (publish.size_bytes(), self.settings.payload_max_bytes);
        if bytes > limit_bytes {
            return Err(SyncError::PayloadTooLarge { bytes, limit_bytes });
        }
        let incarnation = self.incarnation.load(Ordering::Relaxed);
        match self.api.publish(&publish).await? {
            Published::Stored { seq, duplicate } => {
                Ok(EventPublished { cursor: Cursor::new(incarnation, seq), duplicate })
            }
            Published::Conflict { .. } => {
                Err(SyncError::Conflict { what: format!("a message of {}", self.resource) })
            }
        }
    }

    async fn head(&self) -> Result<Cursor, SyncError> {
        let extent = self.extent().await?;
        Ok(Cursor::new(extent.incarnation, extent.last_seq))
    }

    async fn tail(&self) -> Result<Cursor, SyncError> {
        let extent = self.extent().await?;
        Ok(Cursor::new(extent.incarnation, extent.first_seq.saturating_sub(1)))
    }

    async fn live(&self) -> Result<Box<dyn LiveMessages>, SyncError> {
        let operation = "tell about new messages";
        let messages = self.api.client().subscribe(format!("{}.*", self.live)).await;
        let messages =
            messages.map_err(|error| SyncError::Unavailable { operation, source: error.into() })?;
        // The server answers once it has read what was sent before: what is published behind this call is heard.
        let incarnation = self.extent().await?.incarnation;
        Ok(Box::new(Listener { messages, incarnation }))
    }

    async fn read(
        &self,
        after: &Cursor,
        request: ReadTopic,
    ) -> Result<Vec<TopicMessage>, SyncError> {
        let deadline = Instant::now() + request.wait;
        let mut hints = None;
        loop {
            let extent = self.extent().await?;
            let from = after.next_in(&extent)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if from <= extent.last_seq || request.max == 0 || left.is_zero() {
                return self.after(from, &extent, request.max).await;
            }
            // Listened for before the next look, so that nothing comes in between.
            let Some(hints) = &mut hints else {
                let operation = "tell about new messages";
                let hinted = self.api.client().subscribe(format!("{}.*", self.live)).await;
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
