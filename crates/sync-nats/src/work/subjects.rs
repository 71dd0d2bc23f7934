//! The subjects of one resource.

use surefoot_sync_core::{Namespace, ResourceId, WorkId};

use super::Kind;
use crate::names;

#[derive(Debug)]
pub(super) struct Subjects {
    work: String,
    dead: String,
}

impl Subjects {
    pub(super) fn new(namespace: &Namespace, kind: Kind, id: &ResourceId) -> Self {
        let id = names::token(id.as_str());
        let kind = match kind {
            Kind::Jobs => "job",
            Kind::Queue => "queue",
            Kind::Group => "group",
        };
        Self {
            work: format!("{namespace}.{kind}.{id}"),
            dead: format!("{namespace}.{kind}dlq.{id}"),
        }
    }

    /// Of the stream.
    pub(super) fn all(&self) -> [String; 3] {
        [format!("{}.w.>", self.work), format!("{}.d.>", self.work), self.anchor()]
    }

    /// Of the message that stays.
    pub(super) fn anchor(&self) -> String {
        format!("{}.a", self.work)
    }

    /// Of all work, ready or not.
    pub(super) fn work_all(&self) -> String {
        format!("{}.*.*.*", self.work)
    }

    pub(super) fn ready_all(&self) -> String {
        format!("{}.w.>", self.work)
    }

    /// Of one lane, for its consumer.
    pub(super) fn ready_lane(&self, lane: &str) -> String {
        format!("{}.w.{lane}.*", self.work)
    }

    pub(super) fn ready(&self, lane: &str, id: &WorkId) -> String {
        format!("{}.w.{lane}.{id}", self.work)
    }

    pub(super) fn delayed(&self, lane: &str, id: &WorkId) -> String {
        format!("{}.d.{lane}.{id}", self.work)
    }

    /// Whatever a lane holds, ready or not.
    pub(super) fn lane(&self, lane: &str) -> String {
        format!("{}.*.{lane}.*", self.work)
    }

    pub(super) fn dead_all(&self) -> String {
        format!("{}.>", self.dead)
    }

    pub(super) fn dead(&self, id: &WorkId) -> String {
        format!("{}.{id}", self.dead)
    }

    /// Lane and id of a subject of ours.
    pub(super) fn parts(subject: &str) -> Option<(&str, WorkId)> {
        let mut tokens = subject.rsplit('.');
        let id = WorkId::new(tokens.next()?);
        Some((tokens.next()?, id))
    }
}
