//! Names and where they are visible.

use expect_test::expect;

use crate::support::*;

/// Covers behaviour 39.
#[test]
fn a_name_hides_nothing() {
    check_step(
        "- noop: {}\n  saveAs: inputs\n- noop: {}\n  saveAs: item\n- setVariable: { name: run, value: 1 }\n- setVariable: { name: total, value: 1 }\n- noop: {}\n  saveAs: total\n- forEach: []\n  as: total\n  do: [ { noop: {} } ]\n- forEach: []\n  as: trigger\n  do: [ { noop: {} } ]\n- if: ${{ true }}\n  then:\n    - setVariable: { name: total, value: 2 }\n- noop: {}\n  saveAs: 9lives\n- noop: {}\n  saveAs: \"true\"",
        expect![[r#"
            7:13-7:19 error NAME_RESERVED: `inputs` is reserved: it has a meaning of its own
              at: steps.0.saveAs
            9:13-9:17 error NAME_TAKEN: `item` is the name of an input
              at: steps.1.saveAs
              help: choose another name: the two are easily mistaken for each other
            10:26-10:29 error NAME_RESERVED: `run` is reserved: it has a meaning of its own
              at: steps.2.setVariable.name
            13:13-13:18 error NAME_TAKEN: `total` is visible here already
              at: steps.4.saveAs
              related: 235 bound here
              help: choose another name: a name keeps its value
            15:9-15:14 error NAME_TAKEN: `total` is visible here already
              at: steps.5.as
              related: 235 bound here
              help: choose another name: a name keeps its value
            18:9-18:16 error NAME_RESERVED: `trigger` is reserved: it has a meaning of its own
              at: steps.6.as
            22:30-22:35 error NAME_TAKEN: `total` is visible here already
              at: steps.7.then.0.setVariable.name
              related: 235 bound here
              help: choose another name: a name keeps its value
            24:13-24:19 error NAME_INVALID: `9lives` is no name
              at: steps.8.saveAs
              help: a name has letters, digits and `_`, and does not start with a digit
            26:13-26:19 error NAME_RESERVED: `true` is reserved: it has a meaning of its own
              at: steps.9.saveAs
        "#]],
    );
}

/// Covers behaviour 40.
#[test]
fn a_name_does_not_escape_its_branch() {
    check_step(
        "- if: ${{ true }}\n  then:\n    - setVariable: { name: inner, value: 1 }\n    - anything: { a: \"${{ inner }}\" }\n  else:\n    - anything: { a: \"${{ inner }}\" }\n- anything: { a: \"${{ inner }}\" }",
        expect![[r#"
            11:29-11:34 error UNKNOWN_NAME: nothing here is called `inner`
              at: steps.0.else.0.anything.a
              related: 166 bound here, in a scope that has ended
              help: a name is visible in its own branch or iteration only; `saveAs` on the `if`, `switch` or `forEach` keeps the value
            12:25-12:30 error UNKNOWN_NAME: nothing here is called `inner`
              at: steps.1.anything.a
              related: 166 bound here, in a scope that has ended
              help: a name is visible in its own branch or iteration only; `saveAs` on the `if`, `switch` or `forEach` keeps the value
        "#]],
    );
}

/// Covers behaviour 41.
#[test]
fn the_item_of_a_loop_is_visible_inside_only() {
    check_step(
        "- forEach: [1]\n  as: x\n  do: [ { anything: { a: \"${{ x }}\" } } ]\n- forEach: [2]\n  as: x\n  do: [ { anything: { a: \"${{ x }}\" } } ]\n- anything: { a: \"${{ x }}\" }",
        expect![[r#"
            12:25-12:26 error UNKNOWN_NAME: nothing here is called `x`
              at: steps.2.anything.a
              related: 203 bound here, in a scope that has ended
              help: a name is visible in its own branch or iteration only; `saveAs` on the `if`, `switch` or `forEach` keeps the value
        "#]],
    );
}

#[test]
fn unknown_names_come_with_what_was_probably_meant() {
    check_step(
        "- loadItem: { item: \"${{ itme }}\" }\n  saveAs: stock\n- anything:\n    a: ${{ stcok.onHand }}\n    b: ${{ item }}\n    c: ${{ input.item }}\n    d: ${{ stock.onHnad }}\n    e: ${{ inputs.itm }}\n    f: ${{ run.name }}\n    g: ${{ bindings }}\n    h: ${{ bindings.table }}\n    i: ${{ entirely.different }}",
        expect![[r#"
            6:28-6:32 error UNKNOWN_NAME: nothing here is called `itme`
              at: steps.0.loadItem.item
              help: known here: `inputs`, `context`, `bindings`, `run`
            9:14-9:19 error UNKNOWN_NAME: nothing here is called `stcok`
              at: steps.1.anything.a
              help: did you mean `stock`?
            10:14-10:18 error UNKNOWN_NAME: nothing here is called `item`
              at: steps.1.anything.b
              help: did you mean `inputs.item`?
            11:14-11:19 error UNKNOWN_NAME: nothing here is called `input`
              at: steps.1.anything.c
              help: did you mean `inputs`?
            12:20-12:26 error UNKNOWN_MEMBER: there is no member `onHnad` here
              at: steps.1.anything.d
              help: did you mean `onHand`?
            13:21-13:24 error UNKNOWN_MEMBER: there is no member `itm` here
              at: steps.1.anything.e
              help: did you mean `item`?
            14:18-14:22 error UNKNOWN_MEMBER: there is no member `name` here
              at: steps.1.anything.f
              help: known here: `id`
            15:14-15:22 error BINDING_INCOMPLETE: `bindings` is used as `bindings.<kind>.<name>`
              at: steps.1.anything.g
            16:14-16:28 error BINDING_INCOMPLETE: `bindings.table` is a kind; a name is missing after it
              at: steps.1.anything.h
            17:14-17:22 error UNKNOWN_NAME: nothing here is called `entirely`
              at: steps.1.anything.i
              help: known here: `stock`, `inputs`, `context`, `bindings`, `run`
        "#]],
    );
}

#[test]
fn what_a_broken_step_saves_is_still_known() {
    check_step(
        "- loadItem: { itm: a }\n  saveAs: stock\n- anything: { a: \"${{ stock.state }}\" }",
        expect![[r#"
            6:5-6:13 error CONFIG_MISSING_KEY: the key `item` is missing
              at: steps.0.loadItem
              help: add `item:`
            6:17-6:20 error CONFIG_UNKNOWN_KEY: unknown key `itm`
              at: steps.0.loadItem.itm
              help: did you mean `item`?
        "#]],
    );
}

#[test]
fn the_value_of_a_wait_has_two_members() {
    check_step(
        "- waitFor: { kind: a, key: b }\n  saveAs: answer\n- if: ${{ answer.signaled && answer.data.ok }}\n  then: [ { noop: {} } ]\n- anything: { a: \"${{ answer.payload }}\" }",
        expect![[r#"
            10:32-10:39 error UNKNOWN_MEMBER: there is no member `payload` here
              at: steps.2.anything.a
              help: known here: `data`, `signaled`
        "#]],
    );
}
