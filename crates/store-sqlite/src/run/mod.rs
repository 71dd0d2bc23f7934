//! Runs: how they are read, written, claimed and recovered.
//!
//! What becomes of a run is the core's word (`decide_row`, `apply`), said on the row as read inside the writer's
//! transaction; nothing here repeats its rules.

mod behind;
pub(crate) mod claim;
pub(crate) mod commit;
pub(crate) mod dry_run;
pub(crate) mod insert;
pub(crate) mod load;
pub(crate) mod plain;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod renew;
pub(crate) mod row;
pub(crate) mod session;
pub(crate) mod wake;
pub(crate) mod write;
