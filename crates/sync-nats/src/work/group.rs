//! Groups of a topic: a durable consumer of the topic's stream, and an engine of their own for what is sent again.
//!
//! A message of a topic belongs to all who read it, so nothing is stored in its place: a retry is a delayed negative
//! acknowledgement, and a dead letter is put aside in the group's own stream.

use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use surefoot_sync_core::{
    DeadLetter, DeadPage, Delivery, Depth, GroupSettings, GroupStart, Key, Move, QueueSettings,
    Receive, ResourceId, Settled, SyncError, TopicSettings, Verdict, Work, WorkId, WorkSettings,
};
use tokio::time::Instant;

use super::settle::{Mine, ticket};
use super::{Kind, NatsWork};
use crate::api::{Api, Pull, Pulled, pull};
use crate::connect::Nats;
use crate::declare::{self, ConsumerInfo};
use crate::topics::{self, NatsTopic};
use crate::{names, settings};

/// How long something that is sent again may wait behind the topic's messages.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const TOPIC: &str = "sync.topic";
const GROUP: &str = "sync.group";

#[derive(Debug)]
pub(crate) struct NatsGroup {
    api: Api,
    stream: String,
    consumer: String,
    /// Of the topic's messages.
    subjects: String,
    /// What is sent again, and what was given up.
    again: NatsWork,
    looked: StdMutex<Option<Instant>>,
}

impl NatsGroup {
    pub(crate) async fn declare(
        nats: &Nats,
        topic: TopicSettings,
        group: &GroupSettings,
    ) -> Result<Self, SyncError> {
        let work = QueueSettings::new(group.work(&topic)?);
        NatsTopic::declare(nats, topic.clone()).await?;
        let resource = format!("group {}", work.work.id);
        let of = Self::names(nats, &topic.id, &group.name);
        let config = consumer(&of, group);
        let about = json!({ TOPIC: topic.id.as_str(), GROUP: group.name.as_str() });
        let again = NatsWork::declare(nats, Kind::Group, work, about).await?;
        // Last: who finds the consumer finds the rest.
        declare::consumer(&nats.api, &resource, &of.stream, &config).await?;
        Ok(Self::of(nats, of, again))
    }

    /// As it is there.
    pub(crate) async fn open(nats: &Nats, id: &ResourceId) -> Result<Option<Self>, SyncError> {
        let Some((again, about)) = NatsWork::open(nats, Kind::Group, id).await? else {
            return Ok(None);
        };
        let text = |name: &str| about.get(name).and_then(Value::as_str).unwrap_or_default();
        let of = Self::names(nats, &ResourceId::new(text(TOPIC))?, &Key::new(text(GROUP))?);
        Ok(Some(Self::of(nats, of, again)))
    }

    fn names(nats: &Nats, topic: &ResourceId, group: &Key) -> Names {
        Names {
            stream: names::stream(&nats.namespace, "TOPIC", topic),
            consumer: format!("g-{}", names::slug(group.as_str())),
            subjects: topics::subjects(nats, &TopicSettings::new(topic.clone())),
        }
    }

    fn of(nats: &Nats, names: Names, again: NatsWork) -> Self {
        let Names { stream, consumer, subjects } = names;
        let (api, looked) = (nats.api.clone(), StdMutex::new(None));
        Self { api, stream, consumer, subjects, again, looked }
    }

