//! Every step of the plan beside what is recorded of it.

use super::effects::{self, Collector, EffectNotes, Kind};
use super::history::Recorded;
use super::steps::{Iterations, Shown, StepState};
use super::{Known, Open, ShownError};
use crate::interpreter::{Branch, KeyPath};
use crate::plan::{Plan, Step, StepKind};
use crate::{EffectClass, Phase, StepKey, Taken, Timestamp};

/// What a walk found.
pub(super) struct Walked {
    pub(super) steps: Vec<Shown>,
    pub(super) omitted: u64,
    pub(super) effects: EffectNotes,
}

/// Walks the plan. Lists at most `max_steps`, and of each loop the newest `max_iterations` iterations.
pub(super) fn walk(known: &Known<'_>, max_iterations: usize, max_steps: usize) -> Walked {
    let mut walk = Walk {
        known,
        max_iterations,
        max_steps,
        out: Vec::new(),
        omitted: 0,
        is_hidden: false,
        times: 1,
        behind: matches!(known.open, Open::Inputs)
            .then(|| "the inputs are not computed yet".to_owned()),
        effects: Collector::default(),
    };
    match known.input.plan.filter(|_| known.open != Open::Unknown) {
        Some(plan) => {
            walk.list(plan, &plan.steps, &KeyPath::root(), None);
        }
        None => effects::of_row(known, &mut walk.effects),
    }
    Walked { steps: walk.out, omitted: walk.omitted, effects: walk.effects.finish() }
}

struct Walk<'k, 'a> {
    known: &'k Known<'a>,
    max_iterations: usize,
    max_steps: usize,
    out: Vec<Shown>,
    omitted: u64,
    /// Inside an iteration that is counted, not listed.
    is_hidden: bool,
    /// How many iterations the present one stands for.
    times: u64,
    /// Why steps from here on are not reached, once the open step was passed.
    behind: Option<String>,
    effects: Collector,
}

/// What a list of steps came to.
struct Inner {
    finished: Option<Timestamp>,
    /// Every step of it is over.
    is_over: bool,
    /// The open step in it, if a worker has come to it.
    open: Option<(StepState, Option<ShownError>)>,
}

impl Inner {
    const NOTHING: Self = Self { finished: None, is_over: true, open: None };

    /// This, and what comes behind it.
    fn and(self, next: Self) -> Self {
        Self {
            finished: next.finished.or(self.finished),
            is_over: self.is_over && next.is_over,
            open: self.open.or(next.open),
        }
    }
}

impl Walk<'_, '_> {
    /// `unreached` says why no step of the list can be reached, where that is known.
    fn list(
        &mut self,
        plan: &Plan,
        steps: &[Step],
        path: &KeyPath,
        unreached: Option<&str>,
    ) -> Inner {
        steps.iter().enumerate().fold(Inner::NOTHING, |inner, (index, node)| {
            inner.and(self.step(plan, node, &path.clone().step(index), unreached))
        })
    }

    fn step(&mut self, plan: &Plan, node: &Step, path: &KeyPath, unreached: Option<&str>) -> Inner {
        let mut shown = self.blank(node, path);
        let recorded = self.known.history.of_step(&shown.key).filter(|_| unreached.is_none());
        if let Some(recorded) = recorded {
            shown.started_at = recorded.started;
            shown.effect_state = recorded.effect;
        }
        let is_open = unreached.is_none() && self.known.open_step() == Some(&shown.key);
        if let Some(taken) = recorded.and_then(|recorded| recorded.taken) {
            return self.control(plan, node, path, shown, taken);
        }
        if let Some(recorded) = recorded.filter(|recorded| recorded.caught.is_some()) {
            return self.caught(plan, node, path, shown, recorded);
        }
        let mut open = None;
        if let Some(by) = recorded.and_then(|recorded| recorded.completed) {
            shown.state = StepState::Completed;
            shown.finished_at = recorded.and_then(|recorded| recorded.last);
            if shown.class.is_some_and(|class| class != EffectClass::Pure) {
                shown.effect_state = Some(crate::EffectState::Succeeded);
                self.note(Kind::Happened, &shown, path, effects::said_by(by));
            }
        } else if is_open {
            self.open(&mut shown, path);
            open =
                (shown.state != StepState::NotReached).then(|| (shown.state, shown.error.clone()));
        } else {
            let why = unreached.or(self.behind.as_deref());
            shown.why = Some(why.unwrap_or("the run ended before it").to_owned());
            self.note_unreached(&mut shown, path);
        }
        let why_inside = self.inside_is_unreached(node, &shown, is_open);
        let finished = shown.finished_at;
        let is_over = shown.state == StepState::Completed;
        self.push(shown);
        if let Some(why) = why_inside {
            self.unreached_inside(plan, node, path, &why);
        }
        Inner { finished, is_over, open }
    }

