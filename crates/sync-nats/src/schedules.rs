//! Records of schedules: one subject each, one message on it.
//!
//! The server's own cron is not used. It catches up after some outages and not after others, skips a slot where it rounds,
//! and reads zones from its host; so a worker has to work out what is due in any case, and its ticks would only say
//! what the worker knows.

use async_trait::async_trait;
use serde_json::{Map, json};
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{Key, Recorded, ResourceId, ScheduleRecord, ScheduleStore, SyncError};

use crate::api::{Api, Expect, Publish, Published, Stored};
use crate::clock::ServerClock;
use crate::connect::Nats;
use crate::declare::{self, Stream};
use crate::{names, settings};

#[derive(Debug)]
pub(crate) struct NatsSchedules {
    api: Api,
    id: ResourceId,
    resource: String,
    stream: String,
    subjects: String,
    clock: ServerClock,
}

impl NatsSchedules {
    pub(crate) async fn declare(nats: &Nats, id: ResourceId) -> Result<Self, SyncError> {
        let (stream, subjects) = Self::names(nats, &id);
        let resource = format!("schedules {id}");
        let mut config = settings::base(nats, &stream, "schedules", id.as_str());
        // Without an age or a size: a schedule stays until it is deleted.
        let fields = json!({
            "subjects": [format!("{subjects}.s.*")],
            "retention": "limits",
            "discard": "new",
            "max_msgs_per_subject": 1,
        });
        settings::set(&mut config, fields);
        let api = nats.api.clone();
        let creation = Map::new();
        let info = declare::stream(&api, &Stream { resource: &resource, config, creation }).await?;
        Ok(Self::of(nats, id, info.now))
    }

    /// The set as it is there.
    pub(crate) async fn open(nats: &Nats, id: ResourceId) -> Result<Option<Self>, SyncError> {
        let (stream, _) = Self::names(nats, &id);
        let there = declare::stream_if_there(&nats.api, &stream).await?;
        Ok(there.map(|(_, info)| Self::of(nats, id, info.now)))
    }

    fn names(nats: &Nats, id: &ResourceId) -> (String, String) {
        let subjects = format!("{}.sched.{}", nats.namespace, names::token(id.as_str()));
        (names::stream(&nats.namespace, "SCHED", id), subjects)
    }

    fn of(nats: &Nats, id: ResourceId, now: Timestamp) -> Self {
        let (stream, subjects) = Self::names(nats, &id);
        let (api, resource) = (nats.api.clone(), format!("schedules {id}"));
        Self { api, id, resource, stream, subjects, clock: ServerClock::new(now) }
    }

    fn subject(&self, id: &Key) -> String {
        format!("{}.s.{}", self.subjects, names::token(id.as_str()))
    }
}

fn read(stored: &Stored) -> Result<Recorded, SyncError> {
    let record = serde_json::from_slice(&stored.data).map_err(|error| SyncError::Corrupt {
        what: format!("the schedule {}", stored.subject),
        why: error.to_string(),
    })?;
    Ok(Recorded { record, revision: stored.seq })
}

#[async_trait]
impl ScheduleStore for NatsSchedules {
    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn schedule_list(&self) -> Result<Vec<Recorded>, SyncError> {
        self.clock.set(declare::stream_info(&self.api, &self.stream).await?.now);
        let all = self.api.lasts(&self.stream, &format!("{}.s.*", self.subjects)).await?;
        let mut records = all.iter().map(read).collect::<Result<Vec<Recorded>, _>>()?;
        records.sort_by(|one, two| one.record.spec.id.cmp(&two.record.spec.id));
        Ok(records)
    }

    async fn schedule_load(&self, id: &Key) -> Result<Option<Recorded>, SyncError> {
        let stored = self.api.last(&self.stream, &self.subject(id)).await?;
        stored.as_ref().map(read).transpose()
    }

    async fn schedule_save(
        &self,
        record: &ScheduleRecord,
        revision: u64,
    ) -> Result<Option<u64>, SyncError> {
        let subject = self.subject(&record.spec.id);
        let body = serde_json::to_vec(record).map_err(|error| SyncError::Corrupt {
            what: format!("the schedule {}", record.spec.id),
            why: error.to_string(),
        })?;
        let publish = Publish {
            subject: &subject,
            headers: Vec::new(),
            body: body.into(),
            expect: Some(Expect { seq: revision, subject: None }),
            msg_id: None,
            resource: &self.resource,
        };
        match self.api.publish(&publish).await? {
            Published::Stored { seq, .. } => Ok(Some(seq)),
            Published::Conflict { after_lost_answer: false } => Ok(None),
            // It may be this very write that stands there.
            Published::Conflict { after_lost_answer: true } => {
                let there = self.schedule_load(&record.spec.id).await?;
                let own = there.filter(|it| it.revision > revision && it.record == *record);
                Ok(own.map(|it| it.revision))
            }
        }
    }

    async fn schedule_delete(&self, id: &Key, revision: u64) -> Result<bool, SyncError> {
        let there = self.schedule_load(id).await?;
        if there.is_none_or(|there| there.revision != revision) {
            return Ok(false);
        }
        self.api.delete(&self.stream, revision).await
    }
}
