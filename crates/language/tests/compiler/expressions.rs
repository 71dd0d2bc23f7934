//! Expressions: grammar, limits, places, types.

use expect_test::expect;
use surefoot_kernel_core::plan::StepKind;

use crate::support::*;

/// The condition of an `if`, as a plan stores it.
fn condition(expression: &str) -> String {
    let quoted = expression.replace('"', "\\\"");
    let plan = plan_of(&format!("- if: \"${{{{ {quoted} }}}}\"\n  then: [ {{ noop: {{}} }} ]"));
    let StepKind::If { condition, .. } = &plan.steps[0].kind else { panic!() };
    serde_json::to_string(condition).unwrap()
}

#[track_caller]
fn same(one: &str, two: &str) {
    assert_eq!(condition(one), condition(two));
}

/// What is said about each expression; the first character of it is in column 1.
#[track_caller]
fn check_expressions(expressions: &[&str], expected: expect_test::Expect) {
    let manifest = manifest();
    let said = expressions.iter().map(|expression| {
        let source = workflow(&format!("- anything:\n    a: \"${{{{ {expression} }}}}\""));
        let findings = compiled(&manifest, &source).findings;
        let lines = findings.iter().map(|found| {
            assert_eq!((found.line, found.path.as_str()), (7, "steps.0.anything.a"));
            let column = |column: usize| i64::try_from(column).unwrap() - 14;
            let place = format!("{}-{}", column(found.column), column(found.end_column));
            let help = found.help.as_ref().map(|help| format!("\n    help: {help}"));
            format!("  {place} {}: {}{}\n", found.code, found.message, help.unwrap_or_default())
        });
        let lines: String = lines.collect();
        let shown: String = expression.chars().take(60).collect();
        let shown = shown.trim_end();
        format!("{shown}\n{}", if lines.is_empty() { "  fine\n" } else { &lines })
    });
    expected.assert_eq(&said.collect::<String>());
}

#[test]
fn operators_bind_as_documented() {
    same("context.a ?? context.b || context.c", "context.a ?? (context.b || context.c)");
    same("context.a || context.b && context.c", "context.a || (context.b && context.c)");
    same("context.a && context.b == context.c", "context.a && (context.b == context.c)");
    same("context.a == context.b < context.c", "context.a == (context.b < context.c)");
    same("context.a < context.b + 1", "context.a < (context.b + 1)");
    same("context.a + 2 * context.b == 1", "(context.a + (2 * context.b)) == 1");
    same("1 - 2 - 3 == 0", "((1 - 2) - 3) == 0");
    same("!context.a == context.b", "(!context.a) == context.b");
    same("-context.a.b[0] == 1", "(-(context.a.b[0])) == 1");
    same("!!context.a", "!(!(context.a))");
}

