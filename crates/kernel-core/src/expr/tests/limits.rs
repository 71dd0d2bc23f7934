use super::*;
use crate::expr::extent::{Excess, measure};
use crate::expr::{
    Binary, EXPRESSION_MAX_DEPTH, EXPRESSION_MAX_OUTPUT_BYTES, EXPRESSION_MAX_STEPS, Function,
    TEMPLATE_MAX_OUTPUT_BYTES, Unary,
};
use crate::payload::PAYLOAD_MAX_DEPTH;

fn literal(value: impl Into<Value>) -> Expr {
    Expr::Literal(value.into())
}

fn nested(value: Value, levels: usize) -> Value {
    (0..levels).fold(value, |inner, _| json!([inner]))
}

fn with_text(bytes: usize) -> World {
    World(json!({ "text": "x".repeat(bytes) }))
}

#[test]
fn a_tree_may_be_32_levels_deep() {
    let not = |levels: usize| {
        (1..levels).fold(literal(true), |inner, _| Expr::Unary(Unary::Not, Box::new(inner)))
    };
    assert_eq!(evaluate(&not(EXPRESSION_MAX_DEPTH), &world()), Ok(json!(false)));
    let error = evaluate(&not(EXPRESSION_MAX_DEPTH + 1), &world()).unwrap_err();
    says(&error, "deeper than 32 levels");
    assert!(evaluate_condition(&not(EXPRESSION_MAX_DEPTH + 1), &world()).is_err());

    let wraps: [fn(Expr) -> Expr; 5] = [
        |inner| Expr::Member(Box::new(inner), "a".to_owned()),
        |inner| Expr::Index(Box::new(inner), 0),
        |inner| Expr::Binary(Binary::Coalesce, Box::new(inner), Box::new(literal(1))),
        |inner| Expr::Binary(Binary::Or, Box::new(literal(true)), Box::new(inner)),
        |inner| Expr::Call(Function::Has, vec![inner]),
    ];
    for wrap in wraps {
        let tree = |levels: usize| (1..levels).fold(literal(true), |inner, _| wrap(inner));
        assert!(!tree(EXPRESSION_MAX_DEPTH).is_deeper_than(EXPRESSION_MAX_DEPTH));
        assert!(tree(EXPRESSION_MAX_DEPTH + 1).is_deeper_than(EXPRESSION_MAX_DEPTH));
        let deep = tree(10_000);
        says(&evaluate(&deep, &world()).unwrap_err(), "deeper than 32 levels");
        let text = Template::Text(vec![Piece::Expr(deep)]);
        says(&render(&text, &world()).unwrap_err(), "deeper than 32 levels");
    }
    assert!(literal(1).is_deeper_than(0) && !literal(1).is_deeper_than(1));
}

#[test]
fn an_expression_may_take_10_000_steps() {
    // A list of n texts takes n steps to join, and two nodes and the call three more.
    let joined = |items: u32| {
        let list = vec!["x"; items as usize];
        evaluate(&Expr::Call(Function::Join, vec![literal(list), literal("")]), &World(json!({})))
    };
    assert!(joined(EXPRESSION_MAX_STEPS - 3).is_ok());
    says(&joined(EXPRESSION_MAX_STEPS - 2).unwrap_err(), "more than 10000 steps");

    // A full tree of n levels has 2^n - 1 nodes.
    let full = |levels: u32| {
        (1..levels).fold(literal(1), |half, _| {
            Expr::Binary(Binary::Multiply, Box::new(half.clone()), Box::new(half))
        })
    };
    assert_eq!(evaluate(&full(13), &world()), Ok(json!(1)));
    says(&evaluate(&full(14), &world()).unwrap_err(), "more than 10000 steps");
}

#[test]
fn work_on_large_values_is_paid_for() {
    let long = "x".repeat(EXPRESSION_MAX_STEPS as usize * 64);
    let many = vec![json!({ "a": 1 }); EXPRESSION_MAX_STEPS as usize];
    let keys: serde_json::Map<_, _> =
        (0..EXPRESSION_MAX_STEPS).map(|key| (key.to_string(), json!(1))).collect();
    let world = World(json!({ "long": long, "twin": long, "many": many, "same": many, "o": keys }));
    for source in [
        "size(long)",
        "lower(long)",
        "upper(long)",
        "trim(long)",
        "number(long)",
        "contains(long, 'y')",
        "contains('y', long)",
        "sameText(long, '')",
        "long == twin",
        "long < twin",
        "long + ''",
        "split(long, 'x')",
        "split(long, '')",
        "many == same",
        "includes(many, 1)",
        "keys(o)",
        "o == o",
        "json(many) + json(many) + json(many) + json(many)",
    ] {
        let error = evaluate(&parse(source), &world).map(|_| source).unwrap_err();
        says(&error, "more than 10000 steps");
    }
    // What costs no walk is not paid for.
    for source in ["long", "has(long)", "size(many)", "many[9999].a", "long ?? 1", "long != 1"] {
        assert!(evaluate(&parse(source), &world).is_ok(), "{source}");
    }
}

