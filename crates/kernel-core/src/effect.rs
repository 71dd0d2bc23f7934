//! Effect classes: what each promises, and what that makes safe.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{RunId, StepKey};

/// What an action promises. Exhaustive on purpose: a new class must stop every build that has to answer for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// The output depends on input and recorded outcomes only.
    Pure,
    /// All work goes through the kernel's transaction.
    Transactional,
    /// Safe to repeat under the effect key.
    Idempotent,
    /// May have happened even if no answer came.
    Ambiguous,
}

/// What a worker does with a step whose attempt was lost before its outcome was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostAttempt {
    /// Nothing outside the journal can have changed: run again.
    RunAgain,
    /// The effect may have happened; running again under the same effect key is safe.
    RunAgainUnderSameKey,
    /// If the call was marked, ask the provider; never run again while that is open.
    ReconcileIfMarked,
}

impl EffectClass {
    /// The one place that says what a crash means for a class.
    #[must_use]
    pub const fn after_lost_attempt(self) -> LostAttempt {
        match self {
            Self::Pure | Self::Transactional => LostAttempt::RunAgain,
            Self::Idempotent => LostAttempt::RunAgainUnderSameKey,
            Self::Ambiguous => LostAttempt::ReconcileIfMarked,
        }
    }

    /// Whether a call must be marked, durably, before it is made.
    #[must_use]
    pub const fn is_marked_before_call(self) -> bool {
        matches!(self, Self::Ambiguous)
    }

    /// Whether hooks of this class may be called while earlier outcomes are not durable yet.
    #[must_use]
    pub const fn may_run_ahead(self) -> bool {
        matches!(self, Self::Pure)
    }

    /// The word used in manifests, plans and views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Transactional => "transactional",
            Self::Idempotent => "idempotent",
            Self::Ambiguous => "ambiguous",
        }
    }
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// The call was announced; nothing is known since.
    Marked,
    /// The call ended without a definite answer.
    Ambiguous,
    /// It happened.
    Succeeded,
    /// The provider refused it.
    Failed,
    /// It did not happen.
    NotPerformed,
    /// An operator gave the run up without knowing.
    AbandonedUnknown,
}

impl EffectState {
    /// Every state.
    pub const ALL: &'static [Self] = &[
        Self::Marked,
        Self::Ambiguous,
        Self::Succeeded,
        Self::Failed,
        Self::NotPerformed,
        Self::AbandonedUnknown,
    ];

    /// Whether nobody knows yet what became of the effect.
    #[must_use]
    pub const fn is_unsettled(self) -> bool {
        match self {
            Self::Marked | Self::Ambiguous => true,
            Self::Succeeded | Self::Failed | Self::NotPerformed | Self::AbandonedUnknown => false,
        }
    }

    /// The word used in stores and views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Marked => "marked",
            Self::Ambiguous => "ambiguous",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::NotPerformed => "not_performed",
            Self::AbandonedUnknown => "abandoned_unknown",
        }
    }
}

/// Opaque, 64 lower-case hexadecimal digits, safe as an HTTP header value; the same for every attempt of a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectKey(String);

impl EffectKey {
    /// The key of a step: SHA-256 of `surefoot/effect/1`, NUL, run id, NUL, step key.
    #[must_use]
    pub fn of(run: RunId, step: &StepKey) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"surefoot/effect/1\0");
        hash.update(run.to_string().as_bytes());
        hash.update(b"\0");
        hash.update(step.as_str().as_bytes());
        Self(crate::canonical::hex(&hash.finalize()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for EffectKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
