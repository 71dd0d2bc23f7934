//! What expressions of a run can see.

use serde_json::{Map, Value};

use crate::expr::Names;
use crate::plan::Plan;
use crate::{Invocation, RunId, Timestamp};

/// The reserved roots and the saved names, innermost last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Env {
    now: Timestamp,
    run: Value,
    bindings: Value,
    pub(crate) invocation: Invocation,
    names: Vec<(String, Value)>,
}

impl Env {
    pub(crate) fn new(run: RunId, plan: &Plan, invocation: Invocation, now: Timestamp) -> Self {
        let id = ("id".to_owned(), Value::String(run.to_string()));
        Self {
            now,
            run: Value::Object(Map::from_iter([id])),
            bindings: serde_json::to_value(&plan.bindings).unwrap_or(Value::Null),
            invocation,
            names: Vec::new(),
        }
    }

    pub(crate) fn bind(&mut self, name: &str, value: Value) {
        self.names.push((name.to_owned(), value));
    }

    /// How many names are visible: where a scope begins.
    pub(crate) fn mark(&self) -> usize {
        self.names.len()
    }

    /// Ends a scope: names do not escape it.
    pub(crate) fn forget_after(&mut self, mark: usize) {
        self.names.truncate(mark);
    }
}

impl Names for Env {
    fn root(&self, name: &str) -> Option<&Value> {
        match name {
            "inputs" => Some(&self.invocation.inputs),
            "context" => Some(&self.invocation.context),
            "run" => Some(&self.run),
            "bindings" => Some(&self.bindings),
            saved => {
                self.names.iter().rev().find(|(name, _)| name == saved).map(|(_, value)| value)
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}
