//! Rows of expressions as authors write them, and what each yields.

mod functions;
mod limits;
mod operators;
mod references;
mod source;
mod templates;
mod waiting;

use serde_json::{Value, json};

use super::{EvalError, Expr, Names, Piece, Template, evaluate, evaluate_condition, render};
use crate::{Dependency, Timestamp};
use source::parse;

/// Roots with values; a name that starts with `later` waits for its signal.
struct World(Value);

impl Names for World {
    fn root(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn now(&self) -> Timestamp {
        "2026-05-01T12:00:00Z".parse().unwrap()
    }

    fn waits_for(&self, name: &str) -> Option<Dependency> {
        name.starts_with("later").then(|| Dependency::on("signal", name))
    }
}

fn world() -> World {
    World(json!({
        "inputs": {
            "name": "Bolt",
            "nothing": null,
            "count": 3,
            "zero": 0,
            "no": false,
            "yes": true,
            "empty": "",
            "none": [],
            "big": u64::MAX,
            "rows": [10, 20, { "id": "r2", "null": null }],
            "order": { "Due date": "2026-06-01", "lines": [{ "qty": 2 }], "": 1, "0": "key" },
            "length": 9,
        },
        "order": { "id": 7, "note": null, "tags": ["new", "Größe L"], "total": 19.9 },
    }))
}

fn eval(source: &str) -> Result<Value, EvalError> {
    evaluate(&parse(source), &world())
}

fn missing(reference: &str) -> EvalError {
    EvalError::Missing { reference: reference.to_owned() }
}

fn waiting(name: &str) -> EvalError {
    EvalError::Waiting(Dependency::on("signal", name))
}

/// The value and the types of its numbers.
#[track_caller]
fn yields(source: &str, value: impl Into<Value>) {
    let (found, value) = (eval(source), value.into());
    assert_eq!(found.as_ref().ok(), Some(&value), "{source}: {found:?}");
}

#[track_caller]
fn errs(source: &str, part: &str) {
    says(&eval(source).unwrap_err(), part);
}

#[track_caller]
fn says(error: &EvalError, part: &str) {
    assert!(matches!(error, EvalError::Invalid { .. }), "{error:?}");
    assert!(error.to_string().contains(part), "{error}");
}
