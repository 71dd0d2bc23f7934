//! Events, their dispatch, and signals.

pub(crate) mod dispatch;
pub(crate) mod emit;
pub(crate) mod record;
pub(crate) mod signal;
