//! Strict YAML.

use expect_test::expect;

use crate::support::*;

/// Covers behaviour 1.
/// Covers behaviour 30.
#[test]
fn a_key_that_is_there_twice_is_reported_at_the_second_place_with_the_first() {
    check(
        "triggers:\n  itemChanged: {}\n  itemChanged: {}\nsteps:\n  - noop: {}\n    saveAs: a\n    saveAs: b\n",
        expect![[r#"
            3:3-3:14 error YAML_DUPLICATE_KEY: the key `itemChanged` is there twice
              related: 12 first defined here
              help: remove one of the two
            7:5-7:11 error YAML_DUPLICATE_KEY: the key `saveAs` is there twice
              related: 70 first defined here
              help: remove one of the two
        "#]],
    );
}

/// Covers behaviour 2.
/// Covers field fault 109.
#[test]
fn anchors_aliases_and_merge_keys_are_reported_each_at_its_own_place() {
    check(
        "steps:\n  - anything: &base\n      a: 1\n  - anything: *base\n  - anything: { <<: *base, b: &c 2 }\n  - anything: { d: *gone }\n",
        expect![[r#"
            2:15-2:20 error YAML_ANCHOR: anchors are not allowed
              help: write the value out in each place where it is wanted
            4:15-4:20 error YAML_ALIAS: aliases are not allowed
              help: write the value out in each place where it is wanted
            5:17-5:19 error YAML_MERGE: merge keys are not allowed
              help: write the keys out in each place where they are wanted
            5:21-5:26 error YAML_ALIAS: aliases are not allowed
              help: write the value out in each place where it is wanted
            5:31-5:33 error YAML_ANCHOR: anchors are not allowed
              help: write the value out in each place where it is wanted
            6:20-6:25 error YAML_ALIAS: aliases are not allowed
              help: write the value out in each place where it is wanted
        "#]],
    );
    check_step("- anything: { '<<': x, text: \"&a *b\" }", expect![[""]]);
}

/// Covers behaviour 3.
#[test]
fn tags_are_reported_at_the_tag_and_never_applied() {
    check_step(
        "- anything: { a: !!str 5, b: !custom x }\n- if: !x\n  then: !list\n    - noop: {}\n- anything: !map\n    a: 1",
        expect![[r#"
            6:20-6:25 error YAML_TAG: tags are not allowed: `!!str`
              help: `!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into "${{ }}"
            6:32-6:39 error YAML_TAG: tags are not allowed: `!custom`
              help: `!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into "${{ }}"
            7:9-7:11 error YAML_TAG: tags are not allowed: `!x`
              help: `!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into "${{ }}"
            8:11-8:16 error YAML_TAG: tags are not allowed: `!list`
              help: `!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into "${{ }}"
            10:15-10:19 error YAML_TAG: tags are not allowed: `!map`
              help: `!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into "${{ }}"
        "#]],
    );
}

/// Covers behaviour 4.
#[test]
fn a_root_that_is_no_mapping_is_the_only_thing_reported() {
    for (source, expected) in [
        (
            "",
            expect![[r#"
            1:1-1:1 error YAML_ROOT: a workflow is a mapping; this file is empty
              help: begin with `steps:` and list the steps below it
        "#]],
        ),
        (
            "# nothing\n",
            expect![[r#"
            1:1-1:1 error YAML_ROOT: a workflow is a mapping; this file is empty
              help: begin with `steps:` and list the steps below it
        "#]],
        ),
        (
            "just text\n",
            expect![[r#"
            1:1-1:10 error YAML_ROOT: a workflow is a mapping; this file is a text
              help: begin with `steps:` and list the steps below it
        "#]],
        ),
        (
            "~\n",
            expect![[r#"
            1:1-1:2 error YAML_ROOT: a workflow is a mapping; this file is null
              help: begin with `steps:` and list the steps below it
        "#]],
        ),
        (
            "- a: 1\n  a: 2\n- &x yes\n",
            expect![[r#"
            1:1-3:9 error YAML_ROOT: a workflow is a mapping; this file is a list
              help: begin with `steps:` and list the steps below it
        "#]],
        ),
        (
            "---\n...\n",
            expect![[r#"
                1:4-1:4 error YAML_ROOT: a workflow is a mapping; this file is nothing
                  help: begin with `steps:` and list the steps below it
            "#]],
        ),
    ] {
        check(source, expected);
    }
}

/// Covers behaviour 5.
#[test]
fn a_second_document_is_refused() {
    check(
        "steps:\n  - noop: {}\n---\nsteps:\n  - noop: {}\n",
        expect![[r#"
        3:1-3:4 error YAML_DOCUMENTS: a file holds one workflow; this begins a second YAML document
          help: put each workflow into a file of its own
    "#]],
    );
    check("---\nsteps:\n  - noop: {}\n...\n", expect![[""]]);
}

/// Covers behaviour 6.
/// Covers behaviour 8.
/// Covers field fault 107.
/// Covers field fault 108.
#[test]
fn plain_scalars_that_are_read_in_two_ways_ask_for_quotes() {
    check_step(
        "- anything:\n    a: yes\n    b: [on, 010, 1_000, 12:30:45]\n    c: ~\n    d: .inf\n    e: -.NaN\n    f: 1e999\n    g: 18446744073709551616\n    h: TRUE",
        expect![[r#"
            7:10-7:13 error YAML_AMBIGUOUS: `yes` is read in two ways: true, or the text
              help: write "yes" in quotes if it is a text; write `true` if it is a bool
            8:11-8:13 error YAML_AMBIGUOUS: `on` is read in two ways: true, or the text
              help: write "on" in quotes if it is a text; write `true` if it is a bool
            8:15-8:18 error YAML_AMBIGUOUS: `010` is read in two ways: a number that may be octal, or the text
              help: write "010" in quotes if it is a text; write it like 10 or 0.5 if it is a number
            8:20-8:25 error YAML_AMBIGUOUS: `1_000` is read in two ways: a number with `_` between its digits, or the text
              help: write "1_000" in quotes if it is a text; write it like 10 or 0.5 if it is a number
            8:27-8:35 error YAML_AMBIGUOUS: `12:30:45` is read in two ways: a number to the base of 60, or a time of day, or the text
              help: write "12:30:45" in quotes if it is a text; write it like 10 or 0.5 if it is a number
            9:10-9:11 error YAML_AMBIGUOUS: `~` is read in two ways: null, or the text
              help: write "~" in quotes if it is a text; write `null` if it is null
            10:10-10:14 error YAML_AMBIGUOUS: `.inf` is read in two ways: a number that is not finite, or the text
              help: write ".inf" in quotes if it is a text; there are no such numbers here
            11:10-11:15 error YAML_AMBIGUOUS: `-.NaN` is read in two ways: a number that is not finite, or the text
              help: write "-.NaN" in quotes if it is a text; there are no such numbers here
            12:10-12:15 error YAML_NUMBER: `1e999` is too large for a number
              help: write "1e999" in quotes if it is a text
            13:10-13:30 error YAML_NUMBER: `18446744073709551616` does not fit into 64 bits
              help: write "18446744073709551616" in quotes if it is a text
            14:10-14:14 error YAML_AMBIGUOUS: `TRUE` is read in two ways: true, or the text
              help: write "TRUE" in quotes if it is a text; write `true` if it is a bool
        "#]],
    );
}

/// Covers behaviour 6.
/// Covers field fault 107.
#[test]
fn words_like_yes_and_on_are_texts_in_quotes_and_as_keys() {
    let plan = plan_of("- anything: { yes: \"yes\", on: 'off', y: \"010\", n: \"~\" }");
    let step = serde_json::to_value(&plan.steps[0]).unwrap();
    expect![[r#"{"literal":{"n":"~","on":"off","y":"010","yes":"yes"}}"#]]
        .assert_eq(&step["action"]["config"].to_string());
}

/// Covers behaviour 7.
#[test]
fn keys_that_are_no_texts_are_refused() {
    check_step(
        "- anything: { 1: x, null: x, true: x, 010: x, ~: x }\n- anything:\n    ? [a, b]\n    : 1\n    ? { c: d }\n    : 2\n    : 3\n    \"1\": fine",
        expect![[r#"
            6:17-6:18 error YAML_KEY: a key is a text; this is `1`
              help: put the key in quotes if it is a text
            6:23-6:27 error YAML_KEY: a key is a text; this is `null`
              help: put the key in quotes if it is a text
            6:32-6:36 error YAML_KEY: a key is a text; this is `true`
              help: put the key in quotes if it is a text
            6:41-6:44 error YAML_KEY: a key is a text; this is `010`
              help: put the key in quotes if it is a text
            6:49-6:50 error YAML_KEY: a key is a text; this is `~`
              help: put the key in quotes if it is a text
            8:9-8:10 error YAML_KEY: a key is a text; this is a list or mapping
              help: put the key in quotes if it is a text
            10:9-10:10 error YAML_KEY: a key is a text; this is a list or mapping
              help: put the key in quotes if it is a text
            12:7-12:7 error YAML_KEY: a key is a text; this is nothing
              help: put the key in quotes if it is a text
        "#]],
    );
}

/// Covers behaviour 10.
#[test]
fn directives_are_refused_whatever_a_parser_would_warn_about() {
    check(
        "%YAML 1.1\n---\nsteps:\n  - noop: {}\n",
        expect![[r#"
        1:1-1:2 error YAML_DIRECTIVE: YAML directives are not allowed
          help: remove the line: workflows are always YAML 1.2
    "#]],
    );
    check(
        "%FOO bar\n---\nsteps:\n  - noop: {}\n",
        expect![[r#"
        1:1-1:2 error YAML_DIRECTIVE: YAML directives are not allowed
          help: remove the line: workflows are always YAML 1.2
    "#]],
    );
}

#[test]
fn a_key_that_no_payload_may_have_is_a_finding() {
    check(
        "name: x\nsteps:\n  - mail: { body: { $serde_json::private::RawValue: \"[1]\" } }\n",
        expect![[r#"
            3:21-3:51 error YAML_RESERVED_KEY: no value can be kept under the key `$serde_json::private::RawValue`
              help: name it otherwise: readers of JSON take such an object for something else
        "#]],
    );
}

/// Covers behaviour 12.
#[test]
fn findings_of_the_yaml_layer_come_all_at_once_and_alone() {
    check(
        "name: x\nsteps:\n  - unknown: { a: yes, a: no }\n  - if: &a b\n    c: !d e\n",
        expect![[r#"
            3:19-3:22 error YAML_AMBIGUOUS: `yes` is read in two ways: true, or the text
              help: write "yes" in quotes if it is a text; write `true` if it is a bool
            3:24-3:25 error YAML_DUPLICATE_KEY: the key `a` is there twice
              related: 30 first defined here
              help: remove one of the two
            3:27-3:29 error YAML_AMBIGUOUS: `no` is read in two ways: false, or the text
              help: write "no" in quotes if it is a text; write `false` if it is a bool
            4:9-4:11 error YAML_ANCHOR: anchors are not allowed
              help: write the value out in each place where it is wanted
            5:8-5:10 error YAML_TAG: tags are not allowed: `!d`
              help: `!` at the start of a plain value is a tag in YAML; put the value in quotes, and a condition into "${{ }}"
        "#]],
    );
}

#[test]
fn a_syntax_error_ends_the_pass_and_keeps_what_came_before() {
    check(
        "steps:\n  - noop: { a: yes }\n  - noop: [\n",
        expect![[r#"
        2:16-2:19 error YAML_AMBIGUOUS: `yes` is read in two ways: true, or the text
          help: write "yes" in quotes if it is a text; write `true` if it is a bool
        3:11-3:12 error YAML_SYNTAX: this is not YAML: unclosed bracket '['
    "#]],
    );
    check(
        "steps:\n\t- noop: {}\n",
        expect![[r#"
        2:2-2:3 error YAML_SYNTAX: this is not YAML: tabs disallowed within this context (block indentation)
          help: indent with spaces, not with tabs
    "#]],
    );
    check(
        "steps:\n  - noop: {}\n   - noop: {}\n",
        expect![[r#"
        3:4-3:5 error YAML_SYNTAX: this is not YAML: while parsing a block collection, did not find expected '-' indicator
    "#]],
    );
    check(
        "steps:\n  - anything: { a: \"\\q\" }\n",
        expect![[r#"
        2:20-2:21 error YAML_SYNTAX: this is not YAML: while parsing a quoted scalar, found unknown escape character
    "#]],
    );
}

#[test]
fn expressions_that_yaml_cannot_hold_without_quotes_get_that_as_help() {
    check_step(
        "- anything: {k: ${{ a }}}",
        expect![[r#"
        6:20-6:21 error YAML_SYNTAX: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'
          help: put the value in quotes: "${{ ... }}"
    "#]],
    );
    check_step(
        "- anything: { k: [${{ inputs.item }}] }",
        expect![[r#"
        6:22-6:23 error YAML_SYNTAX: this is not YAML: while parsing a flow sequence, expected ',' or ']'
          help: put the value in quotes: "${{ ... }}"
    "#]],
    );
    check_step(
        "- setVariable:\n    name: a\n    value: ${{ inputs.item # comment }}",
        expect![[r#"
            8:14-8:29 error EXPRESSION_UNCLOSED: `${{` is never closed by `}}`
              at: steps.0.setVariable.value
              help: put the whole value in double quotes: YAML cuts a plain value at ` #` and refuses `: ` in it
        "#]],
    );
    check_step(
        "- setVariable:\n    name: a\n    value: ${{ inputs['a: b'] }}",
        expect![[r#"
        8:27-8:28 error YAML_SYNTAX: this is not YAML: mapping values are not allowed in this context
          help: put the value in quotes: "${{ ... }}"
    "#]],
    );
}

/// Covers field fault 103.
/// Covers field fault 106.
#[test]
fn numbers_keep_their_digits_and_their_kind() {
    let plan = plan_of(
        "- anything: { a: 20200219, b: 9007199254740993, c: 1.0, d: 1e3, e: -0.5, f: 18446744073709551615 }",
    );
    let step = serde_json::to_value(&plan.steps[0]).unwrap();
    expect![[r#"{"literal":{"a":20200219,"b":9007199254740993,"c":1.0,"d":1000.0,"e":-0.5,"f":18446744073709551615}}"#]].assert_eq(&step["action"]["config"].to_string());
}

#[test]
fn a_byte_order_mark_and_every_line_break_are_fine() {
    check(
        "\u{feff}steps:\r\n  - noop: {}\r\n  - nope: {}\r\n",
        expect![[r#"
        3:5-3:9 error UNKNOWN_ACTION: there is no action `nope`
          at: steps.1.nope
          help: did you mean `noop`?
    "#]],
    );
}

#[test]
fn columns_count_characters() {
    check_step(
        "- anything: { größe: \"ü\", \"日本\": yes }",
        expect![[r#"
        6:35-6:38 error YAML_AMBIGUOUS: `yes` is read in two ways: true, or the text
          help: write "yes" in quotes if it is a text; write `true` if it is a bool
    "#]],
    );
}
