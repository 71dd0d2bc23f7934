//! What can happen in a script.

use crate::dice::Dice;

/// One move. Numbers stand for what is there when it comes: the third run that is running, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// An event: a start of a workflow, or an order.
    Emit {
        workflow: usize,
        dedupe: Option<u64>,
        deferred: bool,
        slots: u32,
    },
    Claim {
        who: usize,
        limit: u32,
    },
    /// A claim that was made before.
    ClaimAgain {
        who: usize,
    },
    /// A running run goes on up to an action, which answers.
    Drive {
        nth: usize,
        reply: u64,
    },
    /// A commit is decided and kept.
    Keep {
        nth: usize,
    },
    /// The one that was kept is written.
    Send,
    TakeOver {
        nth: usize,
        who: usize,
    },
    Renew {
        who: usize,
    },
    Recover {
        limit: u32,
    },
    Dispatch,
    Signal {
        key: u64,
    },
    Cancel {
        nth: usize,
    },
    Resolve {
        nth: usize,
        verdict: u64,
    },
    Retry {
        nth: usize,
    },
    Reconcile {
        nth: usize,
    },
    Abandon {
        nth: usize,
    },
    Publish {
        workflow: usize,
    },
    SetActivation {
        workflow: usize,
        enabled: bool,
    },
    Report {
        who: usize,
    },
    Expire,
    Prune,
    Wait,
}

impl Move {
    pub(super) fn of(word: u64) -> Self {
        let mut dice = Dice(word);
        let mut below =
            |limit: usize| usize::try_from(dice.below(limit as u64)).unwrap_or_default();
        match below(50) {
            0..=6 => Self::Emit {
                workflow: below(4),
                dedupe: [None, None, Some(0), Some(1)][below(4)],
                deferred: below(4) == 0,
                slots: if below(4) == 0 { 2 } else { 0 },
            },
            7..=12 => Self::Claim { who: below(2), limit: [1, 2, 100][below(3)] },
            13 => Self::ClaimAgain { who: below(2) },
            14..=28 => Self::Drive { nth: below(8), reply: below(12) as u64 },
            29 => Self::Keep { nth: below(8) },
            30 => Self::Send,
            31 => Self::TakeOver { nth: below(8), who: below(2) },
            32 | 33 => Self::Renew { who: below(2) },
            34..=36 => Self::Recover { limit: [2, 100][below(2)] },
            37 => Self::Dispatch,
            38 | 39 => Self::Signal { key: below(2) as u64 },
            40 => Self::Cancel { nth: below(8) },
            41 => Self::Resolve { nth: below(8), verdict: below(3) as u64 },
            42 => Self::Retry { nth: below(8) },
            43 => Self::Reconcile { nth: below(8) },
            44 => Self::Abandon { nth: below(8) },
            45 => Self::Publish { workflow: below(3) },
            46 => Self::SetActivation { workflow: below(3), enabled: below(2) == 0 },
            47 => Self::Report { who: below(2) },
            48 => [Self::Expire, Self::Prune][below(2)],
            _ => Self::Wait,
        }
    }
}
