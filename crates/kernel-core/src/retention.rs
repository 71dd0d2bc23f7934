//! What may be deleted: the one place that says so. Stores ask it for the states that hold a row back, and bind them
//! to their statements; they have no rule of their own.

use crate::{EffectState, Micros, RunState, Timestamp};

/// Days after dispatch or dead-lettering after which an event's payload is emptied. Not configurable.
pub const EVENT_RETENTION_DAYS: i64 = 30;

/// How much is insisted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Force {
    /// An effect that nobody can explain holds its run back.
    No,
    /// An operator said, with a reason, that nobody will explain it any more.
    Unexplained,
}

/// Why a run is not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldBy {
    /// It has not ended.
    Life,
    /// Nobody knows what became of an effect of it.
    Effect,
}

/// What holds a run back from being deleted, if anything does. A tree of runs is deleted as a whole or not at all, so
/// one run that is held holds its whole tree.
///
/// An effect that was given up without knowing is not settled: its run is the only place that tells of it.
#[must_use]
pub const fn run_held_by(
    state: RunState,
    effect: Option<EffectState>,
    force: Force,
) -> Option<HeldBy> {
    if !effect_is_open(effect) {
        return if state.is_terminal() { None } else { Some(HeldBy::Life) };
    }
    match (state, force) {
        // Whoever may still be executing it has to be gone: a row is never taken from under its worker.
        (RunState::Running, Force::No | Force::Unexplained)
        // It is found out without a person, or becomes a person's.
        | (RunState::Queued | RunState::Waiting, Force::No) => Some(HeldBy::Life),
        (
            RunState::NeedsAttention | RunState::Succeeded | RunState::Failed | RunState::Canceled,
            Force::No,
        ) => Some(HeldBy::Effect),
        (
            RunState::Queued
            | RunState::Waiting
            | RunState::NeedsAttention
            | RunState::Succeeded
            | RunState::Failed
            | RunState::Canceled,
            Force::Unexplained,
        ) => None,
    }
}

const fn effect_is_open(effect: Option<EffectState>) -> bool {
    match effect {
        Some(EffectState::Marked | EffectState::Ambiguous | EffectState::AbandonedUnknown) => true,
        Some(EffectState::Succeeded | EffectState::Failed | EffectState::NotPerformed) | None => {
            false
        }
    }
}

/// Every state in which a run is held, as stores write it: the state, a blank, and the state of its effect or `-`.
#[must_use]
pub fn holding(force: Force) -> Vec<String> {
    pairs()
        .filter(|(state, effect)| run_held_by(*state, *effect, force).is_some())
        .map(word)
        .collect()
}

/// The same, for runs that are held by an effect.
#[must_use]
pub fn holding_by_effect(force: Force) -> Vec<String> {
    let by_effect = |(state, effect): &(RunState, Option<EffectState>)| {
        run_held_by(*state, *effect, force) == Some(HeldBy::Effect)
    };
    pairs().filter(by_effect).map(word).collect()
}

fn pairs() -> impl Iterator<Item = (RunState, Option<EffectState>)> {
    let effects = || std::iter::once(None).chain(EffectState::ALL.iter().copied().map(Some));
    RunState::ALL.iter().flat_map(move |state| effects().map(|effect| (*state, effect)))
}

fn word((state, effect): (RunState, Option<EffectState>)) -> String {
    format!("{} {}", state.as_str(), effect.map_or("-", EffectState::as_str))
}

/// Events that were done with at this instant or before may be emptied, once no run of theirs is held by
/// [`event_held_by`].
#[must_use]
pub const fn events_expire_before(now: Timestamp) -> Timestamp {
    let span = Micros::from_secs(EVENT_RETENTION_DAYS * 86_400);
    Timestamp::from_micros(now.micros().saturating_sub(span.get()))
}

/// Whether a run in this state holds back the payload of the event that started it.
#[must_use]
pub const fn event_held_by(state: RunState) -> bool {
    !state.is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_runs_with_explained_effects_are_deleted() {
        for (state, effect) in pairs() {
            let open = matches!(
                effect,
                Some(EffectState::Marked | EffectState::Ambiguous | EffectState::AbandonedUnknown)
            );
            let free = run_held_by(state, effect, Force::No).is_none();
            assert_eq!(free, state.is_terminal() && !open, "{state} {effect:?}");
        }
    }

    #[test]
    fn force_gives_up_effects_but_takes_no_row_from_a_worker() {
        for (state, effect) in pairs() {
            let freed = (run_held_by(state, effect, Force::No) == Some(HeldBy::Effect)
                || !state.is_terminal())
                && run_held_by(state, effect, Force::Unexplained).is_none();
            let open = effect_is_open(effect);
            assert_eq!(freed, open && state != RunState::Running, "{state} {effect:?}");
            if !open {
                let (plain, forced) = (Force::No, Force::Unexplained);
                assert_eq!(run_held_by(state, effect, plain), run_held_by(state, effect, forced));
            }
        }
    }

    #[test]
    fn stores_are_told_every_state_in_words() {
        let held = holding(Force::No);
        for word in ["queued -", "running marked", "failed abandoned_unknown", "needs_attention -"]
        {
            assert!(held.iter().any(|it| it == word), "{word} is not in {held:?}");
        }
        assert!(!held.iter().any(|it| it == "failed -" || it == "failed succeeded"));
        assert!(holding_by_effect(Force::Unexplained).is_empty());
    }

    #[test]
    fn an_event_expires_thirty_days_after_it_was_done_with() {
        let now = Timestamp::from_micros(40 * 86_400_000_000);
        assert_eq!(events_expire_before(now).micros(), 10 * 86_400_000_000);
        assert_eq!(events_expire_before(Timestamp::from_micros(i64::MIN)).micros(), i64::MIN);
    }
}