#[test]
fn a_value_may_have_1_mib_of_json() {
    let quotes = 2;
    let fits = with_text(EXPRESSION_MAX_OUTPUT_BYTES - quotes);
    let over = with_text(EXPRESSION_MAX_OUTPUT_BYTES - quotes + 1);
    let slot = Template::Expr(parse("text"));
    let piece = Template::Text(vec![Piece::Expr(parse("text"))]);
    assert!(evaluate(&parse("text"), &fits).is_ok());
    assert!(render(&slot, &fits).is_ok());
    assert!(render(&piece, &fits).is_ok());
    says(&evaluate(&parse("text"), &over).unwrap_err(), "larger than 1024 KiB");
    says(&render(&slot, &over).unwrap_err(), "larger than 1024 KiB");
    says(&render(&piece, &over).unwrap_err(), "larger than 1024 KiB");
    // The whole text counts, and escapes count as they are written.
    let text = Piece::Text("y".to_owned());
    let template = Template::Text(vec![text, Piece::Expr(parse("text"))]);
    says(&render(&template, &fits).unwrap_err(), "larger than 1024 KiB");
    let escaped = World(json!({ "text": "\0".repeat(EXPRESSION_MAX_OUTPUT_BYTES / 6 + 1) }));
    says(&evaluate(&parse("text"), &escaped).unwrap_err(), "larger than 1024 KiB");
    // A large value that is only passed through on the way is fine.
    assert_eq!(evaluate(&parse("has(text)"), &over), Ok(json!(true)));
    assert_eq!(evaluate_condition(&parse("text != 1"), &over), Ok(true));
}

#[test]
fn texts_on_the_way_are_bounded_too() {
    let control = "\u{1}".repeat(200_000);
    let world =
        World(json!({ "text": "x".repeat(600_000), "grows": "ΐ".repeat(200_000), "c": control }));
    for source in ["size(json(c))", "upper(grows) == ''"] {
        let error = evaluate(&parse(source), &world).unwrap_err();
        says(&error, "larger than 1024 KiB");
    }
    let error = evaluate(&parse("(text + text) == ''"), &world).unwrap_err();
    says(&error, "steps");
}

#[test]
fn the_values_of_a_template_are_bounded_together() {
    let world = with_text(EXPRESSION_MAX_OUTPUT_BYTES - 2);
    let slots = |count: usize| {
        let slot = Template::Expr(parse("text"));
        render(&Template::List(vec![slot; count]), &world)
    };
    let most = TEMPLATE_MAX_OUTPUT_BYTES / EXPRESSION_MAX_OUTPUT_BYTES;
    assert!(slots(most).is_ok());
    says(&slots(most + 1).unwrap_err(), "larger than 16384 KiB");
}

#[test]
fn values_are_nested_no_deeper_than_a_payload() {
    let deepest = nested(json!(1), PAYLOAD_MAX_DEPTH - 1);
    let too_deep = nested(json!(1), PAYLOAD_MAX_DEPTH);
    assert!(evaluate(&literal(deepest.clone()), &world()).is_ok());
    for expr in [
        literal(too_deep.clone()),
        Expr::Call(Function::Json, vec![literal(too_deep.clone())]),
        Expr::Binary(
            Binary::Equal,
            Box::new(literal(too_deep.clone())),
            Box::new(literal(too_deep.clone())),
        ),
    ] {
        says(&evaluate(&expr, &world()).unwrap_err(), "nested deeper than 128 levels");
    }
    // What surrounds a value counts.
    for inner in [Template::Literal(deepest.clone()), Template::Expr(literal(deepest))] {
        assert!(render(&inner, &world()).is_ok());
        let around = Template::List(vec![inner]);
        says(&render(&around, &world()).unwrap_err(), "nested deeper than 128 levels");
    }
    let hand_made =
        (0..5_000).fold(Template::List(Vec::new()), |inner, _| Template::List(vec![inner]));
    says(&render(&hand_made, &world()).unwrap_err(), "nested deeper than 128 levels");
}

#[test]
fn a_value_is_measured_as_it_would_be_written() {
    for value in [
        json!(null),
        json!([true, false, null]),
        json!([]),
        json!({}),
        json!([[], {}, [{}]]),
        json!([0, -1, u64::MAX, i64::MIN, 1.0, 0.1, 1e300, -0.0, 1e-7]),
        json!("plain"),
        json!("é😀\u{7f}\u{2028}"),
        json!("\"\\/\n\r\t\u{8}\u{c}\0\u{1}\u{1f}"),
        json!({ "a": 1, "\"\n": { "b": [1, { "c": null }] }, "é": "x" }),
    ] {
        let bytes = value.to_string().len();
        assert_eq!(measure(&value, bytes, 9), Ok(bytes), "{value}");
        assert_eq!(measure(&value, bytes - 1, 9), Err(Excess::Bytes(bytes - 1)), "{value}");
    }
}
