//! What happened outside the journal, what may have happened, and what a worker would do again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::foresee::{self, Foreseen};
use super::history::Recorded;
use super::steps::Shown;
use super::{Known, Open};
use crate::{
    Collect, Command, EffectClass, EffectKey, EffectState, LostAttempt, Phase, RunState, SaidBy,
    Spawn, StepKey, Wait,
};

/// The effects of a run, by what is known of them. A settled refusal is in no list: its step shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct EffectNotes {
    /// Recorded: never done again.
    pub happened: Vec<EffectNote>,
    /// Not recorded, and begun or possibly begun.
    pub may_have_happened: Vec<EffectNote>,
    /// No worker has come to the step, or none has committed anything of it.
    pub not_started: Vec<EffectNote>,
}

/// One effect, or several of one place in a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectNote {
    /// The step; where `count` is over one, its place in the plan.
    pub step: StepKey,
    /// Its action.
    pub action: String,
    /// What the action promises.
    pub class: EffectClass,
    /// The same for every attempt; absent where it stands for several, and where no worker has come to the step.
    pub effect_key: Option<EffectKey>,
    /// How many iterations it stands for.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u64,
    /// On what this rests.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_one(count: &u64) -> bool {
    *count == 1
}

/// What a worker that takes the run would do again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// The step.
    pub step: StepKey,
    /// Its action.
    pub action: String,
    /// What the action promises.
    pub class: EffectClass,
    /// The same for every attempt.
    pub effect_key: Option<EffectKey>,
    /// Whether the action's `run` would be called again.
    pub is_called_again: bool,
    /// What would be done, a sentence.
    pub what: String,
}

/// The list that a note belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Happened,
    MayHaveHappened,
    NotStarted,
}

/// Notes in the order of the plan; those that are not listed one by one are counted by place.
#[derive(Debug, Default)]
pub(super) struct Collector {
    notes: EffectNotes,
    counted: BTreeMap<(Kind, String), EffectNote>,
}

impl Collector {
    pub(super) fn list(&mut self, kind: Kind, shown: &Shown, why: &str) {
        let Some(class) = shown.class else { return };
        let note = EffectNote {
            step: shown.key.clone(),
            action: shown.action.clone(),
            class,
            effect_key: shown.effect_key.clone(),
            count: 1,
            why: why.to_owned(),
        };
        self.of(kind).push(note);
    }

    pub(super) fn count(&mut self, kind: Kind, shown: &Shown, place: &str, why: &str, times: u64) {
        let Some(class) = shown.class else { return };
        let note = self.counted.entry((kind, place.to_owned())).or_insert_with(|| EffectNote {
            step: place.into(),
            action: shown.action.clone(),
            class,
            effect_key: None,
            count: 0,
            why: why.to_owned(),
        });
        note.count = note.count.saturating_add(times);
    }

    pub(super) fn finish(mut self) -> EffectNotes {
        for ((kind, _), note) in std::mem::take(&mut self.counted) {
            self.of(kind).push(note);
        }
        self.notes
    }

    fn of(&mut self, kind: Kind) -> &mut Vec<EffectNote> {
        match kind {
            Kind::Happened => &mut self.notes.happened,
            Kind::MayHaveHappened => &mut self.notes.may_have_happened,
            Kind::NotStarted => &mut self.notes.not_started,
        }
    }
}

/// On what an outcome rests.
pub(super) const fn said_by(by: SaidBy) -> &'static str {
    match by {
        SaidBy::Kernel | SaidBy::Action => "its outcome is recorded",
        SaidBy::Reconcile => "the provider said so when it was asked",
        SaidBy::Operator => "an operator said so",
    }
}

/// What is known of the effect of the open step, to which a worker has come. The journal decides; where it is
/// silent, the class does, and whether a worker holds the run.
pub(super) fn of_open(
    known: &Known<'_>,
    class: Option<EffectClass>,
    recorded: Option<&Recorded<'_>>,
) -> Option<(Kind, String)> {
    let step = known.open_step()?;
    let may = |why: &str| Some((Kind::MayHaveHappened, why.to_owned()));
    // The row speaks of an effect as long as it is open; the journal, of what became of it.
    let of_row = known.input.run.effect().filter(|effect| effect.step == *step);
    let of_journal = recorded.and_then(|recorded| recorded.effect);
    match of_row.map(|effect| effect.state).or(of_journal) {
        Some(EffectState::Marked) => {
            return may("its call was marked, and nothing is known since");
        }
        Some(EffectState::Ambiguous) => return may("its call ended without a definite answer"),
        Some(EffectState::AbandonedUnknown) => {
            return may("an operator gave the run up without knowing");
        }
        Some(EffectState::Succeeded) => {
            return Some((Kind::Happened, "it happened; its output could not be kept".to_owned()));
        }
        Some(EffectState::Failed) => return None,
        Some(EffectState::NotPerformed) | None => {}
    }
    if recorded.is_some_and(Recorded::was_never_called) {
        return None;
    }
    let is_held = matches!(known.input.run.phase, Phase::Running { .. });
    match class?.after_lost_attempt() {
        LostAttempt::RunAgainUnderSameKey => match known.input.run.state() {
            RunState::Failed => {
                may("a worker came to it before it failed; a retry repeats it under the same key")
            }
            RunState::Canceled => may("a worker came to it before the run was canceled"),
            RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::NeedsAttention
            | RunState::Succeeded => may(
                "a worker came to it, and no outcome is recorded: it would be repeated under the same key",
            ),
        },
        LostAttempt::ReconcileIfMarked if is_held => {
            may("no call was marked when this was read, but a worker holds the run")
        }
        LostAttempt::RunAgain if is_held && class != Some(EffectClass::Pure) => {
            may("nothing was committed when this was read, but a worker holds the run")
        }
        LostAttempt::ReconcileIfMarked | LostAttempt::RunAgain => None,
    }
}

