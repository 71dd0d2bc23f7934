use super::*;

/// Covers behaviour 49.
#[test]
fn equality_of_texts_is_exact() {
    yields("'\u{e9}' == 'e\u{301}'", false);
    yields("'\u{e9}' == '\u{e9}'", true);
    yields("'a' == 'A'", false);
    yields("'a' == 'a '", false);
    yields("'a' != 'b'", true);
}

/// Covers behaviour 50.
#[test]
fn equality_is_structural_without_coercion() {
    let world = World(json!({
        "a": serde_json::from_str::<Value>(r#"{"x":1,"y":[{"p":null,"q":2.0}]}"#).unwrap(),
        "b": serde_json::from_str::<Value>(r#"{"y":[{"q":2,"p":null}],"x":1.0}"#).unwrap(),
        "more": { "x": 1, "y": [{ "p": null, "q": 2 }], "z": 0 },
        "other": { "x": 1, "w": [{ "p": null, "q": 2 }] },
        "list": [1, 2],
        "reverse": [2, 1],
        "longer": [1, 2, 3],
    }));
    for (source, value) in [
        ("a == b", true),
        ("a != b", false),
        ("a == more", false),
        ("a == other", false),
        ("list == list", true),
        ("list == reverse", false),
        ("list == longer", false),
        ("1 == '1'", false),
        ("1 == 1.0", true),
        ("0 == false", false),
        ("null == false", false),
        ("null == null", true),
        ("'' == null", false),
        ("true == true", true),
        ("list == a", false),
        ("'[1,2]' == list", false),
    ] {
        assert_eq!(evaluate(&parse(source), &world), Ok(json!(value)), "{source}");
    }
}

#[test]
fn numbers_compare_by_mathematical_value() {
    for (source, value) in [
        ("9007199254740993 == 9007199254740992.0", false),
        ("9007199254740993 > 9007199254740992.0", true),
        ("9007199254740992.0 < 9007199254740993", true),
        ("9007199254740992 == 9007199254740992.0", true),
        ("9223372036854775807 == 9223372036854775807.0", false),
        ("9223372036854775807 < 9223372036854775807.0", true),
        ("9223372036854775808 == 9223372036854775808.0", true),
        ("18446744073709551615 < 18446744073709551616.0", true),
        ("18446744073709551615 == 18446744073709551615.0", false),
        ("18446744073709551615 > 9223372036854775807", true),
        ("-1 < 18446744073709551615", true),
        ("inputs.big == 18446744073709551615", true),
        ("1e300 > inputs.big", true),
        ("-1e300 < -9223372036854775807", true),
        ("1 < 1.5", true),
        ("2 < 1.5", false),
        ("-1 > -1.5", true),
        ("-2 < -1.5", true),
        ("-0.0 == 0", true),
        ("0 == -0.0", true),
        ("0.1 + 0.2 == 0.3", false),
        ("1.5 == 1.5", true),
        ("1 <= 1.0", true),
        ("1 >= 1.0", true),
        ("1 > 1.0", false),
    ] {
        yields(source, value);
    }
}

#[test]
fn texts_are_ordered_by_code_points() {
    for (source, value) in [
        ("'a' < 'b'", true),
        ("'B' < 'a'", true),
        ("'a' < 'aa'", true),
        ("'10' < '9'", true),
        ("'z' < 'é'", true),
        ("'\u{ffff}' < '\u{10000}'", true),
        ("'a' <= 'a'", true),
        ("'a' > 'a'", false),
        ("'2026-05-01' >= '2026-04-30'", true),
    ] {
        yields(source, value);
    }
    for source in ["1 < '2'", "null < 1", "true > false", "inputs.none <= inputs.none", "'a' >= 1"]
    {
        errs(source, "takes two numbers or two texts");
    }
}

#[test]
fn integers_stay_integers_and_never_wrap() {
    for (source, value) in [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("7 - 10", json!(-3)),
        ("2 - 1 - 1", json!(0)),
        ("- -3", json!(3)),
        ("9223372036854775806 + 1", json!(i64::MAX)),
        ("-9223372036854775807 - 1", json!(i64::MIN)),
        ("-inputs.count", json!(-3)),
    ] {
        yields(source, value);
    }
    for source in [
        "9223372036854775807 + 1",
        "-9223372036854775807 - 2",
        "9223372036854775807 * 2",
        "3037000500 * 3037000500",
        "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) / -1",
    ] {
        errs(source, "beyond 64 bits");
    }
}

#[test]
fn division_of_integers_is_whole_when_it_comes_out_even() {
    for (source, value) in [
        ("6 / 3", json!(2)),
        ("-6 / 3", json!(-2)),
        ("0 / -5", json!(0)),
        ("7 / 2", json!(3.5)),
        ("1 / 4", json!(0.25)),
        ("6.0 / 3", json!(2.0)),
        ("8 / 2 / 2", json!(2)),
        ("(-9223372036854775807 - 1) / 1", json!(i64::MIN)),
        ("7 % 3", json!(1)),
        ("-7 % 3", json!(-1)),
        ("7 % -3", json!(1)),
        ("-7 % -3", json!(-1)),
        ("6 % 3", json!(0)),
        ("(-9223372036854775807 - 1) % -1", json!(0)),
    ] {
        yields(source, value);
    }
    for source in ["1 / 0", "0 / 0", "1 % 0", "1.5 / 0", "1 / 0.0", "1 / -0.0", "0.0 / 0.0"] {
        errs(source, "division by zero");
    }
    for source in ["7.5 % 2", "7 % 2.0", "1.5 % 0"] {
        errs(source, "takes whole numbers");
    }
}

#[test]
fn floats_are_finite() {
    for (source, value) in [
        ("1 + 0.5", json!(1.5)),
        ("0.1 + 0.2", json!(0.30000000000000004)),
        ("1.5 * 2", json!(3.0)),
        ("1 - 1.0", json!(0.0)),
        ("-1.5", json!(-1.5)),
        ("1e308 * 1", json!(1e308)),
        ("9007199254740993 + 0.0", json!(9007199254740992.0)),
    ] {
        yields(source, value);
    }
    for source in ["1e308 * 10", "1e308 + 1e308", "-1e308 - 1e308", "1e308 / 0.1"] {
        errs(source, "no finite number");
    }
}

#[test]
fn an_integer_beyond_i64_cannot_be_calculated_with() {
    for source in [
        "inputs.big + 1",
        "1 - inputs.big",
        "inputs.big * 1.0",
        "inputs.big / inputs.big",
        "inputs.big % 2",
        "-inputs.big",
        "-9223372036854775808",
    ] {
        errs(source, "not calculated with");
    }
}

#[test]
fn plus_joins_texts_and_coerces_nothing() {
    yields("'a' + 'b' + 'ü'", "abü");
    yields("'' + ''", "");
    yields("inputs.name + '-' + string(inputs.count)", "Bolt-3");
    yields("inputs.name + inputs.name", "BoltBolt");
    yields("inputs.name", "Bolt");
    for source in ["'a' + 1", "1 + 'a'", "'a' + null"] {
        errs(source, "string() makes a text of a number");
    }
    for source in ["true + 1", "null + 1", "inputs.none + inputs.none", "'a' - 'b'", "'3' * 2"] {
        errs(source, "takes two numbers");
    }
    errs("-'3'", "`-` takes a number, not a text");
}

#[test]
fn there_is_no_truthiness() {
    for source in [
        "!1",
        "!null",
        "!''",
        "1 && true",
        "true && 'yes'",
        "null || true",
        "false || inputs.rows",
        "!inputs.order",
    ] {
        errs(source, "must be true or false");
    }
    errs("!inputs.count", "`inputs.count` is a number");
    for source in ["inputs.count", "null", "'true'", "inputs.rows", "1"] {
        says(&evaluate_condition(&parse(source), &world()).unwrap_err(), "must be true or false");
    }
    assert_eq!(evaluate_condition(&parse("inputs.yes"), &world()), Ok(true));
    assert_eq!(evaluate_condition(&parse("inputs.count > 3"), &world()), Ok(false));
    assert_eq!(evaluate_condition(&parse("inputs.a"), &world()), Err(missing("inputs.a")));
}

#[test]
fn logic_stops_at_the_first_operand_that_decides() {
    for (source, value) in [
        ("true && true", true),
        ("true && false", false),
        ("false || true", true),
        ("false || false", false),
        ("false && 1 / 0 == 1", false),
        ("true || 1 / 0 == 1", true),
        ("false && inputs.a", false),
        ("true || inputs.a", true),
        ("has(inputs.a) && inputs.a > 1", false),
        ("!true || !false", true),
        ("true || false && false", true),
        ("false && true || true", true),
        ("1 < 2 == true", true),
    ] {
        yields(source, value);
    }
}

#[test]
fn an_error_ends_logic_even_if_a_later_operand_would_decide() {
    errs("1 / 0 == 1 || true", "division by zero");
    errs("1 / 0 == 1 && false", "division by zero");
    errs("true && 1 / 0 == 1", "division by zero");
    assert_eq!(eval("inputs.a || true"), Err(missing("inputs.a")));
    assert_eq!(eval("inputs.a && false"), Err(missing("inputs.a")));
}
