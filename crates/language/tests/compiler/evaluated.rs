//! Expressions from source to value: the parser and the evaluator mean the same.

use serde_json::{Value, json};
use surefoot_kernel_core::Timestamp;
use surefoot_kernel_core::expr::{EvalError, Names, render};
use surefoot_kernel_core::plan::StepKind;

use crate::support::*;

struct World(Value);

impl Names for World {
    fn root(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn now(&self) -> Timestamp {
        "2026-05-01T12:00:00Z".parse().unwrap()
    }
}

fn world() -> World {
    World(json!({
        "context": { "n": null, "rows": [10, 20], "braces": "${{ x }}", "deep": { "a b": [[7]], "c": 1 }, "same": { "c": 1, "a b": [[7]] } },
        "order": { "id": 7, "note": null, "tags": ["new", "Größe L"], "total": 19.9 },
    }))
}

/// The value of a text with expressions in it, as an author writes it.
fn value_of(text: &str) -> Result<Value, EvalError> {
    let quoted = text.replace('\'', "''");
    let source = format!(
        "steps:\n  - anything: {{}}\n    saveAs: order\n  - setVariable: {{ name: it, value: '{quoted}' }}\n"
    );
    let plan = plan(&source);
    let StepKind::SetVariable { value, .. } = &plan.steps[1].kind else { panic!("{source}") };
    render(value, &world())
}

#[test]
fn every_documented_example_of_a_function_has_its_documented_value() {
    let documented = include_str!("../../../kernel-core/src/expr/functions.md");
    let rows = documented.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut count = 0;
    for row in rows {
        let (expression, value) = row.split_once("` | `").unwrap();
        let value: Value = serde_json::from_str(value.strip_suffix("` |").unwrap()).unwrap();
        assert_eq!(value_of(&format!("${{{{ {expression} }}}}")), Ok(value), "{expression}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

/// Covers behaviour 32.
/// Covers behaviour 33.
/// Covers behaviour 37.
/// Covers behaviour 46.
/// Covers behaviour 48.
/// Covers behaviour 49.
/// Covers behaviour 50.
#[test]
fn operators_and_texts_have_the_values_that_they_read_as() {
    for (text, value) in [
        ("${{ 1 + 2 * 3 - 4 / 2 }}", json!(5)),
        ("${{ (1 + 2) * 3 % 4 }}", json!(1)),
        ("${{ -2 + 1 == -1 && !(1 > 2) }}", json!(true)),
        ("${{ context.n ?? 'x' }}", json!("x")),
        ("${{ context.missing.deeply ?? context.n ?? 3 }}", json!(3)),
        ("${{ has(context.n) && !has(context.m) }}", json!(true)),
        ("${{ context.deep['a b'][0][0] }}", json!(7)),
        ("${{ context.rows[1] }}", json!(20)),
        ("${{ 1 == 1.0 }}", json!(true)),
        ("${{ 1 == '1' }}", json!(false)),
        ("${{ context.deep == context.same }}", json!(true)),
        ("${{ sameText('ＡＢＣ１', 'abc1') }}", json!(true)),
        ("${{ 'ＡＢＣ１' == 'abc1' }}", json!(false)),
        ("${{ '\u{e9}' == 'e\u{301}' }}", json!(false)),
        ("${{ 'it''s }} ok' }}", json!("it's }} ok")),
        ("a${{ context.n }}b${{ 1.5 }}c${{ true }}", json!("ab1.5ctrue")),
        ("${{ context.braces }}!", json!("${{ x }}!")),
        (" ${{ 1 }}", json!(" 1")),
        ("}} ${ { 5 }}", json!("}} ${ { 5 }}")),
    ] {
        assert_eq!(value_of(text), Ok(value), "{text}");
    }
    let error = value_of("a ${{ context.deep }}").unwrap_err();
    assert!(error.to_string().contains("json("), "{error}");
}

/// Covers behaviour 34.
/// Covers behaviour 35.
#[test]
fn what_is_not_there_is_missing() {
    for text in ["${{ context.rows[2] }}", "${{ context.rows.length }}", "${{ context.__proto__ }}"]
    {
        assert!(matches!(value_of(text), Err(EvalError::Missing { .. })), "{text}");
    }
}
