//! What ends. Reads find what may go, on a reading connection; the writer looks again at each of it, and deletes.

pub(crate) mod delete;
pub(crate) mod expire;
pub(crate) mod place;
pub(crate) mod prune;
pub(crate) mod redrive;
mod tree;

pub(crate) use self::tree::is_doomed;
use surefoot_kernel_core::retention::{Force, holding, holding_by_effect};

use crate::error::Fault;
use crate::run::row::json;

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

/// Row numbers for `json_each`.
fn list(numbers: &[i64]) -> Result<String, Fault> {
    json(&numbers)
}

/// The states that hold a run, for `json_each`: the core's word.
fn held(force: Force) -> Result<String, Fault> {
    json(&holding(force))
}

fn held_by_effect(force: Force) -> Result<String, Fault> {
    json(&holding_by_effect(force))
}
