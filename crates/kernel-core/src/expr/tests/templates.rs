use super::*;

/// A text with expressions in it; the parts between are taken as they are.
#[track_caller]
fn rendered(source: &str) -> Result<Value, EvalError> {
    let mut parts = source.split("${{");
    let mut pieces = vec![Piece::Text(parts.next().unwrap().to_owned())];
    for part in parts {
        let (expr, text) = part.split_once("}}").unwrap();
        pieces.push(Piece::Expr(parse(expr)));
        pieces.push(Piece::Text(text.to_owned()));
    }
    render(&Template::Text(pieces), &world())
}

#[test]
fn text_around_expressions_makes_a_text() {
    for (source, text) in [
        ("Hello ${{ inputs.name }}!", "Hello Bolt!"),
        ("${{ inputs.name }}${{ inputs.count }}", "Bolt3"),
        ("${{ 1.0 }} ${{ 0.1 + 0.2 }} ${{ 1e300 }}", "1.0 0.30000000000000004 1e300"),
        ("${{ inputs.big }} ${{ -0.0 }}", "18446744073709551615 0.0"),
        ("${{ true }} or ${{ inputs.no }}", "true or false"),
        ("no expression", "no expression"),
    ] {
        assert_eq!(rendered(source), Ok(json!(text)), "{source}");
    }
    assert_eq!(render(&Template::Text(Vec::new()), &world()), Ok(json!("")));
}

/// Covers behaviour 46.
#[test]
fn null_renders_empty_in_a_text_and_a_list_or_an_object_is_an_error_that_names_json() {
    assert_eq!(rendered("a${{ inputs.nothing }}b${{ null }}c"), Ok(json!("abc")));
    for source in ["x ${{ inputs.rows }}", "x ${{ inputs.order }}", "x ${{ inputs.none }}"] {
        says(&rendered(source).unwrap_err(), "json()");
    }
    says(&rendered("x ${{ inputs.rows }}").unwrap_err(), "`inputs.rows` is a list");
    assert_eq!(rendered("x ${{ json(inputs.none) }}"), Ok(json!("x []")));
}

#[test]
fn a_missing_value_in_a_text_is_an_error() {
    assert_eq!(rendered("a ${{ inputs.a }}"), Err(missing("inputs.a")));
    assert_eq!(rendered("a ${{ inputs.a ?? '' }}"), Ok(json!("a ")));
}

#[test]
fn a_value_that_looks_like_an_expression_stays_literal() {
    let hostile = "${{ inputs.secret }}";
    let world = World(json!({ "inputs": { "name": hostile, "secret": "s3cret" } }));
    let name = || parse("inputs.name");
    let template = Template::List(vec![
        Template::Expr(name()),
        Template::Text(vec![Piece::Text("Hello ".to_owned()), Piece::Expr(name())]),
        Template::Text(vec![Piece::Text("${{".to_owned()), Piece::Text(" x }}".to_owned())]),
        Template::Literal(json!(hostile)),
    ]);
    let expected = json!([hostile, format!("Hello {hostile}"), "${{ x }}", hostile]);
    assert_eq!(render(&template, &world), Ok(expected));
}

#[test]
fn a_single_expression_keeps_the_type_of_its_value() {
    for source in ["inputs.rows", "inputs.nothing", "inputs.big", "1.0", "1", "inputs.no", "'x'"] {
        let value = eval(source).unwrap();
        assert_eq!(render(&Template::Expr(parse(source)), &world()), Ok(value));
    }
}

#[test]
fn lists_and_objects_are_rendered_slot_by_slot() {
    let template = Template::Object(vec![
        ("to".to_owned(), Template::Expr(parse("inputs.name"))),
        ("fixed".to_owned(), Template::Literal(json!({ "a": [1, null] }))),
        (
            "list".to_owned(),
            Template::List(vec![
                Template::Expr(parse("inputs.count + 1")),
                Template::Text(vec![Piece::Text("n=".to_owned()), Piece::Expr(parse("1"))]),
                Template::List(Vec::new()),
            ]),
        ),
    ]);
    let expected = json!({ "to": "Bolt", "fixed": { "a": [1, null] }, "list": [4, "n=1", []] });
    assert_eq!(render(&template, &world()), Ok(expected));

    let template =
        Template::List(vec![Template::Expr(parse("inputs.a")), Template::Expr(parse("1 / 0"))]);
    assert_eq!(render(&template, &world()), Err(missing("inputs.a")));
}
