//! What expressions can see of values that are known, planned or unknown.

use serde_json::Value;

use crate::expr::{EvalError, Names, Template, render};
use crate::interpreter::{Env, failure_of};
use crate::plan::Plan;
use crate::{Dependency, Failure, Invocation, Run, Timestamp};

/// A value, and how much is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Foreseen {
    /// What an execution would have.
    Known(Value),
    /// What an execution may have: it rests on a preview.
    Planned(Value),
    /// Nobody can say.
    Unknown,
}

impl Foreseen {
    /// A list of these.
    pub(super) fn list(items: Vec<Self>) -> Self {
        let is_known = items.iter().all(|item| matches!(item, Self::Known(_)));
        let values: Option<Vec<Value>> = items.into_iter().map(Self::value).collect();
        match values {
            Some(values) if is_known => Self::Known(Value::Array(values)),
            Some(values) => Self::Planned(Value::Array(values)),
            None => Self::Unknown,
        }
    }

    fn value(self) -> Option<Value> {
        match self {
            Self::Known(value) | Self::Planned(value) => Some(value),
            Self::Unknown => None,
        }
    }
}

/// The reserved roots and the saved names, innermost last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scope {
    env: Env,
    names: Vec<(String, Foreseen)>,
}

impl Scope {
    pub(super) fn new(run: &Run, plan: &Plan, invocation: Invocation) -> Self {
        let env = Env::new(run.id, plan, invocation, run.origin.occurred_at);
        Self { env, names: Vec::new() }
    }

    pub(super) fn invocation(&self) -> &Invocation {
        &self.env.invocation
    }

    pub(super) fn set_inputs(&mut self, inputs: Value) {
        self.env.invocation.inputs = inputs;
    }

    pub(super) fn now(&self) -> Timestamp {
        self.env.now()
    }

    pub(super) fn bind(&mut self, name: &str, value: Foreseen) {
        self.names.push((name.to_owned(), value));
    }

    pub(super) fn mark(&self) -> usize {
        self.names.len()
    }

    pub(super) fn forget_after(&mut self, mark: usize) {
        self.names.truncate(mark);
    }

    /// What decides: known values only.
    pub(super) const fn certain(&self) -> View<'_> {
        View { scope: self, with_planned: false }
    }

    /// Renders a value slot. An error of known values is one of the execution; one of planned values says nothing.
    pub(super) fn render(&self, template: &Template) -> Result<Foreseen, Failure> {
        match render(template, &self.certain()) {
            Ok(value) => Ok(Foreseen::Known(value)),
            Err(EvalError::Waiting(_)) => {
                let likely = render(template, &View { scope: self, with_planned: true });
                Ok(likely.map_or(Foreseen::Unknown, Foreseen::Planned))
            }
            Err(error) => Err(failure_of(error)),
        }
    }
}

/// The names as one reading sees them: what it does not see, waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'s> {
    scope: &'s Scope,
    with_planned: bool,
}

impl View<'_> {
    fn saved(&self, name: &str) -> Option<&Foreseen> {
        self.scope.names.iter().rev().find(|(saved, _)| saved == name).map(|(_, value)| value)
    }
}

impl Names for View<'_> {
    fn root(&self, name: &str) -> Option<&Value> {
        match self.saved(name) {
            Some(Foreseen::Known(value)) => Some(value),
            Some(Foreseen::Planned(value)) if self.with_planned => Some(value),
            Some(Foreseen::Planned(_) | Foreseen::Unknown) => None,
            None => self.scope.env.root(name),
        }
    }

    fn now(&self) -> Timestamp {
        self.scope.now()
    }

    fn waits_for(&self, name: &str) -> Option<Dependency> {
        self.saved(name).map(|_| Dependency::on("planned", name))
    }
}
