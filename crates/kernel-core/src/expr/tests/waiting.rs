use super::*;

/// Covers behaviour 52.
#[test]
fn a_later_operand_may_decide_while_an_earlier_one_waits() {
    for (source, value) in [
        ("later && false", false),
        ("later || true", true),
        ("later && later2 && false", false),
        ("later || later2 || true", true),
        ("true && later && false", false),
        ("later > 5 && false", false),
        ("(later || later2) && false", false),
        ("false || later || 1 < 2", true),
        ("!(later && false)", true),
        ("false && later", false),
        ("true || later", true),
    ] {
        yields(source, value);
    }
}

/// Covers behaviour 53.
#[test]
fn the_first_operand_in_source_order_is_waited_for() {
    for (source, name) in [
        ("later", "later"),
        ("later && true", "later"),
        ("true && later", "later"),
        ("later && later2", "later"),
        ("later2 || later", "later2"),
        ("later || false || later2", "later"),
        ("(false || later2) && later", "later2"),
        ("later + later2", "later"),
        ("max(1, later2)", "later2"),
        ("later.member[0]", "later"),
        ("has(later)", "later"),
        ("later ?? 1", "later"),
        ("null ?? later", "later"),
        ("later == 1 / 0", "later"),
        ("!later", "later"),
    ] {
        assert_eq!(eval(source), Err(waiting(name)), "{source}");
    }
    assert_eq!(waiting("later").to_string(), "the value waits for `signal` `later`");
}

/// `later` may turn out to decide, and then the operand behind it is never reached.
#[test]
fn an_error_behind_a_waiting_operand_is_not_raised_and_lets_nothing_decide() {
    for source in [
        "later && inputs.a",
        "later && 1 / 0 == 1",
        "later || 'text'",
        "later && inputs.a && false",
        "later || 1 / 0 == 1 || true",
        "(later && inputs.a) || true",
        "later && (later2 && inputs.a) && false",
    ] {
        assert_eq!(eval(source), Err(waiting("later")), "{source}");
    }
    assert_eq!(eval("inputs.a && later"), Err(missing("inputs.a")));
    errs("1 / 0 == 1 || later", "division by zero");
}

#[test]
fn a_template_waits_for_its_first_waiting_value() {
    let slot = |source: &str| Template::Expr(parse(source));
    let template = Template::Object(vec![
        ("a".to_owned(), slot("inputs.name")),
        ("z".to_owned(), Template::List(vec![slot("later2")])),
        ("b".to_owned(), slot("later")),
    ]);
    assert_eq!(render(&template, &world()), Err(waiting("later2")));
    let text = Template::Text(vec![Piece::Text("a ".to_owned()), Piece::Expr(parse("later"))]);
    assert_eq!(render(&text, &world()), Err(waiting("later")));
}

#[test]
fn a_root_that_is_there_does_not_wait() {
    let world = World(json!({ "later": null }));
    assert_eq!(evaluate(&parse("later ?? 1"), &world), Ok(json!(1)));
}
