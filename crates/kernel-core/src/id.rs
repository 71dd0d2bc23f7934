//! Typed ids. The prefix exists in the text form only; stores keep 16 bytes.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Why a text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// The prefix belongs to another kind of id, or to none.
    #[error("expected an id that starts with `{expected}_`, got `{got}`")]
    WrongKind {
        /// The prefix that was wanted.
        expected: &'static str,
        /// The text that was given.
        got: String,
    },
    /// The prefix is right, the rest is not 32 hexadecimal digits.
    #[error("`{got}` is not a valid id: after the prefix come 32 hexadecimal digits")]
    Malformed {
        /// The text that was given.
        got: String,
    },
}

macro_rules! id_kinds {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// What the text form starts with, before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// For stores, id sources and test doubles. Applications receive ids, they do not make them.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The 16 bytes that a store keeps.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let rest = text
                    .strip_prefix($prefix)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .ok_or_else(|| IdError::WrongKind { expected: $prefix, got: text.into() })?;
                if rest.len() != 32 {
                    return Err(IdError::Malformed { got: text.into() });
                }
                Uuid::try_parse(rest).map(Self).map_err(|_| IdError::Malformed { got: text.into() })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

// Append-only: a prefix, once given, is never used for another kind.
id_kinds! {
    /// One execution pinned to one version.
    RunId = "run",
    /// One occurrence.
    EventId = "evt",
    /// One immutable publication.
    VersionId = "ver",
    /// One process that claims runs, from its start to its end.
    SessionId = "wrk",
}

impl RunId {
    /// The run that an event starts through one activation: the same for every dispatch of it, so a repeat creates
    /// nothing twice. Keeps the event's leading bytes, so that ids stay roughly in order of creation.
    #[must_use]
    pub fn of_event(event: EventId, workflow: &WorkflowKey, activation: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"surefoot/run/1\0");
        hash.update(event.to_bytes());
        hash.update(workflow.as_str().as_bytes());
        hash.update(b"\0");
        hash.update(activation.as_bytes());
        let digest = hash.finalize();
        let mut bytes = event.to_bytes();
        for (byte, hashed) in bytes.iter_mut().zip(digest).skip(6) {
            *byte = hashed;
        }
        Self::from_bytes(bytes)
    }
}

macro_rules! text_newtypes {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

text_newtypes! {
    /// Who owns the data. Opaque to the kernel.
    App,
    /// The isolation boundary inside an application. Opaque to the kernel.
    Scope,
    /// The key of a workflow inside its scope.
    WorkflowKey,
    /// Plan path plus iteration indexes, outermost first: `steps.2.cases.0.do.1#3.0`; at most 1,000 bytes.
    StepKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_refuses_other_kinds() {
        let run = RunId::from_bytes([7; 16]);
        assert_eq!(run.to_string().parse::<RunId>(), Ok(run));
        let refused = run.to_string().parse::<EventId>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("expected an id that starts with `evt_`, got `{run}`")
        );
        assert!("run_12".parse::<RunId>().is_err());
        assert!("run_zz000000000000000000000000000000".parse::<RunId>().is_err());
        let json = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), run);
    }
}
