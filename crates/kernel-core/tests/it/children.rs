//! `runWorkflow` and `runWorkflows`: what is created, when the run waits, and what it makes of the results.

use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Expr, Function, Template};
use surefoot_kernel_core::plan::{Step, StepKind};
use surefoot_kernel_core::{
    Code, Command, Dependency, Failure, Input, Joined, Phase, RowInput, RunState, Spawn, Wake,
    decide, decide_row,
};

use crate::drive::{Drive, key, plan, saved, step};

fn literal(value: Value) -> Template {
    Template::Literal(value)
}

fn name(name: &str) -> Template {
    Template::Expr(Expr::Name(name.to_owned()))
}

fn one() -> Step {
    step(StepKind::RunWorkflow { workflow: literal(json!("one")), inputs: literal(json!({})) })
}

fn many(each: Value, parallel: Option<u32>) -> Step {
    step(StepKind::RunWorkflows {
        workflow: literal(json!("one")),
        each: literal(each),
        item: "item".to_owned(),
        inputs: Template::Object(vec![("n".to_owned(), name("item"))]),
        parallel,
    })
}

fn begun(of: Step) -> Drive {
    Drive::begun(plan(vec![
        saved(of, "done"),
        step(StepKind::SetVariable { name: "copy".to_owned(), value: name("done") }),
    ]))
}

fn spawn(drive: &Drive) -> Spawn {
    match drive.command.clone() {
        Some(Command::Spawn(spawn)) => spawn,
        other => panic!("{other:?}"),
    }
}

fn give(drive: &mut Drive, input: Input) {
    drive.give(input).unwrap();
}

fn spawned(drive: &mut Drive) {
    give(drive, Input::Spawned { step: key("steps.0"), result: Ok(()) });
}

fn joined(drive: &mut Drive, joined: Joined) {
    give(drive, Input::Joined { step: key("steps.0"), joined });
}

/// Woken by the end of the last child, and claimed again.
fn woken(drive: &mut Drive) {
    give(drive, Input::Row(RowInput::Wake { wake: Wake::Children, at_once: false }));
    drive.claim();
    drive.advance();
}

