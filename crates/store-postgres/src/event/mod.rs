//! Events, their dispatch, and signals.

mod catalog;
pub(crate) mod dispatch;
pub(crate) mod emit;
pub(crate) mod lane;
mod rows;
pub(crate) mod signal;

/// The types that events are sent as.
pub(crate) const fn types() -> [(&'static str, &'static [&'static str]); 3] {
    [rows::NewEvent::TYPE, rows::Delivery::TYPE, rows::NewRun::TYPE]
}
