//! Loops and branches, by iteration, with a cap.

use expect_test::expect;
use serde_json::json;

use super::*;

fn each(items: usize, body: Vec<Step>) -> Step {
    let items: Vec<usize> = (0..items).collect();
    step(StepKind::ForEach { over: literal(json!(items)), item: "item".to_owned(), body })
}

/// Sends the mail of the first `count` iterations and stands at the next one.
fn mailed(mut story: Story, key: impl Fn(usize) -> String, count: usize) -> Story {
    story.claim();
    for index in 0..count {
        story.advance();
        story.prepared(&key(index));
        story.answer(&key(index), succeeded(index));
    }
    story.advance();
    story
}

#[test]
fn iterations_are_listed_and_counted() {
    let story = Story::of(plan(vec![each(3, vec![action("mail"), action("price")])]));
    let mut story = mailed(story, |_| "steps.0.do.0#0".to_owned(), 1);
    story.answer("steps.0.do.1#0", succeeded(1));
    story.advance();
    expect![[r#"
        Runs at step `steps.0.do.0#1` (`mail`).
        - held: worker wrk_02020202020202020202020202020202 holds it
        steps.0 forEach running 1/3
        steps.0.do.0#0 mail completed effect=succeeded
        steps.0.do.1#0 price completed
        steps.0.do.0#1 mail running attempt=1
        steps.0.do.1#1 price not_reached (behind `steps.0.do.0#1`)
        happened: steps.0.do.0#0 mail: its outcome is recorded
        may have happened: steps.0.do.0#1 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
        not started: steps.0.do.0 mail: an iteration that was not begun
        again: steps.0.do.0#1 mail: it would be repeated under the same key
        $ surefoot cancel run_07070707070707070707070707070707 --revision 4 --reason WHY --yes
    "#]].assert_eq(&rendered(&story.explain()));
}

#[test]
fn only_the_newest_iterations_are_listed() {
    let story = Story::of(plan(vec![each(40, vec![action("mail")]), action("pay")]));
    let story = mailed(story, |index| format!("steps.0.do.0#{index}"), 25);
    expect![[r#"
        Runs at step `steps.0.do.0#25` (`mail`).
        - held: worker wrk_02020202020202020202020202020202 holds it
        steps.0 forEach running 25/40
        steps.0.do.0#16 mail completed effect=succeeded
        steps.0.do.0#17 mail completed effect=succeeded
        steps.0.do.0#18 mail completed effect=succeeded
        steps.0.do.0#19 mail completed effect=succeeded
        steps.0.do.0#20 mail completed effect=succeeded
        steps.0.do.0#21 mail completed effect=succeeded
        steps.0.do.0#22 mail completed effect=succeeded
        steps.0.do.0#23 mail completed effect=succeeded
        steps.0.do.0#24 mail completed effect=succeeded
        steps.0.do.0#25 mail running attempt=1
        steps.1 pay not_reached (behind `steps.0.do.0#25`)
        happened: steps.0.do.0#16 mail: its outcome is recorded
        happened: steps.0.do.0#17 mail: its outcome is recorded
        happened: steps.0.do.0#18 mail: its outcome is recorded
        happened: steps.0.do.0#19 mail: its outcome is recorded
        happened: steps.0.do.0#20 mail: its outcome is recorded
        happened: steps.0.do.0#21 mail: its outcome is recorded
        happened: steps.0.do.0#22 mail: its outcome is recorded
        happened: steps.0.do.0#23 mail: its outcome is recorded
        happened: steps.0.do.0#24 mail: its outcome is recorded
        happened: steps.0.do.0 mail x16: its outcome is recorded
        may have happened: steps.0.do.0#25 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
        not started: steps.1 pay: behind `steps.0.do.0#25`
        not started: steps.0.do.0 mail x14: an iteration that was not begun
        again: steps.0.do.0#25 mail: it would be repeated under the same key
        $ surefoot cancel run_07070707070707070707070707070707 --revision 27 --reason WHY --yes
    "#]].assert_eq(&rendered(&story.explain()));
}

#[test]
fn nested_loops_have_their_own_counts() {
    let inner = each(2, vec![action("mail")]);
    let story = Story::of(plan(vec![each(2, vec![inner])]));
    let key = |index: usize| format!("steps.0.do.0.do.0#{}.{}", index / 2, index % 2);
    let story = mailed(story, key, 3);
    expect![[r#"
        Runs at step `steps.0.do.0.do.0#1.1` (`mail`).
        - held: worker wrk_02020202020202020202020202020202 holds it
        steps.0 forEach running 1/2
        steps.0.do.0#0 forEach completed 2/2
        steps.0.do.0.do.0#0.0 mail completed effect=succeeded
        steps.0.do.0.do.0#0.1 mail completed effect=succeeded
        steps.0.do.0#1 forEach running 1/2
        steps.0.do.0.do.0#1.0 mail completed effect=succeeded
        steps.0.do.0.do.0#1.1 mail running attempt=1
        happened: steps.0.do.0.do.0#0.0 mail: its outcome is recorded
        happened: steps.0.do.0.do.0#0.1 mail: its outcome is recorded
        happened: steps.0.do.0.do.0#1.0 mail: its outcome is recorded
        may have happened: steps.0.do.0.do.0#1.1 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
        again: steps.0.do.0.do.0#1.1 mail: it would be repeated under the same key
        $ surefoot cancel run_07070707070707070707070707070707 --revision 6 --reason WHY --yes
    "#]].assert_eq(&rendered(&story.explain()));
}

#[test]
fn a_loop_over_nothing_is_completed() {
    let mut story = Story::of(plan(vec![each(0, vec![action("mail")]), action("book")]));
    story.claim();
    story.advance();
    expect![[r#"
        Runs.
        - held: worker wrk_02020202020202020202020202020202 holds it
        steps.0 forEach not_reached (the inputs are not computed yet)
        steps.0.do.0 mail not_reached (the inputs are not computed yet)
        steps.1 book not_reached (the inputs are not computed yet)
        not started: steps.0.do.0 mail: the inputs are not computed yet
        not started: steps.1 book: the inputs are not computed yet
        again: steps.1 book: it would be run again: what an attempt without an outcome wrote was rolled back
        $ surefoot cancel run_07070707070707070707070707070707 --revision 1 --reason WHY --yes
    "#]].assert_eq(&rendered(&story.explain()));
}

#[test]
fn branches_say_why_they_are_not_reached() {
    let case = |when: &str, name: &str| crate::plan::Case {
        when: literal(when),
        steps: vec![action(name)],
    };
    let switch = StepKind::Switch {
        on: literal("b"),
        cases: vec![case("a", "pay"), case("b", "mail")],
        default: Some(vec![action("book")]),
    };
    let mut story = Story::of(plan(vec![action("book"), step(switch)]));
    expect![[r#"
        Queued; no worker has taken it yet.
        - due: ready, and no worker has taken it yet
        steps.0 book not_reached (the inputs are not computed yet)
        steps.1 switch not_reached (the inputs are not computed yet)
        steps.1.cases.0.do.0 pay not_reached (the inputs are not computed yet)
        steps.1.cases.1.do.0 mail not_reached (the inputs are not computed yet)
        steps.1.default.0 book not_reached (the inputs are not computed yet)
        not started: steps.0 book: the inputs are not computed yet
        not started: steps.1.cases.0.do.0 pay: the inputs are not computed yet
        not started: steps.1.cases.1.do.0 mail: the inputs are not computed yet
        not started: steps.1.default.0 book: the inputs are not computed yet
        $ surefoot cancel run_07070707070707070707070707070707 --revision 0 --reason WHY --yes
    "#]]
    .assert_eq(&rendered(&story.explain()));
    story.claim();
    story.advance();
    story.answer("steps.0", succeeded(1));
    story.advance();
    expect![[r#"
        Runs at step `steps.1.cases.1.do.0` (`mail`).
        - held: worker wrk_02020202020202020202020202020202 holds it
        steps.0 book completed effect=succeeded
        steps.1 switch running
        steps.1.cases.0.do.0 pay not_reached (another branch was taken)
        steps.1.cases.1.do.0 mail running attempt=1
        steps.1.default.0 book not_reached (another branch was taken)
        happened: steps.0 book: its outcome is recorded
        may have happened: steps.1.cases.1.do.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
        not started: steps.1.cases.0.do.0 pay: another branch was taken
        not started: steps.1.default.0 book: another branch was taken
        again: steps.1.cases.1.do.0 mail: it would be repeated under the same key
        $ surefoot cancel run_07070707070707070707070707070707 --revision 3 --reason WHY --yes
    "#]].assert_eq(&rendered(&story.explain()));
}

#[test]
fn a_long_run_is_cut_and_says_so() {
    let steps = (0..1_200).map(|_| action("mail")).collect();
    let explanation = Story::of(plan(steps)).explain();
    assert_eq!((explanation.steps.len(), explanation.steps_omitted), (1_000, 200));
    let listed: u64 = explanation.effects.not_started.iter().map(|note| note.count).sum();
    assert_eq!(listed, 1_200);
}

/// Covers behaviour 118.
#[test]
fn what_failed_inside_failed_everything_around_it_with_the_same_error() {
    let condition = crate::expr::Expr::Literal(json!(true));
    let inner = step(StepKind::If { condition, then: vec![action("mail")], otherwise: None });
    let mut story = Story::of(plan(vec![each(2, vec![inner])]));
    story.claim();
    story.advance();
    story.prepared("steps.0.do.0.then.0#0");
    story.answer("steps.0.do.0.then.0#0", failed("MAIL_REFUSED", false));
    let shown = story.explain().steps;
    for key in ["steps.0", "steps.0.do.0#0", "steps.0.do.0.then.0#0"] {
        let step = shown.iter().find(|step| step.key.as_str() == key).unwrap();
        assert_eq!(step.state, crate::StepState::Failed, "{key}");
        assert_eq!(step.error.as_ref().unwrap().code.as_str(), "MAIL_REFUSED", "{key}");
    }
}
