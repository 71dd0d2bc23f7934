//! Work that is handed out: what is done about a message before anybody sees it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use surefoot_sync_core::{Delivery, Receive, SyncError, Verdict};
use tokio::time::Instant;

use super::NatsWork;
use super::envelope::{Envelope, PREVIOUS, SUPERSEDES};
use super::settle::Mine;
use crate::api::{Pull, Pulled, pull};

/// One request that waits; the server forgets one that is older.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Several lanes are asked for so long: one that has something waits for the others.
const LANES_WAIT: Duration = Duration::from_millis(100);

impl NatsWork {
    pub(super) async fn take(&self, request: Receive) -> Result<Vec<Delivery>, SyncError> {
        if request.max == 0 {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + request.wait;
        // A lane that is held while it has more does not say so at once; it is asked with an end.
        let mut expires = self.is_ordered().then_some(LANES_WAIT);
        loop {
            let pulled = self.pull(request.max, expires).await?;
            let mut deliveries = Vec::with_capacity(pulled.len());
            for pulled in pulled {
                match self.arrive(&pulled).await {
                    Ok(delivery) => deliveries.extend(delivery),
                    // It is not lost: it comes again when the time that it is held is over.
                    Err(error) => {
                        tracing::warn!(subject = pulled.subject, %error, "work cannot be taken");
                    }
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !deliveries.is_empty() || left.is_zero() {
                return Ok(deliveries);
            }
            let most = if self.is_ordered() { LANES_WAIT } else { WAIT_MAX };
            expires = Some(left.min(most).max(Duration::from_millis(1)));
        }
    }

    /// First what is there, then the first that comes. Of lanes, as many as there is room for, each in its turn.
    async fn pull(&self, max: usize, expires: Option<Duration>) -> Result<Vec<Pulled>, SyncError> {
        let count = self.consumers.len();
        let asked = max.min(count);
        let turn = self.turn.fetch_add(asked, Ordering::Relaxed);
        let lanes = (0..asked).filter_map(|at| self.consumers.get(turn.wrapping_add(at) % count));
        let lanes: Vec<&str> = lanes.map(String::as_str).collect();
        let batch = if self.is_ordered() || expires.is_some() { 1 } else { max };
        pull(&self.api, &self.stream, &lanes, Pull { batch, expires }).await
    }

    /// What nobody has to do any more is settled here, and what has no attempts left is given up.
    async fn arrive(&self, pulled: &Pulled) -> Result<Option<Delivery>, SyncError> {
        // A late word for the predecessor is accepted; so it cannot come back behind its successor.
        if let Some(previous) = pulled.headers.get(PREVIOUS) {
            self.api.acknowledge(previous, "+ACK").await;
        }
        if pulled.delivered > 1 && self.is_superseded(pulled).await? {
            self.api.acknowledge(&pulled.reply, "+ACK").await;
            return Ok(None);
        }
        let envelope = match Envelope::read(pulled) {
            Ok(envelope) => envelope,
            Err(error) => {
                self.bury_unread(pulled, &error).await?;
                return Ok(None);
            }
        };
        let delivered = u32::try_from(pulled.delivered).unwrap_or(u32::MAX);
        let attempt = envelope.spent.saturating_add(delivered);
        let delivery = Delivery {
            ticket: format!("{} {}", pulled.subject, pulled.reply),
            id: envelope.id,
            key: envelope.key,
            data: envelope.data,
            attempt,
            generation: envelope.generation,
        };
        let settings = &self.settings.work;
        if attempt > settings.attempts_max {
            let spent = Delivery { attempt: settings.attempts_max, ..delivery };
            let mine = Mine::of(&spent)?;
            self.bury(&spent, &mine, Verdict::HOLDER_LOST).await?;
            return Ok(None);
        }
        Ok(Some(delivery))
    }

    /// Whether a successor was stored, by a holder that did not get to acknowledge this one.
    async fn is_superseded(&self, pulled: &Pulled) -> Result<bool, SyncError> {
        let last = self.api.last(&self.stream, &pulled.subject).await?;
        if last.is_none_or(|last| last.seq > pulled.seq) {
            return Ok(true);
        }
        let Some((lane, id)) = super::Subjects::parts(&pulled.subject) else { return Ok(false) };
        let delayed = self.api.last(&self.stream, &self.subjects.delayed(lane, &id)).await?;
        Ok(delayed.is_some_and(|it| it.headers.number::<u64>(SUPERSEDES) == pulled.seq))
    }
}
