//! Jobs and queues: one engine.
//!
//! One message per piece of work, on a subject of its own in a stream that removes what is settled:
//! `….w.<lane>.<id>` is ready, `….d.<lane>.<id>` waits for its time as a message schedule. The lane of a job is its
//! key, that of a queue its partition. Nothing on `w` is ever replaced or purged, because the server then loses sight of
//! other messages; work that goes on is a successor, stored first, and the predecessor is acknowledged behind it.

mod arrive;
mod dead;
mod declare;
mod envelope;
mod fill;
mod group;
mod repair;
mod send;
mod settle;
mod subjects;

use std::time::Duration;

use async_trait::async_trait;
use surefoot_sync_core::{
    Again, DeadLetter, DeadPage, Delivery, Depth, Job, Jobs, Key, Message, Partitions, Queue,
    QueueSettings, Receive, SendAllError, Sent, Settled, Submitted, SyncError, Verdict, Work,
    WorkId, WorkSettings,
};

use crate::api::Api;
use crate::clock::ServerClock;
use fill::Fill;
pub(crate) use group::NatsGroup;
use subjects::Subjects;

/// Whether work is named by its sender, or ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Jobs,
    Queue,
    /// What is sent again to one group of a topic.
    Group,
}

#[derive(Debug)]
pub(crate) struct NatsWork {
    api: Api,
    kind: Kind,
    settings: QueueSettings,
    resource: String,
    stream: String,
    dead_stream: String,
    subjects: Subjects,
    /// One, or one per lane.
    consumers: Vec<String>,
    /// Which lane is asked first next time.
    turn: std::sync::atomic::AtomicUsize,
    clock: ServerClock,
    fill: Fill,
}

#[async_trait]
impl Work for NatsWork {
    fn settings(&self) -> &WorkSettings {
        &self.settings.work
    }

    async fn receive(&self, request: Receive) -> Result<Vec<Delivery>, SyncError> {
        self.take(request).await
    }

    async fn heartbeat(&self, delivery: &Delivery) -> Result<(), SyncError> {
        let operation = "hold a delivery";
        let (_, reply) = settle::ticket(delivery)?;
        let published = self.api.client().publish(reply.to_owned(), "+WPI".into()).await;
        published.map_err(|error| SyncError::Unavailable { operation, source: error.into() })
    }

    async fn settle(&self, delivery: &Delivery, verdict: Verdict) -> Result<Settled, SyncError> {
        self.settle_as(delivery, verdict).await
    }

    async fn depth(&self) -> Result<Depth, SyncError> {
        self.count().await
    }

    async fn pause(&self) -> Result<(), SyncError> {
        self.set_paused(true).await
    }

    async fn resume(&self) -> Result<(), SyncError> {
        self.set_paused(false).await
    }

    async fn repair(&self) -> Result<usize, SyncError> {
        self.sweep().await
    }

    async fn dead_list(&self, page: DeadPage) -> Result<Vec<DeadLetter>, SyncError> {
        self.list_dead(page).await
    }

    async fn dead_load(&self, id: &WorkId) -> Result<Option<DeadLetter>, SyncError> {
        self.load_dead(id).await
    }

    async fn dead_requeue(&self, id: &WorkId, key: &Key) -> Result<WorkId, SyncError> {
        self.requeue_dead(id, key).await
    }

    async fn dead_delete(&self, id: &WorkId) -> Result<bool, SyncError> {
        self.delete_dead(id).await
    }
}

#[async_trait]
impl Jobs for NatsWork {
    async fn submit(&self, job: Job) -> Result<Submitted, SyncError> {
        self.submit_job(job).await
    }

    async fn resubmit(&self, delivery: &Delivery, again: Again) -> Result<(), SyncError> {
        self.succeed(delivery, again).await
    }
}

#[async_trait]
impl Queue for NatsWork {
    fn partitions(&self) -> Option<Partitions> {
        self.settings.partitions
    }

    async fn send(&self, message: Message) -> Result<Sent, SyncError> {
        self.send_message(message).await
    }

    async fn send_all(&self, messages: Vec<Message>) -> Result<Vec<Sent>, SendAllError> {
        self.send_messages(messages).await
    }
}

/// What is shorter is not worth a schedule: the server fires none sooner.
const AT_ONCE: Duration = Duration::from_millis(1);
