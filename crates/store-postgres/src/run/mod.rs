//! Runs: how they are read, written, claimed and recovered.
//!
//! What becomes of a run is the core's word (`decide_row`, `apply`), said on the row as it was locked; nothing here
//! repeats its rules.

mod behind;
pub(crate) mod claim;
pub(crate) mod columns;
pub(crate) mod commit;
pub(crate) mod dry_run;
pub(crate) mod entry;
pub(crate) mod fast;
pub(crate) mod insert;
pub(crate) mod load;
pub(crate) mod lock;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod renew;
pub(crate) mod row;
pub(crate) mod session;
pub(crate) mod wake;
pub(crate) mod write;

/// The types that runs are sent as.
pub(crate) const fn types() -> [(&'static str, &'static [&'static str]); 4] {
    [columns::RunRow::TYPE, entry::After::TYPE, entry::Facts::TYPE, entry::Ended::TYPE]
}