/// What is known of the effect of a step whose failure was caught: as of any failed step, but it is not tried again.
pub(super) fn of_caught(
    class: Option<EffectClass>,
    recorded: &Recorded<'_>,
) -> Option<(Kind, &'static str)> {
    if recorded.effect == Some(EffectState::Failed) || recorded.was_never_called() {
        return None;
    }
    match class?.after_lost_attempt() {
        LostAttempt::RunAgainUnderSameKey => {
            Some((Kind::MayHaveHappened, "its action was called and failed, and was not undone"))
        }
        // Rolled back, or no call of it is unexplained.
        LostAttempt::RunAgain | LostAttempt::ReconcileIfMarked => None,
    }
}

/// Without a readable plan and journal only the row speaks.
pub(super) fn of_row(known: &Known<'_>, collector: &mut Collector) {
    let run = known.input.run;
    let Some(effect) = run.effect() else { return };
    let (list, why) = if effect.state == EffectState::Succeeded {
        (Kind::Happened, "it happened; its output could not be kept")
    } else {
        (Kind::MayHaveHappened, "its call was marked, and no outcome can be read")
    };
    let note = EffectNote {
        step: effect.step.clone(),
        action: effect.action.clone(),
        // Only calls of this class are marked, and only those of idempotent steps are kept unmarked.
        class: known.class_of(&effect.action).unwrap_or(EffectClass::Ambiguous),
        effect_key: Some(run.effect_key(&effect.step)),
        count: 1,
        why: why.to_owned(),
    };
    collector.of(list).push(note);
}

/// What a worker that takes the run would do again, as `decide` itself says. Empty where no worker can take it,
/// and where it would begin with a step to which no worker has come before.
pub(super) fn would_repeat(known: &Known<'_>) -> Vec<Repeat> {
    if !known.is_touched() || known.open == Open::Unknown {
        return Vec::new();
    }
    if let Phase::Waiting(wait) = &known.input.run.phase {
        return after_wake(known, wait).into_iter().collect();
    }
    let Some(Foreseen::Command { command, runs_ahead }) = foresee::foresee(known) else {
        return Vec::new();
    };
    let (call, is_asked) = match &command {
        Command::Prepare(call) | Command::Call(call) | Command::Transact(call) => (call, false),
        Command::Reconcile(call) => (call, true),
        // Children that exist already are not created again, and to read them is no effect.
        Command::Spawn(_) | Command::Collect(_) => return Vec::new(),
    };
    // To any other step than the open one no worker has come, unless its class may run ahead of what is durable.
    if known.open_step() != Some(&call.step) && !runs_ahead {
        return Vec::new();
    }
    let what = match (is_asked, call.class.after_lost_attempt()) {
        (true, _) => "its call is never made again: the provider is asked what became of it",
        (false, LostAttempt::RunAgainUnderSameKey) => "it would be repeated under the same key",
        (false, LostAttempt::RunAgain) if call.class == EffectClass::Pure => {
            "it would be computed again: it has no effect"
        }
        (false, LostAttempt::RunAgain) => {
            "it would be run again: what an attempt without an outcome wrote was rolled back"
        }
        (false, LostAttempt::ReconcileIfMarked) => {
            "it would be called: no earlier call of it is unexplained"
        }
    };
    vec![Repeat {
        step: call.step.clone(),
        action: call.action.clone(),
        class: call.class,
        effect_key: known.effect_key(Some(call.class), &call.step),
        is_called_again: !is_asked,
        what: what.to_owned(),
    }]
}

/// What a retry would have done first, a sentence.
pub(super) fn of_retry(command: &Command) -> String {
    let (call, is_asked) = match command {
        Command::Prepare(call) | Command::Call(call) | Command::Transact(call) => (call, false),
        Command::Reconcile(call) => (call, true),
        Command::Spawn(Spawn { step, .. }) => {
            return format!(
                "then step `{step}` waits for its children; only those are created that are not there"
            );
        }
        Command::Collect(Collect { step, .. }) => {
            return format!("then step `{step}` reads the results of its children again");
        }
    };
    let what = match (is_asked, call.class.after_lost_attempt()) {
        (true, _) => "the provider is asked what became of its call, which is not repeated",
        (false, LostAttempt::RunAgainUnderSameKey | LostAttempt::ReconcileIfMarked) => {
            "it is called, under the effect key that it has"
        }
        (false, LostAttempt::RunAgain) if call.class == EffectClass::Pure => {
            "it is computed: it has no effect"
        }
        (false, LostAttempt::RunAgain) => "it is run: what an earlier try wrote was rolled back",
    };
    format!("then step `{}` (`{}`) comes: {what}", call.step, call.action)
}

/// A step that waits runs again when it wakes; a built-in wait does nothing then.
fn after_wake(known: &Known<'_>, wait: &Wait) -> Option<Repeat> {
    let action = foresee::open_action(known)?;
    let class = known.class_of(action)?;
    Some(Repeat {
        step: wait.step.clone(),
        action: action.to_owned(),
        class,
        effect_key: known.effect_key(Some(class), &wait.step),
        is_called_again: true,
        what: match class.after_lost_attempt() {
            LostAttempt::RunAgainUnderSameKey => "once woken it is repeated under the same key",
            LostAttempt::RunAgain => "once woken it runs again; nothing of it was committed",
            LostAttempt::ReconcileIfMarked => {
                "once woken it is called; no earlier call of it is unexplained"
            }
        }
        .to_owned(),
    })
}
