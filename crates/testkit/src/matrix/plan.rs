//! Which trouble there is at which call.

use std::fmt;

use crate::{Fault, Method, When};

/// What goes wrong at one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The process dies before the call happens.
    DiesBefore,
    /// The process dies after it happened, before it hears of it.
    DiesAfter,
    /// The call is lost; the process lives and cannot know it.
    RequestLost,
    /// The call happened, its answer is lost; the process lives and cannot know it.
    AnswerLost,
    /// The process lives and cannot know what became of the call, which happens later, when the process has looked.
    ComesLate,
    /// The database refuses the call in favour of another transaction; nothing was written.
    Refused,
    /// The store is away for this call and the next ones.
    Away,
    /// Before the call happens the process stands still for longer than its lease, and another one works meanwhile.
    StolenBefore,
    /// The same after the call happened.
    StolenAfter,
    /// Before the call happens a person asks to cancel the run that the event started; the process lives.
    CanceledBefore,
    /// The same after the call happened, before the process hears of it.
    CanceledAfter,
    /// The process dies before the call happens, and then a person asks to cancel the run.
    DiesBeforeCancel,
    /// The same after the call happened.
    DiesAfterCancel,
}

impl Kind {
    pub(super) const ALL: &'static [Self] = &[
        Self::DiesBefore,
        Self::DiesAfter,
        Self::RequestLost,
        Self::AnswerLost,
        Self::ComesLate,
        Self::Refused,
        Self::Away,
        Self::StolenBefore,
        Self::StolenAfter,
        Self::CanceledBefore,
        Self::CanceledAfter,
        Self::DiesBeforeCancel,
        Self::DiesAfterCancel,
    ];

    pub(super) const fn when(self) -> When {
        match self {
            Self::DiesBefore
            | Self::RequestLost
            | Self::ComesLate
            | Self::Refused
            | Self::Away
            | Self::StolenBefore
            | Self::CanceledBefore
            | Self::DiesBeforeCancel => When::Before,
            Self::DiesAfter
            | Self::AnswerLost
            | Self::StolenAfter
            | Self::CanceledAfter
            | Self::DiesAfterCancel => When::After,
        }
    }

    /// What the caller hears, where it lives on and nobody worked meanwhile.
    pub(super) const fn fault(self) -> Option<Fault> {
        match self {
            Self::RequestLost => Some(Fault::LostRequest),
            Self::AnswerLost => Some(Fault::LostAnswer),
            Self::ComesLate => Some(Fault::ComesLate),
            Self::Refused => Some(Fault::Refused),
            Self::Away => Some(Fault::Unavailable),
            Self::DiesBefore
            | Self::DiesAfter
            | Self::StolenBefore
            | Self::StolenAfter
            | Self::CanceledBefore
            | Self::CanceledAfter
            | Self::DiesBeforeCancel
            | Self::DiesAfterCancel => None,
        }
    }

    pub(super) const fn is_death(self) -> bool {
        matches!(
            self,
            Self::DiesBefore | Self::DiesAfter | Self::DiesBeforeCancel | Self::DiesAfterCancel
        )
    }

    /// Whether a person asks to cancel the run.
    pub(super) const fn is_cancel(self) -> bool {
        matches!(
            self,
            Self::CanceledBefore
                | Self::CanceledAfter
                | Self::DiesBeforeCancel
                | Self::DiesAfterCancel
        )
    }

    /// Whether two workers had the run at the same time.
    pub(super) const fn is_theft(self) -> bool {
        matches!(self, Self::StolenBefore | Self::StolenAfter)
    }

    /// Whether the kind differs from the others at such a call.
    const fn makes_sense(self, method: Method) -> bool {
        // Whoever has the application's own transaction open holds what the others wait for: nobody comes between.
        let holds_lock =
            matches!(method, Method::FenceHold | Method::Commit | Method::TransactCommit);
        match self {
            Self::DiesBefore | Self::DiesBeforeCancel | Self::Away => true,
            Self::ComesLate => matches!(method, Method::RunCommit),
            Self::StolenBefore | Self::CanceledBefore => !holds_lock,
            // A read changes nothing: after it is before the next call, and its loss is no doubt.
            Self::DiesAfter
            | Self::RequestLost
            | Self::AnswerLost
            | Self::Refused
            | Self::StolenAfter
            | Self::CanceledAfter
            | Self::DiesAfterCancel => method.is_write(),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::DiesBefore => "the process dies before it",
            Self::DiesAfter => "the process dies after it",
            Self::RequestLost => "it is lost and nobody knows",
            Self::AnswerLost => "its answer is lost",
            Self::ComesLate => "it comes late",
            Self::Refused => "another transaction wins",
            Self::Away => "the store is away",
            Self::StolenBefore => "the lease is stolen before it",
            Self::StolenAfter => "the lease is stolen after it",
            Self::CanceledBefore => "the run is canceled before it",
            Self::CanceledAfter => "the run is canceled after it",
            Self::DiesBeforeCancel => "the process dies before it, and the run is canceled",
            Self::DiesAfterCancel => "the process dies after it, and the run is canceled",
        }
    }
}

/// One case of the matrix: a call, and what goes wrong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trouble {
    /// Which call of the undisturbed run, from 1.
    pub nth: u64,
    /// What is called.
    pub method: Method,
    /// What goes wrong.
    pub kind: Kind,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} (`{}`): {}", self.nth, self.method.as_str(), self.kind.as_str())
    }
}

/// Every case for these calls.
pub(super) fn all(points: &[Method]) -> Vec<Trouble> {
    let numbered = (1_u64..).zip(points.iter().copied());
    numbered
        .flat_map(|(nth, method)| {
            let kinds = Kind::ALL.iter().copied().filter(move |kind| kind.makes_sense(method));
            kinds.map(move |kind| Trouble { nth, method, kind })
        })
        .collect()
}
