//! The coordination primitives of Surefoot: ports, policies and errors.
//!
//! Each primitive has a port here, an adapter for a server, and a version in memory; one suite of the testkit holds
//! for both. Everything here is pure: adapters and drivers bring time, chance and IO.
//!
//! | to | use | it promises |
//! |---|---|---|
//! | have something done later, or elsewhere | [`Jobs`] | durable, at least once, by key |
//! | hand messages on, settled one by one | [`Queue`] | durable, at least once, in order by key if wanted |
//! | have each message of a topic handled by one of many | [`Coordinator::group`] | durable, at least once, with dead letters |
//! | tell many, each at its own pace | [`Topic`] | retained for a while, read by place; a gap is told |
//! | run something at certain times | [`ScheduleStore`] | durable; a slot is run once, or again if its worker died |
//! | know who is there just now | [`Ephemeral`] | expires; a watcher is told when it may have missed something |
//! | let one process at a time do something | [`Mutex`] | expires; the fence says who came later |
//! | bound how often something is asked for | [`RateLimit`] | exact on the server, by key |
//! | know when something is due | [`Schedule`] | pure: cron in a time zone |

mod backoff;
mod coordinator;
mod desk;
mod ephemeral;
mod error;
mod group;
mod inventory;
mod limit;
mod mutex;
mod name;
mod schedule;
mod scheduler;
mod topic;
mod work;

pub use backoff::{Backoff, RetryPolicy};
pub use coordinator::Coordinator;
pub use desk::{
    By, Changed, DeadView, Desk, NoteView, PausedView, QueueView, RunView, ScheduleView,
};
pub use ephemeral::{
    Change, EntryKey, Ephemeral, EphemeralSettings, GONE_FOR, Snapshot, WatchCursor, Watched,
};
pub use error::SyncError;
pub use group::{GroupSettings, GroupStart};
pub use inventory::{BrokerFact, Inventory, Resource, ResourceKind};
pub use limit::{Rate, RateCheck, RateLimit, WhenDown};
pub use mutex::{Lock, Mutex, MutexSettings};
pub use name::{Key, Namespace, ResourceId};
pub use schedule::{BadCron, BadSchedule, Cron, Misfire, Schedule, slot_key};
pub use scheduler::{
    BACKFILL_SLOTS_MAX, Begun, Occasion, Outcome, Pause, Recorded, ScheduleCreated, ScheduleRecord,
    ScheduleSpec, ScheduleStore, Schedules, Span,
};
pub use topic::{
    Cursor, EventPublished, Extent, LiveMessage, LiveMessages, ReadTopic, Topic, TopicEvent,
    TopicMessage, TopicSettings,
};
pub use work::{
    Again, DeadLetter, DeadPage, Delivery, Depth, Job, Jobs, Message, Move, Partitions, Queue,
    QueueSettings, Receive, SendAllError, Sent, Settled, Start, Submitted, Verdict, Work, WorkId,
    WorkSettings,
};
