//! New work.

use std::time::Duration;

use surefoot_sync_core::{
    Job, Key, Message, SendAllError, Sent, Start, Submitted, SyncError, WorkId,
};

use super::envelope::Envelope;
use super::{AT_ONCE, Kind, NatsWork};
use crate::api::{Expect, Publish, Published, Stored};
use crate::names;

/// How often work is stored anew where what was in the way is gone when it is looked at.
const TRIES: usize = 5;

/// How new work is told from what is there.
enum Known<'a> {
    /// By a key, for a while.
    By(&'a Key),
    /// By its lane, as long as anything is in it.
    Alone,
    /// By its id.
    Itself,
}

impl NatsWork {
    pub(super) async fn submit_job(&self, job: Job) -> Result<Submitted, SyncError> {
        let wait = job.start.wait_from(self.clock.now());
        let envelope = self.new_work(Some(job.key.clone()), job.input);
        let known = if job.coalesce { Known::Alone } else { Known::By(&job.key) };
        self.store(&envelope, wait, known).await
    }

    pub(super) async fn send_message(&self, message: Message) -> Result<Sent, SyncError> {
        self.settings.lane(&message)?;
        let wait = Start::After(message.delay).wait_from(self.clock.now());
        let envelope = self.new_work(message.ordering_key, message.data);
        let known = message.idempotency_key.as_ref().map_or(Known::Itself, Known::By);
        Ok(match self.store(&envelope, wait, known).await? {
            Submitted::Stored(id) | Submitted::Joined(id) => {
                Sent { id: Some(id), duplicate: false }
            }
            Submitted::Duplicate(id) => Sent { id, duplicate: true },
        })
    }

    pub(super) async fn send_messages(
        &self,
        messages: Vec<Message>,
    ) -> Result<Vec<Sent>, SendAllError> {
        let refused = |source| SendAllError { accepted: 0, duplicates: 0, source };
        for message in &messages {
            self.settings.lane(message).map_err(refused)?;
            let envelope = self.new_work(message.ordering_key.clone(), message.data.clone());
            self.check(&envelope, message.delay).map_err(refused)?;
        }
        let mut sent: Vec<Sent> = Vec::new();
        for message in messages {
            match self.send_message(message).await {
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

    /// The data of a dead letter under a new key; the id follows from both, so that a repetition is recognised.
    pub(super) async fn store_again(
        &self,
        from: &WorkId,
        key: &Key,
        ordering_key: Option<Key>,
        data: serde_json::Value,
    ) -> Result<WorkId, SyncError> {
        let named = match self.kind {
            Kind::Jobs => Some(key.clone()),
            Kind::Queue | Kind::Group => ordering_key,
        };
        let id = WorkId::new(names::hashed(&["requeue", from.as_str(), key.as_str()]));
        let envelope = Envelope { id: id.clone(), ..self.new_work(named, data) };
        self.store(&envelope, Duration::ZERO, Known::Itself).await?;
        Ok(id)
    }

    fn new_work(&self, key: Option<Key>, data: serde_json::Value) -> Envelope {
        Envelope {
            id: WorkId::new(nuid::next().to_string()),
            lane: self.lane_of(key.as_ref()),
            key,
            data,
            spent: 0,
            generation: 0,
        }
    }

    /// Refuses what cannot be stored, by itself.
    fn check(&self, envelope: &Envelope, wait: Duration) -> Result<usize, SyncError> {
        self.settings.work.check_delay(wait)?;
        let publish = self.publish_of(envelope, "", None);
        let bytes = publish.size_bytes();
        self.settings.work.check_size(bytes)?;
        Ok(bytes)
    }

    pub(super) fn publish_of<'a>(
        &'a self,
        envelope: &Envelope,
        subject: &'a str,
        msg_id: Option<&'a str>,
    ) -> Publish<'a> {
        Publish {
            subject,
            headers: envelope.headers(),
            body: envelope.body(),
            expect: None,
            msg_id,
            resource: &self.resource,
        }
    }

    async fn store(
        &self,
        envelope: &Envelope,
        wait: Duration,
        known: Known<'_>,
    ) -> Result<Submitted, SyncError> {
        let bytes = self.check(envelope, wait)?;
        let lane = self.subjects.lane(&envelope.lane);
        if let Err(full) = self.check_room(bytes).await {
            return self.already_there(envelope, &known, &lane).await?.ok_or(full);
        }
        let ready = self.subjects.ready(&envelope.lane, &envelope.id);
        let delayed = self.subjects.delayed(&envelope.lane, &envelope.id);
        let (msg_id, expect) = match &known {
            Known::By(key) => (names::hashed(&["key", key.as_str()]), None),
            Known::Alone => {
                let alone = Expect { seq: 0, subject: Some(lane.clone()) };
                (envelope.id.to_string(), Some(alone))
            }
            Known::Itself => (envelope.id.to_string(), Some(Expect::NONE)),
        };
        let waits = wait >= AT_ONCE;
        let subject = if waits { &delayed } else { &ready };
        let mut publish = self.publish_of(envelope, subject, Some(&msg_id));
        publish.expect = expect;
        if waits {
            let at = self.clock.now().plus(wait.into());
            publish.headers.extend(Envelope::schedule(at, ready.clone()));
        }
        for _ in 0..TRIES {
            match self.api.publish(&publish).await? {
                Published::Stored { duplicate: false, .. } => {
                    return Ok(Submitted::Stored(envelope.id.clone()));
                }
                Published::Stored { seq, duplicate: true } => {
                    return self.duplicate_of(envelope, seq).await;
                }
                Published::Conflict { .. } => {
                    if let Some(there) = self.already_there(envelope, &known, &lane).await? {
                        return Ok(there);
                    }
                }
            }
        }
        Err(SyncError::Conflict { what: format!("work in {lane}") })
    }

    /// The same message was stored before: by this very call if an answer was lost.
    async fn duplicate_of(&self, envelope: &Envelope, seq: u64) -> Result<Submitted, SyncError> {
        let there = self.api.at(&self.stream, seq).await?;
        let id = there.map(|stored| WorkId::new(stored.last_token()));
        if id.as_ref() == Some(&envelope.id) {
            return Ok(Submitted::Stored(envelope.id.clone()));
        }
        Ok(Submitted::Duplicate(id))
    }

    /// What is in the way, if it is what was to be stored.
    async fn already_there(
        &self,
        envelope: &Envelope,
        known: &Known<'_>,
        lane: &str,
    ) -> Result<Option<Submitted>, SyncError> {
        let id_of = |stored: Stored| WorkId::new(stored.last_token());
        match known {
            Known::Alone => {
                let last = self.api.last(&self.stream, lane).await?.map(id_of);
                Ok(last.map(|id| {
                    if id == envelope.id { Submitted::Stored(id) } else { Submitted::Joined(id) }
                }))
            }
            Known::Itself => {
                let own = self.subjects.ready(&envelope.lane, &envelope.id);
                let own = self.api.last(&self.stream, &own).await?.map(id_of);
                Ok(own.map(Submitted::Stored))
            }
            Known::By(_) if self.kind == Kind::Jobs => {
                let last = self.api.last(&self.stream, lane).await?.map(id_of);
                Ok(last.map(|id| Submitted::Duplicate(Some(id))))
            }
            // By its key alone a message cannot be found again.
            Known::By(_) => Ok(None),
        }
    }
}
