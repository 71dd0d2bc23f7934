//! Topics in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use surefoot_sync_core::{
    Cursor, EventPublished, Extent, Key, LiveMessage, LiveMessages, ReadTopic, ResourceId,
    SyncError, Topic, TopicEvent, TopicMessage, TopicSettings,
};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::Shared;

pub(super) type Topics = BTreeMap<ResourceId, Messages>;

#[derive(Debug, Default)]
pub(super) struct Messages {
    last_seq: u64,
    kept: VecDeque<Kept>,
    known: BTreeMap<Key, (u64, Instant)>,
    /// Whoever listens now.
    live: Option<broadcast::Sender<LiveMessage>>,
}

/// What a listener may be behind.
const LIVE_MAX: usize = 256;

struct Listener(broadcast::Receiver<LiveMessage>);

#[async_trait]
impl LiveMessages for Listener {
    async fn next(&mut self) -> Option<LiveMessage> {
        loop {
            match self.0.recv().await {
                Ok(message) => return Some(message),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

#[derive(Debug)]
struct Kept {
    message: TopicMessage,
    bytes: u64,
    until: Instant,
}

impl Messages {
    pub(super) fn behind(&self, seq: u64) -> impl Iterator<Item = &TopicMessage> {
        let messages = self.kept.iter().map(|kept| &kept.message);
        messages.filter(move |message| message.cursor.seq() > seq)
    }

    fn extent(&self, incarnation: u64) -> Extent {
        let kept = u64::try_from(self.kept.len()).unwrap_or(u64::MAX);
        Extent { incarnation, first_seq: self.last_seq + 1 - kept, last_seq: self.last_seq }
    }

    /// What is too old, or has to make room.
    fn expire(&mut self, stored_max_bytes: u64) {
        let now = Instant::now();
        let mut bytes: u64 = self.kept.iter().map(|kept| kept.bytes).sum();
        while let Some(first) = self.kept.front() {
            if first.until > now && bytes <= stored_max_bytes {
                break;
            }
            bytes -= first.bytes;
            self.kept.pop_front();
        }
    }
}

#[derive(Debug)]
pub(super) struct MemoryTopic {
    shared: Arc<Shared>,
    settings: TopicSettings,
    incarnation: u64,
}

impl MemoryTopic {
    /// Topics of one broker have ids of their own; two brokers are told apart by nobody.
    pub(super) fn new(shared: Arc<Shared>, settings: TopicSettings) -> Self {
        let id = settings.id.as_str().bytes();
        let incarnation = id.fold(17_u64, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte));
        Self { shared, settings, incarnation }
    }

    fn with<R>(&self, change: impl FnOnce(&mut Messages) -> R) -> R {
        let mut data = self.shared.data();
        let messages = data.topics.entry(self.settings.id.clone()).or_default();
        messages.expire(self.settings.stored_max_bytes);
        change(messages)
    }
}

#[async_trait]
impl Topic for MemoryTopic {
    fn settings(&self) -> &TopicSettings {
        &self.settings
    }

    async fn publish(&self, event: TopicEvent) -> Result<EventPublished, SyncError> {
        let (bytes, limit_bytes) = (event.data.to_string().len(), self.settings.payload_max_bytes);
        if bytes > limit_bytes {
            return Err(SyncError::PayloadTooLarge { bytes, limit_bytes });
        }
        let (now, at) = (Instant::now(), self.shared.timestamp());
        let published = self.with(|messages| {
            let window = self.settings.dedupe_window;
            messages.known.retain(|_, (_, sent)| now.duration_since(*sent) < window);
            let known = event.idempotency_key.as_ref().and_then(|key| messages.known.get(key));
            if let Some((seq, _)) = known {
                let cursor = Cursor::new(self.incarnation, *seq);
                return EventPublished { cursor, duplicate: true };
            }
            messages.last_seq += 1;
            if let Some(key) = event.idempotency_key {
                messages.known.insert(key, (messages.last_seq, now));
            }
            let cursor = Cursor::new(self.incarnation, messages.last_seq);
            let (tenant, data) = (event.tenant, event.data);
            if let Some(live) = &messages.live {
                let (cursor, tenant, data) = (cursor.clone(), tenant.clone(), data.clone());
                // Nobody listens any more: that is all right.
                let _ = live.send(LiveMessage { cursor, tenant, data });
            }
            let message = TopicMessage { cursor: cursor.clone(), tenant, data, at };
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            messages.kept.push_back(Kept { message, bytes, until: now + self.settings.retention });
            EventPublished { cursor, duplicate: false }
        });
        self.shared.changed.notify_waiters();
        Ok(published)
    }

    async fn head(&self) -> Result<Cursor, SyncError> {
        Ok(self.with(|messages| Cursor::new(self.incarnation, messages.last_seq)))
    }

    async fn tail(&self) -> Result<Cursor, SyncError> {
        let first = |messages: &mut Messages| messages.extent(self.incarnation).first_seq;
        Ok(Cursor::new(self.incarnation, self.with(first).saturating_sub(1)))
    }

    async fn live(&self) -> Result<Box<dyn LiveMessages>, SyncError> {
        Ok(Box::new(Listener(self.with(|messages| {
            let live = messages.live.get_or_insert_with(|| broadcast::channel(LIVE_MAX).0);
            live.subscribe()
        }))))
    }

    async fn read(
        &self,
        after: &Cursor,
        request: ReadTopic,
    ) -> Result<Vec<TopicMessage>, SyncError> {
        let deadline = Instant::now() + request.wait;
        loop {
            let notified = self.shared.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let read = self.with(|messages| {
                let extent = messages.extent(self.incarnation);
                let skipped = after.next_in(&extent)? - extent.first_seq;
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                let rest = messages.kept.iter().skip(skipped).take(request.max);
                Ok::<Vec<TopicMessage>, SyncError>(rest.map(|kept| kept.message.clone()).collect())
            })?;
            if !read.is_empty() || request.max == 0 || Instant::now() >= deadline {
                return Ok(read);
            }
            let _ = tokio::time::timeout_at(deadline, notified).await;
        }
    }
}
