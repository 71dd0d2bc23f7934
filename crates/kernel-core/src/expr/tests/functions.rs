use super::*;
use crate::expr::Function;

/// The rows of the table that the documentation of [`Function`] shows.
fn documented() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("../functions.md").lines().filter_map(|line| {
        let (expr, value) = line.strip_prefix("| `")?.strip_suffix("` |")?.split_once("` | `")?;
        Some((expr, value))
    })
}

#[test]
fn every_documented_example_yields_what_it_says() {
    for (expr, value) in documented() {
        yields(expr, serde_json::from_str::<Value>(value).unwrap());
    }
}

#[test]
fn every_function_has_three_documented_examples() {
    for function in Function::ALL {
        let call = format!("{}(", function.name());
        let examples = documented().filter(|(expr, _)| expr.contains(&call)).count();
        assert!(examples >= 3, "{call}) has {examples}");
    }
}

#[test]
fn functions_refuse_other_types_and_coerce_nothing() {
    for (call, part) in [
        ("size(null)", "size() takes a text, a list or an object, not null"),
        ("size(1)", "not a number"),
        ("size(true)", "not a bool"),
        ("string(inputs.rows)", "json() takes any value"),
        ("string(inputs.order)", "not an object"),
        ("number(5)", "number() takes a text, not a number"),
        ("number(null)", "not null"),
        ("lower(1)", "lower() takes a text, not a number"),
        ("upper(null)", "upper() takes a text"),
        ("trim(inputs.rows)", "trim() takes a text, not a list"),
        ("contains(inputs.rows, 'a')", "contains() takes a text, not a list"),
        ("contains('a', 1)", "contains() takes a text, not a number"),
        ("endsWith(1, '1')", "endsWith() takes a text, not a number"),
        ("sameText('1', 1)", "sameText() takes a text, not a number"),
        ("includes('abc', 'a')", "includes() takes a list, not a text"),
        ("includes(inputs.order, 1)", "includes() takes a list, not an object"),
        ("join('abc', '')", "join() takes a list"),
        ("join(inputs.rows, ',')", "join() takes a text, not a number"),
        ("join(order.tags, 1)", "join() takes a text, not a number"),
        ("split(1, ',')", "split() takes a text"),
        ("split('a', null)", "split() takes a text, not null"),
        ("keys(inputs.rows)", "keys() takes an object, not a list"),
        ("min(1, '2')", "min() takes a number, not a text"),
        ("max(null, 2)", "max() takes a number, not null"),
        ("round('1.5')", "round() takes a number, not a text"),
        ("plus(1, '1h')", "plus() takes a text"),
        ("plus(now(), 60)", "plus() takes a text, not a number"),
    ] {
        errs(call, part);
    }
    assert_eq!(eval("size(inputs.a)"), Err(missing("inputs.a")));
}

/// Covers behaviour 51.
#[test]
fn starts_with_refuses_a_number() {
    errs("startsWith(12, '1')", "startsWith() takes a text, not a number");
    errs("startsWith('12', 1)", "startsWith() takes a text, not a number");
}

/// Covers behaviour 48.
#[test]
fn same_text_ignores_width_case_and_composition_where_equality_does_not() {
    for (a, b) in [
        ("ａｂｃ", "abc"),
        ("ｶﾞ", "ガ"),
        ("Ａ", "a"),
        ("É", "e\u{301}"),
        ("ﬁn", "FIN"),
        ("①", "1"),
        ("ΣΑΣ", "σας"),
        ("\u{130}", "i\u{307}"),
        ("K", "\u{212a}"),
    ] {
        yields(&format!("sameText('{a}', '{b}')"), true);
        yields(&format!("sameText('{b}', '{a}')"), true);
        yields(&format!("'{a}' == '{b}'"), false);
    }
    for (a, b) in [("a", "b"), ("a", "a "), ("e", "é"), ("", "a"), ("i", "ı"), ("o", "0")] {
        yields(&format!("sameText('{a}', '{b}')"), false);
    }
    yields("sameText('', '')", true);
}

#[test]
fn numbers_are_read_strictly_and_exactly() {
    for (text, value) in [
        ("0", json!(0)),
        ("-0", json!(0)),
        ("-12", json!(-12)),
        ("1.0", json!(1.0)),
        ("1E5", json!(100000.0)),
        ("9223372036854775807", json!(i64::MAX)),
        ("18446744073709551615", json!(u64::MAX)),
        ("9007199254740993", json!(9007199254740993_i64)),
        ("0.30000000000000004", json!(0.30000000000000004)),
    ] {
        yields(&format!("number('{text}')"), value);
    }
    for text in [
        "",
        " ",
        " 1",
        "1 ",
        "1 2",
        "+1",
        "01",
        "1.",
        ".5",
        "1e",
        "-",
        "--1",
        "0x10",
        "1,5",
        "1_000",
        "inf",
        "NaN",
        "-Infinity",
        "１",
        "true",
        "null",
        "[1]1",
        "1[1",
        "1e5x",
    ] {
        errs(&format!("number('{text}')"), "is not a number");
    }
    errs("number('18446744073709551616')", "64 bits");
    errs("number('1e400')", "64-bit float");
    let long = format!("number('x{}')", "9".repeat(3000));
    assert!(eval(&long).unwrap_err().to_string().len() < 200);
}

