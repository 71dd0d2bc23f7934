//! Explain: where a run stands, why it does not move, what happened outside, and what is safe to do.
//!
//! One structure that every surface renders. It is computed from what is stored and never promises what a resumed
//! run does not do: what a worker would do next is asked of [`decide`](crate::decide) itself, and what a person may
//! do of [`decide_row`](crate::decide_row). There is no second copy of the rules here.

mod display;
mod effects;
mod foresee;
mod history;
mod legal;
mod moving;
mod outline;
mod steps;
mod text;
mod walk;

use serde::Serialize;

use crate::plan::{Footprint, Plan};
use crate::{
    Budget, BudgetLine, Code, Cursor, EffectClass, EffectKey, Failure, GroupRow, Invocation,
    JournalEntry, Micros, Mode, Next, Origin, Run, RunId, RunState, SessionRow, StepKey, Timestamp,
};

pub use effects::{EffectNote, EffectNotes, Repeat};
pub use legal::{Deed, LegalAction};
pub use moving::{Reason, ReasonKind};
pub use outline::{PlanBranch, PlanStep, outline};
pub use steps::{Iterations, Shown, StepState};
pub use text::{shell_word, span as span_in_words};
pub(crate) use walk::branches_of;

/// A worker session that reported within this span counts as live.
pub const SESSION_LIVE_FOR: Micros = Micros::from_secs(60);
/// Iterations of one loop that an explanation shows, the newest ones; the others are counted.
pub const EXPLAIN_MAX_ITERATIONS: usize = 10;
/// Steps that an explanation shows; the others are counted.
pub const EXPLAIN_MAX_STEPS: usize = 1_000;

/// Everything that an explanation is made of.
#[derive(Debug, Clone, Copy)]
pub struct ExplainInput<'a> {
    /// The row.
    pub run: &'a Run,
    /// Its plan, if it can be read.
    pub plan: Option<&'a Plan>,
    /// What started it.
    pub invocation: &'a Invocation,
    /// The whole journal, in order.
    pub journal: &'a [JournalEntry],
    /// Why plan or journal cannot be read, if so.
    pub unreadable: Option<&'a str>,
    /// The worker sessions of the app, live or not.
    pub sessions: &'a [SessionRow],
    /// The counters of its root run.
    pub budget: &'a Budget,
    /// Whether the signal that the run waits for is recorded already, if somebody looked.
    pub is_signaled: Option<bool>,
    /// Its children, by the step that created them.
    pub children: &'a [GroupRow],
    /// The group that it belongs to, if it is a child; and whether its parent has gone on with its result.
    pub group: Option<&'a (GroupRow, bool)>,
    /// The store's time.
    pub now: Timestamp,
}

/// One run, explained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Which run.
    pub run: RunId,
    /// Where it stands.
    pub state: RunState,
    /// Whether effects happen: of a dry run, none has and none will.
    pub mode: Mode,
    /// On what every operator verb has to be decided.
    pub revision: u64,
    /// The store's time of the reading.
    #[serde(serialize_with = "text::at")]
    pub read_at: Timestamp,
    /// One sentence.
    pub headline: String,
    /// Why it does not move, or what moves it.
    pub why_not_moving: Vec<Reason>,
    /// Every step of the plan; loops by iteration.
    pub steps: Vec<Shown>,
    /// Steps that are left out of `steps`, since there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps_omitted: u64,
    /// What happened outside the journal.
    pub effects: EffectNotes,
    /// The effect budget of its tree of runs, by dimension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budget: Vec<BudgetLine>,
    /// Its children, by the step that created them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildrenNote>,
    /// What a worker that takes the run would do again.
    pub would_repeat: Vec<Repeat>,
    /// What a person may do now.
    pub legal_actions: Vec<LegalAction>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How the children of one step stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChildrenNote {
    /// The step.
    pub step: StepKey,
    /// Created so far.
    pub total: u32,
    /// Not ended, whether the run waits for them or has ended itself.
    pub open: u32,
    /// Those of them that wait for a person.
    pub needs_attention: u32,
    /// Failed.
    pub failed: u32,
    /// Canceled.
    pub canceled: u32,
}

