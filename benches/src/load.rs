//! What is run: one trivial action of every class, and a workflow that calls one of them so many times.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use surefoot::prelude::*;

/// The application's name.
pub(crate) const APP: &str = "bench";
/// The scope of all that is run.
pub(crate) const SCOPE: &str = "load";

/// Which action the steps call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Its outcomes may be recorded together.
    Pure,
    /// One commit with the outcome.
    Idempotent,
    /// A statement of the application and the outcome in one transaction.
    Transactional,
    /// A mark before the call, and the outcome.
    Ambiguous,
}

impl Kind {
    const fn action(self) -> &'static str {
        match self {
            Self::Pure => "addPure",
            Self::Idempotent => "addOnce",
            Self::Transactional => "addRow",
            Self::Ambiguous => "addRemote",
        }
    }

    /// A workflow of so many steps, each on the output of the one before.
    pub(crate) fn workflow(self, steps: usize) -> String {
        let mut yaml = String::from(
            "inputs:\n  start: { type: integer, required: true }\ntriggers:\n  begin:\n    \
             with: { start: \"${{ trigger.start }}\" }\nsteps:\n",
        );
        for step in 1..=steps {
            let before =
                if step == 1 { "inputs.start".to_owned() } else { format!("v{}", step - 1) };
            let action = self.action();
            let _ = write!(
                yaml,
                "  - {action}: {{ value: \"${{{{ {before} }}}}\", by: {step} }}\n    saveAs: v{step}\n"
            );
        }
        yaml
    }
}

/// Starts a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Begin {
    /// What is added to.
    pub(crate) start: i64,
}

impl Trigger for Begin {
    const KIND: &'static str = "begin";
    const EVENT: &'static str = "bench.begin";
}

/// Two numbers.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Sum {
    value: i64,
    by: i64,
}

impl Sum {
    pub(crate) const fn total(&self) -> i64 {
        self.value.wrapping_add(self.by)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AddPure;

impl Pure for AddPure {
    const NAME: &'static str = "addPure";
    const ABOUT: &'static str = "Adds.";
    type Input = Sum;
    type Output = i64;

    fn run(&self, _: &PureCx, sum: Sum) -> ActionResult<i64> {
        Ok(sum.total())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AddOnce;

impl Idempotent for AddOnce {
    const NAME: &'static str = "addOnce";
    const ABOUT: &'static str = "Adds, as one who may be asked twice.";
    type Input = Sum;
    type Output = i64;

    async fn run(&self, _: &IdempotentCx, sum: Sum) -> ActionResult<i64> {
        Ok(sum.total())
    }

    async fn plan(&self, _: &StepCx, _: &Sum) -> PlanResult<i64> {
        Ok(Planned::new("Add"))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AddRemote;

impl Ambiguous for AddRemote {
    const NAME: &'static str = "addRemote";
    const ABOUT: &'static str = "Adds, as one who may not be asked twice.";
    const GUARDED: bool = false;
    type Input = Sum;
    type Output = i64;

    async fn run(&self, _: &AmbiguousCx, sum: Sum) -> AmbiguousResult<i64> {
        Ok(sum.total())
    }

    async fn reconcile(&self, _: &AmbiguousCx, sum: Sum) -> ReconcileResult<i64> {
        Ok(Reconciled::Succeeded(sum.total()))
    }

    async fn plan(&self, _: &StepCx, _: &Sum) -> PlanResult<i64> {
        Ok(Planned::new("Add"))
    }
}
