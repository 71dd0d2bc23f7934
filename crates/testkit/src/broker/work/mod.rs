//! Jobs and queues in memory: one engine for both.

mod items;

use std::sync::Arc;

use async_trait::async_trait;
use surefoot_sync_core::{
    Again, DeadLetter, DeadPage, Delivery, Depth, Job, Jobs, Key, Message, Move, Partitions, Queue,
    QueueSettings, Receive, ResourceId, SendAllError, Sent, Settled, Start, Submitted, SyncError,
    Verdict, Work, WorkId, WorkSettings,
};
use tokio::time::Instant;

use super::{Data, Shared};
pub(super) use items::Works;
use items::{Items, New};

#[derive(Debug)]
pub(super) struct MemoryWork {
    shared: Arc<Shared>,
    resource: String,
    settings: QueueSettings,
    /// The topic of a group.
    topic: Option<ResourceId>,
}

impl MemoryWork {
    pub(super) fn new(shared: Arc<Shared>, resource: String, settings: QueueSettings) -> Self {
        Self { shared, resource, settings, topic: None }
    }

    /// A group of a topic: it has what is published behind a place, whatever happens to it there.
    pub(super) fn group(
        shared: Arc<Shared>,
        resource: String,
        settings: WorkSettings,
        topic: ResourceId,
    ) -> Self {
        let topic = Some(topic);
        Self { shared, resource, settings: QueueSettings::new(settings), topic }
    }

    /// Begins a group that is new behind a message.
    pub(super) fn begin_behind(&self, seq: u64) {
        self.shared.data().works.entry(self.resource.clone()).or_default().fed = seq;
    }

    fn with<R>(&self, data: &mut Data, change: impl FnOnce(&mut Items) -> R) -> R {
        let Data { works, topics, .. } = data;
        let items = works.entry(self.resource.clone()).or_default();
        if let Some(messages) = self.topic.as_ref().and_then(|topic| topics.get(topic)) {
            let fed = items.fed;
            items.feed(messages.behind(fed));
        }
        change(items)
    }

    /// Does something with the items, and tells those who wait.
    fn change<R>(&self, change: impl FnOnce(&mut Items) -> R) -> R {
        let answer = self.with(&mut self.shared.data(), change);
        self.shared.changed.notify_waiters();
        answer
    }

    fn start(&self, start: Start) -> Result<Instant, SyncError> {
        let wait = start.wait_from(self.shared.timestamp());
        self.settings.work.check_delay(wait)?;
        Ok(Instant::now() + wait)
    }

    fn store(&self, new: New, joins: bool) -> Result<Submitted, SyncError> {
        self.settings.work.check_size(new.size_bytes())?;
        let settings = &self.settings.work;
        self.change(|items| items.store(new, joins, settings)).ok_or_else(|| self.full())
    }

    fn full(&self) -> SyncError {
        SyncError::StoreFull { resource: self.resource.clone() }
    }

    fn new_message(&self, message: &Message) -> Result<New, SyncError> {
        let lane = self.settings.partitions.map(|_| self.settings.lane(message)).transpose()?;
        Ok(New {
            id: None,
            key: message.ordering_key.clone(),
            known_by: message.idempotency_key.clone(),
            data: message.data.clone(),
            lane,
            due: self.start(Start::After(message.delay))?,
        })
    }
}

#[async_trait]
impl Work for MemoryWork {
    fn settings(&self) -> &WorkSettings {
        &self.settings.work
    }

    async fn receive(&self, request: Receive) -> Result<Vec<Delivery>, SyncError> {
        let deadline = Instant::now() + request.wait;
        loop {
            let notified = self.shared.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let (taken, next) = {
                let since = self.shared.timestamp();
                let mut data = self.shared.data();
                let settings = &self.settings.work;
                self.with(&mut data, |items| items.take(request.max, settings, since))
            };
            if !taken.is_empty() || Instant::now() >= deadline || request.max == 0 {
                return Ok(taken);
            }
            let until = next.map_or(deadline, |next| next.min(deadline));
            let _ = tokio::time::timeout_at(until, notified).await;
        }
    }

    async fn heartbeat(&self, delivery: &Delivery) -> Result<(), SyncError> {
        self.change(|items| items.hold(delivery, self.settings.work.ack_wait));
        Ok(())
    }

