//! Events, their dispatch, and signals.

pub(crate) mod dispatch;
pub(crate) mod emit;
pub(crate) mod lane;
mod rows;
pub(crate) mod signal;
