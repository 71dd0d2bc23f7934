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
