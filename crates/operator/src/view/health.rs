//! Health.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use surefoot_kernel_core::{App, Mode, SessionId};

use super::At;
use crate::schema;

/// The health of a store's apps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HealthView {
    /// Whether no app is red.
    pub ok: bool,
    /// By name.
    pub apps: Vec<AppHealthView>,
}

/// The health of one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppHealthView {
    /// Which app.
    #[schemars(with = "String")]
    pub app: App,
    /// Whether nothing is red.
    pub ok: bool,
    /// What is red, one sentence each.
    pub red: Vec<String>,
    /// What is worth knowing and asks nobody to act.
    pub notes: Vec<String>,
    /// The store's time of the reading.
    pub read_at: At,
    /// Runs by state.
    pub runs: BTreeMap<&'static str, u64>,
    /// Since when the oldest run that a worker may take has been due.
    pub oldest_due_at: Option<At>,
    /// How long that is: the worst lag of a start or continuation right now.
    pub start_lag_ms: i64,
    /// Effects that nobody can explain yet.
    pub unsettled_effects: u64,
    /// The age of the oldest of them.
    pub oldest_unsettled_ms: Option<i64>,
    /// Effects that happened and lack an output that can be used.
    pub outputs_missing: u64,
    /// Effects that were given up without knowing; they stay listed.
    pub effects_given_up: u64,
    /// Runs that failed with `RETRY_EXHAUSTED`.
    pub exhausted: u64,
    /// Events.
    pub events: EventHealthView,
    /// What open runs need and no live worker offers.
    pub missing_modules: Vec<MissingModuleView>,
    /// Worker sessions that have not ended.
    pub workers: Vec<WorkerHealthView>,
    /// How far this process's clock is ahead of the store's; negative is behind. Nothing but logs depends on it.
    pub clock_skew_ms: Option<i64>,
}

/// The events of one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventHealthView {
    /// Their runs are not created yet.
    pub pending: u64,
    /// The age of the oldest of them.
    pub oldest_pending_ms: Option<i64>,
    /// Why the dispatch of the newest of them fails, if it was tried in vain and is tried again.
    pub dispatch_error: Option<String>,
    /// Dispatch failed for good.
    pub dead_lettered: u64,
    /// Nobody listens to them. Told apart: never red.
    pub unmatched: u64,
}

/// What open runs need and no live worker offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingModuleView {
    /// The module.
    pub module: String,
    /// Hash of what the runs use of it.
    pub footprint: String,
    /// What the nearest worker lacks; the module itself where no worker lives.
    pub lacks: Vec<String>,
    /// How many runs are due for it.
    pub due_runs: u64,
    /// How long the oldest of them has been due.
    pub oldest_due_ms: Option<i64>,
}

/// A worker session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkerHealthView {
    /// Its id.
    #[schemars(with = "schema::SessionId")]
    pub session: SessionId,
    /// For people: host and process.
    pub name: String,
    /// Which runs it takes.
    #[schemars(with = "schema::Mode")]
    pub mode: Mode,
    /// Whether it reported within the last minute.
    pub live: bool,
    /// How long ago it reported.
    pub seen_ms: i64,
    /// Its slots.
    pub slots: u32,
    /// Slots in use.
    pub busy: u32,
    /// Slots whose hook does not return though its time is over.
    pub stuck: u32,
}
