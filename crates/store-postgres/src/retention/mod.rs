//! What ends. Reads find what may go, on a reading connection; the writer locks each of it, looks again, and deletes.

pub(crate) mod delete;
pub(crate) mod expire;
pub(crate) mod place;
pub(crate) mod prune;
pub(crate) mod redrive;
mod tree;

use sqlx::postgres::PgQueryResult;

pub(crate) use self::tree::is_doomed;

/// Rows that one statement deletes.
const CHUNK: usize = 50;
/// No call does more in one transaction.
const LIMIT_MAX: u32 = 1_000;

fn clamp(limit: u32) -> u32 {
    limit.clamp(1, LIMIT_MAX)
}

fn length(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn affected(result: &PgQueryResult) -> u32 {
    u32::try_from(result.rows_affected()).unwrap_or(u32::MAX)
}
