//! Step zero: the inputs of a run.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::expr::{EvalError, Names, render};
use crate::plan::Plan;
use crate::{Code, Failure, Invocation, Timestamp};

/// What a trigger's `with` can see.
struct TriggerNames<'a> {
    trigger: &'a Value,
    now: &'a dyn Fn() -> Timestamp,
}

impl Names for TriggerNames<'_> {
    fn root(&self, name: &str) -> Option<&Value> {
        (name == "trigger").then_some(self.trigger)
    }

    fn now(&self) -> Timestamp {
        (self.now)()
    }
}

/// Computes and checks the inputs: from the trigger's `with`, or the event's data themselves.
///
/// # Errors
/// `INPUT_INVALID`, with the JSON pointer of the input in the message and in `details.pointer`.
pub(crate) fn compute_inputs(
    plan: &Plan,
    trigger: Option<&str>,
    invocation: &Invocation,
    now: &dyn Fn() -> Timestamp,
) -> Result<Value, Failure> {
    let given = match trigger {
        Some(kind) => from_trigger(plan, kind, invocation, now)?,
        None => from_data(&invocation.trigger)?,
    };
    checked(plan, given.into_owned()).map(Value::Object)
}

impl Plan {
    /// Whether a start with these data would have inputs that the workflow takes: what a run finds out before its first
    /// step, told before there is a run.
    ///
    /// # Errors
    /// `INPUT_INVALID`, as the run would fail.
    pub fn check_inputs(&self, data: &Value) -> Result<(), Failure> {
        checked(self, from_data(data)?.into_owned()).map(drop)
    }
}

fn from_trigger<'a>(
    plan: &Plan,
    kind: &str,
    invocation: &'a Invocation,
    now: &dyn Fn() -> Timestamp,
) -> Result<Cow<'a, Map<String, Value>>, Failure> {
    let Some(trigger) = plan.triggers.get(kind) else {
        return Err(invalid("", format!("the plan has no trigger `{kind}`")));
    };
    let names = TriggerNames { trigger: &invocation.trigger, now };
    let mut inputs = Map::new();
    for (name, template) in &trigger.with {
        match render(template, &names) {
            Ok(value) => {
                inputs.insert(name.clone(), value);
            }
            // A member that the event lacks leaves the input ungiven: its default or `required` decides.
            Err(EvalError::Missing { .. }) if !is_required(plan, name) => {}
            Err(error) => {
                return Err(invalid(name, format!("input `{name}` cannot be computed: {error}")));
            }
        }
    }
    Ok(Cow::Owned(inputs))
}

fn is_required(plan: &Plan, name: &str) -> bool {
    plan.inputs.get(name).is_some_and(|input| input.required)
}

fn from_data(data: &Value) -> Result<Cow<'_, Map<String, Value>>, Failure> {
    match data {
        Value::Object(members) => Ok(Cow::Borrowed(members)),
        Value::Null => Ok(Cow::Owned(Map::new())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(invalid("", "the event's data must be an object: one member an input".to_owned()))
        }
    }
}

fn checked(plan: &Plan, mut given: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    if let Some(undeclared) = given.keys().find(|name| !plan.inputs.contains_key(*name)) {
        return Err(invalid(undeclared, format!("the workflow declares no input `{undeclared}`")));
    }
    for (name, input) in &plan.inputs {
        match (given.get(name), &input.default) {
            (Some(value), _) if input.kind.accepts(value) => {}
            (Some(value), _) => {
                let kind = input.kind.as_str();
                let found = kind_of(value);
                return Err(invalid(name, format!("input `{name}` must be {kind}, it is {found}")));
            }
            (None, Some(default)) => {
                given.insert(name.clone(), default.clone());
            }
            (None, None) if input.required => {
                return Err(invalid(name, format!("input `{name}` is required and missing")));
            }
            (None, None) => {}
        }
    }
    Ok(given)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn invalid(name: &str, message: String) -> Failure {
    let escaped = name.replace('~', "~0").replace('/', "~1");
    let pointer = if name.is_empty() { String::new() } else { format!("/{escaped}") };
    let message = match pointer.as_str() {
        // The whole is at fault.
        "" => message,
        pointer => format!("{message} (at `{pointer}`)"),
    };
    Failure::new(Code::INPUT_INVALID, message).details(json!({ "pointer": pointer }))
}
