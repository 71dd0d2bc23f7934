//! Sections, steps and their keys.

use expect_test::expect;

use crate::support::*;

/// Covers behaviour 9.
#[test]
fn unknown_root_keys_are_reported_at_the_key() {
    check(
        "name: x\nversion: 1\nstep: []\nsteps:\n  - noop: {}\n",
        expect![[r#"
        1:1-1:5 error UNKNOWN_KEY: unknown key `name`
          at: name
          help: known here: `inputs`, `triggers`, `steps`
        2:1-2:8 error UNKNOWN_KEY: unknown key `version`
          at: version
          help: known here: `inputs`, `triggers`, `steps`
        3:1-3:5 error UNKNOWN_KEY: unknown key `step`
          at: step
          help: did you mean `steps`?
    "#]],
    );
}

/// Covers behaviour 11.
#[test]
fn a_wrong_key_is_reported_at_the_key_and_a_missing_one_at_its_nearest_ancestor() {
    check(
        "inputs:\n  a: { type: text, requird: true }\n  b: { label: B }\n  c:\n  d: { type: txt }\n  e: { type: [text] }\nsteps:\n  - noop: {}\n",
        expect![[r#"
            2:20-2:27 error UNKNOWN_KEY: unknown key `requird`
              at: inputs.a.requird
              help: did you mean `required`?
            3:3-3:4 error MISSING_KEY: the key `type` is missing
              at: inputs.b
            4:4-4:4 error NOT_A_MAPPING: an input is a mapping; this is nothing
              at: inputs.c
              help: write `{}` for an empty mapping
            5:14-5:17 error UNKNOWN_INPUT_TYPE: there is no input type `txt`
              at: inputs.d.type
              help: did you mean `text`?
            6:14-6:20 error NOT_A_TEXT: `type` is a text; this is a list
              at: inputs.e.type
        "#]],
    );
}

/// Covers behaviour 15.
#[test]
fn no_triggers_are_fine_but_an_empty_section_is_not() {
    check("steps:\n  - noop: {}\n", expect![[""]]);
    check(
        "triggers: {}\nsteps:\n  - noop: {}\n",
        expect![[r#"
        1:1-1:9 error TRIGGERS_EMPTY: `triggers` is empty
          at: triggers
          help: leave the key out: a workflow without triggers is started by its key
    "#]],
    );
    check(
        "triggers:\nsteps:\n  - noop: {}\n",
        expect![[r#"
            1:9-1:9 error NOT_A_MAPPING: `triggers` is a mapping; this is nothing
              at: triggers
              help: write `{}` for an empty mapping
        "#]],
    );
}

/// Covers behaviour 16.
#[test]
fn a_workflow_has_at_least_one_step() {
    check(
        "inputs: {}\n",
        expect![[r#"
        1:1-1:1 error STEPS_MISSING: the key `steps` is missing: a workflow has at least one step
    "#]],
    );
    check(
        "steps: []\n",
        expect![[r#"
        1:8-1:10 error STEPS_EMPTY: `steps` has no steps
          at: steps
    "#]],
    );
    check(
        "steps:\n",
        expect![[r#"
            1:1-1:6 error NOT_A_LIST: `steps` is a list of steps; this is nothing
              at: steps
              help: write each step on a line of its own that begins with `- `
        "#]],
    );
    check(
        "steps: { noop: {} }\n",
        expect![[r#"
        1:8-1:20 error NOT_A_LIST: `steps` is a list of steps; this is a mapping
          at: steps
          help: write each step on a line of its own that begins with `- `
    "#]],
    );
}

/// Covers behaviour 17.
#[test]
fn a_branch_that_is_there_is_not_empty() {
    check_step(
        "- if: ${{ true }}\n  then: [ { noop: {} } ]\n  else: []\n- if: ${{ true }}\n  then: [ { noop: {} } ]\n- if: ${{ true }}\n  then:\n- if: ${{ true }}\n- switch: a\n  cases:\n    - when: a\n      do: []\n  default: []\n- forEach: []\n  as: x\n  do: []",
        expect![[r#"
            8:11-8:13 error STEPS_EMPTY: `else` has no steps
              at: steps.0.else
              help: a branch that does nothing is left out
            12:5-12:9 error NOT_A_LIST: `then` is a list of steps; this is nothing
              at: steps.2.then
              help: write each step on a line of its own that begins with `- `
            13:5-13:7 error MISSING_KEY: the key `then` is missing
              at: steps.3
            17:13-17:15 error STEPS_EMPTY: `do` has no steps
              at: steps.4.cases.0.do
              help: a branch that does nothing is left out
            18:14-18:16 error STEPS_EMPTY: `default` has no steps
              at: steps.4.default
              help: a branch that does nothing is left out
            21:9-21:11 error STEPS_EMPTY: `do` has no steps
              at: steps.5.do
              help: a branch that does nothing is left out
        "#]],
    );
}

/// Covers behaviour 18.
#[test]
fn a_step_does_exactly_one_thing() {
    check_step(
        "- loadItem: { item: a }\n  noop: {}\n- {}\n- saveAs: x\n- just text\n- if: ${{ true }}\n  noop: {}\n  then: [ { noop: {} } ]",
        expect![[r#"
            7:5-7:9 error STEP_SHAPE: a step does exactly one thing; this one names `loadItem` and `noop`
              at: steps.0
              related: 111 the step's first action
              help: begin a step of its own with `- `
            8:5-8:7 error STEP_SHAPE: the step says nothing to do: it has no action
              at: steps.1
              help: a step has exactly one action, such as `- sendEmail: { to: ... }`
            9:5-9:14 error STEP_SHAPE: the step says nothing to do: it has no action
              at: steps.2
              help: a step has exactly one action, such as `- sendEmail: { to: ... }`
            10:5-10:14 error NOT_A_MAPPING: a step is a mapping; this is a text
              at: steps.3
            12:5-12:9 error STEP_SHAPE: a step does exactly one thing; this one names `if` and `noop`
              at: steps.4
              related: 185 the step's first action
              help: begin a step of its own with `- `
        "#]],
    );
}

/// Covers behaviour 19.
#[test]
fn a_config_is_a_mapping_even_if_it_is_empty() {
    check_step("- noop: {}", expect![""]);
    check_step(
        "- noop:\n- noop: null\n- noop: []\n- noop: text\n- noop: \"${{ inputs.order }}\"",
        expect![[r#"
            6:9-6:9 error NOT_A_MAPPING: the config of `noop` is a mapping; this is nothing
              at: steps.0.noop
              help: write `{}` for an empty mapping
            7:11-7:15 error NOT_A_MAPPING: the config of `noop` is a mapping; this is null
              at: steps.1.noop
            8:11-8:13 error NOT_A_MAPPING: the config of `noop` is a mapping; this is a list
              at: steps.2.noop
            9:11-9:15 error NOT_A_MAPPING: the config of `noop` is a mapping; this is a text
              at: steps.3.noop
            10:11-10:32 error NOT_A_MAPPING: the config of `noop` is a mapping; this is a text
              at: steps.4.noop
        "#]],
    );
}

/// Covers behaviour 20.
#[test]
fn an_unknown_action_is_reported_at_its_key() {
    check_step(
        "- laodItem: { item: a }\n- frobnicate: {}\n- foreach: []\n  as: x\n  do: [ { noop: {} } ]",
        expect![[r#"
            6:5-6:13 error UNKNOWN_ACTION: there is no action `laodItem`
              at: steps.0.laodItem
              help: did you mean `loadItem`?
            7:5-7:15 error UNKNOWN_ACTION: there is no action `frobnicate`
              at: steps.1.frobnicate
              help: known here: `loadItem`, `priceOrder`, `chargeCard`, `reserveStock`, `sendEmail`, `notify`, `noop`, `anything`, `if`, `switch`, `forEach`, `setVariable`, …
            8:5-8:12 error UNKNOWN_ACTION: there is no action `foreach`
              at: steps.2.foreach
              help: did you mean `forEach`?
        "#]],
    );
}

/// Covers behaviour 21.
#[test]
fn keys_beside_a_control_step_are_never_ignored() {
    check_step(
        "- if: ${{ true }}\n  then: [ { noop: {} } ]\n  esle: [ { noop: {} } ]\n  timeout: 3s\n- forEach: []\n  as: x\n  do: [ { noop: {} } ]\n  parallel: 3\n- noop: {}\n  saveas: x\n  then: []",
        expect![[r#"
            8:5-8:9 error UNKNOWN_KEY: unknown key `esle` beside `if`
              at: steps.0.esle
              help: did you mean `else`?
            9:5-9:12 error UNKNOWN_KEY: `timeout` does not belong to `if`
              at: steps.0.timeout
            13:5-13:13 error UNKNOWN_KEY: unknown key `parallel` beside `forEach`
              at: steps.1.parallel
            15:5-15:11 error UNKNOWN_KEY: unknown key `saveas` beside `noop`
              at: steps.2.saveas
              help: did you mean `saveAs`?
            16:5-16:9 error UNKNOWN_KEY: `then` does not belong to `noop`
              at: steps.2.then
        "#]],
    );
}

/// Covers behaviour 22.
#[test]
fn a_switch_has_cases_and_each_case_a_when_and_a_do() {
    check_step(
        "- switch: a\n- switch: a\n  cases: []\n- switch: a\n  cases: {}\n- switch: a\n  cases:\n    - do: [ { noop: {} } ]\n    - when: b\n    - { when: c, do: [ { noop: {} } ], then: [] }\n    - text",
        expect![[r#"
            6:5-6:11 error MISSING_KEY: the key `cases` is missing
              at: steps.0
            8:12-8:14 error CASES_EMPTY: `cases` has no cases
              at: steps.1.cases
            10:12-10:14 error NOT_A_LIST: `cases` is a list; this is a mapping
              at: steps.2.cases
              help: write each case as `- when: ...` with its `do:` below it
            13:9-13:29 error MISSING_KEY: the key `when` is missing
              at: steps.3.cases.0
            14:9-14:16 error MISSING_KEY: the key `do` is missing
              at: steps.3.cases.1
            15:42-15:46 error UNKNOWN_KEY: unknown key `then`
              at: steps.3.cases.2.then
              help: did you mean `when`?
            16:9-16:13 error NOT_A_MAPPING: a case is a mapping; this is a text
              at: steps.3.cases.3
        "#]],
    );
}

/// Covers behaviour 27.
#[test]
fn input_names_are_names() {
    check(
        "inputs:\n  1abc: { type: text }\n  a-b: { type: text }\n  _ok9: { type: text }\n  größe: { type: text }\nsteps:\n  - noop: {}\n",
        expect![[r#"
            2:3-2:7 error NAME_INVALID: `1abc` is no name for an input
              at: inputs.1abc
              help: a name has letters, digits and `_`, and does not start with a digit
            3:3-3:6 error NAME_INVALID: `a-b` is no name for an input
              at: inputs.a-b
              help: a name has letters, digits and `_`, and does not start with a digit
            5:3-5:8 error NAME_INVALID: `größe` is no name for an input
              at: inputs.größe
              help: a name has letters, digits and `_`, and does not start with a digit
        "#]],
    );
}

#[test]
fn inputs_have_a_type_and_a_default_that_fits_it() {
    check(
        "inputs:\n  a: { type: text, default: 5 }\n  b: { type: integer, default: 1.5 }\n  c: { type: time, default: \"yesterday\" }\n  d: { type: text, required: true, default: x }\n  e: { type: bool, required: \"true\" }\n  f: { type: text, default: \"${{ now() }}\" }\n  g: { type: list, default: [1, a] }\n  h: { type: time, default: \"2026-11-29T16:00:00+01:00\", label: 7 }\nsteps:\n  - noop: {}\n",
        expect![[r#"
            2:29-2:30 error WRONG_TYPE: the input wants a text; this is a number
              at: inputs.a.default
              help: write "5" in quotes if it is a text
            3:32-3:35 error WRONG_TYPE: the input wants a whole number; this is a number
              at: inputs.b.default
            4:29-4:40 error WRONG_TYPE: the input wants a time such as "2026-11-29T16:00:00Z"; this is a text
              at: inputs.c.default
            5:36-5:43 error REQUIRED_AND_DEFAULT: an input that is required has no use for a default
              at: inputs.d
              help: remove `required` or `default`
            6:30-6:36 error NOT_A_BOOL: `required` is `true` or `false`; this is a text
              at: inputs.e.required
            7:29-7:43 error EXPRESSION_NOT_ALLOWED: a default cannot be computed
              at: inputs.f.default
              help: leave the default out and use `inputs.name ?? ...` where it is wanted
            9:65-9:66 error NOT_A_TEXT: `label` is a text; this is a number
              at: inputs.h.label
              help: write "7" in quotes if it is a text
        "#]],
    );
}

/// Covers behaviour 28.
#[test]
fn triggers_bind_declared_inputs_and_every_required_one() {
    check(
        "inputs:\n  item: { type: text, required: true }\n  count: { type: integer }\ntriggers:\n  itemChanged:\n    with: { itme: \"${{ trigger.itemId }}\", count: \"${{ trigger.itemId }}\" }\nsteps:\n  - noop: {}\n",
        expect![[r#"
            6:5-6:9 error INPUT_NOT_BOUND: the trigger does not bind the required input `item`
              at: triggers.itemChanged
              help: add `item:` to the trigger's `with`
            6:13-6:17 error UNKNOWN_INPUT: there is no input `itme`
              at: triggers.itemChanged.with.itme
              help: did you mean `item`?
            6:51-6:74 error WRONG_TYPE: the input `count` wants a whole number; this is a text
              at: triggers.itemChanged.with.count
        "#]],
    );
    check(
        "inputs:\n  item: { type: text, required: true }\ntriggers:\n  itemChanged: {}\n  itemGone: { with: {} }\nsteps:\n  - noop: {}\n",
        expect![[r#"
            4:3-4:14 error INPUT_NOT_BOUND: the trigger does not bind the required input `item`
              at: triggers.itemChanged
              help: add `item:` to the trigger's `with`
            5:3-5:11 error UNKNOWN_TRIGGER: there is no trigger `itemGone`
              at: triggers.itemGone
              help: known here: `itemChanged`, `schedule`
            5:15-5:19 error INPUT_NOT_BOUND: the trigger does not bind the required input `item`
              at: triggers.itemGone
              help: add `item:` to the trigger's `with`
        "#]],
    );
}

/// Covers behaviour 29.
#[test]
fn a_trigger_sees_its_event_and_nothing_else() {
    check(
        "inputs:\n  item: { type: text, required: true }\n  count: { type: number }\n  at: { type: time }\n  order: { type: object }\n  note: { type: text }\ntriggers:\n  itemChanged:\n    with:\n      item: \"${{ inputs.item }}\"\n      order: \"${{ context.order }}\"\n      count: \"${{ trigger.cuont }}\"\n      at: \"${{ now() }}\"\n      note: \"${{ run.id + bindings.a.b }}\"\nsteps:\n  - anything: { a: \"${{ trigger.itemId }}\" }\n",
        expect![[r#"
            10:18-10:24 error UNKNOWN_NAME: `inputs` does not exist here
              at: triggers.itemChanged.with.item
              help: a trigger's `with` sees `trigger.*` and `now()` only
            11:19-11:26 error UNKNOWN_NAME: `context` does not exist here
              at: triggers.itemChanged.with.order
              help: a trigger's `with` sees `trigger.*` and `now()` only
            12:27-12:32 error UNKNOWN_MEMBER: there is no member `cuont` here
              at: triggers.itemChanged.with.count
              help: did you mean `count`?
            14:18-14:21 error UNKNOWN_NAME: `run` does not exist here
              at: triggers.itemChanged.with.note
              help: a trigger's `with` sees `trigger.*` and `now()` only
            14:27-14:35 error UNKNOWN_NAME: `bindings` does not exist here
              at: triggers.itemChanged.with.note
              help: a trigger's `with` sees `trigger.*` and `now()` only
            16:25-16:32 error UNKNOWN_NAME: nothing here is called `trigger`
              at: steps.0.anything.a
              help: bind what you need to an input in the trigger's `with`, and use `inputs`
        "#]],
    );
}

#[test]
fn set_variable_has_a_name_and_a_value() {
    check_step(
        "- setVariable: { name: a }\n- setVariable: { value: 1, nmae: b }\n- setVariable: { name: c, value: 1 }\n  saveAs: d",
        expect![[r#"
            6:5-6:16 error MISSING_KEY: the key `value` is missing
              at: steps.0.setVariable
            7:5-7:16 error MISSING_KEY: the key `name` is missing
              at: steps.1.setVariable
            7:30-7:34 error UNKNOWN_KEY: unknown key `nmae`
              at: steps.1.setVariable.nmae
              help: did you mean `name`?
            9:5-9:11 error UNKNOWN_KEY: `saveAs` does not belong to `setVariable`
              at: steps.2.saveAs
              help: `setVariable` binds its own `name`
        "#]],
    );
}

#[test]
fn a_delay_is_for_a_duration_or_until_a_time() {
    check_step(
        "- delay: {}\n- delay: { for: 3s, until: \"2026-11-29T16:00:00Z\" }\n- delay: { for: 3 }\n- delay: { for: \"${{ 'x' }}\" }\n- delay: { until: tomorrow }\n- delay: { for: 4000d }",
        expect![[r#"
            6:5-6:10 error DELAY_SHAPE: `delay` has either `for` or `until`
              at: steps.0.delay
              help: write `delay: { for: 2h }` or `delay: { until: "2026-11-29T16:00:00Z" }`
            7:5-7:10 error DELAY_SHAPE: `delay` has either `for` or `until`
              at: steps.1.delay
              help: write `delay: { for: 2h }` or `delay: { until: "2026-11-29T16:00:00Z" }`
            8:19-8:20 error DURATION: `3` is not a duration
              at: steps.2.delay.for
              help: write it like `500ms`, `30s`, `5m`, `2h` or `7d`, or several from the longest to the shortest unit, like `2h30m`
            9:19-9:31 error EXPRESSION_NOT_ALLOWED: a duration cannot be computed
              at: steps.3.delay.for
              help: write it like `500ms`, `30s`, `5m`, `2h` or `7d`
            10:21-10:29 error NOT_A_TIME: `tomorrow` is not a time
              at: steps.4.delay.until
              help: write it like `2026-11-29T16:06:45Z`, with `Z` or an offset
            11:19-11:24 error DURATION: `4000d` is longer than ten years
              at: steps.5.delay.for
        "#]],
    );
}

#[test]
fn a_wait_has_a_kind_and_a_key_and_its_timeout_inside() {
    check_step(
        "- waitFor: { kind: \"\", key: 5 }\n- waitFor: { kind: a, key: b, timeout: 0s }\n- waitFor: { kind: a, key: b }\n  timeout: 3s",
        expect![[r#"
            6:22-6:24 error BLANK: `kind` may not be blank
              at: steps.0.waitFor.kind
            6:31-6:32 error WRONG_TYPE: `key` is a text; this is a number
              at: steps.0.waitFor.key
              help: write "5" in quotes if it is a text
            7:42-7:44 error DURATION: a timeout of nothing would always pass
              at: steps.1.waitFor.timeout
            9:5-9:12 error UNKNOWN_KEY: `timeout` does not belong to `waitFor`
              at: steps.2.timeout
              help: write it inside: `waitFor: { ..., timeout: 2d }`
        "#]],
    );
}

#[test]
fn the_end_of_a_run_has_a_message_that_is_a_text() {
    check_step(
        "- succeed: {}\n  saveAs: x",
        expect![[r#"
        6:5-6:12 error MISSING_KEY: the key `message` is missing
          at: steps.0.succeed
        7:5-7:11 error UNKNOWN_KEY: `saveAs` does not belong to `succeed`
          at: steps.0.saveAs
          help: the run ends here: nothing could read it
    "#]],
    );
    check_step(
        "- fail: { message: [a], code: \"no code\" }\n- fail: { message: 5 }",
        expect![[r#"
            6:22-6:25 error WRONG_TYPE: a message is a text; this is a list
              at: steps.0.fail.message
            6:33-6:42 error CODE_INVALID: a code has letters, digits, `_`, `-` and `.`, and at most 100 of them
              at: steps.0.fail.code
              help: write it like `OUT_OF_STOCK`
            7:22-7:23 error WRONG_TYPE: a message is a text; this is a number
              at: steps.1.fail.message
              help: write "5" in quotes if it is a text
        "#]],
    );
}

#[test]
fn every_unit_of_a_duration_and_ten_years_are_fine() {
    check_step(
        "- delay: { for: 500ms }\n- delay: { for: 0s }\n- delay: { until: \"2020-01-01T00:00:00Z\" }\n- waitFor: { kind: a, key: b, timeout: 3650d }\n- noop: {}\n  timeout: 1m30s",
        expect![[""]],
    );
}

/// Covers behaviour 47.
#[test]
fn a_message_has_at_most_a_thousand_characters() {
    let fits = format!("- fail: {{ message: \"{}\" }}", "ü".repeat(1_000));
    check_step(&fits, expect![[""]]);
    let long = format!("- fail: {{ message: \"{}\" }}", "ü".repeat(1_001));
    check_step(
        &long,
        expect![[r#"
        6:22-6:1025 error MESSAGE_TOO_LONG: a message has at most 1000 characters; this has 1001
          at: steps.0.fail.message
    "#]],
    );
}

#[test]
fn steps_that_run_other_workflows_are_shaped_like_this() {
    check_step(
        "- runWorkflow: { workflow: restock }\n  saveAs: one\n- runWorkflows: { workflow: restock, each: [1, 2], as: number, inputs: { n: \"${{ number }}\" }, parallel: 2 }\n  saveAs: all\n- setVariable: { name: both, value: [ \"${{ one.anything }}\", \"${{ all[0] }}\" ] }",
        expect![[""]],
    );
    check_step(
        "- runWorkflow: { inputs: [], parallel: 3 }\n  timeout: 3s\n- runWorkflows: { workflow: \" \", each: 7, as: run, inputs: \"x\", parallel: 0 }\n- runWorkflows: { workflow: restock, each: [], parallel: \"${{ 3 }}\" }\n- noop: { a: \"${{ item }}\" }",
        expect![[r#"
            6:5-6:16 error MISSING_KEY: the key `workflow` is missing
              at: steps.0.runWorkflow
            6:28-6:30 error WRONG_TYPE: `inputs` is a mapping; this is a list
              at: steps.0.runWorkflow.inputs
            6:32-6:40 error UNKNOWN_KEY: unknown key `parallel`
              at: steps.0.runWorkflow.parallel
              help: known here: `workflow`, `inputs`
            7:5-7:12 error UNKNOWN_KEY: `timeout` does not belong to `runWorkflow`
              at: steps.0.timeout
            8:31-8:34 error BLANK: `workflow` may not be blank
              at: steps.1.runWorkflows.workflow
            8:42-8:43 error WRONG_TYPE: `each` is a list; this is a number
              at: steps.1.runWorkflows.each
            8:49-8:52 error NAME_RESERVED: `run` is reserved: it has a meaning of its own
              at: steps.1.runWorkflows.as
            8:62-8:65 error WRONG_TYPE: `inputs` is a mapping; this is a text
              at: steps.1.runWorkflows.inputs
            8:77-8:78 error NUMBER_RANGE: `parallel` is a whole number from 1 to 65536, written out
              at: steps.1.runWorkflows.parallel
              help: leave it out to run all of them at once
            9:5-9:17 error NAME_TAKEN: the current item would be called `item`, and that name is taken
              at: steps.2.runWorkflows
              help: give it another one: `runWorkflows: { ..., as: one }`
            9:60-9:70 error NUMBER_RANGE: `parallel` is a whole number from 1 to 65536, written out
              at: steps.2.runWorkflows.parallel
              help: leave it out to run all of them at once
            10:13-10:14 error CONFIG_UNKNOWN_KEY: unknown key `a`
              at: steps.3.noop.a
            10:21-10:25 error UNKNOWN_NAME: nothing here is called `item`
              at: steps.3.noop.a
              help: did you mean `inputs.item`?
        "#]],
    );
}

#[test]
fn steps_behind_the_end_of_the_run_are_never_reached() {
    check_step(
        "- if: ${{ inputs.item == 'a' }}\n  then:\n    - succeed: { message: a }\n    - noop: {}\n    - noop: {}\n  else:\n    - fail: { message: b }\n- noop: {}",
        expect![[r#"
            9:9-9:17 warning UNREACHABLE: this step is never reached: the run has ended before it
              at: steps.0.then.1
        "#]],
    );
    check_step(
        "- switch: ${{ inputs.item }}\n  cases:\n    - { when: a, do: [ { fail: { message: a } } ] }\n  default: [ { succeed: { message: b } } ]\n- noop: {}",
        expect![[r#"
            10:5-10:13 warning UNREACHABLE: this step is never reached: the run has ended before it
              at: steps.1
        "#]],
    );
    check_step(
        "- if: ${{ inputs.item == 'a' }}\n  then:\n    - succeed: { message: a }\n- noop: {}",
        expect![[""]],
    );
}

#[test]
fn a_warning_alone_does_not_stop_a_plan() {
    assert_eq!(plan_of("- succeed: { message: done }\n- noop: {}").steps.len(), 2);
}
