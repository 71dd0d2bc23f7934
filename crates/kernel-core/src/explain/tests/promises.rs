//! What explanations claim is compared with what a resumed run does, over random stories.

use super::super::Repeat;
use super::*;
use crate::{Dependency, Verdict, Wake};

/// A small generator; the same seed gives the same story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn plans() -> Vec<Plan> {
    let wait =
        || StepKind::WaitFor { signal: literal("approval"), key: literal("7"), timeout: None };
    let each = |body| StepKind::ForEach { over: literal(json!([1, 2])), item: "x".into(), body };
    vec![
        plan(vec![action("mail"), action("pay"), action("book")]),
        plan(vec![action("price"), action("pay"), action("mail")]),
        plan(vec![step(each(vec![action("book"), action("mail"), action("pay")]))]),
        plan(vec![action("book"), step(wait()), action("price"), action("mail")]),
        plan(vec![
            catching("mail", vec![action("book")]),
            catching("pay", vec![action("mail")]),
            catching("book", vec![catching("price", vec![action("pay")])]),
        ]),
    ]
}

/// One turn: the worker gets an answer or dies, or somebody does something to the stored run.
fn turn(story: &mut Story, command: Option<Command>, dice: &mut Dice) -> Option<Command> {
    if dice.roll(12) == 0 {
        from_outside(story, dice);
        if story.stored.state() != RunState::Running {
            story.held = None;
        } else if let Some(held) = &mut story.held {
            held.run.cancel = story.stored.cancel.clone();
            held.run.revision = story.stored.revision;
            held.run.seq = story.stored.seq;
        }
        story.held.as_ref()?;
    }
    match command {
        Some(command) => answered(story, &command, dice),
        None if story.stored.state() == RunState::NeedsAttention => {
            from_outside(story, dice);
            None
        }
        None if story.stored.state() == RunState::Waiting => {
            story.row(RowInput::Wake { wake: Wake::Signal(Value::Null), at_once: false });
            None
        }
        None if story.stored.state() == RunState::Failed => {
            story.row(RowInput::Retry);
            None
        }
        None => {
            if story.held.is_none() && !story.claim() {
                story.row(RowInput::LeaseGone);
            }
            story.advance()
        }
    }
}

fn answered(story: &mut Story, command: &Command, dice: &mut Dice) -> Option<Command> {
    if dice.roll(5) == 0 {
        story.crash();
        return None;
    }
    let retryable = dice.roll(2) == 0;
    match command {
        Command::Prepare(call) if dice.roll(6) == 0 => {
            let result = Prepared::Stopped(failed("NO", retryable));
            return story.input(Input::Prepared { step: call.step.clone(), result });
        }
        Command::Prepare(call) => return story.prepared(call.step.as_str()),
        Command::Call(call) | Command::Transact(call) => {
            let answer = match dice.roll(8) {
                0 => failed("NO", retryable),
                1 => Answer::Waiting { on: Dependency::on("job", "1") },
                2 if call.class == EffectClass::Ambiguous => unknown(),
                3 if call.class == EffectClass::Ambiguous => Answer::NotCalled,
                4 if !matches!(call.class, EffectClass::Pure | EffectClass::Transactional) => {
                    let error = Failure::new(crate::Code::OUTPUT_INVALID, "no");
                    Answer::OutputRefused { error, evidence: String::new() }
                }
                _ => succeeded(1),
            };
            story.answer(call.step.as_str(), answer);
        }
        Command::Reconcile(call) => {
            let answer = match dice.roll(6) {
                0 => ReconcileAnswer::Failed { failure: Failure::new("NO", "no") },
                1 => ReconcileAnswer::NotFound,
                2 | 3 => ReconcileAnswer::Unknown { why: "no".to_owned() },
                4 => ReconcileAnswer::Error { message: "no".to_owned(), retry_after: None },
                _ => ReconcileAnswer::Succeeded { output: json!(1) },
            };
            story.reconciled(call.step.as_str(), answer);
        }
        Command::Spawn(_) | Command::Collect(_) => panic!("no step has children"),
    }
    story.advance()
}

/// Every operator verb, with whether it needs a step.
fn verbs(story: &Story) -> Vec<(&'static str, RowInput)> {
    let step = story.stored.effect().map_or_else(|| "steps.0".into(), |open| open.step.clone());
    let resolve = |verdict| RowInput::Resolve { step: step.clone(), verdict };
    let failed = Verdict::Failed { code: None, message: "no".to_owned() };
    let cancel = RowInput::Cancel { actor: "ann".to_owned(), reason: "x".to_owned() };
    vec![
        ("resolve --succeeded", resolve(Verdict::Succeeded { output: json!(1) })),
        ("resolve --failed", resolve(failed)),
        ("resolve --not-performed", resolve(Verdict::NotPerformed)),
        ("reconcile", RowInput::AskReconcile { step: step.clone() }),
        ("retry", RowInput::Retry),
        ("cancel", cancel),
        ("abandon", RowInput::Abandon { accept_unknown: false, unclaimable: false }),
        (
            "abandon --accept-unknown",
            RowInput::Abandon { accept_unknown: true, unclaimable: false },
        ),
    ]
}

fn from_outside(story: &mut Story, dice: &mut Dice) {
    let mut verbs = verbs(story);
    let index = usize::try_from(dice.roll(verbs.len() as u64)).unwrap();
    let (name, input) = verbs.swap_remove(index);
    // A story that ends teaches nothing more.
    if !name.starts_with("abandon") || dice.roll(4) == 0 {
        story.row(input);
    }
}

