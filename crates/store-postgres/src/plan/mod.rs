//! Versions and what connects events to them.

pub(crate) mod list;
pub(crate) mod publish;
pub(crate) mod switch;
