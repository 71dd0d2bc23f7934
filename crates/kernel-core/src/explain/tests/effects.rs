//! Every situation of an effect, by class.

use expect_test::{Expect, expect};

use super::*;
use crate::Verdict;

/// What is said of the first of two steps, `name`, after the story.
#[track_caller]
fn check(name: &str, tell: impl FnOnce(&mut Story), expected: Expect) {
    let mut story = Story::of(plan(vec![action(name), action("mail")]));
    tell(&mut story);
    let rendered = rendered(&story.explain());
    let told = |line: &&str| {
        ["steps.0 ", "happened", "may have", "not started", "again"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let lines: Vec<&str> = rendered.lines().filter(told).collect();
    expected.assert_eq(&lines.join("\n"));
}

fn begun(story: &mut Story) {
    story.claim();
    story.advance();
}

fn called(story: &mut Story) {
    begun(story);
    story.prepared("steps.0");
}

#[test]
fn pure_effects_do_not_exist() {
    check(
        "price",
        begun,
        expect![[r#"
            steps.0 price not_reached (the inputs are not computed yet)
            not started: steps.1 mail: the inputs are not computed yet
            again: steps.0 price: it would be computed again: it has no effect"#]],
    );
}

#[test]
fn transactional() {
    check(
        "book",
        |_| {},
        expect![[r#"
        steps.0 book not_reached (the inputs are not computed yet)
        not started: steps.0 book: the inputs are not computed yet
        not started: steps.1 mail: the inputs are not computed yet"#]],
    );
    check(
        "book",
        begun,
        expect![[r#"
            steps.0 book not_reached (the inputs are not computed yet)
            not started: steps.0 book: the inputs are not computed yet
            not started: steps.1 mail: the inputs are not computed yet
            again: steps.0 book: it would be run again: what an attempt without an outcome wrote was rolled back"#]],
    );
    let crashed = |story: &mut Story| {
        begun(story);
        story.crash();
    };
    check(
        "book",
        crashed,
        expect![[r#"
            steps.0 book not_reached (the inputs are not computed yet)
            not started: steps.0 book: the inputs are not computed yet
            not started: steps.1 mail: the inputs are not computed yet
            again: steps.0 book: it would be run again: what an attempt without an outcome wrote was rolled back"#]],
    );
    let released = |story: &mut Story| {
        begun(story);
        story.answer("steps.0", failed("TRANSACTION_CONFLICT", true));
    };
    check(
        "book",
        released,
        expect![[r#"
        steps.0 book waiting attempt=1 error=TRANSACTION_CONFLICT (a worker goes on with it)
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 book: it would be run again: what an attempt without an outcome wrote was rolled back"#]],
    );
    let done = |story: &mut Story| {
        begun(story);
        story.answer("steps.0", succeeded(1));
    };
    check(
        "book",
        done,
        expect![[r#"
            steps.0 book completed effect=succeeded
            happened: steps.0 book: its outcome is recorded
            may have happened: steps.1 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            again: steps.1 mail: it would be repeated under the same key"#]],
    );
}

#[test]
fn idempotent() {
    check(
        "mail",
        |_| {},
        expect![[r#"
        steps.0 mail not_reached (the inputs are not computed yet)
        not started: steps.0 mail: the inputs are not computed yet
        not started: steps.1 mail: the inputs are not computed yet"#]],
    );
    check(
        "mail",
        begun,
        expect![[r#"
            steps.0 mail running attempt=1
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 mail: behind `steps.0`
            again: steps.0 mail: it would be repeated under the same key"#]],
    );
    let crashed = |story: &mut Story| {
        called(story);
        story.crash();
    };
    check(
        "mail",
        crashed,
        expect![[r#"
            steps.0 mail running attempt=1
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 mail: behind `steps.0`
            again: steps.0 mail: it would be repeated under the same key"#]],
    );
    let done = |story: &mut Story| {
        called(story);
        story.answer("steps.0", succeeded(1));
    };
    check(
        "mail",
        done,
        expect![[r#"
            steps.0 mail completed effect=succeeded
            happened: steps.0 mail: its outcome is recorded
            may have happened: steps.1 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            again: steps.1 mail: it would be repeated under the same key"#]],
    );
    let refused = |story: &mut Story| {
        called(story);
        story.answer("steps.0", failed("NO_ADDRESS", false));
    };
    check(
        "mail",
        refused,
        expect![[r#"
            steps.0 mail failed attempt=1 error=NO_ADDRESS
            may have happened: steps.0 mail: a worker came to it before it failed; a retry repeats it under the same key
            not started: steps.1 mail: the run failed at `steps.0`"#]],
    );
}

#[test]
fn ambiguous_before_and_after_the_mark() {
    check(
        "pay",
        begun,
        expect![[r#"
        steps.0 pay running attempt=1
        may have happened: steps.0 pay: no call was marked when this was read, but a worker holds the run
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 pay: it would be called: no earlier call of it is unexplained"#]],
    );
    check(
        "pay",
        called,
        expect![[r#"
        steps.0 pay running effect=marked attempt=1
        may have happened: steps.0 pay: its call was marked, and nothing is known since
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 pay: its call is never made again: the provider is asked what became of it"#]],
    );
    let crashed = |story: &mut Story| {
        called(story);
        story.crash();
    };
    check(
        "pay",
        crashed,
        expect![[r#"
        steps.0 pay running effect=marked attempt=1
        may have happened: steps.0 pay: its call was marked, and nothing is known since
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 pay: its call is never made again: the provider is asked what became of it"#]],
    );
    let unanswered = |story: &mut Story| {
        called(story);
        story.answer("steps.0", unknown());
    };
    check(
        "pay",
        unanswered,
        expect![[r#"
        steps.0 pay waiting effect=ambiguous attempt=1 (a worker goes on with it)
        may have happened: steps.0 pay: its call ended without a definite answer
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 pay: its call is never made again: the provider is asked what became of it"#]],
    );
    let nothing = |story: &mut Story| {
        called(story);
        story.answer("steps.0", failed("BUSY", true));
    };
    check(
        "pay",
        nothing,
        expect![[r#"
        steps.0 pay waiting effect=not_performed attempt=1 error=BUSY (a worker goes on with it)
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 pay: it would be called: no earlier call of it is unexplained"#]],
    );
    let refused = |story: &mut Story| {
        called(story);
        story.answer("steps.0", failed("CARD_DECLINED", false));
    };
    check(
        "pay",
        refused,
        expect![[r#"
        steps.0 pay failed effect=failed attempt=1 error=CARD_DECLINED
        not started: steps.1 mail: the run failed at `steps.0`"#]],
    );
}

#[test]
fn ambiguous_and_asked() {
    let asked = |story: &mut Story, answer: ReconcileAnswer| {
        called(story);
        story.answer("steps.0", unknown());
        begun(story);
        story.reconciled("steps.0", answer);
    };
    let output = Value::from("p-1");
    let done = |story: &mut Story| asked(story, ReconcileAnswer::Succeeded { output });
    check(
        "pay",
        done,
        expect![[r#"
            steps.0 pay completed effect=succeeded
            happened: steps.0 pay: the provider said so when it was asked
            may have happened: steps.1 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            again: steps.1 mail: it would be repeated under the same key"#]],
    );
    let why = || "two payments look alike".to_owned();
    let unknown = |story: &mut Story| asked(story, ReconcileAnswer::Unknown { why: why() });
    check(
        "pay",
        unknown,
        expect![[r#"
        steps.0 pay needs_attention effect=ambiguous attempt=2 error=EFFECT_OUTCOME_UNKNOWN
        may have happened: steps.0 pay: its call ended without a definite answer
        not started: steps.1 mail: behind `steps.0`"#]],
    );
    let resolved = |story: &mut Story| {
        unknown(story);
        let verdict = Verdict::NotPerformed;
        story.row(RowInput::Resolve { step: "steps.0".into(), verdict });
    };
    check(
        "pay",
        resolved,
        expect![[r#"
        steps.0 pay waiting effect=not_performed attempt=2 (a worker goes on with it)
        not started: steps.1 mail: behind `steps.0`
        again: steps.0 pay: it would be called: no earlier call of it is unexplained"#]],
    );
    let confirmed = |story: &mut Story| {
        unknown(story);
        let verdict = Verdict::Succeeded { output: Value::Null };
        story.row(RowInput::Resolve { step: "steps.0".into(), verdict });
    };
    check(
        "pay",
        confirmed,
        expect![[r#"
        steps.0 pay completed effect=succeeded
        happened: steps.0 pay: an operator said so
        not started: steps.1 mail: it is next, and no worker has come to it"#]],
    );
}
