//! Groups: readers of a topic that share its messages, each settled by one of them.

use std::time::Duration;

use crate::{Backoff, Key, ResourceId, SyncError, TopicSettings, WorkSettings};

/// Where a group begins when it is created. Later it goes on where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupStart {
    /// With the first message that is kept.
    All,
    /// With the first that is published after it was created.
    New,
}

/// How a group of a topic is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    /// Which group of the topic.
    pub name: Key,
    /// Where it begins.
    pub start: GroupStart,
    /// How long a delivery is held without a heartbeat. 30 s.
    pub ack_wait: Duration,
    /// Attempts, the first included. 5.
    pub attempts_max: u32,
    /// Waits between attempts. 1 s, 5 s, 30 s, 120 s.
    pub backoff: Backoff,
    /// How much may be held at once, by all readers together, waits between attempts included. 1,000.
    pub held_max: u32,
}

impl GroupSettings {
    /// The defaults.
    #[must_use]
    pub fn new(name: Key, start: GroupStart) -> Self {
        Self {
            name,
            start,
            ack_wait: Duration::from_secs(30),
            attempts_max: 5,
            backoff: Backoff::default(),
            held_max: 1_000,
        }
    }

    /// The settings of the group's work: what is sent again to it alone, and what it gave up.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for the first that cannot be; [`SyncError::InvalidName`] if the names of topic and
    /// group are too long together.
    pub fn work(&self, topic: &TopicSettings) -> Result<WorkSettings, SyncError> {
        topic.check()?;
        let work = WorkSettings {
            ack_wait: self.ack_wait,
            attempts_max: self.attempts_max,
            backoff: self.backoff.clone(),
            dedupe_window: topic.dedupe_window,
            payload_max_bytes: topic.payload_max_bytes,
            held_max: self.held_max,
            ..WorkSettings::new(ResourceId::new(format!("{}/{}", topic.id, self.name))?)
        };
        work.check()?;
        Ok(work)
    }
}
