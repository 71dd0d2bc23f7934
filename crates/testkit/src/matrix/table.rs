//! What a crash did to a step, by effect class and moment.

use std::collections::BTreeMap;
use std::fmt;

use surefoot_kernel_core::{EffectClass, StepKey};

use super::case::Seen;
use super::plan::{Kind, Trouble};
use super::provider::Did;
use super::verdict::{Expected, count, is_attended};

/// In the order of the table.
const CLASSES: [EffectClass; 4] = [
    EffectClass::Pure,
    EffectClass::Transactional,
    EffectClass::Idempotent,
    EffectClass::Ambiguous,
];

/// How far a step was at the moment of the trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    Nothing,
    Marked,
    Called,
    Recorded,
}

/// Kinds of trouble that the table does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Death,
    Doubt,
    Away,
    Theft,
    Cancel,
    CancelOfDead,
}

/// What happened to steps, with the number of cases that showed it. Displayed as Markdown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table(BTreeMap<(Family, usize, Reached, &'static str), usize>);

impl Table {
    /// Counts what a case showed of the steps that were under way, or of the next one if none was, and of the last one
    /// that was recorded.
    pub(super) fn add(&mut self, seen: &Seen, expected: &Expected, trouble: Trouble) {
        if trouble.kind.is_cancel() && !seen.is_canceled {
            // There was no run yet, or none any more.
            return;
        }
        let recorded = seen.before.tree.recorded();
        let marked = seen.before.tree.marked();
        let log = seen.log.get(..seen.before.log).unwrap_or_default();
        let reached = |step: &StepKey| {
            if recorded.contains(step) {
                Reached::Recorded
            } else if count(log, step, &Did::Called) > 0 {
                Reached::Called
            } else if marked.contains(step) {
                Reached::Marked
            } else {
                Reached::Nothing
            }
        };
        let is_open = |step: &StepKey| matches!(reached(step), Reached::Marked | Reached::Called);
        let open = expected.steps.iter().filter(|(step, _)| is_open(step));
        let next = expected.steps.iter().find(|(step, _)| reached(step) == Reached::Nothing);
        let next = next.filter(|_| open.clone().next().is_none());
        let last = expected.steps.iter().rfind(|(step, _)| reached(step) == Reached::Recorded);
        for (step, class) in open.chain(next).chain(last) {
            let reached = reached(step);
            let then = then(seen, step, *class, reached);
            let at = CLASSES.iter().position(|known| known == class).unwrap_or_default();
            *self.0.entry((family(trouble.kind), at, reached, then)).or_default() += 1;
        }
    }
}

const fn family(kind: Kind) -> Family {
    match kind {
        Kind::DiesBefore | Kind::DiesAfter => Family::Death,
        Kind::RequestLost | Kind::AnswerLost | Kind::ComesLate => Family::Doubt,
        Kind::Refused | Kind::Away => Family::Away,
        Kind::StolenBefore | Kind::StolenAfter => Family::Theft,
        Kind::CanceledBefore | Kind::CanceledAfter => Family::Cancel,
        Kind::DiesBeforeCancel | Kind::DiesAfterCancel => Family::CancelOfDead,
    }
}

fn then(seen: &Seen, step: &StepKey, class: EffectClass, reached: Reached) -> &'static str {
    let after = seen.log.get(seen.before.log..).unwrap_or_default();
    let calls = count(after, step, &Did::Called);
    let asks = count(after, step, &Did::Asked);
    let is_recorded = seen.tree.recorded().contains(step);
    match (reached, calls) {
        (Reached::Recorded, 0) => "restored: not called again",
        (_, _) if is_attended(after, step) && is_recorded => "a person decides",
        (_, _) if is_attended(after, step) => "a person decides: it did not happen",
        (Reached::Nothing, 1) => "called",
        (Reached::Nothing, 0) => "not called",
        (_, 0) if asks > 0 && is_recorded => "asked; not called again",
        (_, 0) if asks > 0 => "asked; the provider does not know it",
        (_, 0) if is_recorded => "the answer in hand is recorded; not called again",
        (Reached::Marked, 0) => "the worker knows that it did not call: not called",
        (_, 0) => match class {
            EffectClass::Pure => "not called again",
            EffectClass::Transactional => "its writes are discarded; not called again",
            EffectClass::Idempotent => "not called again, and its outcome is not recorded",
            EffectClass::Ambiguous => "not called again: its failure is recorded",
        },
        (Reached::Marked, 1) => "the worker knows that it did not call: called",
        (_, _) => called_again(seen, step, class),
    }
}

fn called_again(seen: &Seen, step: &StepKey, class: EffectClass) -> &'static str {
    let before = seen.log.get(..seen.before.log).unwrap_or_default();
    match class {
        EffectClass::Pure => "called again",
        EffectClass::Transactional => {
            let is_there = before.iter().any(|entry| match &entry.did {
                Did::Wrote(row) => entry.step == *step && seen.rows.contains(row),
                Did::Called
                | Did::CarriedOut
                | Did::Asked
                | Did::PassedFence(_)
                | Did::Attended(_) => false,
            });
            if is_there { "its writes stay" } else { "its writes are discarded; called again" }
        }
        EffectClass::Idempotent => "called again under the same effect key",
        EffectClass::Ambiguous => "called again",
    }
}

impl Family {
    const fn title(self) -> &'static str {
        match self {
            Self::Death => "The process dies, another one goes on after its lease",
            Self::Doubt => "The answer of a write is lost, the process lives",
            Self::Away => "The store refuses a call or is away for a while, the process lives",
            Self::Theft => {
                "The process stands still past its lease; another one takes over, then it goes on"
            }
            Self::Cancel => "A person asks to cancel the run, the process lives",
            Self::CancelOfDead => "The process dies, and a person asks to cancel the run",
        }
    }
}

impl Reached {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "before it is called, and before its call is marked",
            Self::Marked => "its call is marked, and not made",
            Self::Called => "it was called, its outcome is not recorded",
            Self::Recorded => "its outcome is recorded",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = None;
        for ((family, class, reached, then), cases) in &self.0 {
            if last != Some(*family) {
                writeln!(f, "\n## {}\n", family.title())?;
                writeln!(f, "| class | at that moment | then | cases |")?;
                writeln!(f, "|---|---|---|---|")?;
                last = Some(*family);
            }
            let class = CLASSES.get(*class).map_or("", |class| class.as_str());
            writeln!(f, "| {class} | {} | {then} | {cases} |", reached.as_str())?;
        }
        Ok(())
    }
}
