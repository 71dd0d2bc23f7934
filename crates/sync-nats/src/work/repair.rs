//! Counting, and the second line against work that the server lost sight of.

use std::time::Duration;

use surefoot_sync_core::{Depth, SyncError};

use super::NatsWork;
use super::envelope::{COPIED, REPAIRED};
use crate::api::{Expect, Publish, Published, Stored};
use crate::declare::{self, StreamInfo};

/// Longer than a cluster takes to remove what was acknowledged.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(1);

impl NatsWork {
    pub(super) async fn count(&self) -> Result<Depth, SyncError> {
        let info = declare::stream_info(&self.api, &self.stream).await?;
        let dead = declare::stream_info(&self.api, &self.dead_stream).await?;
        let (mut held, mut paused) = (0, true);
        for consumer in &self.consumers {
            let consumer = declare::consumer_info(&self.api, &self.stream, consumer).await?;
            held += consumer.num_ack_pending;
            paused &= consumer.paused;
        }
        let anchor = self.api.last(&self.stream, &self.subjects.anchor()).await?;
        let waiting = info.messages.saturating_sub(held + u64::from(anchor.is_some()));
        let StreamInfo { bytes, now, .. } = info;
        let first = self.api.next(&self.stream, 1, &self.subjects.work_all()).await?;
        let oldest = first.map(|first| first.time);
        Ok(Depth { waiting, held, dead: dead.messages, bytes, oldest, now, paused })
    }

    pub(super) async fn set_paused(&self, paused: bool) -> Result<(), SyncError> {
        for consumer in &self.consumers {
            declare::pause(&self.api, &self.stream, consumer, paused).await?;
        }
        Ok(())
    }

    /// Work that lies behind what its consumer has done with, and is still there, is never handed out: it is stored
    /// anew. It counts only if it is there at a second look, since the server removes what is done a moment later.
    pub(super) async fn sweep(&self) -> Result<usize, SyncError> {
        let info = declare::stream_info(&self.api, &self.stream).await?;
        self.clock.set(info.now);
        let mut repaired = 0;
        for consumer in &self.consumers {
            while let Some(stranded) = self.stranded(consumer).await? {
                tokio::time::sleep(SECOND_LOOK_AFTER).await;
                let again = self.stranded(consumer).await?;
                if again.is_none_or(|again| again.seq != stranded.seq) {
                    break;
                }
                if !self.store_anew(&stranded).await? {
                    break;
                }
                repaired += 1;
            }
        }
        Ok(repaired)
    }

    async fn stranded(&self, consumer: &str) -> Result<Option<Stored>, SyncError> {
        let floor = declare::consumer_info(&self.api, &self.stream, consumer).await?.ack_floor;
        let filter = match consumer.strip_prefix('p').and_then(|lane| lane.parse::<u16>().ok()) {
            Some(lane) => self.subjects.ready_lane(&lane.to_string()),
            None => self.subjects.ready_all(),
        };
        let first = self.api.next(&self.stream, 1, &filter).await?;
        Ok(first.filter(|first| first.seq <= floor.stream_seq))
    }

    async fn store_anew(&self, stranded: &Stored) -> Result<bool, SyncError> {
        // Without those of the server; the copy gets its own.
        let copied = COPIED
            .into_iter()
            .filter_map(|name| Some((name, stranded.headers.get(name)?.to_owned())));
        let publish = Publish {
            subject: &stranded.subject,
            headers: copied.chain([(REPAIRED, "1".to_owned())]).collect(),
            body: stranded.data.clone().into(),
            expect: Some(Expect { seq: stranded.seq, subject: None }),
            msg_id: None,
            resource: &self.resource,
        };
        match self.api.publish(&publish).await? {
            Published::Stored { .. } => {
                self.api.delete(&self.stream, stranded.seq).await?;
                Ok(true)
            }
            Published::Conflict { .. } => Ok(false),
        }
    }
}
