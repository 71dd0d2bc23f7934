use super::*;

/// Covers behaviour 33.
#[test]
fn a_member_with_a_space_resolves() {
    yields("inputs.order['Due date']", "2026-06-01");
    yields("inputs.order.lines[0]['qty']", 2);
    yields("inputs.order['']", 1);
    yields("inputs['order']['0']", "key");
}

#[test]
fn an_index_yields_its_own_item_or_nothing() {
    yields("inputs.rows[1]", 20);
    yields("inputs.rows[2].id", "r2");
    for reference in ["inputs.rows[3]", "inputs.rows[18446744073709551615]", "inputs.none[0]"] {
        assert_eq!(eval(reference), Err(missing(reference)));
    }
}

/// Covers behaviour 35.
#[test]
fn only_own_members_are_found() {
    for reference in [
        "inputs.constructor",
        "inputs.__proto__",
        "inputs.toString",
        "inputs.name.length",
        "inputs.name[0]",
        "inputs.name['0']",
        "inputs.rows.length",
        "inputs.rows['0']",
        "inputs.order[0]",
        "inputs.count.value",
        "inputs.nothing.value",
        "inputs.nothing[0]",
        "inputs.Name",
        "unknown",
    ] {
        assert_eq!(eval(reference), Err(missing(reference)));
        yields(&format!("has({reference})"), false);
        yields(&format!("{reference} ?? 'other'"), "other");
    }
    yields("inputs.length", 9);
}

#[test]
fn the_first_missing_part_is_named() {
    for (source, reference) in [
        ("inputs.a.b[2].c", "inputs.a"),
        ("inputs.rows[2].null.x.y", "inputs.rows[2].null.x"),
        ("inputs['not here'].b", "inputs['not here']"),
        ("inputs['1x'] + 1", "inputs['1x']"),
        ("1 + lower(inputs.a)", "inputs.a"),
        ("split(inputs.name, 'o')[5]", "split(…)[5]"),
        ("now().year", "now().year"),
        ("(inputs.a ?? inputs.rows)[7]", "(…)[7]"),
        ("inputs.a ?? inputs.b ?? inputs.c", "inputs.c"),
    ] {
        assert_eq!(eval(source), Err(missing(reference)), "{source}");
    }
    assert_eq!(missing("inputs.a").to_string(), "`inputs.a` has no value");
}

/// Covers behaviour 37.
#[test]
fn null_is_a_value() {
    yields("inputs.nothing", Value::Null);
    yields("has(inputs.nothing)", true);
    yields("has(inputs.rows[2].null)", true);
    yields("inputs.nothing ?? 'other'", "other");
    yields("inputs.nothing == null", true);
    yields("inputs.nothing ?? null", Value::Null);
    yields("inputs.nothing ?? inputs.zero ?? 5", 0);
}

/// Covers behaviour 38.
#[test]
fn has_asks_for_a_value_not_for_truth() {
    for reference in ["zero", "no", "none", "empty", "nothing"] {
        yields(&format!("has(inputs.{reference})"), true);
    }
    yields("has(inputs.other)", false);
    yields("has(inputs.rows[9])", false);
    yields("has(inputs.other.deeper[0])", false);
    errs("has(1 / 0)", "division by zero");
}

#[test]
fn coalescing_handles_what_is_missing_or_null_and_nothing_else() {
    for (source, value) in [
        ("inputs.no ?? true", json!(false)),
        ("inputs.empty ?? 'x'", json!("")),
        ("inputs.zero ?? 1", json!(0)),
        ("inputs.none ?? 1", json!([])),
        ("inputs.a.b ?? inputs.c ?? 'end'", json!("end")),
        ("inputs.a ?? (inputs.b ?? 'end')", json!("end")),
        ("lower(inputs.a) ?? 'none'", json!("none")),
        ("(inputs.a ?? inputs.order).lines[0].qty", json!(2)),
        ("inputs.name ?? 1 / 0", json!("Bolt")),
        ("inputs.name ?? inputs.a", json!("Bolt")),
    ] {
        yields(source, value);
    }
    errs("1 / 0 ?? 1", "division by zero");
    errs("(1 + 'a') ?? 1", "takes two numbers");
    errs("inputs.a ?? 1 / 0", "division by zero");
}

#[test]
fn large_values_pass_through_whole() {
    yields("inputs.big", u64::MAX);
    yields("inputs.rows", json!([10, 20, { "id": "r2", "null": null }]));
    yields("inputs.rows[2]", json!({ "id": "r2", "null": null }));
}

/// Covers behaviour 45.
#[test]
fn now_is_the_time_of_the_event_each_time() {
    let expr = parse("now()");
    let (first, second) = (evaluate(&expr, &world()), evaluate(&expr, &world()));
    assert_eq!(first, second);
    assert_eq!(first, Ok(json!("2026-05-01T12:00:00.000000Z")));
    yields("now() == now()", true);
}
