//! What an explanation advises, and what it must not: keys that no effect has, verbs that help nobody.

use serde_json::json;

use super::super::{Coverage, ReasonKind};
use super::*;

fn verbs(explanation: &Explanation) -> Vec<&'static str> {
    explanation.legal_actions.iter().map(|action| action.verb).collect()
}

fn says(explanation: &Explanation, kind: ReasonKind) -> &str {
    let found = explanation.why_not_moving.iter().find(|reason| reason.kind == kind);
    &found.unwrap_or_else(|| panic!("{kind:?} in {explanation}")).text
}

#[test]
fn only_steps_that_a_worker_came_to_have_an_effect_key() {
    let branch = StepKind::If {
        condition: crate::expr::Expr::Literal(json!(true)),
        then: vec![action("mail")],
        otherwise: Some(vec![action("pay")]),
    };
    let each = StepKind::ForEach {
        over: literal(json!([1, 2])),
        item: "item".to_owned(),
        body: vec![action("mail"), action("pay")],
    };
    let mut story = Story::of(plan(vec![step(branch), step(each), action("mail")]));
    story.claim();
    story.advance();
    story.prepared("steps.0.then.0");
    story.answer("steps.0.then.0", succeeded(1));
    story.advance();
    let explanation = story.explain();
    let keyed = |step: &&crate::Shown| step.effect_key.is_some();
    let keyed: Vec<&str> =
        explanation.steps.iter().filter(keyed).map(|step| step.key.as_str()).collect();
    assert_eq!(keyed, ["steps.0.then.0", "steps.1.do.0#0"]);
    for shown in explanation.steps.iter().filter(|shown| shown.effect_key.is_some()) {
        assert_eq!(shown.effect_key, Some(story.stored.effect_key(&shown.key)));
    }
    assert!(explanation.effects.not_started.iter().all(|note| note.effect_key.is_none()));
    assert!(explanation.effects.not_started.len() >= 4, "{explanation}");
}

/// A retry that would end the run again before anything is called helps nobody, though it is legal.
#[test]
fn a_retry_is_not_advised_where_it_ends_the_same_way() {
    let fail = StepKind::Fail { message: literal("no stock"), code: None };
    let mut ended_by_itself = Story::of(plan(vec![action("price"), step(fail)]));
    ended_by_itself.claim();
    ended_by_itself.advance();
    ended_by_itself.answer("steps.0", succeeded(1));
    ended_by_itself.advance();
    let wrong = StepKind::If {
        condition: crate::expr::Expr::Literal(json!("neither")),
        then: vec![action("mail")],
        otherwise: None,
    };
    let mut no_condition = Story::of(plan(vec![step(wrong)]));
    no_condition.claim();
    no_condition.advance();
    for (story, code) in [(ended_by_itself, "FAILED"), (no_condition, "EXPRESSION_ERROR")] {
        assert_eq!(story.stored.state(), RunState::Failed);
        let explanation = story.explain();
        assert_eq!(verbs(&explanation), [""; 0], "{explanation}");
        let why = says(&explanation, ReasonKind::WouldStop);
        assert!(why.starts_with("a retry would end it again") && why.contains(code), "{why}");
        assert!(story.clone().row(RowInput::Retry), "it is legal all the same");
    }
    let mut mended = Story::of(plan(vec![action("mail")]));
    mended.claim();
    mended.advance();
    mended.prepared("steps.0");
    mended.answer("steps.0", failed("NO_ADDRESS", false));
    assert_eq!(verbs(&mended.explain()), ["retry"]);
}

#[test]
fn a_dry_run_is_told_as_one_and_may_be_given_up() {
    let mut story = Story::of(plan(vec![action("pay")]));
    let origin = Origin { mode: Mode::DryRun, ..(*story.stored.origin).clone() };
    story.stored.origin = std::sync::Arc::new(origin);
    // A worker that executes is no worker for it.
    let explanation = story.explain();
    assert_eq!(explanation.mode, Mode::DryRun);
    assert_eq!(
        explanation.headline,
        "Dry run, nothing is done. Queued; no worker has taken it yet."
    );
    assert!(says(&explanation, ReasonKind::NoWorker).contains("dry-run worker"));
    assert_eq!(verbs(&explanation), ["cancel", "abandon"]);
    let covered = |mode| {
        Coverage::of(&story.plan.footprint, mode, &story.sessions, story.now) == Coverage::Covered
    };
    assert_eq!((covered(Mode::Execute), covered(Mode::DryRun)), (true, false));
}

