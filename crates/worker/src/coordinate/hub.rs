//! Many who listen to a topic in one process, by one reader.

use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use surefoot_sync_core::{Cursor, SyncError, Topic, TopicMessage};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::AbortHandle;

use super::Follow;

/// How far a listener may be behind the reader.
const BEHIND_MAX: usize = 1_024;
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What comes to a topic, for many listeners of one process. Its reader lives as long as anybody listens. Clones are one
/// hub.
#[derive(Clone)]
pub struct Hub {
    topic: Arc<dyn Topic>,
    /// Of whoever listens.
    channel: Arc<tokio::sync::Mutex<Weak<Channel>>>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("topic", &self.topic.settings().id).finish_non_exhaustive()
    }
}

/// Between the reader and its listeners; belongs to the listeners.
#[derive(Debug)]
struct Channel {
    messages: broadcast::Sender<Heard>,
    place: StdMutex<Place>,
    reader: StdMutex<Option<AbortHandle>>,
}

/// Changes together with what is sent.
#[derive(Debug)]
struct Place {
    cursor: Cursor,
    has_ended: bool,
}

#[derive(Debug, Clone)]
enum Heard {
    Message(TopicMessage),
    /// The reader itself was too slow.
    Gap {
        requested: u64,
        first_available: u64,
    },
    /// The topic was made anew.
    Another,
    Failed(String),
}

impl Channel {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(topic: Arc<dyn Topic>) -> Result<Arc<Self>, SyncError> {
        let cursor = topic.head().await?;
        let channel = Arc::new(Self {
            messages: broadcast::channel(BEHIND_MAX).0,
            place: StdMutex::new(Place { cursor: cursor.clone(), has_ended: false }),
            reader: StdMutex::new(None),
        });
        let reading = read(Follow::new(topic, cursor), Arc::downgrade(&channel));
        let reader = tokio::spawn(reading).abort_handle();
        *channel.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
        Ok(channel)
    }

    /// Listens behind the place where the reader is; `None` if it has ended.
    fn listen(self: &Arc<Self>) -> Option<Listener> {
        let place = self.place();
        (!place.has_ended).then(|| Listener {
            messages: self.messages.subscribe(),
            cursor: place.cursor.clone(),
            _channel: self.clone(),
        })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reader.abort();
        }
    }
}

async fn read(mut follow: Follow, channel: Weak<Channel>) {
    loop {
        let next = follow.next().await;
        let heard = match next {
            Ok(message) => Heard::Message(message),
            Err(SyncError::Unavailable { .. }) => {
                tokio::time::sleep(READ_AGAIN_AFTER).await;
                continue;
            }
            Err(SyncError::RetentionGap { requested, first_available }) => {
                Heard::Gap { requested, first_available }
            }
            Err(SyncError::CursorMismatch) => Heard::Another,
            Err(error) => Heard::Failed(error.to_string()),
        };
        let Some(channel) = channel.upgrade() else { return };
        let mut place = channel.place();
        match &heard {
            Heard::Message(message) => place.cursor = message.cursor.clone(),
            Heard::Gap { .. } | Heard::Another | Heard::Failed(_) => place.has_ended = true,
        }
        // Nobody listens just now: that is all right.
        let _ = channel.messages.send(heard);
        if place.has_ended {
            return;
        }
    }
}

/// One who listens.
#[derive(Debug)]
pub struct Listener {
    messages: broadcast::Receiver<Heard>,
    cursor: Cursor,
    _channel: Arc<Channel>,
}

impl Hub {
    /// On a topic.
    #[must_use]
    pub fn new(topic: Arc<dyn Topic>) -> Self {
        Self { topic, channel: Arc::default() }
    }

    /// Listens to what is published from now on, of all tenants.
    ///
    /// Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    pub async fn listen(&self) -> Result<Listener, SyncError> {
        let mut channel = self.channel.lock().await;
        let listener = channel.upgrade().and_then(|channel| channel.listen());
        if let Some(mut listener) = listener {
            // What was published before this call, and not read yet, is not of now.
            let head = self.topic.head().await?;
            while listener.cursor.seq() < head.seq() {
                listener.next().await?;
            }
            return Ok(listener);
        }
        let new = Channel::open(self.topic.clone()).await?;
        *channel = Arc::downgrade(&new);
        new.listen().ok_or(SyncError::CursorMismatch)
    }
}

impl Listener {
    /// Behind the last message that was handed out: [`Follow`] goes on from here where this listener missed some.
    #[must_use]
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// The next message, waiting for it. Cancel safe.
    ///
    /// # Errors
    /// [`SyncError::RetentionGap`] if this listener was too slow and missed some: they may still be in the topic. Any
    /// other error is the end: listen anew.
    pub async fn next(&mut self) -> Result<TopicMessage, SyncError> {
        let requested = self.cursor.seq().saturating_add(1);
        match self.messages.recv().await {
            Ok(Heard::Message(message)) => {
                self.cursor = message.cursor.clone();
                Ok(message)
            }
            Ok(Heard::Gap { requested, first_available }) => {
                Err(SyncError::RetentionGap { requested, first_available })
            }
            Ok(Heard::Another) | Err(RecvError::Closed) => Err(SyncError::CursorMismatch),
            Ok(Heard::Failed(why)) => {
                Err(SyncError::Corrupt { what: "what the topic holds".to_owned(), why })
            }
            Err(RecvError::Lagged(missed)) => {
                let first_available = requested.saturating_add(missed);
                Err(SyncError::RetentionGap { requested, first_available })
            }
        }
    }
}
