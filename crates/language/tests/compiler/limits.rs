//! Limits of a module.

use expect_test::expect;
use surefoot_language::{Limits, Manifest};

use crate::support::*;

fn limited(limits: Limits) -> Manifest {
    Manifest { limits, ..manifest() }
}

/// Covers behaviour 23.
#[test]
fn a_limit_that_is_exceeded_is_reported_once() {
    let steps = "- noop: {}\n".repeat(8);
    check_with(
        &limited(Limits::default().steps(2)),
        &workflow(&steps),
        expect![[r#"
        8:5-8:13 error LIMIT_STEPS: a workflow has at most 2 steps
          at: steps.2
    "#]],
    );
    check_with(&limited(Limits::default().steps(8)), &workflow(&steps), expect![[""]]);
    let steps = "- anything: { a: \"${{ 1 }} ${{ 2 }}\" }\n".repeat(4);
    check_with(
        &limited(Limits::default().expressions(2)),
        &workflow(&steps),
        expect![[r#"
        7:24-7:27 error LIMIT_EXPRESSIONS: a workflow has at most 2 expressions
          at: steps.1.anything.a
    "#]],
    );
    check_with(&limited(Limits::default().expressions(8)), &workflow(&steps), expect![[""]]);
    check_with(
        &limited(Limits::default().inputs(1)),
        &workflow("- noop: {}"),
        expect![[r#"
        3:3-3:8 error LIMIT_INPUTS: a workflow has at most 1 inputs
          at: inputs
    "#]],
    );
}

/// Covers behaviour 24.
#[test]
fn steps_are_nested_as_deep_as_the_limit_and_no_deeper() {
    let nested =
        "- if: ${{ true }}\n  then:\n    - forEach: []\n      as: x\n      do:\n        - noop: {}";
    check_with(&limited(Limits::default().depth(3)), &workflow(nested), expect![""]);
    check_with(
        &limited(Limits::default().depth(2)),
        &workflow(nested),
        expect![[r#"
        11:13-11:21 error LIMIT_DEPTH: steps may be nested 2 deep
          at: steps.0.then.0.do.0
    "#]],
    );
    check_with(
        &limited(Limits::default().depth(1)),
        &workflow(nested),
        expect![[r#"
        8:9-11:21 error LIMIT_DEPTH: steps may be nested 1 deep
          at: steps.0.then.0
    "#]],
    );
}

#[test]
fn a_list_that_is_written_out_may_not_be_longer_than_a_loop() {
    let source = workflow("- forEach: [1, 2, 3]\n  as: x\n  do: [ { noop: {} } ]");
    check_with(&limited(Limits::default().loop_items(3)), &source, expect![[""]]);
    check_with(
        &limited(Limits::default().loop_items(2)),
        &source,
        expect![[r#"
        6:14-6:23 error LIMIT_LOOP_ITEMS: a loop goes over at most 2 items; here are 3
          at: steps.0.forEach
    "#]],
    );
}