#[test]
fn a_worker_for_another_tree_is_no_worker_for_it() {
    let mut story = Story::of(plan(vec![action("pay")]));
    let verb = |story: &Story| verbs(&story.explain()).contains(&"abandon");
    story.sessions[0].tree = Some(story.stored.origin.root);
    assert!(!verb(&story));
    story.sessions[0].tree = Some(RunId::from_bytes([9; 16]));
    assert!(verb(&story));
    assert!(says(&story.explain(), ReasonKind::NoWorker).contains("needs one with module"));
    let any = Coverage::of(&story.plan.footprint, Mode::Execute, &story.sessions, story.now);
    assert_eq!(any, Coverage::NoWorker);
}

#[test]
fn what_was_given_up_says_why_it_stays_and_what_may_be_done() {
    let mut story = Story::of(plan(vec![action("pay")]));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.crash();
    story.claim();
    story.advance();
    story.reconciled("steps.0", ReconcileAnswer::Unknown { why: "no log".to_owned() });
    assert_eq!(story.stored.state(), RunState::NeedsAttention);
    assert!(story.row(RowInput::Abandon { accept_unknown: true, unclaimable: false }));
    let explanation = story.explain();
    let why = says(&explanation, ReasonKind::GivenUp);
    let key = story.stored.effect_key(&"steps.0".into());
    assert!(why.contains(key.as_str()) && why.contains("no policy prunes"), "{why}");
    assert_eq!(verbs(&explanation), [""; 0]);
}

/// A run whose payment nobody can explain.
fn unknown_payment(then: Vec<Step>) -> Story {
    let mut story = Story::of(plan([vec![action("pay")], then].concat()));
    story.claim();
    story.advance();
    story.prepared("steps.0");
    story.crash();
    story.claim();
    story.advance();
    story.reconciled("steps.0", ReconcileAnswer::Unknown { why: "no log".to_owned() });
    assert_eq!(story.stored.state(), RunState::NeedsAttention);
    story
}

/// What each word on an effect is said to lead to.
fn consequences(explanation: &Explanation) -> Vec<&str> {
    let on_effect =
        explanation.legal_actions.iter().filter(|it| matches!(it.verb, "resolve" | "reconcile"));
    on_effect.map(|action| action.why.as_str()).collect()
}

/// Whoever says that nothing happened must know whether the step is called then.
#[test]
fn a_requested_cancel_is_part_of_what_a_word_on_the_effect_leads_to() {
    let mut story = unknown_payment(vec![action("mail")]);
    let goes_on = story.explain();
    assert!(consequences(&goes_on).iter().all(|why| !why.contains("canceled")), "{goes_on:?}");
    assert!(story.row(RowInput::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() }));
    let explanation = story.explain();
    let told = consequences(&explanation);
    assert_eq!(told.len(), 4);
    for why in told {
        assert!(why.contains("the run ends canceled"), "{why}");
        assert!(!why.contains("goes on with") && !why.contains("is called again"), "{why}");
    }
    let verdicts = [
        crate::Verdict::Succeeded { output: json!(1) },
        crate::Verdict::Failed { code: None, message: "no".to_owned() },
        crate::Verdict::NotPerformed,
    ];
    for verdict in verdicts {
        let mut resolved = story.clone();
        resolved.row(RowInput::Resolve { step: "steps.0".into(), verdict });
        assert_eq!(resolved.stored.state(), RunState::Canceled);
    }
}

fn group(states: &[(RunState, u32)]) -> crate::GroupRow {
    let live = states.iter().filter(|(state, _)| !state.is_terminal()).map(|(_, count)| count);
    crate::GroupRow {
        step: "steps.0".into(),
        total: states.iter().map(|(_, count)| count).sum(),
        live: live.sum(),
        held: 0,
        parallel: 8,
        states: states.to_vec(),
    }
}