    /// A control step that chose: its own state is that of what is inside.
    fn control(
        &mut self,
        plan: &Plan,
        node: &Step,
        path: &KeyPath,
        mut shown: Shown,
        taken: &Taken,
    ) -> Inner {
        let recorded = self.known.history.of_step(&shown.key).and_then(|recorded| recorded.last);
        let (key, at) = (shown.key.clone(), self.out.len());
        if let (StepKind::ForEach { .. }, Taken::Items(items)) = (&node.kind, taken) {
            shown.iterations = Some(self.progress(path, items.len()));
        }
        let iterations = shown.iterations;
        let is_listed = self.push(shown);
        let inner = match (&node.kind, iterations) {
            (StepKind::ForEach { body, .. }, Some(iterations)) => {
                self.iterate(plan, body, path, iterations)
            }
            _ => self.branches(plan, node, path, taken),
        };
        let finished = inner.finished.or(recorded);
        let inner = Inner { finished, ..inner };
        let failed_here = self.failure_at(&key);
        let (state, error) = match (&inner.open, failed_here) {
            (Some(open), _) => open.clone(),
            (None, Some(error)) => (StepState::Failed, Some(error)),
            (None, None) if inner.is_over => (StepState::Completed, None),
            (None, None) => self.left_inside(),
        };
        if let Some(shown) = self.out.get_mut(at).filter(|_| is_listed) {
            shown.finished_at = finished.filter(|_| state == StepState::Completed);
            (shown.state, shown.error) = (state, error);
        }
        inner
    }

    /// An action that failed for good, and whose `catch` went on.
    fn caught(
        &mut self,
        plan: &Plan,
        node: &Step,
        path: &KeyPath,
        mut shown: Shown,
        recorded: &Recorded<'_>,
    ) -> Inner {
        shown.state = StepState::Failed;
        shown.error = recorded.caught.map(ShownError::from);
        shown.why = Some("its failure was caught: the run went on with its `catch`".to_owned());
        shown.finished_at = recorded.last;
        if let Some((kind, why)) = effects::of_caught(shown.class, recorded) {
            self.note(kind, &shown, path, why);
        }
        self.push(shown);
        let inner = node.catch().map_or(Inner::NOTHING, |steps| {
            self.list(plan, steps, &path.clone().branch(Branch::Catch), None)
        });
        Inner { finished: inner.finished.or(recorded.last), ..inner }
    }

    /// The state of a control step that was entered, and inside of which no worker has come to the open step.
    fn left_inside(&self) -> (StepState, Option<ShownError>) {
        match &self.known.input.run.phase {
            Phase::Canceled { .. } => (StepState::Canceled, None),
            Phase::Failed { error, .. } => (StepState::Failed, Some(error.into())),
            Phase::NeedsAttention(attention) => {
                (StepState::NeedsAttention, Some((&attention.error).into()))
            }
            Phase::Running { .. } => (StepState::Running, None),
            Phase::Queued { .. } | Phase::Waiting(_) => (StepState::Waiting, None),
            Phase::Succeeded { .. } => (StepState::Terminal, None),
        }
    }

    fn branches(&mut self, plan: &Plan, node: &Step, path: &KeyPath, taken: &Taken) -> Inner {
        let mut inner = Inner::NOTHING;
        for (branch, steps) in branches_of(node) {
            let is_taken = branch_of(taken) == Some(branch);
            let why = (!is_taken).then_some("another branch was taken");
            let found = self.list(plan, steps, &path.clone().branch(branch), why);
            if is_taken {
                inner = found;
            }
        }
        inner
    }

    /// How far a loop is: iterations are worked through one after another.
    fn progress(&self, path: &KeyPath, total: usize) -> Iterations {
        let first = |index: usize| path.clone().iteration(index).step(0).key();
        let open = self.known.open_step();
        let has_begun = |index: &usize| {
            let key = first(*index);
            self.known.history.of_step(&key).is_some() || open == Some(&key)
        };
        let begun = (0..total).take_while(has_begun).count();
        let current = path.clone().iteration(begun.saturating_sub(1));
        let is_inside = open.is_some_and(|open| is_within(open, &current));
        let completed = if is_inside { begun.saturating_sub(1) } else { begun };
        let listed_from = begun.saturating_sub(self.max_iterations);
        Iterations { total, completed, listed_from }
    }