    async fn settle(&self, delivery: &Delivery, verdict: Verdict) -> Result<Settled, SyncError> {
        let since = self.shared.timestamp();
        let next = verdict.of_attempt(delivery.attempt, &self.settings.work);
        if let Move::Retry(wait) = &next {
            self.settings.work.check_delay(*wait)?;
        }
        let stale = SyncError::StaleDelivery;
        self.change(|items| match next {
            Move::Done => {
                items.remove(delivery);
                Ok(Settled::Done)
            }
            Move::Retry(wait) => {
                items.retry(delivery, wait).then_some(Settled::Retried).ok_or(stale)
            }
            Move::Bury(reason) => {
                items.bury(delivery, reason, since).then_some(Settled::Buried).ok_or(stale)
            }
        })
    }

    async fn depth(&self) -> Result<Depth, SyncError> {
        Ok(self.change(|items| items.depth(|at| self.shared.at(at))))
    }

    async fn pause(&self) -> Result<(), SyncError> {
        self.change(|items| items.paused = true);
        Ok(())
    }

    async fn resume(&self) -> Result<(), SyncError> {
        self.change(|items| items.paused = false);
        Ok(())
    }

    async fn repair(&self) -> Result<usize, SyncError> {
        Ok(0)
    }

    async fn dead_list(&self, page: DeadPage) -> Result<Vec<DeadLetter>, SyncError> {
        let list = |items: &mut Items| {
            let behind = items.dead.iter().filter(|letter| letter.place > page.after);
            behind.take(page.limit).cloned().collect()
        };
        Ok(self.change(list))
    }

    async fn dead_load(&self, id: &WorkId) -> Result<Option<DeadLetter>, SyncError> {
        Ok(self.change(|items| items.dead.iter().find(|it| it.id == *id).cloned()))
    }

    async fn dead_requeue(&self, id: &WorkId, key: &Key) -> Result<WorkId, SyncError> {
        let letter = self.dead_load(id).await?;
        let what = format!("dead letter {id} of {}", self.resource);
        let letter = letter.ok_or(SyncError::NotFound { what })?;
        let named = if self.resource.starts_with("jobs") { Some(key.clone()) } else { letter.key };
        let lane = self.settings.partitions.zip(named.as_ref()).map(|(all, key)| all.of(key));
        let sent = WorkId::new(format!("{id}-{key}"));
        let new = New {
            id: Some(sent.clone()),
            key: named,
            known_by: None,
            data: letter.data,
            lane,
            due: Instant::now(),
        };
        self.store(new, false)?;
        self.change(|items| items.dead.retain(|letter| letter.id != *id));
        Ok(sent)
    }

    async fn dead_delete(&self, id: &WorkId) -> Result<bool, SyncError> {
        Ok(self.change(|items| {
            let before = items.dead.len();
            items.dead.retain(|letter| letter.id != *id);
            items.dead.len() < before
        }))
    }
}

#[async_trait]
impl Jobs for MemoryWork {
    async fn submit(&self, job: Job) -> Result<Submitted, SyncError> {
        let due = self.start(job.start)?;
        let known_by = (!job.coalesce).then(|| job.key.clone());
        let new = New { id: None, key: Some(job.key), known_by, data: job.input, lane: None, due };
        self.store(new, job.coalesce)
    }

    async fn resubmit(&self, delivery: &Delivery, again: Again) -> Result<(), SyncError> {
        self.settings.work.check_delay(again.delay)?;
        let input = again.input.unwrap_or_else(|| delivery.data.clone());
        let done = self.change(|items| items.resubmit(delivery, again.delay, input));
        done.then_some(()).ok_or(SyncError::StaleDelivery)
    }
}

#[async_trait]
impl Queue for MemoryWork {
    fn partitions(&self) -> Option<Partitions> {
        self.settings.partitions
    }

    async fn send(&self, message: Message) -> Result<Sent, SyncError> {
        let new = self.new_message(&message)?;
        Ok(match self.store(new, false)? {
            Submitted::Stored(id) | Submitted::Joined(id) => {
                Sent { id: Some(id), duplicate: false }
            }
            Submitted::Duplicate(id) => Sent { id, duplicate: true },
        })
    }

    async fn send_all(&self, messages: Vec<Message>) -> Result<Vec<Sent>, SendAllError> {
        let refused = |source| SendAllError { accepted: 0, duplicates: 0, source };
        for message in &messages {
            let new = self.new_message(message).map_err(refused)?;
            self.settings.work.check_size(new.size_bytes()).map_err(refused)?;
        }
        let mut sent: Vec<Sent> = Vec::new();
        for message in messages {
            match self.send(message).await {
                Ok(one) => sent.push(one),
                Err(source) => {
                    let duplicates = sent.iter().filter(|one| one.duplicate).count();
                    let accepted = sent.len() - duplicates;
                    return Err(SendAllError { accepted, duplicates, source });
                }
            }
        }
        Ok(sent)
    }
}
