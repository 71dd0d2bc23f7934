use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Binary, Expr, Function, Template};
use surefoot_kernel_core::plan::{
    Case, Input as PlanInput, InputType, Plan, Step, StepKind, TriggerPlan,
};
use surefoot_kernel_core::{
    Code, Command, Cursor, EffectClass, Fact, Held, Input, Invocation, Micros, Phase, RunState,
    SaidBy, Taken,
};

use crate::drive::{Drive, action, failed, key, plan, saved, step};

fn literal(value: Value) -> Template {
    Template::Literal(value)
}

fn name(text: &str) -> Expr {
    Expr::Name(text.to_owned())
}

fn each(over: Value, body: Vec<Step>) -> Step {
    step(StepKind::ForEach { over: literal(over), item: "item".to_owned(), body })
}

fn branch(condition: Expr, then: Vec<Step>, otherwise: Option<Vec<Step>>) -> Step {
    step(StepKind::If { condition, then, otherwise })
}

fn set(of: &str, value: Template) -> Step {
    step(StepKind::SetVariable { name: of.to_owned(), value })
}

/// Runs to the end; every action answers with its step key. Says which steps were called.
fn finish(drive: &mut Drive) -> Vec<String> {
    let mut called = Vec::new();
    loop {
        let call = match drive.command.clone() {
            Some(Command::Call(call) | Command::Prepare(call) | Command::Transact(call)) => call,
            Some(Command::Reconcile(_)) => panic!("nothing to ask about"),
            Some(Command::Spawn(_) | Command::Collect(_)) => panic!("no step has children"),
            None => return called,
        };
        called.push(call.step.to_string());
        drive.succeed(json!(call.step.as_str()));
        drive.advance();
    }
}