    fn iterate(
        &mut self,
        plan: &Plan,
        body: &[Step],
        path: &KeyPath,
        iterations: Iterations,
    ) -> Inner {
        let mut inner = Inner::NOTHING;
        let is_open = iterations.completed < iterations.total;
        let begun = (iterations.completed + usize::from(is_open)).min(iterations.total);
        let was_hidden = self.is_hidden;
        for index in 0..begun {
            self.is_hidden = was_hidden || index < iterations.listed_from;
            inner = inner.and(self.list(plan, body, &path.clone().iteration(index), None));
        }
        let rest = iterations.total.saturating_sub(begun);
        if rest > 0 {
            // Counted, not listed: they are all alike.
            self.is_hidden = true;
            let times = self.times;
            self.times = times.saturating_mul(rest as u64);
            self.list(plan, body, &path.clone().body(), Some("an iteration that was not begun"));
            self.times = times;
        }
        self.is_hidden = was_hidden;
        inner
    }

    /// Why nothing inside a step was reached, if it has an inside.
    fn inside_is_unreached(&self, node: &Step, shown: &Shown, is_open: bool) -> Option<String> {
        let has_catch = node.catch().is_some();
        let has_ended = self.known.input.run.state().is_terminal();
        let why = match shown.state {
            StepState::NotReached => return Some(shown.why.clone().unwrap_or_default()),
            StepState::Completed if has_catch => "the action did not fail",
            StepState::Failed | StepState::Canceled if has_catch && has_ended => {
                "the run ended, and the failure was not caught"
            }
            StepState::Running
            | StepState::Waiting
            | StepState::Failed
            | StepState::NeedsAttention
            | StepState::Terminal
            | StepState::Canceled
                if has_catch =>
            {
                "the action has not failed for good"
            }
            StepState::Completed => return None,
            StepState::Running
            | StepState::Waiting
            | StepState::Failed
            | StepState::NeedsAttention
            | StepState::Terminal
            | StepState::Canceled => {
                return is_open.then(|| "its control step has not chosen yet".to_owned());
            }
        };
        Some(why.to_owned())
    }

    fn unreached_inside(&mut self, plan: &Plan, node: &Step, path: &KeyPath, why: &str) {
        for (branch, steps) in branches_of(node) {
            self.list(plan, steps, &path.clone().branch(branch), Some(why));
        }
        if let StepKind::ForEach { body, .. } = &node.kind {
            self.list(plan, body, &path.clone().body(), Some(why));
        }
    }

    /// The step at which the run stands.
    fn open(&mut self, shown: &mut Shown, path: &KeyPath) {
        let known = self.known;
        let run = known.input.run;
        let is_touched = known.is_touched();
        let ended_by_it = known.history.succeeded_at == Some(&shown.key);
        let behind = |what: &str| format!("{what} `{}`", shown.key);
        (shown.state, self.behind) = match &run.phase {
            Phase::Succeeded { .. } if ended_by_it => {
                (StepState::Terminal, Some(behind("the run ended at")))
            }
            Phase::Succeeded { .. } => (StepState::NotReached, None),
            Phase::Failed { .. } | Phase::Canceled { .. } if !is_touched => {
                (StepState::NotReached, None)
            }
            Phase::Failed { error, .. } => {
                shown.error = Some(error.into());
                (StepState::Failed, Some(behind("the run failed at")))
            }
            Phase::Canceled { .. } => {
                (StepState::Canceled, Some(behind("the run was canceled at")))
            }
            Phase::NeedsAttention(attention) => {
                shown.error = Some((&attention.error).into());
                (StepState::NeedsAttention, Some(behind("behind")))
            }
            Phase::Waiting(_) => (StepState::Waiting, Some(behind("behind"))),
            Phase::Running { .. } => (StepState::Running, Some(behind("behind"))),
            Phase::Queued { .. } if is_touched => {
                shown.why = Some("a worker goes on with it".to_owned());
                shown.error = run.last_failure.as_ref().map(ShownError::from);
                (StepState::Waiting, Some(behind("behind")))
            }
            Phase::Queued { .. } => (StepState::NotReached, Some(behind("behind"))),
        };
        if let Some(effect) = run.effect().filter(|effect| effect.step == shown.key) {
            shown.effect_state = Some(effect.state);
        }
        if !is_touched {
            shown.started_at = None;
            shown.why = Some(if run.state().is_terminal() {
                "the run ended before it".to_owned()
            } else {
                "it is next, and no worker has come to it".to_owned()
            });
            self.note_unreached(shown, path);
            return;
        }
        shown.started_at = shown.started_at.or(known.history.arrived).or(run.started_at);
        shown.attempt = Some(run.step_attempt.max(1));
        if run.state().is_terminal() {
            // What came before it may be durable only since, and is as late as that.
            shown.finished_at = run.ended_at.max(shown.started_at);
        }
        let recorded = known.history.of_step(&shown.key);
        if let Some((kind, why)) = effects::of_open(known, shown.class, recorded) {
            self.note(kind, shown, path, &why);
        }
    }

