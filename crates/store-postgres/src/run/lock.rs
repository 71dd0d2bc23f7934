//! Locks: whether one is waited for, and those that are no rows.
//!
//! In this order, wherever several are taken: run, signal, group of children, budget. A parent's row behind its
//! group, and a sibling behind it, are taken only if they are free.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{Dependency, Run};

use super::write::place;
use crate::error::Fault;
use crate::sql;

/// Whether a lock that somebody else has is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    /// Who finds one goes on without it, and is tried again later.
    IfFree,
    Wait,
}

/// Locks of signals are shared between keys, so that a transaction that sends many needs few.
const STRIPES: u32 = 1_024;

/// A signal by what identifies it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalKey<'a> {
    pub(crate) app: &'a str,
    pub(crate) app_wide: bool,
    /// Empty for an app-wide one.
    pub(crate) scope: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) key: &'a str,
}

impl<'a> SignalKey<'a> {
    /// What a run waits for.
    pub(crate) fn of(run: &'a Run, on: &'a Dependency) -> Self {
        let app_wide = on.is_app_wide();
        let scope = place(app_wide, run);
        Self { app: run.origin.app.as_str(), app_wide, scope, kind: on.kind(), key: on.key() }
    }

    /// Which lock.
    fn stripe(self) -> i32 {
        let wide = if self.app_wide { "1" } else { "0" };
        let hash = hash(&[self.app, wide, self.scope, self.kind, self.key]);
        (hash % STRIPES).cast_signed()
    }
}

/// A number for an advisory lock, the same in every process (FNV-1a).
pub(crate) fn hash(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Until the end of the transaction nobody else sends the signal, or parks on it: of a run that parks and a signal
/// that is sent, the later one sees the other. What it guards is read in a later statement. Answers whether the lock
/// was got.
pub(crate) async fn lock_signal(
    conn: &mut PgConnection,
    signal: SignalKey<'_>,
    locks: Locks,
) -> Result<bool, Fault> {
    match locks {
        Locks::Wait => {
            sqlx::query(sql::SIGNAL_LOCK).bind(signal.stripe()).execute(conn).await?;
            Ok(true)
        }
        Locks::IfFree => {
            let query = sqlx::query(sql::SIGNAL_LOCK_IF_FREE).bind(signal.stripe());
            Ok(query.fetch_one(conn).await?.try_get("is_mine")?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_of_the_whole_key() {
        let key = |scope, kind| {
            SignalKey { app: "shop", app_wide: false, scope, kind, key: "7" }.stripe()
        };
        assert_eq!(key("north", "approval"), key("north", "approval"));
        assert_ne!(key("north", "approval"), key("south", "approval"));
        // Not the same text behind each other.
        assert_ne!(key("no", "rth"), key("nor", "th"));
        assert!((0..1_024).contains(&key("north", "approval")));
    }
}
