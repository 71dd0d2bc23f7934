//! Stable error codes.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A stable error code. The kernel's are constants; applications bring their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(Cow<'static, str>);

macro_rules! codes {
    ($($name:ident: $doc:literal),* $(,)?) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self(Cow::Borrowed(stringify!($name)));)*

            /// Every code of the kernel. Each has its place in `docs/errors.md`.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    ABANDONED: "An operator gave the run up.",
    ACTION_ERROR: "The action failed without a code of its own, or panicked.",
    ACTION_POLICY_MISSING: "The plan has no policy for an action that it names.",
    BUDGET_EXCEEDED: "The charge would pass a cap of the root run's budget.",
    CHILD_CANCELED: "A child that the step waited for was canceled.",
    CONFIG_INVALID: "The resolved config does not fit the action's schema.",
    DRY_RUN_INDETERMINATE: "A dry run cannot say everything: something hangs on a value that is not known.",
    DRY_RUN_TERMINAL: "A dry run says that the run would fail for sure.",
    DRY_RUN_UNSUPPORTED: "An action cannot preview its effect.",
    EFFECT_CONFIRMED_FAILED: "An operator said that the effect failed.",
    EFFECT_OUTCOME_UNKNOWN: "Nobody can tell whether the effect happened.",
    EFFECT_RECONCILE_FAILED: "Asking the provider what became of the effect failed.",
    EVENT_EXPIRED: "The event's payload was emptied after its retention.",
    EVENT_TOO_LARGE: "Data or context of an event is over its limit.",
    EXPRESSION_ERROR: "An expression has no value: overflow, division by zero, a condition that is no bool.",
    FAILED: "The workflow's own `fail` step.",
    FORBIDDEN: "Authorization refused the step.",
    INPUT_INVALID: "The inputs of the run are missing, undeclared or mistyped.",
    JOURNAL_FULL: "The run's journal has reached its limit.",
    LIMIT_EXCEEDED: "A loop or a limit of the module was exceeded.",
    OUTPUT_INVALID: "The output does not fit the action's schema.",
    OUTPUT_TOO_LARGE: "The output is over 1 MiB.",
    RESTORE_INVALID: "The journal is malformed or incomplete; it is never guessed.",
    RETRY_EXHAUSTED: "Too many executions in a row ended badly.",
    TIMEOUT: "The step's time ran out.",
    TRANSACTION_CONFLICT: "The database refused the transaction in favour of another one.",
    TRANSACTION_TIMEOUT: "The transaction was open for too long.",
    VALUE_TOO_LARGE: "A value that is rebuilt from the journal, or resolved, is over its limit.",
    VALUE_UNAVAILABLE: "The step needs a value that is missing.",
    WORKFLOW_UNAVAILABLE: "The workflow of a child does not exist in its scope, or has no live version.",
}

impl Code {
    /// Whether a text that a person wrote can be a code: letters, digits, `_`, `-` and `.`, 1 to 100 of them.
    #[must_use]
    pub fn is_well_formed(text: &str) -> bool {
        let is_sign = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
        (1..=100).contains(&text.len()) && text.chars().all(is_sign)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Code {
    fn from(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Code {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
