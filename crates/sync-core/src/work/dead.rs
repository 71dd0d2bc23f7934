//! Work that was given up.

use serde_json::Value;
use surefoot_kernel_core::Timestamp;

use super::WorkId;
use crate::Key;

/// What is kept of work that was given up.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    /// Of which work.
    pub id: WorkId,
    /// What the sender named it by.
    pub key: Option<Key>,
    /// What was sent.
    pub data: Value,
    /// How many attempts were made.
    pub attempts: u32,
    /// Why it was given up.
    pub reason: String,
    /// Since when, by the server's clock.
    pub since: Timestamp,
    /// Where it stands in the list.
    pub place: u64,
}

/// Which dead letters to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadPage {
    /// Those behind this place; 0 begins.
    pub after: u64,
    /// At most so many.
    pub limit: usize,
}

/// The first hundred.
impl Default for DeadPage {
    fn default() -> Self {
        Self { after: 0, limit: 100 }
    }
}
