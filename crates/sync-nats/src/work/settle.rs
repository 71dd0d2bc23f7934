//! The end of a delivery.

use std::time::Duration;

use serde_json::json;
use surefoot_sync_core::{Again, Delivery, Move, Settled, SyncError, Verdict, WorkId};

use super::envelope::{Envelope, PREVIOUS, SUPERSEDES};
use super::{AT_ONCE, NatsWork, Subjects};
use crate::api::{Api, Expect, Published, Reply};
use crate::names;

/// Subject and reply of a delivery.
pub(super) fn ticket(delivery: &Delivery) -> Result<(&str, &str), SyncError> {
    delivery.ticket.split_once(' ').ok_or_else(|| SyncError::Corrupt {
        what: format!("the ticket of {}", delivery.id),
        why: format!("`{}` is none of this queue", delivery.ticket),
    })
}

/// The message of a delivery, as its holder knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mine<'a> {
    subject: &'a str,
    reply: &'a str,
    lane: &'a str,
    seq: u64,
}

impl<'a> Mine<'a> {
    pub(super) fn of(delivery: &'a Delivery) -> Result<Self, SyncError> {
        let (subject, reply) = ticket(delivery)?;
        let seq = Reply::parse(reply).map(|reply| reply.seq);
        let lane = Subjects::parts(subject).map(|(lane, _)| lane);
        let (Some(seq), Some(lane)) = (seq, lane) else {
            let what = format!("the ticket of {}", delivery.id);
            return Err(SyncError::Corrupt { what, why: format!("`{reply}` names no message") });
        };
        Ok(Self { subject, reply, lane, seq })
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    pub(super) fn reply(&self) -> &'a str {
        self.reply
    }

    /// Unconfirmed it comes again all the same, when the time that it is held is over.
    pub(super) async fn hand_back(&self, api: &Api, wait: Duration) {
        let delay = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let body = format!("-NAK {}", json!({ "delay": delay }));
        api.acknowledge_with(self.reply, body.into()).await;
    }
}

/// What follows a delivery.
struct Successor<'a> {
    envelope: Envelope,
    wait: Duration,
    why: &'a str,
}

impl NatsWork {
    pub(super) async fn settle_as(
        &self,
        delivery: &Delivery,
        verdict: Verdict,
    ) -> Result<Settled, SyncError> {
        let mine = Mine::of(delivery)?;
        match verdict.of_attempt(delivery.attempt, &self.settings.work) {
            Move::Done if self.api.acknowledge(mine.reply, "+ACK").await => Ok(Settled::Done),
            Move::Done => Ok(Settled::Unconfirmed),
            Move::Bury(reason) => {
                self.bury(delivery, &mine, &reason).await?;
                Ok(Settled::Buried)
            }
            Move::Retry(wait) => {
                self.settings.work.check_delay(wait)?;
                if self.is_ordered() || wait < AT_ONCE {
                    self.hand_back(&mine, wait).await?;
                } else {
                    let envelope = Envelope {
                        id: delivery.id.clone(),
                        lane: mine.lane.to_owned(),
                        key: delivery.key.clone(),
                        data: delivery.data.clone(),
                        spent: delivery.attempt,
                        generation: delivery.generation,
                    };
                    self.follow(&mine, Successor { envelope, wait, why: "retry" }).await?;
                }
                Ok(Settled::Retried)
            }
        }
    }

    /// The same work again, with its attempts.
    pub(super) async fn succeed(&self, delivery: &Delivery, again: Again) -> Result<(), SyncError> {
        let mine = Mine::of(delivery)?;
        self.settings.work.check_delay(again.delay)?;
        let envelope = Envelope {
            id: delivery.id.clone(),
            lane: mine.lane.to_owned(),
            key: delivery.key.clone(),
            data: again.input.unwrap_or_else(|| delivery.data.clone()),
            spent: 0,
            generation: delivery.generation.saturating_add(1),
        };
        let bytes = self.publish_of(&envelope, "", None).size_bytes();
        self.settings.work.check_size(bytes)?;
        self.follow(&mine, Successor { envelope, wait: again.delay, why: "again" }).await
    }

    /// In a lane the message keeps its place, and the lane waits with it.
    async fn hand_back(&self, mine: &Mine<'_>, wait: Duration) -> Result<(), SyncError> {
        if !self.is_there(mine).await? {
            return Err(SyncError::StaleDelivery);
        }
        mine.hand_back(&self.api, wait).await;
        Ok(())
    }

    /// Stores the successor if the delivery is still its holder's, and then acknowledges the delivery. Where that
    /// acknowledgement is lost, the successor carries it.
    async fn follow(&self, mine: &Mine<'_>, next: Successor<'_>) -> Result<(), SyncError> {
        let Successor { envelope, wait, why } = next;
        let ready = self.subjects.ready(mine.lane, &envelope.id);
        let delayed = self.subjects.delayed(mine.lane, &envelope.id);
        let waits = wait >= AT_ONCE;
        let msg_id = self.follows(&envelope.id, mine.seq, why);
        let subject = if waits { &delayed } else { &ready };
        let mut publish = self.publish_of(&envelope, subject, Some(&msg_id));
        publish.headers.push((SUPERSEDES, mine.seq.to_string()));
        publish.headers.push((PREVIOUS, mine.reply.to_owned()));
        publish.expect = Some(Expect { seq: mine.seq, subject: Some(mine.subject.to_owned()) });
        if waits {
            let at = self.clock.now().plus(wait.into());
            publish.headers.extend(Envelope::schedule(at, ready.clone()));
        }
        match self.api.publish(&publish).await? {
            Published::Stored { .. } => {}
            Published::Conflict { after_lost_answer } => {
                // On the ready subject an own successor is in the way of its own repetition.
                let last = self.api.last(&self.stream, &ready).await?;
                let follows =
                    last.is_some_and(|it| it.headers.number::<u64>(SUPERSEDES) == mine.seq);
                if !(after_lost_answer && follows) {
                    return Err(SyncError::StaleDelivery);
                }
            }
        }
        self.api.acknowledge(mine.reply, "+ACK").await;
        Ok(())
    }

    fn follows(&self, id: &WorkId, seq: u64, why: &str) -> String {
        names::hashed(&[why, id.as_str(), &seq.to_string()])
    }

    /// Whether the message is still in the stream, and the last of its work.
    pub(super) async fn is_there(&self, mine: &Mine<'_>) -> Result<bool, SyncError> {
        let last = self.api.last(&self.stream, mine.subject).await?;
        Ok(last.is_some_and(|last| last.seq == mine.seq))
    }

    pub(super) async fn bury(
        &self,
        delivery: &Delivery,
        mine: &Mine<'_>,
        reason: &str,
    ) -> Result<(), SyncError> {
        if !self.is_there(mine).await? {
            return Err(SyncError::StaleDelivery);
        }
        self.keep_dead(delivery, reason).await?;
        self.api.acknowledge(mine.reply, "+ACK").await;
        Ok(())
    }
}