impl From<&GroupRow> for ChildrenNote {
    fn from(group: &GroupRow) -> Self {
        Self {
            step: group.step.clone(),
            total: group.total,
            open: group.live,
            needs_attention: group.count(RunState::NeedsAttention),
            failed: group.count(RunState::Failed),
            canceled: group.count(RunState::Canceled),
        }
    }
}

/// Code and sentence of what went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownError {
    /// Stable.
    pub code: Code,
    /// For people.
    pub message: String,
}

impl From<&Failure> for ShownError {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.code.clone(), message: failure.message.clone() }
    }
}

/// Whether a live worker can run something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// At least one can.
    Covered,
    /// Workers live, and all lack something; what the best one lacks.
    Lacking(Vec<String>),
    /// No worker lives.
    NoWorker,
}

impl Coverage {
    /// Looks for a live session that takes any run of a mode and offers all of a footprint.
    #[must_use]
    pub fn of(footprint: &Footprint, mode: Mode, sessions: &[SessionRow], now: Timestamp) -> Self {
        let any = sessions.iter().filter(|it| it.mode == mode && it.tree.is_none());
        Self::among(footprint, any, now)
    }

    /// The same for one run: a session that works for its tree alone will do.
    #[must_use]
    pub fn of_run(
        footprint: &Footprint,
        run: &Origin,
        sessions: &[SessionRow],
        now: Timestamp,
    ) -> Self {
        Self::among(footprint, sessions.iter().filter(|session| session.takes(run)), now)
    }

    fn among<'s>(
        footprint: &Footprint,
        sessions: impl Iterator<Item = &'s SessionRow>,
        now: Timestamp,
    ) -> Self {
        let live = sessions.filter(|session| is_live(session, now));
        let lacks = live.map(|session| {
            let each = session.offers.iter().map(|offer| footprint.missing_in(offer));
            // A session that offers nothing lacks the module.
            let nothing = || vec![format!("module `{}`", footprint.module)];
            let by_how_much = |lacks: &Vec<String>| {
                (lacks.iter().any(|name| name.starts_with("module ")), lacks.len())
            };
            each.min_by_key(by_how_much).unwrap_or_else(nothing)
        });
        let best = lacks.min_by_key(|lacks| {
            (lacks.iter().any(|name| name.starts_with("module ")), lacks.len())
        });
        match best {
            None => Self::NoWorker,
            Some(lacks) if lacks.is_empty() => Self::Covered,
            Some(lacks) => Self::Lacking(lacks),
        }
    }
}

/// Whether a worker session has reported lately.
#[must_use]
pub fn is_live(session: &SessionRow, now: Timestamp) -> bool {
    session.seen_at.plus(SESSION_LIVE_FOR) >= now
}

/// The input with what is derived from it once.
struct Known<'a> {
    input: ExplainInput<'a>,
    history: history::History<'a>,
    cursor: Option<Cursor>,
    unreadable: Option<String>,
    open: Open,
}

/// Where the run stands in its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Open {
    /// The inputs are not computed yet.
    Inputs,
    /// At a step.
    Step(StepKey),
    /// Every step is over, or a rebuilt value broke.
    End,
    /// Journal and plan do not fit.
    Unknown,
}

impl<'a> Known<'a> {
    fn of(input: ExplainInput<'a>) -> Self {
        let history = history::History::of(input.run, input.journal);
        let mut unreadable = input.unreadable.map(str::to_owned);
        let mut cursor = None;
        // A dry run has no cursor: what it found is its bill.
        let is_execution = input.run.origin.mode == Mode::Execute;
        if let (Some(plan), None, true) = (input.plan, &unreadable, is_execution) {
            let facts = input.journal.iter().flat_map(|entry| &entry.facts);
            let fresh = Cursor::new(input.run, plan, input.invocation.clone());
            match JournalEntry::check_contiguous(input.journal, 0, input.run.seq)
                .and_then(|()| fresh.restore(plan, facts))
            {
                Ok(restored) => cursor = Some(restored),
                Err(error) => unreadable = Some(error.to_string()),
            }
        }
        let open = match (cursor.as_ref(), input.plan) {
            (Some(cursor), Some(plan)) => match cursor.next(plan) {
                Ok(Next::Inputs) => Open::Inputs,
                Ok(Next::Step { key, .. }) => Open::Step(key),
                Ok(Next::Done { .. } | Next::Broken(_)) => Open::End,
                Err(error) => {
                    unreadable = Some(error.to_string());
                    Open::Unknown
                }
            },
            _ => Open::Unknown,
        };
        Self { input, history, cursor, unreadable, open }
    }

