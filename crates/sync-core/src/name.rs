//! Names of resources and of what is in them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::SyncError;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $rule:literal, $accepts:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks a name.
            ///
            /// # Errors
            /// [`SyncError::InvalidName`].
            pub fn new(name: impl Into<String>) -> Result<Self, SyncError> {
                let name = name.into();
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(&name) {
                    return Ok(Self(name));
                }
                let name = name.chars().take(60).collect();
                Err(SyncError::InvalidName { what: $what, name, rule: $rule })
            }

            /// As it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = SyncError;

            fn from_str(name: &str) -> Result<Self, SyncError> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $name {
            type Error = SyncError;

            fn try_from(name: String) -> Result<Self, SyncError> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// What keeps the resources of one application apart from those of others on the same server.
    Namespace: "a namespace", "it has 1 to 32 letters, digits, `_` and `-`", is_namespace;
    /// The id of one resource: a queue, a topic.
    ResourceId: "the id of a resource", "it has 1 to 128 bytes of UTF-8", |it| (1..=128).contains(&it.len());
    /// A key inside a resource, a tenant, or the name of a consumer.
    Key: "a key", "it has 1 to 96 bytes of UTF-8", |it| (1..=96).contains(&it.len());
}

fn is_namespace(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=32).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_the_refusal_says_how() {
        assert!(Namespace::new("shop-1_b").is_ok());
        for name in ["", "a.b", "ä", "a b", &"x".repeat(33)] {
            assert!(Namespace::new(name).is_err(), "{name}");
        }
        assert!(Key::new("ä".repeat(48)).is_ok());
        assert!(Key::new("ä".repeat(49)).is_err(), "bytes are counted, not characters");
        let error = Key::new("").unwrap_err().to_string();
        assert_eq!(error, "`` cannot be a key: it has 1 to 96 bytes of UTF-8");
        assert!(ResourceId::new("x".repeat(129)).is_err());
        assert!(serde_json::from_str::<Key>("\"\"").is_err());
    }
}