#[test]
fn literals_keep_their_value_and_kind() {
    for (source, stored) in [
        ("12", "12"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.50", "1.5"),
        ("-0.5", "-0.5"),
        ("'it''s'", "\"it's\""),
        ("'}} ${{ x'", "\"}} ${{ x\""),
        ("null", "null"),
    ] {
        let expected =
            format!("{{\"binary\":[\"equal\",{{\"name\":\"context\"}},{{\"literal\":{stored}}}]}}");
        assert_eq!(condition(&format!("context == {source}")), expected, "{source}");
    }
}

/// Covers behaviour 33.
#[test]
fn members_with_spaces_are_written_in_brackets() {
    same("inputs.order['Due date'] == 1", "inputs['order']['Due date'] == 1");
}

/// Covers behaviour 34.
#[test]
fn an_index_is_digits_without_leading_zeros_or_sign() {
    assert!(condition("inputs.order.rows[1] == 1").contains("\"index\""));
    check_expressions(
        &[
            "inputs.order.rows[01]",
            "inputs.order.rows[-1]",
            "inputs.order.rows[1.5]",
            "inputs.order.rows[inputs.count]",
            "inputs.order.rows[99999999999999999999]",
        ],
        expect![[r#"
            inputs.order.rows[01]
              19-21 EXPRESSION_SYNTAX: a number has no leading zeros
            inputs.order.rows[-1]
              19-20 EXPRESSION_SYNTAX: an index is written with digits, a member as 'text'
                help: to look at each item of a list, use `forEach`; the first is `[0]`
            inputs.order.rows[1.5]
              19-22 EXPRESSION_SYNTAX: an index is written with digits, a member as 'text'
                help: to look at each item of a list, use `forEach`; the first is `[0]`
            inputs.order.rows[inputs.count]
              19-25 EXPRESSION_SYNTAX: an index is written with digits, a member as 'text'
                help: to look at each item of a list, use `forEach`; the first is `[0]`
            inputs.order.rows[99999999999999999999]
              19-39 EXPRESSION_SYNTAX: this index is too large
        "#]],
    );
}

/// Covers behaviour 35.
#[test]
fn only_own_members_exist() {
    check_expressions(
        &["inputs.constructor", "inputs.__proto__", "inputs.item.length"],
        expect![[r#"
            inputs.constructor
              8-19 UNKNOWN_MEMBER: there is no member `constructor` here
                help: known here: `count`, `item`, `order`
            inputs.__proto__
              8-17 UNKNOWN_MEMBER: there is no member `__proto__` here
                help: known here: `count`, `item`, `order`
            inputs.item.length
              1-12 WRONG_TYPE: a member needs an object; this is a text
        "#]],
    );
}

#[test]
fn malformed_expressions_say_what_to_write() {
    check_expressions(
        &[
            "",
            "inputs.count = 1",
            "inputs.count == 1 and true",
            "true & false",
            "true ? 1 : 2",
            "\\\"text\\\"",
            "1 < inputs.count < 5",
            "(1 + 2",
            "1 + 2)",
            "1 +",
            "* 2",
            "1 2",
            "007",
            "1e3",
            "9223372036854775808",
            "'open",
            "inputs.",
            "inputs.[0]",
            "a ${{ b",
            "größe",
            "{a: 1}",
        ],
        expect![[r#"

              0-2 EXPRESSION_SYNTAX: the expression is empty
            inputs.count = 1
              14-15 EXPRESSION_SYNTAX: `=` is no operator
                help: write `==` to compare
            inputs.count == 1 and true
              19-22 EXPRESSION_SYNTAX: an operator is missing before `and`
                help: write `&&`
            true & false
              6-7 EXPRESSION_SYNTAX: `&` is no operator
                help: write `&&`
            true ? 1 : 2
              6-7 EXPRESSION_SYNTAX: there is no `? :`
                help: use an `if` step, or `??` for a value that may be missing
            \"text\"
              -4-13 EXPRESSION_SYNTAX: a text is written in single quotes
                help: write 'text'
            in the expression:
              ${{ "text" }}
                  ^
            1 < inputs.count < 5
              18-19 EXPRESSION_SYNTAX: comparisons cannot be chained
                help: join two comparisons with `&&`
            (1 + 2
              8-8 EXPRESSION_SYNTAX: expected `)`, found the end
            1 + 2)
              6-7 EXPRESSION_SYNTAX: `)` closes nothing
            1 +
              5-5 EXPRESSION_SYNTAX: expected a value, found the end
                help: a value is a name, a number, 'text', `true`, `false`, `null` or `(...)`
            * 2
              1-2 EXPRESSION_SYNTAX: expected a value, found `*`
                help: a value is a name, a number, 'text', `true`, `false`, `null` or `(...)`
            1 2
              3-4 EXPRESSION_SYNTAX: an operator is missing before a number
            007
              1-4 EXPRESSION_SYNTAX: a number has no leading zeros
            1e3
              1-4 EXPRESSION_SYNTAX: a number is written with digits and at most one point
                help: write it like `12` or `0.5`; a text is written in single quotes
            9223372036854775808
              1-20 EXPRESSION_SYNTAX: an integer has 64 bits; this one is too large
            'open
              -3-9 EXPRESSION_UNCLOSED: `${{` is never closed by `}}`
                help: a text in the expression is never closed: write 'text', and '' for a quote in it
            inputs.
              9-9 EXPRESSION_SYNTAX: expected a name after `.`, found the end
                help: other members are written in brackets: `['Due date']`, `[0]`
            inputs.[0]
              8-9 EXPRESSION_SYNTAX: expected a name after `.`, found `[`
                help: other members are written in brackets: `['Due date']`, `[0]`
            a ${{ b
              3-6 EXPRESSION_SYNTAX: `${{` stands inside an expression
                help: close the first expression with `}}`, or leave the second `${{` out
            größe
              3-4 EXPRESSION_SYNTAX: `ö` has no meaning in an expression
            {a: 1}
              1-2 EXPRESSION_SYNTAX: an expression has no object literals
        "#]],
    );
}

#[test]
fn functions_are_known_by_name_and_number_of_arguments() {
    check_expressions(
        &[
            "startswith('a', 'b')",
            "frobnicate(1)",
            "size()",
            "min(1, 2, 3)",
            "has(1 + 2)",
            "plus(now(), 'soon')",
            "plus(now(), '2h30m')",
        ],
        expect![[r#"
            startswith('a', 'b')
              1-11 UNKNOWN_FUNCTION: there is no function `startswith`
                help: did you mean `startsWith`?
            frobnicate(1)
              1-11 UNKNOWN_FUNCTION: there is no function `frobnicate`
                help: the functions are `now`, `has`, `size`, `string`, `number`, `json`, `lower`, `upper`, `trim`, `contains`, `startsWith`, `endsWith`, `sameText`, `includes`, `join`, `split`, `keys`, `min`, `max`, `round`, `plus`
            size()
              1-7 EXPRESSION_SYNTAX: `size` takes 1 argument, not 0
            min(1, 2, 3)
              1-13 EXPRESSION_SYNTAX: `min` takes 2 arguments, not 3
            has(1 + 2)
              5-10 EXPRESSION_SYNTAX: `has` takes a reference
                help: write it like `has(inputs.order.note)`
            plus(now(), 'soon')
              13-19 DURATION: `soon` is not a duration
                help: write it like `500ms`, `30s`, `5m`, `2h` or `7d`, or several from the longest to the shortest unit, like `2h30m`
            plus(now(), '2h30m')
              fine
        "#]],
    );
}

#[test]
fn an_unclosed_expression_names_quoting_as_the_cure() {
    check_step(
        "- anything:\n    a: ${{ inputs.item # rest }}\n    b: \"${{ inputs.item }\"\n    c: \"${{ 'a }}\"",
        expect![[r#"
            7:10-7:25 error EXPRESSION_UNCLOSED: `${{` is never closed by `}}`
              at: steps.0.anything.a
              help: put the whole value in double quotes: YAML cuts a plain value at ` #` and refuses `: ` in it
            8:11-8:28 error EXPRESSION_UNCLOSED: `${{` is never closed by `}}`
              at: steps.0.anything.b
              help: put the whole value in double quotes: YAML cuts a plain value at ` #` and refuses `: ` in it
            9:11-9:20 error EXPRESSION_UNCLOSED: `${{` is never closed by `}}`
              at: steps.0.anything.c
              help: a text in the expression is never closed: write 'text', and '' for a quote in it
        "#]],
    );
}

/// Covers behaviour 32.
#[test]
fn a_text_with_an_expression_in_it_is_a_text() {
    check_step("- sendEmail: { to: \"Hello ${{ inputs.item }}\" }", expect![[""]]);
    check_step(
        "- chargeCard: { amount: \"Hello ${{ inputs.item }}\", currency: EUR }",
        expect![[r#"
            6:27-6:53 error CONFIG_TYPE: a number is wanted here; the expression gives a text
              at: steps.0.chargeCard.amount
        "#]],
    );
    check_step(
        "- chargeCard: { amount: \"${{ inputs.item }}\", currency: \"${{ inputs.count }}\" }",
        expect![[r#"
            6:27-6:47 error CONFIG_TYPE: a number is wanted here; the expression gives a text
              at: steps.0.chargeCard.amount
        "#]],
    );
}

/// Covers behaviour 46.
#[test]
fn lists_and_objects_inside_a_text_are_refused_where_they_are_known() {
    check_step(
        "- sendEmail: { to: \"Hello ${{ inputs.order }}\" }",
        expect![[r#"
        6:29-6:48 error WRONG_TYPE: an object cannot stand inside a text
          at: steps.0.sendEmail.to
          help: use `json(x)` to write it as JSON, or `join(list, ', ')`
    "#]],
    );
}

/// Covers behaviour 51.
#[test]
fn operand_types_are_checked_where_they_are_known() {
    check_expressions(
        &[
            "startsWith(inputs.count, 'a')",
            "inputs.item + inputs.count",
            "inputs.item * 2",
            "inputs.item < 2",
            "!inputs.count",
            "-inputs.item",
            "inputs.item && true",
            "inputs.item[0]",
            "size(inputs.count)",
            "(inputs.item ?? 'x') + 1",
            "context.a + 1 < context.b && context.c",
        ],
        expect![[r#"
            startsWith(inputs.count, 'a')
              12-24 WRONG_TYPE: `startsWith` needs a text; this is a number
            inputs.item + inputs.count
              1-27 WRONG_TYPE: `+` needs two numbers or two texts; here are a text and a number
                help: use `string(x)` or `number(x)` to convert one of them
            inputs.item * 2
              1-12 WRONG_TYPE: `*` needs a number; this is a text
            inputs.item < 2
              1-16 WRONG_TYPE: `<` needs two numbers or two texts; here are a text and a number
                help: use `string(x)` or `number(x)` to convert one of them
            !inputs.count
              2-14 WRONG_TYPE: `!` needs a bool; this is a number
            -inputs.item
              2-13 WRONG_TYPE: `-` needs a number; this is a text
            inputs.item && true
              1-12 WRONG_TYPE: `&&` needs a bool; this is a text
            inputs.item[0]
              1-12 WRONG_TYPE: an index needs a list; this is a text
            size(inputs.count)
              6-18 WRONG_TYPE: `size` needs a text or a list or an object; this is a number
            (inputs.item ?? 'x') + 1
              2-25 WRONG_TYPE: `+` needs two numbers or two texts; here are a text and a number
                help: use `string(x)` or `number(x)` to convert one of them
            context.a + 1 < context.b && context.c
              fine
        "#]],
    );
}

#[test]
fn a_condition_is_one_expression_that_can_be_a_bool() {
    check_step(
        "- if: inputs.count > 1\n  then: [ { noop: {} } ]\n- if: \"${{ true }} && ${{ false }}\"\n  then: [ { noop: {} } ]\n- if: ${{ inputs.item }}\n  then: [ { noop: {} } ]\n- if: true\n  then: [ { noop: {} } ]\n- if: [ \"${{ true }}\" ]\n  then: [ { noop: {} } ]\n- forEach: ${{ inputs.item }}\n  as: x\n  do: [ { noop: {} } ]",
        expect![[r#"
            6:9-6:25 error NOT_AN_EXPRESSION: a condition is exactly one expression
              at: steps.0.if
              help: write "${{ inputs.count > 1 }}"
            8:9-8:38 error NOT_AN_EXPRESSION: a condition is exactly one expression
              at: steps.1.if
              help: nothing may stand around `${{ }}`: put everything inside
            10:9-10:27 error WRONG_TYPE: a condition is true or false; this is a text
              at: steps.2.if
              help: compare it with something: a condition is never guessed from another value
            12:9-12:13 error NOT_AN_EXPRESSION: a condition is exactly one expression
              at: steps.3.if
              help: write "${{ true }}"
            14:9-14:26 error NOT_AN_EXPRESSION: a condition is one expression; this is a list
              at: steps.4.if
            16:14-16:32 error WRONG_TYPE: `forEach` goes over a list; this is a text
              at: steps.5.forEach
        "#]],
    );
}

#[test]
fn places_are_exact_in_every_style_that_keeps_the_expression_as_it_is() {
    check_step(
        "- anything:\n    plain: ${{ nope1 }}\n    single: 'it''s ${{ nope2 }}'\n    double: \"tab\\t ${{ nope3 }} and ${{ nope4 }}\"\n    literal: |\n      first\n      ${{ nope5 }}\n    folded: >-\n      first ${{ inputs.item }}\n      second ${{ nope6 }}\n    cut: \"${{ 'a\\\n      b' + nope7 }}\"\n    escaped: \"\\x24{{ nope8 }}\"",
        expect![[r#"
            7:18-7:23 error UNKNOWN_NAME: nothing here is called `nope1`
              at: steps.0.anything.plain
              help: known here: `inputs`, `context`, `bindings`, `run`
            8:26-8:31 error UNKNOWN_NAME: nothing here is called `nope2`
              at: steps.0.anything.single
              help: known here: `inputs`, `context`, `bindings`, `run`
            9:26-9:31 error UNKNOWN_NAME: nothing here is called `nope3`
              at: steps.0.anything.double
              help: known here: `inputs`, `context`, `bindings`, `run`
            9:43-9:48 error UNKNOWN_NAME: nothing here is called `nope4`
              at: steps.0.anything.double
              help: known here: `inputs`, `context`, `bindings`, `run`
            12:13-12:18 error UNKNOWN_NAME: nothing here is called `nope5`
              at: steps.0.anything.literal
              help: known here: `inputs`, `context`, `bindings`, `run`
            15:20-15:25 error UNKNOWN_NAME: nothing here is called `nope6`
              at: steps.0.anything.folded
              help: known here: `inputs`, `context`, `bindings`, `run`
            16:12-17:23 error UNKNOWN_NAME: nothing here is called `nope7`
              at: steps.0.anything.cut
              help: known here: `inputs`, `context`, `bindings`, `run`
                in the expression:
                  ${{ 'ab' + nope7 }}
                             ^
            18:16-18:33 error UNKNOWN_NAME: nothing here is called `nope8`
              at: steps.0.anything.escaped
              help: known here: `inputs`, `context`, `bindings`, `run`
                in the expression:
                  ${{ nope8 }}
                      ^
        "#]],
    );
}

#[test]
fn an_expression_has_a_limit_on_characters_and_depth() {
    let fits = format!("context{}", " ".repeat(3_991));
    check_expressions(
        &[
            &fits,
            &format!("{fits} "),
            &vec!["1"; 32].join(" + "),
            &vec!["1"; 33].join(" + "),
            &format!("{}1{}", "(".repeat(31), ")".repeat(31)),
            &format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000)),
            &format!("{}1", "!".repeat(3_000)),
        ],
        expect![[r#"
            context
              fine
            context
              -3-4003 EXPRESSION_TOO_LONG: an expression has at most 4000 characters
                help: split it: bind parts of it with `setVariable`
            1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 +
              fine
            1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 +
              1-130 EXPRESSION_TOO_DEEP: an expression may be nested 32 deep
                help: split it: bind parts of it with `setVariable`
            (((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))
              fine
            ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
              33-34 EXPRESSION_TOO_DEEP: an expression may be nested 32 deep
                help: split it: bind parts of it with `setVariable`
            !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!
              33-34 EXPRESSION_TOO_DEEP: an expression may be nested 32 deep
                help: split it: bind parts of it with `setVariable`
        "#]],
    );
}
