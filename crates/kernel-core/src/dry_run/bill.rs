//! The bill of effects: the result of a dry run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::{Amount, Amounts, Code, EffectClass, StepKey};

/// What a version would do with an event, as far as it can be said without doing it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bill {
    /// What keeps it from being the whole truth: `DRY_RUN_INDETERMINATE` before `DRY_RUN_UNSUPPORTED` before
    /// `DRY_RUN_TERMINAL`. Absent where nothing does.
    pub code: Option<Code>,
    /// Every effect, in the order of the steps.
    pub effects: Vec<PlannedEffect>,
    /// How many effects of each class.
    pub by_class: BTreeMap<EffectClass, u64>,
    /// What is charged, by dimension.
    pub costs: Vec<BillCost>,
    /// Whether the cost of every effect is known.
    pub is_cost_complete: bool,
    /// Everything that a person should know, in the order of the steps.
    pub issues: Vec<BillIssue>,
    /// The step at which the run would end for sure, ahead of its last one.
    pub ends: Option<BillEnd>,
}

/// One effect of a bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEffect {
    /// Its step.
    pub step: StepKey,
    /// Its action.
    pub action: String,
    /// What the action promises.
    pub class: EffectClass,
    /// What would happen; absent where the action could not be asked.
    pub summary: Option<String>,
    /// What it would charge.
    pub cost: Amounts,
    /// Whether an execution comes to it for sure, once; it does not where a condition or a loop around it could not be
    /// decided.
    pub is_sure: bool,
}

/// One dimension of a bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillCost {
    /// Its name.
    pub dimension: String,
    /// What the sure effects charge.
    pub sure: Amount,
    /// What all effects of the bill charge together, those of branches that exclude each other too.
    pub all: Amount,
}

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillIssue {
    /// Where.
    pub step: StepKey,
    /// Which gap; absent for an action's own note.
    pub code: Option<Code>,
    /// For people.
    pub message: String,
}

/// Where a run would end for sure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillEnd {
    /// The step.
    pub step: StepKey,
    /// With which code it would fail; absent where it would succeed.
    pub code: Option<Code>,
    /// For people.
    pub message: Option<String>,
}

impl Bill {
    /// Adds what was found at a step; `is_sure` if an execution comes to it for sure.
    pub(super) fn add(&mut self, step: &StepKey, finding: &Finding, is_sure: bool) {
        match finding {
            Finding::Effect { action, class, summary, cost, output: _, issues } => {
                let about = (action.as_str(), *class);
                self.effect(step, about, Some(summary.clone()), cost.clone(), is_sure);
                for issue in issues {
                    self.issue(step, None, issue);
                }
            }
            Finding::Unsupported { action, class, why } => {
                self.effect(step, (action, *class), None, Amounts::default(), is_sure);
                self.issue(step, Some(Code::DRY_RUN_UNSUPPORTED), why);
            }
            Finding::Indeterminate { action, class, why } => {
                if *class != EffectClass::Pure {
                    self.effect(step, (action, *class), None, Amounts::default(), is_sure);
                }
                self.issue(step, Some(Code::DRY_RUN_INDETERMINATE), why);
            }
            Finding::Children { what } => {
                let text =
                    format!("{what} would be started: dry-run it by itself to see its effects");
                self.issue(step, Some(Code::DRY_RUN_UNSUPPORTED), &text);
            }
            Finding::Undecided { why } => {
                self.issue(step, Some(Code::DRY_RUN_INDETERMINATE), why);
            }
            Finding::Ends { failure, message } => {
                if let Some(failure) = failure {
                    let text = format!("{}: {}", failure.code, failure.message);
                    self.issue(step, is_sure.then_some(Code::DRY_RUN_TERMINAL), &text);
                }
                if is_sure {
                    let code = failure.as_ref().map(|failure| failure.code.clone());
                    let said = failure.as_ref().map(|failure| failure.message.clone());
                    let message = message.clone().or(said);
                    self.ends = Some(BillEnd { step: step.clone(), code, message });
                }
            }
            Finding::Value { .. } => {}
        }
    }

    fn effect(
        &mut self,
        step: &StepKey,
        (action, class): (&str, EffectClass),
        summary: Option<String>,
        cost: Amounts,
        is_sure: bool,
    ) {
        let (step, action) = (step.clone(), action.to_owned());
        *self.by_class.entry(class).or_default() += 1;
        self.effects.push(PlannedEffect { step, action, class, summary, cost, is_sure });
    }

    fn issue(&mut self, step: &StepKey, code: Option<Code>, message: &str) {
        self.issues.push(BillIssue { step: step.clone(), code, message: message.to_owned() });
    }

    /// With its sums and its code.
    pub(super) fn summed(mut self) -> Self {
        let (mut sure, mut all) = (Amounts::default(), Amounts::default());
        for effect in &self.effects {
            all.add_all(&effect.cost);
            if effect.is_sure {
                sure.add_all(&effect.cost);
            }
        }
        let cost = |(dimension, all): (&str, Amount)| BillCost {
            dimension: dimension.to_owned(),
            sure: sure.get(dimension).unwrap_or_default(),
            all,
        };
        self.costs = all.iter().map(cost).collect();
        let ranks =
            [Code::DRY_RUN_INDETERMINATE, Code::DRY_RUN_UNSUPPORTED, Code::DRY_RUN_TERMINAL];
        let has = |code: &Code| self.issues.iter().any(|issue| issue.code.as_ref() == Some(code));
        self.is_cost_complete = !has(&Code::DRY_RUN_UNSUPPORTED)
            && self.effects.iter().all(|effect| effect.summary.is_some());
        self.code = ranks.into_iter().find(has);
        self
    }

    /// One sentence.
    #[must_use]
    pub fn headline(&self) -> String {
        let (effects, issues) = (self.effects.len(), self.issues.len());
        let whole = match &self.code {
            None => "all of it could be foretold".to_owned(),
            Some(code) => code.to_string(),
        };
        format!("{effects} effects, {issues} issues: {whole}")
    }
}
