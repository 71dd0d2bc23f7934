//! Static checks: what is known about values before any run.

pub(crate) mod schema;
pub(crate) mod shape;
pub(crate) mod types;
