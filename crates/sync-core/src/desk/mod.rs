//! What people who look after an application do with its resources, whatever shows it to them.
//!
//! Whatever changes something is written down first, in the place's journal, with who asked for it and why.

mod schedules;
mod view;
mod work;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Cursor, Inventory, Key, ReadTopic, Resource, ResourceId, ResourceKind, SyncError, TopicEvent,
};

pub use view::{Changed, DeadView, NoteView, PausedView, QueueView, RunView, ScheduleView};

/// Who asks for a change, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// A name.
    pub actor: String,
    /// For whoever asks later.
    pub reason: String,
}

/// The resources of a namespace, with what can be done about them.
#[derive(Clone)]
pub struct Desk {
    place: Arc<dyn Inventory>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

/// What stands in the journal of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    actor: String,
    verb: String,
    resource: String,
    /// Which part of it.
    subject: Option<String>,
    reason: String,
}

/// So many notes are looked through for the last ones.
const NOTES_AT_ONCE: usize = 500;

impl Desk {
    /// Over the resources of a place.
    #[must_use]
    pub fn new(place: Arc<dyn Inventory>) -> Self {
        Self { place }
    }

    /// What people did, the newest first.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    pub async fn notes(&self, limit: usize) -> Result<Vec<NoteView>, SyncError> {
        let Some(journal) = self.place.journal_if_there().await? else { return Ok(Vec::new()) };
        let (mut after, head) = (journal.tail().await?, journal.head().await?);
        let mut notes: Vec<NoteView> = Vec::new();
        let request = ReadTopic { max: NOTES_AT_ONCE, wait: std::time::Duration::ZERO };
        while after.seq() < head.seq() {
            let read = journal.read(&after, request).await?;
            let Some(last) = read.last() else { break };
            after = Cursor::clone(&last.cursor);
            for message in &read {
                let Note { actor, verb, resource, subject, reason } = message.data()?;
                notes.push(NoteView { at: message.at, actor, verb, resource, subject, reason });
            }
        }
        notes.reverse();
        notes.truncate(limit);
        Ok(notes)
    }

    /// Writes down what is about to be done.
    async fn note(
        &self,
        verb: &str,
        resource: &Resource,
        subject: Option<&str>,
        by: &By,
    ) -> Result<(), SyncError> {
        let note = Note {
            actor: by.actor.clone(),
            verb: verb.to_owned(),
            resource: resource.to_string(),
            subject: subject.map(str::to_owned),
            reason: by.reason.clone(),
        };
        let event = TopicEvent::new(Key::new(resource.kind.as_str())?, &note)?;
        self.place.journal().await?.publish(event).await.map(|_| ())
    }

    /// The set of schedules that is meant: the one that is named, or the only one.
    ///
    /// # Errors
    /// [`SyncError::NotFound`]; [`SyncError::InvalidOption`] if there are several.
    pub async fn schedule_set(&self, named: Option<ResourceId>) -> Result<ResourceId, SyncError> {
        let all = self.place.resources().await?.into_iter();
        let mut sets: Vec<ResourceId> =
            all.filter(|it| it.kind == ResourceKind::Schedules).map(|it| it.id).collect();
        if let Some(named) = named {
            let what = format!("set of schedules `{named}`");
            return sets.contains(&named).then_some(named).ok_or(SyncError::NotFound { what });
        }
        match (sets.pop(), sets.len()) {
            (None, _) => Err(SyncError::NotFound { what: "set of schedules".to_owned() }),
            (Some(only), 0) => Ok(only),
            (Some(last), _) => {
                sets.push(last);
                let names: Vec<&str> = sets.iter().map(ResourceId::as_str).collect();
                let why = format!("there are several, name one: {}", names.join(", "));
                Err(SyncError::InvalidOption { option: "set", why })
            }
        }
    }
}
