//! Checks, and what differs.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use surefoot_kernel_core::plan::PlanDiff;
use surefoot_kernel_core::{Amount, Amounts, StoreFact, VersionId};

use crate::schema;

/// What was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorView {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// The store first, then the clock, then each app.
    pub checks: Vec<CheckView>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffView {
    /// The earlier one.
    #[schemars(with = "schema::VersionId")]
    pub before: VersionId,
    /// The later one.
    #[schemars(with = "schema::VersionId")]
    pub after: VersionId,
    /// What differs.
    #[serde(flatten)]
    #[schemars(with = "schema::PlanDiff")]
    pub diff: PlanDiff,
    /// Caps of the effect budget that differ, by dimension.
    pub budget: Vec<CapChange>,
}

impl DiffView {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.diff.is_empty() && self.budget.is_empty()
    }
}

/// A cap that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CapChange {
    /// Of which dimension.
    pub dimension: String,
    /// Before; null is no cap.
    #[schemars(with = "Option<schema::Amount>")]
    pub before: Option<Amount>,
    /// After; null is no cap.
    #[schemars(with = "Option<schema::Amount>")]
    pub after: Option<Amount>,
}

impl CapChange {
    /// What differs between the caps of two versions, by dimension.
    pub(crate) fn between(before: &Amounts, after: &Amounts) -> Vec<Self> {
        let names: BTreeSet<&str> =
            before.iter().chain(after.iter()).map(|(name, _)| name).collect();
        let changes = names.into_iter().map(|name| Self {
            dimension: name.to_owned(),
            before: before.get(name),
            after: after.get(name),
        });
        changes.filter(|change| change.before != change.after).collect()
    }
}