fn error(drive: &Drive) -> Failure {
    match &drive.run().phase {
        Phase::Failed { error, .. } => error.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_creates_its_child_then_waits_then_reads_it() {
    let mut drive = begun(one());
    assert_eq!(spawn(&drive).children.len(), 1);
    spawned(&mut drive);
    let Phase::Waiting(wait) = &drive.run().phase else { panic!("{:?}", drive.run()) };
    assert_eq!(wait.on, Some(Dependency::on_children(&key("steps.0"))));
    assert_eq!(wait.deadline, None);
    woken(&mut drive);
    assert!(matches!(&drive.command, Some(Command::Collect(collect)) if !collect.is_list));
    joined(&mut drive, Joined::Done(json!(7)));
    drive.advance();
    assert_eq!(drive.run().state(), RunState::Succeeded);
    assert!(matches!(&drive.run().phase, Phase::Succeeded { result, .. } if *result == json!(7)));
}

#[test]
fn each_item_is_a_child_and_its_inputs_see_the_item() {
    let drive = begun(many(json!(["a", "b"]), Some(1)));
    let spawn = spawn(&drive);
    let inputs: Vec<&str> = spawn.children.iter().map(|child| child.inputs.as_str()).collect();
    assert_eq!(inputs, [r#"{"n":"a"}"#, r#"{"n":"b"}"#]);
    assert_eq!(spawn.parallel, Some(1));
    let keys: Vec<&str> = spawn.children.iter().map(|child| child.key.as_str()).collect();
    assert_eq!(keys, ["0", "1"]);
}

#[test]
fn now_is_the_time_of_the_event_in_a_childs_inputs_too() {
    let mut step = many(json!([1]), None);
    if let StepKind::RunWorkflows { inputs, .. } = &mut step.kind {
        *inputs = Template::Object(vec![(
            "at".to_owned(),
            Template::Expr(Expr::Call(Function::Now, Vec::new())),
        )]);
    }
    let drive = begun(step);
    let at = drive.run().origin.occurred_at;
    let inputs: Vec<String> = spawn(&drive).children.iter().map(|it| it.inputs.clone()).collect();
    assert_eq!(inputs, [json!({ "at": at.to_string() }).to_string()]);
}

#[test]
fn no_items_are_no_children() {
    let drive = begun(many(json!([]), None));
    assert!(matches!(&drive.run().phase, Phase::Succeeded { result, .. } if *result == json!([])));
}

#[test]
fn a_replay_asks_for_the_same_children() {
    let mut drive = begun(many(json!([1, 2, 3]), None));
    let first = spawn(&drive);
    drive.crash();
    drive.advance();
    assert_eq!(spawn(&drive), first);
}

#[test]
fn what_cannot_be_a_list_of_children_fails_the_step() {
    let not_a_list = begun(many(json!({}), None));
    assert_eq!(error(&not_a_list).code, Code::EXPRESSION_ERROR);
    let no_key = begun(step(StepKind::RunWorkflow {
        workflow: literal(json!("")),
        inputs: literal(json!({})),
    }));
    assert_eq!(error(&no_key).code, Code::EXPRESSION_ERROR);
    let too_many = begun(many(Value::Array(vec![Value::Null; 65_537]), None));
    assert_eq!(error(&too_many).code, Code::LIMIT_EXCEEDED);
    let just_enough = begun(many(Value::Array(vec![Value::Null; 65_536]), None));
    assert_eq!(spawn(&just_enough).children.len(), 65_536);
    let mut refused = begun(one());
    let failure = Failure::new(Code::WORKFLOW_UNAVAILABLE, "no such workflow");
    give(&mut refused, Input::Spawned { step: key("steps.0"), result: Err(failure) });
    assert_eq!(error(&refused).code, Code::WORKFLOW_UNAVAILABLE);
    assert_eq!(error(&refused).step, Some(key("steps.0")));
}

#[test]
fn inputs_of_exactly_the_limit_are_passed_on_and_one_byte_more_is_not() {
    // With the eight bytes around it each child has 256 KiB, and all of them 64 MiB.
    let children = |count| {
        let mut step = many(Value::Array(vec![Value::Null; count]), None);
        if let StepKind::RunWorkflows { inputs, .. } = &mut step.kind {
            let text = literal(Value::String("x".repeat(256 * 1024 - 8)));
            *inputs = Template::Object(vec![("n".to_owned(), text)]);
        }
        begun(step)
    };
    assert_eq!(spawn(&children(256)).children.bytes(), 64 * 1024 * 1024);
    assert_eq!(error(&children(257)).code, Code::LIMIT_EXCEEDED);
}

#[test]
fn a_failed_child_fails_the_step_under_its_own_code() {
    let mut drive = begun(one());
    spawned(&mut drive);
    woken(&mut drive);
    joined(&mut drive, Joined::Failed(Failure::new("OUT_OF_STOCK", "no bolts")));
    assert_eq!(error(&drive).code.as_str(), "OUT_OF_STOCK");
    // Tried again, it looks again: first that the children exist, then what they came to.
    drive.row(RowInput::Retry).unwrap();
    drive.claim();
    drive.advance();
    assert_eq!(spawn(&drive).children.len(), 1);
}

#[test]
fn children_that_live_again_are_waited_for_again() {
    let mut drive = begun(one());
    spawned(&mut drive);
    woken(&mut drive);
    joined(&mut drive, Joined::Live);
    assert_eq!(drive.run().state(), RunState::Waiting);
}

#[test]
fn cancel_wins_over_what_the_children_came_to() {
    let cancel = || {
        let (actor, reason) = ("ann".to_owned(), "enough".to_owned());
        Input::Row(RowInput::Cancel { actor, reason })
    };
    let mut waits = begun(one());
    give(&mut waits, cancel());
    spawned(&mut waits);
    assert_eq!(waits.run().state(), RunState::Canceled);
    let mut reads = begun(one());
    spawned(&mut reads);
    woken(&mut reads);
    give(&mut reads, cancel());
    joined(&mut reads, Joined::Failed(Failure::new("OUT_OF_STOCK", "no bolts")));
    assert_eq!(reads.run().state(), RunState::Canceled);
}

#[test]
fn only_the_open_step_takes_its_children() {
    let drive = begun(one());
    let stray = Input::Joined { step: key("steps.1"), joined: Joined::Done(json!(1)) };
    assert!(decide(&drive.held, &drive.plan, stray, drive.now).is_err());
    // A signal does not end a wait for children, nor their end a wait for a signal.
    let mut waits = begun(one());
    spawned(&mut waits);
    let signal = RowInput::Wake { wake: Wake::Signal(json!(1)), at_once: false };
    assert!(decide_row(waits.run(), signal, waits.now).is_err());
    let deadline = RowInput::Wake { wake: Wake::Deadline, at_once: false };
    assert!(decide_row(waits.run(), deadline, waits.now).is_err());
}
