//! Dry runs: what a version would do, found out without doing it.
//!
//! A [`Survey`] stands beside the [`Cursor`](crate::Cursor) of executions: a plain value that is rebuilt by folding the
//! journal of a run in mode `dry_run`. Values are known, planned (an action's preview foretold them) or unknown. A
//! condition that reads a value that is not known is undecidable: all branches are analysed; a loop over one analyses
//! its body once. Gaps are collected, not fatal. The result is a [`Bill`].
//!
//! No command of this room can cause an effect: an action is previewed, or run if it is pure.

mod bill;
mod decide;
mod scope;
mod survey;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Amounts, EffectClass, Failure};

pub use bill::{Bill, BillCost, BillEnd, BillIssue, PlannedEffect};
pub use decide::{DryCommand, DryDecision, DryHeld, DryInput, Previewed, decide_dry_run};
pub use survey::Survey;

/// What a dry run found at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// An effect, as its action previews it.
    Effect {
        /// The action.
        action: String,
        /// What it promises.
        class: EffectClass,
        /// One line that says what would happen.
        summary: String,
        /// What it would charge.
        #[serde(default, skip_serializing_if = "Amounts::is_empty")]
        cost: Amounts,
        /// The output, if it can be foretold.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// What the action notes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        issues: Vec<String>,
    },
    /// A value that hangs on planned values, or is unknown: of a pure step, or of a wait.
    Value {
        /// Absent where it is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// An effect that its action cannot preview.
    Unsupported {
        /// The action.
        action: String,
        /// What it promises.
        class: EffectClass,
        /// Its own word.
        why: String,
    },
    /// An effect of which nothing can be said, since it hangs on an unknown value.
    Indeterminate {
        /// The action.
        action: String,
        /// What it promises.
        class: EffectClass,
        /// On what.
        why: String,
    },
    /// Runs of other workflows, whose effects no bill but their own can list.
    Children {
        /// Of which, and how many, as far as it is known.
        what: String,
    },
    /// A control step whose choice hangs on a value that is not known: everything inside is analysed.
    Undecided {
        /// On what.
        why: String,
    },
    /// Here the run would end.
    Ends {
        /// Why it would fail, if it would.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// The sentence of a `succeed` step, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}
