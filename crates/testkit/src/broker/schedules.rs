//! Records of schedules in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{Key, Recorded, ResourceId, ScheduleRecord, ScheduleStore, SyncError};

use super::Shared;

#[derive(Debug, Default)]
pub(super) struct Schedules {
    last: u64,
    records: BTreeMap<(ResourceId, Key), Recorded>,
    pub(super) sets: BTreeSet<ResourceId>,
}

#[derive(Debug)]
pub(super) struct MemorySchedules {
    shared: Arc<Shared>,
    id: ResourceId,
}

impl MemorySchedules {
    pub(super) fn new(shared: Arc<Shared>, id: ResourceId) -> Self {
        Self { shared, id }
    }

    fn place(&self, id: &Key) -> (ResourceId, Key) {
        (self.id.clone(), id.clone())
    }
}

#[async_trait]
impl ScheduleStore for MemorySchedules {
    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn now(&self) -> Timestamp {
        self.shared.timestamp()
    }

    async fn schedule_list(&self) -> Result<Vec<Recorded>, SyncError> {
        let data = self.shared.data();
        let own = data.schedules.records.iter().filter(|((set, _), _)| *set == self.id);
        Ok(own.map(|(_, recorded)| recorded.clone()).collect())
    }

    async fn schedule_load(&self, id: &Key) -> Result<Option<Recorded>, SyncError> {
        Ok(self.shared.data().schedules.records.get(&self.place(id)).cloned())
    }

    async fn schedule_save(
        &self,
        record: &ScheduleRecord,
        revision: u64,
    ) -> Result<Option<u64>, SyncError> {
        let schedules = &mut self.shared.data().schedules;
        let place = self.place(&record.spec.id);
        if schedules.records.get(&place).map_or(0, |there| there.revision) != revision {
            return Ok(None);
        }
        schedules.last += 1;
        let revision = schedules.last;
        schedules.records.insert(place, Recorded { record: record.clone(), revision });
        Ok(Some(revision))
    }

    async fn schedule_delete(&self, id: &Key, revision: u64) -> Result<bool, SyncError> {
        let schedules = &mut self.shared.data().schedules;
        let place = self.place(id);
        if schedules.records.get(&place).is_none_or(|there| there.revision != revision) {
            return Ok(false);
        }
        Ok(schedules.records.remove(&place).is_some())
    }
}
