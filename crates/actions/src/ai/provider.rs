//! Who answers.

use std::time::Duration;

use surefoot_kernel_core::{BoxFuture, EffectKey};

use super::request::{AiAnswer, AiRequest};

/// Why a provider has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AiError {
    /// It could not be reached, did not come to an end, or is busy. Another attempt may help.
    #[error("{message}")]
    Transport {
        /// For people.
        message: String,
        /// Not before so long, if the provider says so.
        retry_after: Option<Duration>,
    },
    /// It said no: the request, the key, the model.
    #[error("{message}")]
    Refused {
        /// For people.
        message: String,
    },
    /// It answered, and the answer is of no use: it was cut off, or is too long.
    #[error("{message}")]
    Unusable {
        /// For people.
        message: String,
    },
}

impl AiError {
    /// [`AiError::Transport`], to be tried again whenever.
    pub fn transport(message: impl Into<String>) -> Self {
        Self::Transport { message: message.into(), retry_after: None }
    }

    /// [`AiError::Refused`].
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into() }
    }

    /// [`AiError::Unusable`].
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::Unusable { message: message.into() }
    }

    /// The same with another message.
    #[must_use]
    pub fn map_message(self, with: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Transport { message, retry_after } => {
                Self::Transport { message: with(&message), retry_after }
            }
            Self::Refused { message } => Self::Refused { message: with(&message) },
            Self::Unusable { message } => Self::Unusable { message: with(&message) },
        }
    }
}

/// Answers requests. The worker that asks drops the future when nobody wants the answer any more: whatever the provider
/// is doing for it should end then.
pub trait AiProvider: Send + Sync {
    /// Asks once. The key is the same for every attempt of one task, for providers that recognise it.
    fn ask<'a>(
        &'a self,
        request: &'a AiRequest,
        key: &'a EffectKey,
    ) -> BoxFuture<'a, Result<AiAnswer, AiError>>;
}
