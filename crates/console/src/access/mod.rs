//! Who asks, and what they may do.

mod caller;
mod cookie;
mod guard;
mod tokens;

use surefoot_kernel_core::{BadName, check_actor};

pub(crate) use caller::Caller;
pub(crate) use cookie::{TOKEN_COOKIE, cookie_of};
pub(crate) use guard::guard;
pub use tokens::{BadTokens, TOKEN_MIN_CHARS, Tokens};

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Looks, and changes nothing.
    Viewer,
    /// Looks and acts.
    Operator,
}

impl Role {
    /// The word of it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    actor: String,
    role: Role,
}

impl Identity {
    /// `actor` is the name that stands in the audit.
    ///
    /// # Errors
    /// A name that nobody could tell from another one.
    pub fn new(actor: impl Into<String>, role: Role) -> Result<Self, BadName> {
        let actor = actor.into();
        check_actor(&actor)?;
        Ok(Self { actor, role })
    }

    /// The name that stands in the audit.
    #[must_use]
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// What they may do.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }
}

/// How it is found out who asks.
#[derive(Debug, Clone)]
pub enum Access {
    /// Everybody who reaches it is this one. Only requests to a loopback name are answered, so that no page of another
    /// site can reach it by a name that was made to point here.
    Open(Identity),
    /// Whoever has a token: `Authorization: Bearer` in the API, a cookie in the console.
    Tokens(Tokens),
    /// The application that mounts the router says so: it puts an [`Identity`] into the request's extensions, in a
    /// layer around the router. Where there is none, the request is refused.
    Application,
}

impl Access {
    /// Whether strangers are kept out, so that it may be listened to from elsewhere.
    #[must_use]
    pub const fn is_guarded(&self) -> bool {
        match self {
            Self::Open(_) => false,
            Self::Tokens(_) | Self::Application => true,
        }
    }
}