/// A parent that has ended does not hide those below it that have not.
#[test]
fn a_parent_that_ended_tells_of_the_children_that_have_not() {
    let mut story = Story::of(plan(vec![action("mail")]));
    assert!(story.row(RowInput::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() }));
    let groups = [group(&[(RunState::NeedsAttention, 2), (RunState::Succeeded, 3)])];
    let explanation = story.explain_with(&groups);
    assert_eq!(
        explanation.headline,
        "Canceled: enough. 2 of its 5 children (2 of them in a person's list) have not ended."
    );
    let why = says(&explanation, ReasonKind::Children);
    assert!(why.starts_with("2 of its 5 children") && why.ends_with("have not ended"), "{why}");
    assert_eq!((explanation.children[0].open, explanation.children[0].needs_attention), (2, 2));
    let ended = story.explain_with(&[group(&[(RunState::Canceled, 2)])]);
    assert_eq!(ended.headline, "Canceled: enough");
}

/// A run that failed with a code at its only step.
fn failed_with(kind: StepKind, code: crate::Code) -> Story {
    let mut story = Story::of(plan(vec![step(kind)]));
    story.claim();
    story.advance();
    let error = Failure::new(code, "in words").at(&"steps.0".into());
    story.record(&[Fact::Ended { end: crate::End::Failed(error), at: story.now }]);
    assert_eq!(story.stored.state(), RunState::Failed);
    story
}

/// What ends a run again is told before it is retried, and once its cause is mended it is told no more.
#[test]
fn a_retry_that_meets_the_same_again_is_not_advised() {
    let children =
        || StepKind::RunWorkflow { workflow: literal("one"), inputs: literal(json!({})) };
    let failed = || failed_with(children(), crate::Code::from("NO_ADDRESS"));
    let of = |count, state| vec![group(&[(state, count), (RunState::Succeeded, 3)])];
    for (story, groups, says_why) in [
        (failed(), of(2, RunState::Failed), "2 children are still failed"),
        (failed(), of(1, RunState::Failed), "1 child is still failed"),
        (
            failed_with(children(), crate::Code::CHILD_CANCELED),
            of(1, RunState::Canceled),
            "stays so",
        ),
        (
            failed_with(children(), crate::Code::VALUE_TOO_LARGE),
            of(0, RunState::Failed),
            "VALUE_TOO_LARGE",
        ),
        (
            failed_with(action("mail").kind, crate::Code::BUDGET_EXCEEDED),
            Vec::new(),
            "BUDGET_EXCEEDED",
        ),
    ] {
        let explanation = story.explain_with(&groups);
        assert_eq!(verbs(&explanation), [""; 0], "{explanation}");
        let why = says(&explanation, ReasonKind::WouldStop);
        assert!(why.starts_with("a retry would end it again") && why.contains(says_why), "{why}");
    }
    for groups in [of(1, RunState::Queued), of(0, RunState::Failed), Vec::new()] {
        assert_eq!(verbs(&failed().explain_with(&groups)), ["retry"], "{groups:?}");
    }
}

/// What is called again is told where the retry is offered.
#[test]
fn a_retry_says_what_it_would_call() {
    let retry = |story: &Story| {
        let explanation = story.explain();
        let action = explanation.legal_actions.into_iter().find(|action| action.verb == "retry");
        action.unwrap().why
    };
    let mut declined = Story::of(plan(vec![action("mail")]));
    declined.claim();
    declined.advance();
    declined.prepared("steps.0");
    declined.answer("steps.0", failed("CARD_DECLINED", false));
    let why = retry(&declined);
    assert!(
        why.contains("step `steps.0` (`mail`) comes: it is called, under the effect key"),
        "{why}"
    );
    let mut refused = unknown_payment(Vec::new());
    let verdict = crate::Verdict::Failed { code: None, message: "declined".to_owned() };
    assert!(refused.row(RowInput::Resolve { step: "steps.0".into(), verdict }));
    let why = retry(&refused);
    assert!(
        why.contains("step `steps.0` (`pay`) comes: it is called, under the effect key"),
        "{why}"
    );
}

#[test]
fn no_step_ends_before_it_began() {
    let fail = StepKind::Fail { message: literal("no stock"), code: None };
    let mut story = Story::of(plan(vec![action("price"), step(fail)]));
    story.claim();
    story.advance();
    story.answer("steps.0", succeeded(1));
    let decided_at = story.now;
    // What was recorded before is durable only with the end, which was decided earlier.
    story.now = story.now.plus(Micros::new(7));
    story.flush();
    story.now = decided_at;
    story.advance();
    let explanation = story.explain();
    let shown = explanation.steps.iter().find(|shown| shown.action == "fail").unwrap();
    assert!(shown.finished_at >= shown.started_at, "{shown:?}");
}