#[test]
fn text_of_scalars_reads_back_the_same() {
    for (source, text) in [
        ("string('a')", "a"),
        ("string(true)", "true"),
        ("string(inputs.big)", "18446744073709551615"),
        ("string(0.1 + 0.2)", "0.30000000000000004"),
        ("string(-0.0)", "0.0"),
        ("string(1e16)", "1e16"),
        ("string(5e300)", "5e300"),
        ("string(7 / 2)", "3.5"),
    ] {
        yields(source, text);
    }
}

#[test]
fn rounding_goes_half_away_from_zero_and_to_an_integer_where_it_fits() {
    for (source, value) in [
        ("round(0.5)", json!(1)),
        ("round(-0.5)", json!(-1)),
        ("round(0.49999999999999994)", json!(0)),
        ("round(-0.4)", json!(0)),
        ("round(1.4999)", json!(1)),
        ("round(5)", json!(5)),
        ("round(inputs.big)", json!(u64::MAX)),
        ("round(9223372036854774784.0)", json!(9223372036854774784_i64)),
        ("round(9223372036854775808.0)", json!(9223372036854775808.0)),
        ("round(-9223372036854775808.0)", json!(i64::MIN)),
        ("round(1e300)", json!(1e300)),
    ] {
        yields(source, value);
    }
}

#[test]
fn times_move_by_written_durations() {
    for (source, time) in [
        ("plus(now(), '0s')", "2026-05-01T12:00:00.000000Z"),
        ("plus(now(), '7d1ms')", "2026-05-08T12:00:00.001000Z"),
        ("plus('2026-05-01T12:00:00.123456+02:00', '2h')", "2026-05-01T12:00:00.123456Z"),
        ("plus('9999-12-31T23:59:58Z', '1s')", "9999-12-31T23:59:59.000000Z"),
        ("plus('0000-01-01T00:00:00Z', '0s')", "0000-01-01T00:00:00.000000Z"),
    ] {
        yields(source, time);
    }
    errs("plus('tomorrow', '1h')", "`tomorrow` is not a time");
    errs("plus('2026-05-01', '1h')", "is not a time");
    errs("plus(now(), 'soon')", "`soon` is not a duration");
    errs("plus(now(), '-1h')", "is not a duration");
    errs("plus(now(), '4000d')", "longer than ten years");
    errs("plus('9999-12-31T23:59:59Z', '1s')", "years 0000 to 9999");
    errs("plus('0000-01-01T00:00:00+01:00', '1ms')", "years 0000 to 9999");
}

#[test]
fn lists_and_texts_become_each_other() {
    yields("join(inputs.none, ',')", "");
    yields("join(split('', ','), ',')", "");
    yields("split('', '')", json!([]));
    yields("split('', ',')", json!([""]));
    yields("split('aXXbXc', 'XX')", json!(["a", "bXc"]));
    yields("split(',', ',')", json!(["", ""]));
    yields("keys(inputs.rows[2])", json!(["id", "null"]));
    yields("includes(inputs.rows, 20.0)", true);
    yields("includes(inputs.rows, '20')", false);
    yields("includes(inputs.none, null)", false);
    yields("size('👍🏽é')", 3);
    yields("trim('\u{a0}\u{3000}a\u{200b}\n')", "a\u{200b}");
    yields("min(inputs.big, inputs.big)", u64::MAX);
    yields("max(1.0, 1)", 1.0);
}

#[test]
fn keys_are_sorted_by_code_points() {
    let world =
        World(json!({ "o": { "b": 1, "B": 2, "é": 3, "e\u{301}": 4, "": 5, "10": 6, "9": 7 } }));
    let expected = json!(["", "10", "9", "B", "b", "e\u{301}", "é"]);
    assert_eq!(evaluate(&parse("keys(o)"), &world), Ok(expected));
}

#[test]
fn a_call_with_the_wrong_number_of_arguments_is_refused() {
    for function in Function::ALL {
        for count in 0..4 {
            if count == function.arity() {
                continue;
            }
            let arguments = vec![Expr::Literal(json!("x")); count];
            let error = evaluate(&Expr::Call(*function, arguments), &world()).unwrap_err();
            says(&error, &format!("{}() takes {} arguments", function.name(), function.arity()));
        }
    }
}
