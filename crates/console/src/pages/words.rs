//! States in words and tones. The words are those of the core; a tone is never all that tells them apart.

use surefoot_kernel_core::{
    EffectClass, EffectState, EventStatus, Micros, RunState, StepState, Timestamp, span_in_words,
};
use surefoot_operator::At;

/// A state as it is shown: a word, and a mark of a shape and a colour of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Badge {
    /// A class of the style.
    pub(crate) tone: &'static str,
    pub(crate) word: &'static str,
    /// What it means, a sentence.
    pub(crate) hint: &'static str,
}

pub(crate) const fn run_state(state: RunState) -> Badge {
    let (tone, word, hint) = match state {
        RunState::Queued => {
            ("calm", "queued", "Ready, or waiting for its turn: a worker takes it.")
        }
        RunState::Running => ("busy", "running", "A worker holds it."),
        RunState::Waiting => {
            ("wait", "waiting", "Parked until a signal, a child or an instant wakes it.")
        }
        RunState::Succeeded => ("good", "succeeded", "It ended well."),
        RunState::Failed => ("bad", "failed", "It ended badly; it can be tried again."),
        RunState::Canceled => ("mute", "canceled", "It ended by request."),
        RunState::NeedsAttention => {
            ("warn", "needs attention", "A person has to say what is true before it can go on.")
        }
    };
    Badge { tone, word, hint }
}

pub(crate) const fn step_state(state: StepState) -> Badge {
    let (tone, word, hint) = match state {
        StepState::Running => ("busy", "running", "A worker holds the run at it."),
        StepState::Completed => ("good", "completed", "It has an outcome."),
        StepState::Waiting => {
            ("wait", "waiting", "The run is parked at it, or is tried again later.")
        }
        StepState::Failed => ("bad", "failed", "It failed for good."),
        StepState::NeedsAttention => {
            ("warn", "needs attention", "A person has to say what is true.")
        }
        StepState::Terminal => ("good", "ended the run", "It ended the run early."),
        StepState::Canceled => ("mute", "canceled", "The run was canceled at it."),
        StepState::NotReached => ("none", "not reached", "The run has not come to it."),
    };
    Badge { tone, word, hint }
}

pub(crate) const fn effect_state(state: EffectState) -> Badge {
    let (tone, word, hint) = match state {
        EffectState::Marked => {
            ("wait", "marked", "The call was announced; nothing is known since.")
        }
        EffectState::Ambiguous => {
            ("warn", "ambiguous", "The call ended without a definite answer.")
        }
        EffectState::Succeeded => ("good", "succeeded", "It happened."),
        EffectState::Failed => ("bad", "failed", "The provider refused it."),
        EffectState::NotPerformed => ("mute", "not performed", "It did not happen."),
        EffectState::AbandonedUnknown => {
            ("warn", "given up, unknown", "An operator gave it up without knowing.")
        }
    };
    Badge { tone, word, hint }
}

pub(crate) const fn event_status(status: EventStatus) -> Badge {
    let (tone, word, hint) = match status {
        EventStatus::Pending => ("wait", "pending", "Its runs are not created yet."),
        EventStatus::Dispatched => ("good", "dispatched", "Its runs exist."),
        EventStatus::Unmatched => ("mute", "unmatched", "Nobody listens to it."),
        EventStatus::Retrying => ("warn", "retrying", "Dispatch failed and is tried again."),
        EventStatus::DeadLettered => {
            ("bad", "dead-lettered", "Dispatch failed for good; it can be redriven.")
        }
    };
    Badge { tone, word, hint }
}

/// What a class promises, a sentence.
pub(crate) const fn class_hint(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Pure => "Computes; it has no effect and may run again.",
        EffectClass::Transactional => "Its writes are committed together with its outcome.",
        EffectClass::Idempotent => "Repeated under the same key, it acts once.",
        EffectClass::Ambiguous => {
            "It is called at most once; what nobody knows is asked or settled by a person."
        }
    }
}

/// An instant: exact for machines, short for people, and how long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) exact: String,
    pub(crate) short: String,
    pub(crate) ago: String,
}

impl When {
    pub(crate) fn of(at: At, now: Timestamp) -> Self {
        Self::at(at.0, now)
    }

    pub(crate) fn at(at: Timestamp, now: Timestamp) -> Self {
        let exact = at.to_string();
        let short: String = exact.replacen('T', " ", 1).chars().take(19).collect();
        let ago = if at > now {
            format!("in {}", span_in_words(at.since(now)))
        } else {
            format!("{} ago", span_in_words(now.since(at)))
        };
        Self { exact, short, ago }
    }

    pub(crate) fn maybe(at: Option<At>, now: Timestamp) -> Option<Self> {
        at.map(|at| Self::of(at, now))
    }
}

/// Milliseconds in words.
pub(crate) fn millis(ms: i64) -> String {
    span_in_words(Micros::from_millis(ms))
}

/// A count with groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}