    /// Whether a worker may have begun the open step: the run was claimed since the last durable outcome, or
    /// something about the step was recorded since.
    fn is_touched(&self) -> bool {
        let run = self.input.run;
        if run.attempt == 0 || self.history.ended_with_outcome() {
            return false;
        }
        let resumes = run.resume.is_some() || run.deadline.is_some();
        let held = match run.state() {
            RunState::Running | RunState::Waiting => true,
            // Where it was canceled while it waited, nothing tells of the park. Cancel itself raises one fence.
            RunState::Canceled => self.history.may_have_been_held_since(run.generation, 1),
            RunState::Queued
            | RunState::Succeeded
            | RunState::Failed
            | RunState::NeedsAttention => false,
        };
        run.step_attempt > 0 || held || resumes || self.history.is_touched_since
    }

    fn open_step(&self) -> Option<&StepKey> {
        match &self.open {
            Open::Step(step) => Some(step),
            Open::Inputs | Open::End | Open::Unknown => None,
        }
    }

    fn class_of(&self, action: &str) -> Option<EffectClass> {
        self.input.plan?.policies.get(action).map(|policy| policy.class)
    }

    /// The key of a step's effect; pure steps have none.
    fn effect_key(&self, class: Option<EffectClass>, step: &StepKey) -> Option<EffectKey> {
        class.filter(|class| *class != EffectClass::Pure)?;
        Some(self.input.run.effect_key(step))
    }
}

/// Explains a run.
///
/// Total: any input gives an explanation. Where plan or journal cannot be read it says so, and says nothing of
/// steps that it cannot know.
#[must_use]
pub fn explain(input: &ExplainInput<'_>) -> Explanation {
    explanation(&Known::of(*input))
}

/// Both [`explain`] and [`shown_steps`], of one reading of the journal.
#[must_use]
pub fn explain_with_steps(
    input: &ExplainInput<'_>,
    limit: usize,
) -> (Explanation, (Vec<Shown>, u64)) {
    let known = Known::of(*input);
    (explanation(&known), came_to(&known, limit))
}

fn explanation(known: &Known<'_>) -> Explanation {
    let input = &known.input;
    let walked = walk::walk(known, EXPLAIN_MAX_ITERATIONS, EXPLAIN_MAX_STEPS);
    let why_not_moving = moving::reasons(known);
    Explanation {
        run: input.run.id,
        state: input.run.state(),
        mode: input.run.origin.mode,
        revision: input.run.revision,
        read_at: input.now,
        headline: moving::headline(known),
        why_not_moving,
        budget: input.budget.lines(),
        children: input.children.iter().map(ChildrenNote::from).collect(),
        would_repeat: effects::would_repeat(known),
        legal_actions: legal::legal_actions(known),
        steps: walked.steps,
        steps_omitted: walked.omitted,
        effects: walked.effects,
    }
}

/// Why a retry would end a failed run in the same way again, in a sentence; `None` where it may help, or is not legal.
/// It is legal all the same.
#[must_use]
pub fn why_retry_is_in_vain(input: &ExplainInput<'_>) -> Option<String> {
    foresee::retry_in_vain(&Known::of(*input))
}

/// The steps that a run has come to, in order, at most `limit`; and how many are left out. Loops by iteration.
#[must_use]
pub fn shown_steps(input: &ExplainInput<'_>, limit: usize) -> (Vec<Shown>, u64) {
    came_to(&Known::of(*input), limit)
}

fn came_to(known: &Known<'_>, limit: usize) -> (Vec<Shown>, u64) {
    let walked = walk::walk(known, usize::MAX, usize::MAX);
    let came_to = |step: &Shown| step.state != StepState::NotReached;
    let mut steps: Vec<Shown> = walked.steps.into_iter().filter(came_to).collect();
    let omitted = steps.len().saturating_sub(limit) as u64;
    steps.truncate(limit);
    (steps, omitted)
}

#[cfg(test)]
mod tests;
