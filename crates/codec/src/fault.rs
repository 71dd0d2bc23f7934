//! What could not be encoded or decoded, and what that means to whoever asked.

use surefoot_kernel_core::{RunId, StoreError};

use crate::{CodecError, PayloadKind};

/// A payload that could not be encoded or decoded. Stands behind the store errors `Unavailable` and `Refused` as their
/// source; where a run cannot be read, its words are in the store's `Corrupt` beside the run's id.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecFault {
    /// It was not written.
    #[error("its {kind} cannot be encoded")]
    Encode {
        /// What it is.
        kind: PayloadKind,
        /// Why.
        #[source]
        error: CodecError,
    },
    /// It cannot be read.
    #[error("its {kind} cannot be decoded")]
    Decode {
        /// What it is.
        kind: PayloadKind,
        /// Why.
        #[source]
        error: CodecError,
    },
}

impl CodecFault {
    /// The error of a read that cannot do without it: a person's matter, or tried again.
    pub(crate) fn of_run(self, run: RunId) -> StoreError {
        if self.is_transient() {
            StoreError::Unavailable(Box::new(self))
        } else {
            StoreError::Corrupt { run, what: self.sentence() }
        }
    }

    pub(crate) const fn is_transient(&self) -> bool {
        let (Self::Encode { error, .. } | Self::Decode { error, .. }) = self;
        matches!(error, CodecError::Unavailable(_))
    }

    /// With its cause, for where no source can be given.
    pub(crate) fn sentence(&self) -> String {
        let (mut text, mut cause) = (self.to_string(), std::error::Error::source(self));
        while let Some(below) = cause {
            text = format!("{text}: {below}");
            cause = below.source();
        }
        text
    }
}

/// The error of a write: nothing was written.
impl From<CodecFault> for StoreError {
    fn from(fault: CodecFault) -> Self {
        if fault.is_transient() {
            Self::Unavailable(Box::new(fault))
        } else {
            Self::Refused(Box::new(fault))
        }
    }
}
