//! One explanation per state of a run.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::{Dependency, Verdict};

#[track_caller]
fn check(story: &Story, expected: Expect) {
    expected.assert_eq(&rendered(&story.explain()));
}

fn mail_then_pay() -> Story {
    Story::of(plan(vec![action("mail"), action("pay")]))
}

#[test]
fn queued_and_new() {
    check(
        &mail_then_pay(),
        expect![[r#"
            Queued; no worker has taken it yet.
            - due: ready, and no worker has taken it yet
            steps.0 mail not_reached (the inputs are not computed yet)
            steps.1 pay not_reached (the inputs are not computed yet)
            not started: steps.0 mail: the inputs are not computed yet
            not started: steps.1 pay: the inputs are not computed yet
            $ surefoot cancel run_07070707070707070707070707070707 --revision 0 --reason '<why>'
        "#]],
    );
}

#[test]
fn queued_and_no_worker_can_run_it() {
    let mut story = mail_then_pay();
    story.now = story.now.plus(MINUTE);
    let mut offer = story.plan.footprint.clone();
    offer.uses.insert("action/pay".to_owned(), "another".to_owned());
    story.sessions[0].offers = vec![offer];
    check(
        &story,
        expect![[r#"
            Queued, and no live worker can run it.
            - due: ready for 1 m, and no worker has taken it yet
            - missing_module: no live worker can run it; the nearest lacks action/pay
            steps.0 mail not_reached (the inputs are not computed yet)
            steps.1 pay not_reached (the inputs are not computed yet)
            not started: steps.0 mail: the inputs are not computed yet
            not started: steps.1 pay: the inputs are not computed yet
            $ surefoot cancel run_07070707070707070707070707070707 --revision 0 --reason '<why>'
            $ surefoot abandon run_07070707070707070707070707070707 --revision 0 --reason '<why>'
        "#]],
    );
    story.sessions[0].seen_at = at("11:00:00");
    check(
        &story,
        expect![[r#"
            Queued, and no live worker can run it.
            - due: ready for 1 m, and no worker has taken it yet
            - no_worker: no worker was seen in the last minute; it needs one with module `inventory`
            steps.0 mail not_reached (the inputs are not computed yet)
            steps.1 pay not_reached (the inputs are not computed yet)
            not started: steps.0 mail: the inputs are not computed yet
            not started: steps.1 pay: the inputs are not computed yet
            $ surefoot cancel run_07070707070707070707070707070707 --revision 0 --reason '<why>'
            $ surefoot abandon run_07070707070707070707070707070707 --revision 0 --reason '<why>'
        "#]],
    );
}

#[test]
fn running() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    check(
        &story,
        expect![[r#"
            Runs at step `steps.0` (`mail`).
            - held: worker wrk_02020202020202020202020202020202 holds it
            steps.0 mail running attempt=1
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
            again: steps.0 mail: it would be repeated under the same key
            $ surefoot cancel run_07070707070707070707070707070707 --revision 2 --reason '<why>'
        "#]],
    );
}

#[test]
fn running_with_a_lease_that_ran_out() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.crash();
    check(
        &story,
        expect![[r#"
            Lost its worker at step `steps.0` (`mail`); the next one takes it over.
            - lease_expired: the lease of worker wrk_02020202020202020202020202020202 ran out 1 m ago: any worker that can run it takes it next
            steps.0 mail running attempt=1
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
            again: steps.0 mail: it would be repeated under the same key
            $ surefoot cancel run_07070707070707070707070707070707 --revision 2 --reason '<why>'
        "#]],
    );
}

#[test]
fn running_with_cancel_requested() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.row(RowInput::Cancel { actor: "ann".to_owned(), reason: "no stock".to_owned() });
    check(
        &story,
        expect![[r#"
            Runs at step `steps.0` (`mail`).
            - held: worker wrk_02020202020202020202020202020202 holds it
            - cancel_requested: cancel was requested by ann (no stock): it ends once its worker sees that, or its lease runs out
            steps.0 mail running attempt=1
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
        "#]],
    );
}

#[test]
fn queued_with_backoff() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", failed("SUPPLIER_BUSY", true));
    check(
        &story,
        expect![[r#"
            Tried again at 2026-11-29T12:00:04.031036Z at step `steps.0` (`mail`), after SUPPLIER_BUSY: in words
            - backoff: tried again in 4 s, after SUPPLIER_BUSY: in words
            steps.0 mail waiting attempt=1 error=SUPPLIER_BUSY (a worker goes on with it)
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
            again: steps.0 mail: it would be repeated under the same key
            $ surefoot cancel run_07070707070707070707070707070707 --revision 3 --reason '<why>'
        "#]],
    );
}

#[test]
fn queued_and_the_next_worker_gives_it_up() {
    let mut story = mail_then_pay();
    for _ in 0..3 {
        story.claim();
        story.advance();
        story.prepared("steps.0");
        story.answer("steps.0", failed("SUPPLIER_BUSY", true));
    }
    check(
        &story,
        expect![[r#"
            Tried again at 2026-11-29T12:00:34.754893Z at step `steps.0` (`mail`), after SUPPLIER_BUSY: in words
            - backoff: tried again in 22 s, after SUPPLIER_BUSY: in words
            - would_stop: the next worker gives it up without calling anything: RETRY_EXHAUSTED: 3 executions in a row ended badly; the last one with SUPPLIER_BUSY: in words
            steps.0 mail waiting attempt=3 error=SUPPLIER_BUSY (a worker goes on with it)
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
            $ surefoot cancel run_07070707070707070707070707070707 --revision 7 --reason '<why>'
        "#]],
    );
}

#[test]
fn waiting_for_a_signal() {
    let wait = StepKind::WaitFor {
        signal: literal("approval"),
        key: literal("order 7"),
        timeout: Some(Micros::from_secs(7_200)),
    };
    let mut story = Story::of(plan(vec![step(wait), action("mail")]));
    story.claim();
    story.advance();
    story.now = story.now.plus(MINUTE);
    check(
        &story,
        expect![[r#"
        Waits at step `steps.0` for signal `approval` with key `order 7`, at most until 2026-11-29 14:00:00 UTC.
        - signal: step `steps.0` waits for signal `approval` with key `order 7`
        - deadline: it goes on in 1 h 59 m by itself, whatever happens
        steps.0 waitFor waiting attempt=1
        steps.1 mail not_reached (behind `steps.0`)
        not started: steps.1 mail: behind `steps.0`
        $ surefoot signal approval 'order 7' --app shop --scope berlin --data '<data as JSON>'
        $ surefoot cancel run_07070707070707070707070707070707 --revision 2 --reason '<why>'
    "#]],
    );
}

#[test]
fn waiting_in_an_action() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", Answer::Waiting { on: Dependency::on("job", "j-1").app_wide() });
    check(
        &story,
        expect![[r#"
            Waits at step `steps.0` (`mail`) for signal `job` with key `j-1` of the app.
            - signal: step `steps.0` waits for signal `job` with key `j-1` of the app
            steps.0 mail waiting attempt=1
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
            again: steps.0 mail: once woken it is repeated under the same key
            $ surefoot signal job j-1 --app shop --app-wide --data '<data as JSON>'
            $ surefoot cancel run_07070707070707070707070707070707 --revision 3 --reason '<why>'
        "#]],
    );
}

#[test]
fn waiting_until_an_instant() {
    let delay = StepKind::Delay(crate::plan::Delay::For(Micros::from_secs(300)));
    let mut story = Story::of(plan(vec![action("mail"), step(delay)]));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", succeeded("sent"));
    story.advance();
    check(
        &story,
        expect![[r#"
        Waits at step `steps.1` until 2026-11-29 12:05:00 UTC.
        - deadline: it goes on in 5 m by itself, whatever happens
        steps.0 mail completed effect=succeeded
        steps.1 delay waiting attempt=1
        happened: steps.0 mail: its outcome is recorded
        $ surefoot cancel run_07070707070707070707070707070707 --revision 4 --reason '<why>'
    "#]],
    );
}

#[test]
fn succeeded_at_its_end() {
    let mut story = Story::of(plan(vec![action("price"), action("book")]));
    story.claim();
    story.advance();
    story.answer("steps.0", succeeded(3));
    story.advance();
    story.answer("steps.1", succeeded(json!({"id": 1})));
    story.advance();
    check(
        &story,
        expect![[r#"
        Succeeded.
        - ended: it has ended: nothing moves it any more
        steps.0 price completed
        steps.1 book completed effect=succeeded
        happened: steps.1 book: its outcome is recorded
    "#]],
    );
}

#[test]
fn succeeded_early() {
    let end = StepKind::Succeed { message: literal("nothing to do") };
    let mut story = Story::of(plan(vec![step(end), action("mail")]));
    story.claim();
    story.advance();
    check(
        &story,
        expect![[r#"
            Succeeded: nothing to do
            - ended: it has ended: nothing moves it any more
            steps.0 succeed terminal (the run ended before it)
            steps.1 mail not_reached (the run ended at `steps.0`)
            not started: steps.1 mail: the run ended at `steps.0`
        "#]],
    );
}

/// Covers field fault 116.
#[test]
fn every_state_but_success_says_why_and_what_next() {
    let begun = |tell: &dyn Fn(&mut Story)| {
        let mut story = mail_then_pay();
        story.claim();
        story.advance();
        story.prepared("steps.0");
        tell(&mut story);
        story
    };
    let cancel = || RowInput::Cancel { actor: "ann".to_owned(), reason: "no stock".to_owned() };
    let error = || Failure::new(crate::Code::OUTPUT_INVALID, "`/id` must be a text");
    let refused = || Answer::OutputRefused { error: error(), evidence: "{}".to_owned() };
    let on = || Dependency::on("job", "1");
    for (story, code) in [
        (mail_then_pay(), None),
        (begun(&|_| {}), None),
        (begun(&|story| story.answer("steps.0", failed("BUSY", true))), Some("BUSY")),
        (begun(&|story| story.answer("steps.0", Answer::Waiting { on: on() })), None),
        (begun(&|story| story.answer("steps.0", failed("NO", false))), Some("NO")),
        (begun(&|story| story.answer("steps.0", refused())), Some("OUTPUT_INVALID")),
    ] {
        let explanation = story.explain();
        let state = explanation.state;
        assert!(!explanation.why_not_moving.is_empty(), "{state}");
        assert!(!explanation.legal_actions.is_empty(), "{state}");
        let says = |code: &str| explanation.headline.contains(&format!("{code}: "));
        assert!(code.is_none_or(says), "{}", explanation.headline);
    }
    let mut story = mail_then_pay();
    story.row(cancel());
    assert_eq!(story.explain().headline, "Canceled: no stock");
}

#[test]
fn failed_in_a_branch_with_code_sentence_and_next_action() {
    let branch = StepKind::If {
        condition: crate::expr::Expr::Literal(json!(true)),
        then: vec![action("mail")],
        otherwise: Some(vec![action("pay")]),
    };
    let mut story = Story::of(plan(vec![step(branch), action("book")]));
    story.claim();
    story.advance();
    story.prepared("steps.0.then.0");
    story.answer("steps.0.then.0", failed("NO_ADDRESS", false));
    check(
        &story,
        expect![[r#"
            Failed at step `steps.0.then.0` (`mail`) with NO_ADDRESS: in words
            - ended: it has ended: nothing moves it any more
            steps.0 if failed error=NO_ADDRESS
            steps.0.then.0 mail failed attempt=1 error=NO_ADDRESS
            steps.0.else.0 pay not_reached (another branch was taken)
            steps.1 book not_reached (the run failed at `steps.0.then.0`)
            may have happened: steps.0.then.0 mail: a worker came to it before it failed; a retry repeats it under the same key
            not started: steps.0.else.0 pay: another branch was taken
            not started: steps.1 book: the run failed at `steps.0.then.0`
            $ surefoot retry run_07070707070707070707070707070707 --revision 3 --reason '<why>'
        "#]],
    );
}

#[test]
fn a_caught_failure_is_shown_with_what_handled_it() {
    let steps = vec![catching("mail", vec![action("pay")]), catching("book", vec![action("mail")])];
    let mut story = Story::of(plan(steps));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", failed("NO_ADDRESS", false));
    story.advance();
    check(
        &story,
        expect![[r#"
        Runs at step `steps.0.catch.0` (`pay`).
        - held: worker wrk_02020202020202020202020202020202 holds it
        steps.0 mail failed error=NO_ADDRESS (its failure was caught: the run went on with its `catch`)
        steps.0.catch.0 pay running attempt=1
        steps.1 book not_reached (behind `steps.0.catch.0`)
        steps.1.catch.0 mail not_reached (behind `steps.0.catch.0`)
        may have happened: steps.0 mail: its action was called and failed, and was not undone
        may have happened: steps.0.catch.0 pay: no call was marked when this was read, but a worker holds the run
        not started: steps.1 book: behind `steps.0.catch.0`
        not started: steps.1.catch.0 mail: behind `steps.0.catch.0`
        again: steps.0.catch.0 pay: it would be called: no earlier call of it is unexplained
        $ surefoot cancel run_07070707070707070707070707070707 --revision 3 --reason '<why>'
    "#]],
    );
    story.prepared("steps.0.catch.0");
    story.answer("steps.0.catch.0", succeeded("receipt"));
    story.advance();
    story.answer("steps.1", succeeded(1));
    story.advance();
    check(
        &story,
        expect![[r#"
        Succeeded.
        - ended: it has ended: nothing moves it any more
        steps.0 mail failed error=NO_ADDRESS (its failure was caught: the run went on with its `catch`)
        steps.0.catch.0 pay completed effect=succeeded
        steps.1 book completed effect=succeeded
        steps.1.catch.0 mail not_reached (the action did not fail)
        happened: steps.0.catch.0 pay: its outcome is recorded
        happened: steps.1 book: its outcome is recorded
        may have happened: steps.0 mail: its action was called and failed, and was not undone
        not started: steps.1.catch.0 mail: the action did not fail
    "#]],
    );
}

#[test]
fn canceled() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.crash();
    story.row(RowInput::Cancel { actor: "ann".to_owned(), reason: "no stock".to_owned() });
    story.row(RowInput::LeaseGone);
    check(
        &story,
        expect![[r#"
            Canceled: no stock
            - ended: it has ended: nothing moves it any more
            steps.0 mail canceled attempt=1
            steps.1 pay not_reached (the run was canceled at `steps.0`)
            may have happened: steps.0 mail: a worker came to it before the run was canceled
            not started: steps.1 pay: the run was canceled at `steps.0`
        "#]],
    );
}

#[test]
fn abandoned_without_knowing() {
    let mut story = Story::of(plan(vec![action("pay")]));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", unknown());
    story.claim();
    story.advance();
    let why = "the bank has no such service".to_owned();
    story.reconciled("steps.0", ReconcileAnswer::Unknown { why });
    story.row(RowInput::Abandon { accept_unknown: true, unclaimable: false });
    check(
        &story,
        expect![[r#"
            Failed at step `steps.0` (`pay`) with ABANDONED: an operator gave the run up; what became of the effect of `pay` is unknown
            - ended: it has ended: nothing moves it any more
            - given_up: nobody found out whether the effect of step `steps.0` (`pay`) happened, and that was accepted: ask the provider for effect key 7ae512c9ebb0cb51fa90945f5d6bbe36d29bd83822a6f8e3b9d785b1e3473e69. It stays listed, since this run is its only trace: no policy prunes it, and no verb changes it any more. A new run has other effect keys
            steps.0 pay failed effect=abandoned_unknown attempt=2 error=ABANDONED
            may have happened: steps.0 pay: an operator gave the run up without knowing
        "#]],
    );
}

/// Its effect happened and only the output is missing: a retry would call it again.
#[test]
fn a_run_given_up_without_its_output_is_never_tried_again() {
    let mut story = Story::of(plan(vec![action("pay")]));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    let error = Failure::new(crate::Code::OUTPUT_INVALID, "`/id` must be a text");
    story.answer("steps.0", Answer::OutputRefused { error, evidence: "{}".to_owned() });
    story.row(RowInput::Abandon { accept_unknown: false, unclaimable: false });
    assert!(!story.row(RowInput::Retry));
    check(
        &story,
        expect![[r#"
        Failed at step `steps.0` (`pay`) with ABANDONED: an operator gave the run up
        - ended: it has ended: nothing moves it any more
        steps.0 pay failed effect=succeeded attempt=1 error=ABANDONED
        happened: steps.0 pay: it happened; its output could not be kept
    "#]],
    );
}

#[test]
fn a_retry_keeps_what_was_recorded() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", failed("NO_ADDRESS", false));
    story.row(RowInput::Retry);
    check(
        &story,
        expect![[r#"
            Queued at step `steps.0` (`mail`).
            - due: ready, and no worker has taken it yet
            steps.0 mail waiting attempt=1 (a worker goes on with it)
            steps.1 pay not_reached (behind `steps.0`)
            may have happened: steps.0 mail: a worker came to it, and no outcome is recorded: it would be repeated under the same key
            not started: steps.1 pay: behind `steps.0`
            again: steps.0 mail: it would be repeated under the same key
            $ surefoot cancel run_07070707070707070707070707070707 --revision 4 --reason '<why>'
        "#]],
    );
}

#[test]
fn after_an_operators_word_the_next_step_is_not_started() {
    let mut story = Story::of(plan(vec![action("pay"), action("mail")]));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    let error = Failure::new(crate::Code::OUTPUT_INVALID, "`/id` must be a text");
    story.answer("steps.0", Answer::OutputRefused { error, evidence: "{}".to_owned() });
    check(
        &story,
        expect![[r#"
        Needs a person at step `steps.0` (`pay`): OUTPUT_INVALID: `/id` must be a text
        - person: OUTPUT_INVALID: `/id` must be a text
        steps.0 pay needs_attention effect=succeeded attempt=1 error=OUTPUT_INVALID
        steps.1 mail not_reached (behind `steps.0`)
        happened: steps.0 pay: it happened; its output could not be kept
        not started: steps.1 mail: behind `steps.0`
        $ surefoot resolve run_07070707070707070707070707070707 steps.0 --succeeded '<output as JSON>' --revision 4 --reason '<why>'
        $ surefoot cancel run_07070707070707070707070707070707 --revision 4 --reason '<why>'
        $ surefoot abandon run_07070707070707070707070707070707 --revision 4 --reason '<why>'
    "#]],
    );
    let output = json!("p-1");
    story.row(RowInput::Resolve { step: "steps.0".into(), verdict: Verdict::Succeeded { output } });
    check(
        &story,
        expect![[r#"
            Queued at step `steps.1` (`mail`).
            - due: ready, and no worker has taken it yet
            steps.0 pay completed effect=succeeded
            steps.1 mail not_reached (it is next, and no worker has come to it)
            happened: steps.0 pay: an operator said so
            not started: steps.1 mail: it is next, and no worker has come to it
            $ surefoot cancel run_07070707070707070707070707070707 --revision 5 --reason '<why>'
        "#]],
    );
}

#[test]
fn a_journal_that_does_not_fit_is_not_guessed_around() {
    let mut story = mail_then_pay();
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.answer("steps.0", succeeded("sent"));
    story.plan.steps.remove(0);
    story.journal.remove(0);
    check(
        &story,
        expect![[r#"
            Runs. Its plan or journal cannot be read: what it did is not known here.
            - held: worker wrk_02020202020202020202020202020202 holds it
            - unreadable: the journal cannot be restored: journal row 0 is missing, the next is 1
            $ surefoot cancel run_07070707070707070707070707070707 --revision 3 --reason '<why>'
        "#]],
    );
}

#[test]
fn without_a_plan_only_the_row_speaks() {
    let mut story = Story::of(plan(vec![action("pay")]));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    let explanation = explain(&ExplainInput {
        run: &story.stored,
        plan: None,
        invocation: &Invocation::default(),
        journal: &[],
        unreadable: Some("the plan cannot be read: expected value at line 1"),
        sessions: &[],
        budget: &crate::Budget::default(),
        is_signaled: None,
        children: &[],
        group: None,
        now: story.now,
    });
    expect![[r#"
        Runs: the outcome of `pay` is open. Its plan or journal cannot be read: what it did is not known here.
        - held: worker wrk_02020202020202020202020202020202 holds it
        - unreadable: the plan cannot be read: expected value at line 1
        may have happened: steps.0 pay: its call was marked, and no outcome can be read
        $ surefoot cancel run_07070707070707070707070707070707 --revision 3 --reason '<why>'
    "#]]
    .assert_eq(&rendered(&explanation));
}

/// The JSON is part of the interface.
#[test]
fn json_field_names_and_times() {
    let mut story = Story::of(plan(vec![action("mail")]));
    story.claim();
    story.advance();
    let json = serde_json::to_string_pretty(&story.explain()).unwrap();
    expect![[r#"
        {
          "run": "run_07070707070707070707070707070707",
          "state": "running",
          "mode": "execute",
          "revision": 2,
          "read_at": "2026-11-29T12:00:00.000000Z",
          "headline": "Runs at step `steps.0` (`mail`).",
          "why_not_moving": [
            {
              "kind": "held",
              "text": "worker wrk_02020202020202020202020202020202 holds it",
              "since": null,
              "until": "2026-11-29T12:02:00.000000Z"
            }
          ],
          "steps": [
            {
              "key": "steps.0",
              "action": "mail",
              "class": "idempotent",
              "label": null,
              "line": 1,
              "state": "running",
              "effect_state": null,
              "effect_key": "7ae512c9ebb0cb51fa90945f5d6bbe36d29bd83822a6f8e3b9d785b1e3473e69",
              "attempt": 1,
              "started_at": "2026-11-29T12:00:00.000000Z",
              "finished_at": null,
              "error": null
            }
          ],
          "effects": {
            "happened": [],
            "may_have_happened": [
              {
                "step": "steps.0",
                "action": "mail",
                "class": "idempotent",
                "effect_key": "7ae512c9ebb0cb51fa90945f5d6bbe36d29bd83822a6f8e3b9d785b1e3473e69",
                "why": "a worker came to it, and no outcome is recorded: it would be repeated under the same key"
              }
            ],
            "not_started": []
          },
          "would_repeat": [
            {
              "step": "steps.0",
              "action": "mail",
              "class": "idempotent",
              "effect_key": "7ae512c9ebb0cb51fa90945f5d6bbe36d29bd83822a6f8e3b9d785b1e3473e69",
              "is_called_again": true,
              "what": "it would be repeated under the same key"
            }
          ],
          "legal_actions": [
            {
              "verb": "cancel",
              "command": "surefoot cancel run_07070707070707070707070707070707 --revision 2 --reason '<why>'",
              "why": "nobody wants it any more: it ends as soon as its worker sees that"
            }
          ]
        }"#]].assert_eq(&json);
}
