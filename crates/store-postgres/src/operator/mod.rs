//! What people look at. Lists never read payloads.

pub(crate) mod check;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod page;
pub(crate) mod runs;
pub(crate) mod timeline;