fn result(steps: Vec<Step>) -> Value {
    let mut drive = Drive::begun(plan(steps));
    finish(&mut drive);
    match &drive.run().phase {
        Phase::Succeeded { result, .. } => result.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn branches_yield_the_output_of_their_last_step() {
    let yes = || Expr::Literal(json!(true));
    let no = || Expr::Literal(json!(false));
    let pure = || vec![action(EffectClass::Pure)];
    assert_eq!(result(vec![branch(yes(), pure(), None)]), "steps.0.then.0");
    assert_eq!(result(vec![branch(no(), pure(), Some(pure()))]), "steps.0.else.0");
    assert_eq!(result(vec![branch(no(), pure(), None)]), Value::Null);
    let switch = |on: i64, default: Option<Vec<Step>>| {
        let case = |when: i64| Case { when: literal(json!(when)), steps: pure() };
        let cases = vec![case(1), case(2), case(2)];
        result(vec![step(StepKind::Switch { on: literal(json!(on)), cases, default })])
    };
    assert_eq!(switch(2, None), "steps.0.cases.1.do.0");
    assert_eq!(switch(3, Some(pure())), "steps.0.default.0");
    assert_eq!(switch(3, None), Value::Null);
}

/// Covers behaviour 54.
#[test]
fn cases_compare_structurally() {
    let on = literal(json!({ "a": 1, "b": [2.0] }));
    let when = literal(json!({ "b": [2], "a": 1.0 }));
    let cases = vec![Case { when, steps: vec![action(EffectClass::Pure)] }];
    let steps = vec![step(StepKind::Switch { on, cases, default: None })];
    assert_eq!(result(steps), "steps.0.cases.0.do.0");
}

/// Covers behaviour 115.
#[test]
fn nested_loops_have_a_key_per_pair_of_iterations() {
    let inner = each(json!([1, 2]), vec![action(EffectClass::Pure)]);
    let mut drive = Drive::begun(plan(vec![each(json!([1, 2]), vec![inner])]));
    let called = finish(&mut drive);
    let keys = ["#0.0", "#0.1", "#1.0", "#1.1"].map(|pair| format!("steps.0.do.0.do.0{pair}"));
    assert_eq!(called, keys);
    let Phase::Succeeded { result, .. } = &drive.run().phase else { panic!() };
    assert_eq!(result, &json!([[keys[0], keys[1]], [keys[2], keys[3]]]));
}

/// Covers behaviour 114.
#[test]
fn an_empty_loop_completes_and_a_loop_over_no_list_fails() {
    assert_eq!(result(vec![each(json!([]), vec![action(EffectClass::Pure)])]), json!([]));
    let drive = Drive::begun(plan(vec![each(json!("abc"), vec![action(EffectClass::Pure)])]));
    assert_eq!(drive.failure().code, Code::EXPRESSION_ERROR);
    let over = Template::Expr(name("nothing"));
    let missing = step(StepKind::ForEach { over, item: "item".to_owned(), body: vec![] });
    let drive = Drive::begun(plan(vec![missing]));
    assert_eq!(drive.failure().code, Code::VALUE_UNAVAILABLE);
}

/// Covers behaviour 113. Covers field fault 92.
#[test]
fn a_loop_over_its_limit_fails_before_its_first_iteration() {
    let items = |count: usize| Value::Array(vec![Value::Null; count]);
    let body = || vec![set("x", literal(json!(1)))];
    let drive = Drive::begun(plan(vec![each(items(101), body())]));
    assert_eq!(drive.failure().code, Code::LIMIT_EXCEEDED);
    let drive = Drive::begun(plan(vec![each(items(100), body())]));
    assert_eq!(drive.state(), RunState::Succeeded);
}

/// Covers behaviour 116. Covers behaviour 117.
#[test]
fn a_failed_iteration_is_resumed_without_the_ones_before_it() {
    let mut drive = Drive::begun(plan(vec![each(
        json!([1, 2, 3]),
        vec![branch(Expr::Literal(json!(true)), vec![action(EffectClass::Idempotent)], None)],
    )]));
    drive.succeed(json!(1));
    drive.advance();
    drive.succeed(json!(2));
    drive.advance();
    drive.answer(failed(true));
    let controls = drive.facts.iter().filter(|fact| fact.is_journaled()).count();
    assert_eq!(controls, 0, "no enclosing step has an outcome");
    drive.claim();
    drive.advance();
    let called = finish(&mut drive);
    assert_eq!(called, ["steps.0.do.0.then.0#2"]);
}

/// Covers behaviour 40. Covers behaviour 41.
#[test]
fn names_do_not_escape_their_branch_or_iteration() {
    let leak = Template::Expr(Expr::Binary(
        Binary::Coalesce,
        Box::new(name("inner")),
        Box::new(Expr::Literal(json!("gone"))),
    ));
    let inside = vec![set("inner", literal(json!("here")))];
    let yes = Expr::Literal(json!(true));
    let after = || set("seen", leak.clone());
    assert_eq!(result(vec![branch(yes, inside.clone(), None), after()]), "gone");
    assert_eq!(result(vec![each(json!([1]), inside), after()]), "gone");
    let item = Template::Expr(name("item"));
    let steps = vec![each(json!([1, 2]), vec![set("x", item.clone())])];
    assert_eq!(result(steps), json!([1, 2]));
    let twice = vec![
        each(json!([1]), vec![set("x", item.clone())]),
        each(json!([2]), vec![set("x", item)]),
    ];
    assert_eq!(result(twice), json!([2]));
}

/// Covers behaviour 121.
#[test]
fn a_saved_output_is_bound_again_after_a_restart() {
    let steps = vec![
        saved(action(EffectClass::Pure), "first"),
        saved(each(json!([1]), vec![action(EffectClass::Pure)]), "list"),
        set(
            "both",
            Template::List(vec![Template::Expr(name("first")), Template::Expr(name("list"))]),
        ),
    ];
    assert_eq!(result(steps), json!(["steps.0", ["steps.1.do.0#0"]]));
}

/// Covers behaviour 119.
#[test]
fn succeed_ends_everything_around_it() {
    let enough = step(StepKind::Succeed { message: literal(json!("enough")) });
    let inner = branch(Expr::Literal(json!(true)), vec![enough], None);
    let mut drive =
        Drive::begun(plan(vec![each(json!([1, 2]), vec![inner]), action(EffectClass::Idempotent)]));
    assert_eq!(finish(&mut drive), [] as [String; 0]);
    let Phase::Succeeded { message, .. } = &drive.run().phase else { panic!() };
    assert_eq!(message.as_deref(), Some("enough"));
}

/// Covers behaviour 120.
#[test]
fn fail_ends_the_run_with_its_code() {
    let fail = |code: Option<Code>| step(StepKind::Fail { message: literal(json!("no")), code });
    let drive = Drive::begun(plan(vec![fail(None)]));
    assert_eq!(
        (drive.failure().code.clone(), drive.failure().message.as_str()),
        (Code::FAILED, "no")
    );
    let drive = Drive::begun(plan(vec![fail(Some("SOLD_OUT".into()))]));
    assert_eq!(drive.failure().code.as_str(), "SOLD_OUT");
}

/// Covers behaviour 122.
#[test]
fn the_result_keeps_its_json_type() {
    for value in [json!(false), json!(0), json!("done"), json!(null), json!({ "a": [1.0] })] {
        assert_eq!(result(vec![set("x", literal(value.clone()))]), value);
    }
}

#[test]
fn a_condition_that_is_no_bool_fails_the_step() {
    let odd = branch(Expr::Literal(json!("yes")), vec![action(EffectClass::Pure)], None);
    let drive = Drive::begun(plan(vec![odd]));
    assert_eq!(drive.failure().code, Code::EXPRESSION_ERROR);
    assert_eq!(drive.failure().step, Some(key("steps.0")));
}

/// Covers behaviour 36.
#[test]
fn a_config_with_a_missing_value_fails_before_the_action() {
    let config = Template::Object(vec![("x".to_owned(), Template::Expr(name("nothing")))]);
    let call = StepKind::Action {
        action: "idempotent".to_owned(),
        config,
        timeout: None,
        retry: None,
        catch: None,
    };
    let drive = Drive::begun(plan(vec![step(call)]));
    assert_eq!(drive.failure().code, Code::VALUE_UNAVAILABLE);
}

fn with_inputs(kind: InputType, required: bool, default: Option<Value>) -> Plan {
    let mut plan = plan(vec![set("seen", Template::Expr(name("inputs")))]);
    plan.inputs.insert("a/b".to_owned(), PlanInput { kind, required, default, label: None });
    plan
}

fn inputs(plan: Plan, data: Value) -> Drive {
    let mut drive = Drive::with(plan, data);
    drive.claim();
    drive.advance();
    drive
}

#[test]
fn inputs_are_checked_before_any_step() {
    let text = |required| with_inputs(InputType::Text, required, None);
    for (data, pointer) in [
        (json!({}), "/a~1b"),
        (json!(null), "/a~1b"),
        (json!({ "a/b": 1 }), "/a~1b"),
        (json!({ "a/b": "x", "other": 1 }), "/other"),
        (json!([1]), ""),
    ] {
        let drive = inputs(text(true), data.clone());
        assert_eq!(drive.failure().code, Code::INPUT_INVALID, "{data}");
        assert_eq!(drive.failure().details, Some(json!({ "pointer": pointer })), "{data}");
        let said = drive.failure().message.ends_with(&format!(" (at `{pointer}`)"));
        assert_eq!(said, !pointer.is_empty(), "{}", drive.failure().message);
    }
    for (odd, is) in [
        (json!(null), "null"),
        (json!(true), "a bool"),
        (json!(1), "a number"),
        (json!([]), "a list"),
        (json!({}), "an object"),
    ] {
        let why = inputs(text(true), json!({ "a/b": odd })).failure().message.clone();
        assert_eq!(why, format!("input `a/b` must be text, it is {is} (at `/a~1b`)"));
    }
    let why = inputs(with_inputs(InputType::Bool, true, None), json!({ "a/b": "x" }));
    assert!(why.failure().message.contains("it is a text (at"), "{why:?}");
    let seen = |plan, data| match inputs(plan, data).run().phase.clone() {
        Phase::Succeeded { result, .. } => result,
        other => panic!("{other:?}"),
    };
    assert_eq!(seen(text(true), json!({ "a/b": "x" })), json!({ "a/b": "x" }));
    assert_eq!(seen(text(false), json!({})), json!({}));
    let default = with_inputs(InputType::Integer, false, Some(json!(3)));
    assert_eq!(seen(default.clone(), json!({})), json!({ "a/b": 3 }));
    assert_eq!(seen(default, json!({ "a/b": 4 })), json!({ "a/b": 4 }));
}

#[test]
fn input_types_take_what_they_say() {
    let rows = [
        (InputType::Number, json!(1.5), json!("1")),
        (InputType::Integer, json!(u64::MAX), json!(1.0)),
        (InputType::Bool, json!(true), json!("true")),
        (InputType::Time, json!("2026-11-29T16:00:00+01:00"), json!("2026-11-29")),
        (InputType::List, json!([]), json!({})),
        (InputType::Object, json!({}), json!([])),
        (InputType::Text, json!(""), json!(null)),
    ];
    for (kind, good, bad) in rows {
        assert!(kind.accepts(&good), "{kind:?} {good}");
        assert!(!kind.accepts(&bad), "{kind:?} {bad}");
    }
}

#[test]
fn a_trigger_computes_the_inputs_from_the_event() {
    let member = |of: &str| Expr::Member(Box::new(name("trigger")), of.to_owned());
    let with = |of: &str| [("a/b".to_owned(), Template::Expr(member(of)))].into();
    let triggered = |required, of: &str| {
        let mut plan = with_inputs(InputType::Text, required, None);
        let trigger = TriggerPlan { event: "stock.low".to_owned(), with: with(of), schedule: None };
        plan.triggers.insert("stockLow".to_owned(), trigger);
        inputs(plan, json!({ "item": "bolt" }))
    };
    let Phase::Succeeded { result, .. } = triggered(true, "item").run().phase.clone() else {
        panic!()
    };
    assert_eq!(result, json!({ "a/b": "bolt" }));
    let missing = triggered(true, "other");
    assert_eq!(missing.failure().code, Code::INPUT_INVALID);
    let why = &missing.failure().message;
    assert!(why.contains("cannot be computed") && why.contains("other"), "{why}");
    assert_eq!(triggered(false, "other").state(), RunState::Succeeded);
}

#[test]
fn now_is_when_the_event_happened() {
    let now = || Template::Expr(Expr::Call(Function::Now, Vec::new()));
    let mut plan = with_inputs(InputType::Time, true, None);
    plan.steps.push(set("then", now()));
    let with = [("a/b".to_owned(), now())].into();
    plan.triggers
        .insert("tick".to_owned(), TriggerPlan { event: "tick".to_owned(), with, schedule: None });
    let mut drive = Drive::with(plan, json!({}));
    let occurred_at = json!(drive.run().origin.occurred_at.to_string());
    drive.pass(Micros::from_secs(86_400));
    drive.claim();
    drive.give(Input::Advance).unwrap();
    assert_eq!(drive.held.cursor.invocation().inputs, json!({ "a/b": occurred_at }));
    drive.advance();
    let Phase::Succeeded { result, .. } = &drive.run().phase else { panic!() };
    assert_eq!(*result, occurred_at);
}

fn restore(plan: &Plan, facts: &[Fact]) -> Result<Cursor, surefoot_kernel_core::RestoreInvalid> {
    let Held { run, .. } = Drive::new(plan.clone()).held;
    Cursor::new(&run, plan, Invocation::default()).restore(plan, facts)
}

/// Covers behaviour 112.
#[test]
fn a_journal_that_does_not_fit_the_plan_is_never_guessed_around() {
    let plan = plan(vec![
        branch(Expr::Literal(json!(true)), vec![action(EffectClass::Pure)], None),
        each(json!([1]), vec![action(EffectClass::Pure)]),
    ]);
    let started = || Fact::InputsComputed { inputs: json!({}) };
    let took = |step: &str, taken| Fact::BranchTaken { step: key(step), taken };
    let done =
        |step: &str| Fact::StepCompleted { step: key(step), output: json!(1), by: SaidBy::Action };
    let whole = [
        started(),
        took("steps.0", Taken::Then),
        done("steps.0.then.0"),
        took("steps.1", Taken::Items(vec![json!(1)])),
        done("steps.1.do.0#0"),
    ];
    assert!(restore(&plan, &whole).is_ok());
    for (missing, _) in whole.iter().enumerate().take(4) {
        let mut torn = whole.to_vec();
        torn.remove(missing);
        assert!(restore(&plan, &torn).is_err(), "without fact {missing}");
    }
    for odd in [
        vec![started(), started()],
        vec![started(), took("steps.0", Taken::Else)],
        vec![started(), took("steps.0", Taken::Nothing)]
            .into_iter()
            .chain([done("steps.0")])
            .collect(),
        vec![started(), took("steps.0", Taken::Items(vec![]))],
        vec![started(), done("steps.0")],
        vec![started(), took("steps.0", Taken::Then), done("steps.0.then.1")],
        whole.iter().cloned().chain([done("steps.2")]).collect(),
    ] {
        assert!(restore(&plan, &odd).is_err(), "{odd:?}");
    }
}

/// Covers behaviour 111.
#[test]
fn a_recorded_branch_is_restored_even_if_its_condition_would_now_differ() {
    let plan = plan(vec![branch(
        Expr::Literal(json!(false)),
        vec![action(EffectClass::Pure)],
        Some(vec![action(EffectClass::Pure)]),
    )]);
    let facts = [
        Fact::InputsComputed { inputs: json!({}) },
        Fact::BranchTaken { step: key("steps.0"), taken: Taken::Then },
    ];
    let cursor = restore(&plan, &facts).unwrap();
    let surefoot_kernel_core::Next::Step { key, .. } = cursor.next(&plan).unwrap() else {
        panic!()
    };
    assert_eq!(key.as_str(), "steps.0.then.0");
}

/// Iterations with outputs of 1 MiB of JSON each, as many as go.
fn large_iterations(items: usize) -> (Drive, usize) {
    let items = Value::Array(vec![Value::Null; items]);
    let mut drive = Drive::begun(plan(vec![each(items, vec![action(EffectClass::Pure)])]));
    let mut iterations = 0;
    while drive.command.is_some() {
        drive.succeed(json!("x".repeat(1024 * 1024 - 2)));
        drive.advance();
        iterations += 1;
    }
    (drive, iterations)
}

#[test]
fn a_list_that_outgrows_its_limit_fails_the_run() {
    let (drive, iterations) = large_iterations(20);
    assert_eq!(drive.failure().code, Code::VALUE_TOO_LARGE);
    assert_eq!(drive.failure().step, Some(key("steps.0")));
    assert_eq!(iterations, 17);
    assert_eq!(large_iterations(16).0.state(), RunState::Succeeded, "exactly at the limit");
}

/// Covers behaviour 58.
#[test]
fn a_run_acts_on_the_object_that_was_bound_when_it_was_published() {
    let supplier = Expr::Member(
        Box::new(Expr::Member(Box::new(name("bindings")), "supplier".to_owned())),
        "Bolts & Co".to_owned(),
    );
    let mut bound = plan(vec![set("seen", Template::Expr(supplier))]);
    let pinned = [("Bolts & Co".to_owned(), "sup_17".to_owned())].into();
    bound.bindings.insert("supplier".to_owned(), pinned);
    let mut drive = Drive::begun(bound);
    finish(&mut drive);
    let Phase::Succeeded { result, .. } = &drive.run().phase else { panic!() };
    assert_eq!(result, "sup_17", "whatever it is called by now");
}
