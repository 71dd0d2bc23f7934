//! Live updates. Those who look at the same thing share one look at the store.

mod feeds;
mod streams;

pub(crate) use feeds::Feeds;
pub(crate) use streams::{Live, follow_run, follow_runs};