    fn failure_at(&self, key: &StepKey) -> Option<ShownError> {
        match &self.known.input.run.phase {
            Phase::Failed { error, .. } if error.step.as_ref() == Some(key) => Some(error.into()),
            Phase::Failed { .. }
            | Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Canceled { .. } => None,
        }
    }

    /// No effect has the key of a step that no worker has come to; inside a loop it would not even be its key.
    fn note_unreached(&mut self, shown: &mut Shown, path: &KeyPath) {
        shown.effect_key = None;
        if shown.class.is_some_and(|class| class != EffectClass::Pure) {
            let why = shown.why.clone().unwrap_or_default();
            self.note(Kind::NotStarted, shown, path, &why);
        }
    }

    fn note(&mut self, kind: Kind, shown: &Shown, path: &KeyPath, why: &str) {
        let is_counted = self.is_hidden || self.out.len() >= self.max_steps;
        if is_counted {
            self.effects.count(kind, shown, path.place(), why, self.times);
        } else {
            self.effects.list(kind, shown, why);
        }
    }

    /// Lists a step, or counts it.
    fn push(&mut self, shown: Shown) -> bool {
        let has_room = !self.is_hidden && self.out.len() < self.max_steps;
        if has_room {
            self.out.push(shown);
        } else {
            self.omitted = self.omitted.saturating_add(self.times);
        }
        has_room
    }

    fn blank(&self, node: &Step, path: &KeyPath) -> Shown {
        let key = path.key();
        let class = node.action().and_then(|action| self.known.class_of(action));
        Shown {
            effect_key: self.known.effect_key(class, &key),
            key,
            action: node.does().to_owned(),
            class,
            label: node.label.clone(),
            line: node.line,
            state: StepState::NotReached,
            why: None,
            effect_state: None,
            attempt: None,
            started_at: None,
            finished_at: None,
            error: None,
            iterations: None,
        }
    }
}

/// The branches of a step, the `catch` of an action among them; a loop has none.
pub(crate) fn branches_of(node: &Step) -> Vec<(Branch, &[Step])> {
    match &node.kind {
        StepKind::If { then, otherwise, .. } => {
            let otherwise = otherwise.as_deref().map(|steps| (Branch::Else, steps));
            std::iter::once((Branch::Then, then.as_slice())).chain(otherwise).collect()
        }
        StepKind::Switch { cases, default, .. } => {
            let cases = cases.iter().enumerate();
            let cases = cases.map(|(index, case)| (Branch::Case(index), case.steps.as_slice()));
            let default = default.as_deref().map(|steps| (Branch::Default, steps));
            cases.chain(default).collect()
        }
        StepKind::Action { catch, .. } => {
            catch.as_deref().map(|steps| (Branch::Catch, steps)).into_iter().collect()
        }
        StepKind::ForEach { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. }
        | StepKind::RunWorkflow { .. }
        | StepKind::RunWorkflows { .. } => Vec::new(),
    }
}

fn branch_of(taken: &Taken) -> Option<Branch> {
    match taken {
        Taken::Then => Some(Branch::Then),
        Taken::Else => Some(Branch::Else),
        Taken::Case(index) => Some(Branch::Case(usize::try_from(*index).unwrap_or(usize::MAX))),
        Taken::Default => Some(Branch::Default),
        Taken::Nothing | Taken::Items(_) => None,
    }
}

/// Whether a step is in a list: its place continues the list's, and its iterations begin with the list's.
fn is_within(step: &StepKey, list: &KeyPath) -> bool {
    let list = list.key();
    let (place, iterations) = split(step.as_str());
    let (list_place, list_iterations) = split(list.as_str());
    let continues = |text: &str, start: &str| {
        text.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    continues(place, list_place) && continues(iterations, list_iterations)
}

fn split(key: &str) -> (&str, &str) {
    key.split_once('#').unwrap_or((key, ""))
}
