//! Checks, and what differs.

use serde::Serialize;
use surefoot_kernel_core::plan::PlanDiff;
use surefoot_kernel_core::{StoreFact, VersionId};

/// What was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorView {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// The store first, then the clock, then each app.
    pub checks: Vec<CheckView>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckView {
    /// Of what.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What it means, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl From<StoreFact> for CheckView {
    fn from(fact: StoreFact) -> Self {
        let help = (!fact.ok).then(|| fact.wanted.clone());
        Self { name: fact.name.to_owned(), ok: fact.ok, found: fact.found, help }
    }
}

/// What differs between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffView {
    /// The earlier one.
    pub before: VersionId,
    /// The later one.
    pub after: VersionId,
    /// What differs.
    #[serde(flatten)]
    pub diff: PlanDiff,
}
