//! Reading a topic, message by message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use surefoot_sync_core::{Cursor, ReadTopic, SyncError, Topic, TopicMessage};

/// Read at once; more than one reader handles in a moment, and little to hold.
const AT_ONCE: usize = 100;
const WAIT: Duration = Duration::from_secs(30);

/// A reader of a topic, at a place of its own.
pub struct Follow {
    topic: Arc<dyn Topic>,
    cursor: Cursor,
    read: VecDeque<TopicMessage>,
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follow").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Follow {
    /// Reads what follows a place.
    #[must_use]
    pub fn new(topic: Arc<dyn Topic>, after: Cursor) -> Self {
        Self { topic, cursor: after, read: VecDeque::new() }
    }

    /// Behind the last message that was handed out. Keep it with what was done about the message, and begin there.
    #[must_use]
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// The next message, waiting for it. Cancel safe: no message is lost with a call that is dropped.
    ///
    /// # Errors
    /// Those of [`Topic::read`]. After [`SyncError::Unavailable`], calling again goes on where it was.
    pub async fn next(&mut self) -> Result<TopicMessage, SyncError> {
        loop {
            if let Some(message) = self.read.pop_front() {
                self.cursor = message.cursor.clone();
                return Ok(message);
            }
            self.fill(WAIT).await?;
        }
    }

    /// The next message up to a place, [`Topic::head`] for instance; `None` behind it. Cancel safe.
    ///
    /// # Errors
    /// Those of [`Topic::read`].
    pub async fn next_until(&mut self, until: &Cursor) -> Result<Option<TopicMessage>, SyncError> {
        if self.cursor.seq() >= until.seq() {
            return Ok(None);
        }
        self.next().await.map(Some)
    }

    async fn fill(&mut self, wait: Duration) -> Result<(), SyncError> {
        let request = ReadTopic { max: AT_ONCE, wait };
        self.read.extend(self.topic.read(&self.cursor, request).await?);
        Ok(())
    }
}