/// What a run does that nobody holds: the next command after a crash now.
fn resumed(story: &Story) -> (Option<Command>, Story) {
    let mut resumed = story.clone();
    resumed.crash();
    if resumed.stored.state() == RunState::Waiting {
        resumed.row(RowInput::Wake { wake: Wake::Signal(Value::Null), at_once: false });
    }
    let command = if resumed.claim() { resumed.advance() } else { None };
    (command, resumed)
}

fn compare(story: &Story) {
    let explanation = story.explain();
    let effects = &explanation.effects;
    let told = || format!("{}\n{:#?}", rendered(&explanation), story.journal);
    let listed = |notes: &[super::super::EffectNote], step: &StepKey| {
        notes.iter().any(|note| note.step == *step)
    };
    for step in &story.called {
        let shown = explanation.steps.iter().find(|shown| shown.key == *step).unwrap();
        // A refusal is no effect; a pure step has none, and what a transaction did is in its outcome or nowhere.
        let needs_word = shown.effect_state != Some(crate::EffectState::Failed)
            && matches!(shown.class, Some(EffectClass::Idempotent | EffectClass::Ambiguous));
        let known = listed(&effects.happened, step) || listed(&effects.may_have_happened, step);
        assert!(known || !needs_word, "{step} was called\n{}", told());
    }
    for note in &effects.not_started {
        assert!(!story.begun.contains(&note.step), "{} was begun\n{}", note.step, told());
    }
    let (command, after) = resumed(story);
    let again = explanation.would_repeat.first();
    match command {
        None => {
            let ended = after.stored.state() != RunState::Running;
            assert!(again.is_none() || !ended, "nothing is done\n{}", told());
        }
        Some(Command::Spawn(_) | Command::Collect(_)) => panic!("no step has children"),
        Some(Command::Reconcile(call)) => {
            let is_told = again.is_some_and(|it| it.step == call.step && !it.is_called_again);
            assert!(is_told, "{} is asked\n{}", call.step, told());
            assert!(listed(&effects.may_have_happened, &call.step), "{}", told());
        }
        Some(Command::Prepare(call) | Command::Call(call) | Command::Transact(call)) => {
            assert!(!listed(&effects.happened, &call.step), "it happened\n{}", told());
            let is_again = |it: &Repeat| it.step == call.step && it.is_called_again;
            if let Some(again) = again {
                assert!(is_again(again), "{again:?} is promised\n{}", told());
            }
            let was_begun = story.commanded.contains(&call.step);
            assert!(again.is_some() || !was_begun, "{} is done again\n{}", call.step, told());
        }
    }
    legal_actions_are_what_the_state_machine_takes(story, &explanation);
}

fn legal_actions_are_what_the_state_machine_takes(story: &Story, explanation: &Explanation) {
    for (name, input) in verbs(story) {
        let mut words = name.split(' ');
        let (verb, flag) = (words.next().unwrap(), words.next());
        let is_listed = explanation.legal_actions.iter().any(|action| {
            let accepts = action.command.contains("--accept-unknown");
            let has_flag = flag.map_or(!accepts, |flag| action.command.contains(flag));
            action.verb == verb && has_flag
        });
        let is_taken = story.clone().row(input);
        // Where nothing is unknown, nothing has to be accepted.
        let is_needless =
            name == "abandon --accept-unknown" && !story.stored.has_unsettled_effect();
        assert!(is_listed == is_taken || is_needless, "{name}\n{}", rendered(explanation));
    }
}

/// Covers field fault 11.
#[test]
fn no_claim_is_contradicted_by_what_a_resumed_run_does() {
    let plans = plans();
    let mut ends = BTreeSet::new();
    for seed in 0..1_500 {
        let mut dice = Dice(seed * 7_919 + 1);
        let which = usize::try_from(seed).unwrap() % plans.len();
        let mut story = Story::of(plans[which].clone());
        let mut command = None;
        for _ in 0..40 {
            compare(&story);
            if matches!(story.stored.state(), RunState::Succeeded | RunState::Canceled) {
                break;
            }
            command = turn(&mut story, command, &mut dice);
        }
        ends.insert(story.stored.state().as_str());
    }
    assert!(ends.contains("succeeded") && ends.contains("canceled"), "{ends:?}");
}

/// Covers field fault 118.
#[test]
fn cancel_is_legal_wherever_a_run_has_not_ended() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let mut dice = Dice(seed * 104_729 + 3);
        let mut story = Story::of(plan(vec![action("mail"), action("pay"), action("book")]));
        story.sessions.clear();
        let mut command = None;
        for _ in 0..20 {
            let state = story.stored.state();
            let offers_cancel = story.explain().legal_actions.iter().any(|it| it.verb == "cancel");
            let is_flagged = story.stored.cancel.is_some();
            assert_eq!(offers_cancel, !state.is_terminal() && !is_flagged, "{state}");
            if !state.is_terminal() {
                let mut canceled = story.clone();
                canceled.crash();
                verbs(&canceled).into_iter().filter(|(name, _)| *name == "cancel").for_each(
                    |(_, input)| {
                        canceled.row(input);
                    },
                );
                canceled.row(RowInput::LeaseGone);
                let is_over = canceled.stored.state() == RunState::Canceled;
                assert!(is_over || canceled.stored.has_unsettled_effect(), "{state}");
                seen.insert(state.as_str());
            }
            command = turn(&mut story, command, &mut dice);
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}