    /// Whether it is time to look for what is sent again. While there is some, it is.
    fn is_time(&self) -> bool {
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY)
    }

    async fn take_again(&self, max: usize) -> Result<Vec<Delivery>, SyncError> {
        if !self.is_time() {
            return Ok(Vec::new());
        }
        let taken = self.again.take(Receive { max, wait: Duration::ZERO }).await?;
        if taken.is_empty() {
            *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        Ok(taken)
    }

    async fn take(&self, request: Receive) -> Result<Vec<Delivery>, SyncError> {
        let deadline = Instant::now() + request.wait;
        let mut expires = None;
        loop {
            let again = self.take_again(request.max).await?;
            if !again.is_empty() {
                return Ok(again);
            }
            let batch = if expires.is_some() { 1 } else { request.max };
            let asked = Pull { batch, expires };
            let pulled = pull(&self.api, &self.stream, &[&self.consumer], asked).await?;
            let mut deliveries = Vec::with_capacity(pulled.len());
            for pulled in pulled {
                match self.arrive(&pulled).await {
                    Ok(delivery) => deliveries.extend(delivery),
                    Err(error) => {
                        tracing::warn!(subject = pulled.subject, %error, "a message cannot be taken");
                    }
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !deliveries.is_empty() || left.is_zero() {
                return Ok(deliveries);
            }
            expires = Some(left.min(LOOK_EVERY).max(Duration::from_millis(1)));
        }
    }

    async fn arrive(&self, pulled: &Pulled) -> Result<Option<Delivery>, SyncError> {
        let attempt = u32::try_from(pulled.delivered).unwrap_or(u32::MAX);
        let token = pulled.subject.rsplit('.').next().and_then(names::text_of);
        let tenant = token.map(Key::new).transpose()?;
        let delivery = |data| Delivery {
            id: WorkId::new(pulled.seq.to_string()),
            key: tenant.clone(),
            data,
            attempt,
            generation: 0,
            ticket: format!("{} {}", pulled.subject, pulled.reply),
        };
        let data = match serde_json::from_slice(&pulled.data) {
            Ok(data) => data,
            Err(error) => {
                let data = Value::String(String::from_utf8_lossy(&pulled.data).into_owned());
                self.again.keep_dead(&delivery(data), &error.to_string()).await?;
                self.api.acknowledge(&pulled.reply, "+ACK").await;
                return Ok(None);
            }
        };
        let attempts_max = self.settings().attempts_max;
        if attempt > attempts_max {
            let spent = Delivery { attempt: attempts_max, ..delivery(data) };
            self.again.keep_dead(&spent, Verdict::HOLDER_LOST).await?;
            self.api.acknowledge(&pulled.reply, "+ACK").await;
            return Ok(None);
        }
        Ok(Some(delivery(data)))
    }

    async fn info(&self) -> Result<ConsumerInfo, SyncError> {
        declare::consumer_info(&self.api, &self.stream, &self.consumer).await
    }

    /// The topic keeps a message that is settled, so only what lies behind everything that is settled is known to be.
    async fn check_open(&self, mine: &Mine<'_>) -> Result<(), SyncError> {
        if self.info().await?.ack_floor.stream_seq >= mine.seq() {
            return Err(SyncError::StaleDelivery);
        }
        Ok(())
    }
}

/// What belongs to a group on the server.
struct Names {
    stream: String,
    consumer: String,
    subjects: String,
}

fn consumer(of: &Names, group: &GroupSettings) -> Map<String, Value> {
    let mut config = Map::new();
    let start = match group.start {
        GroupStart::All => "all",
        GroupStart::New => "new",
    };
    settings::set(
        &mut config,
        json!({
            "name": of.consumer,
            "durable_name": of.consumer,
            "filter_subject": format!("{}.*", of.subjects),
            "deliver_policy": start,
            "ack_policy": "explicit",
            "ack_wait": settings::nanos(group.ack_wait),
            "max_deliver": -1,
            "max_ack_pending": group.held_max,
            "replay_policy": "instant",
            "metadata": { "sync.group": group.name.as_str() },
        }),
    );
    config
}

#[async_trait]
impl Work for NatsGroup {
    fn settings(&self) -> &WorkSettings {
        self.again.settings()
    }

    async fn receive(&self, request: Receive) -> Result<Vec<Delivery>, SyncError> {
        if request.max == 0 {
            return Ok(Vec::new());
        }
        self.take(request).await
    }

    async fn heartbeat(&self, delivery: &Delivery) -> Result<(), SyncError> {
        self.again.heartbeat(delivery).await
    }

    async fn settle(&self, delivery: &Delivery, verdict: Verdict) -> Result<Settled, SyncError> {
        let (subject, _) = ticket(delivery)?;
        if !subject.starts_with(&self.subjects) {
            return self.again.settle(delivery, verdict).await;
        }
        let mine = Mine::of(delivery)?;
        match verdict.of_attempt(delivery.attempt, self.settings()) {
            Move::Done if self.api.acknowledge(mine.reply(), "+ACK").await => Ok(Settled::Done),
            Move::Done => Ok(Settled::Unconfirmed),
            Move::Retry(wait) => {
                self.check_open(&mine).await?;
                mine.hand_back(&self.api, wait).await;
                Ok(Settled::Retried)
            }
            Move::Bury(reason) => {
                self.check_open(&mine).await?;
                self.again.keep_dead(delivery, &reason).await?;
                self.api.acknowledge(mine.reply(), "+ACK").await;
                Ok(Settled::Buried)
            }
        }
    }

    async fn depth(&self) -> Result<Depth, SyncError> {
        let again = self.again.count().await?;
        let info = self.info().await?;
        let mut oldest = again.oldest;
        if info.num_pending + info.num_ack_pending > 0 {
            let (from, all) = (info.ack_floor.stream_seq + 1, format!("{}.*", self.subjects));
            let first = self.api.next(&self.stream, from, &all).await?.map(|first| first.time);
            oldest = first.into_iter().chain(oldest).min();
        }
        Ok(Depth {
            waiting: again.waiting + info.num_pending,
            held: again.held + info.num_ack_pending,
            oldest,
            ..again
        })
    }

    async fn pause(&self) -> Result<(), SyncError> {
        declare::pause(&self.api, &self.stream, &self.consumer, true).await?;
        self.again.set_paused(true).await
    }

    async fn resume(&self) -> Result<(), SyncError> {
        self.again.set_paused(false).await?;
        declare::pause(&self.api, &self.stream, &self.consumer, false).await
    }

    async fn repair(&self) -> Result<usize, SyncError> {
        self.again.sweep().await
    }

    async fn dead_list(&self, page: DeadPage) -> Result<Vec<DeadLetter>, SyncError> {
        self.again.list_dead(page).await
    }

    async fn dead_load(&self, id: &WorkId) -> Result<Option<DeadLetter>, SyncError> {
        self.again.load_dead(id).await
    }

    async fn dead_requeue(&self, id: &WorkId, key: &Key) -> Result<WorkId, SyncError> {
        self.again.requeue_dead(id, key).await
    }

    async fn dead_delete(&self, id: &WorkId) -> Result<bool, SyncError> {
        self.again.delete_dead(id).await
    }
}
