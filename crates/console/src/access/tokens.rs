//! Tokens: kept as hashes, compared in constant time, never shown.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use surefoot_kernel_core::BadName;

use super::{Identity, Role};

/// A shorter token could be guessed.
pub const TOKEN_MIN_CHARS: usize = 16;

/// Who has which token.
#[derive(Clone, Default)]
pub struct Tokens {
    known: Vec<Known>,
}

#[derive(Clone)]
struct Known {
    hash: [u8; 32],
    identity: Identity,
}

/// Why tokens cannot be used. Says no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTokens {
    /// There is none.
    #[error("it holds no token: write one a line, as `TOKEN` or `NAME TOKEN`")]
    Empty,
    /// Too short.
    #[error(
        "the token in line {line} has fewer than {TOKEN_MIN_CHARS} characters and could be guessed"
    )]
    Short {
        /// From 1.
        line: usize,
    },
    /// Not what a header can carry.
    #[error("the token in line {line} holds other characters than letters, digits and `-._~+/=`")]
    Characters {
        /// From 1.
        line: usize,
    },
    /// More than a name and a token.
    #[error("line {line} is neither `TOKEN` nor `NAME TOKEN`")]
    Form {
        /// From 1.
        line: usize,
    },
    /// The same token twice.
    #[error("the token in line {line} is known already: each has to say who asks")]
    Twice {
        /// From 1.
        line: usize,
    },
    /// A name that is none.
    #[error("line {line}: {source}")]
    Name {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        source: BadName,
    },
}

impl Tokens {
    /// None: nobody is let in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds those of a text: one a line, as `TOKEN` or `NAME TOKEN`; blank lines and lines that begin with `#` are left
    /// out. The name stands in the audit; without one, the role does.
    ///
    /// # Errors
    /// [`BadTokens`], with the line.
    pub fn with_lines(mut self, role: Role, text: &str) -> Result<Self, BadTokens> {
        let before = self.known.len();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (name, token) = match words.as_slice() {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [token] => (role.as_str(), *token),
                [name, token] => (*name, *token),
                [_, _, ..] => return Err(BadTokens::Form { line }),
            };
            self.add(line, role, name, token)?;
        }
        if self.known.len() == before { Err(BadTokens::Empty) } else { Ok(self) }
    }

    fn add(&mut self, line: usize, role: Role, name: &str, token: &str) -> Result<(), BadTokens> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if !token.bytes().all(fits) {
            return Err(BadTokens::Characters { line });
        }
        if token.len() < TOKEN_MIN_CHARS {
            return Err(BadTokens::Short { line });
        }
        if self.identity_of(token).is_some() {
            return Err(BadTokens::Twice { line });
        }
        let identity =
            Identity::new(name, role).map_err(|source| BadTokens::Name { line, source })?;
        self.known.push(Known { hash: Sha256::digest(token).into(), identity });
        Ok(())
    }

    /// Whose token it is. Takes the same time whichever it is, and however much of it is right.
    #[must_use]
    pub fn identity_of(&self, token: &str) -> Option<&Identity> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut found = u32::MAX;
        for (index, known) in (0_u32..).zip(&self.known) {
            let is_it: Choice = known.hash.ct_eq(&hash);
            found.conditional_assign(&index, is_it);
        }
        let index = usize::try_from(found).ok()?;
        self.known.get(index).map(|known| &known.identity)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known.iter().map(|known| &known.identity)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: &str = "ann-0123456789abcdef";

    #[test]
    fn each_token_has_a_name_and_a_role() {
        let tokens = Tokens::new()
            .with_lines(Role::Operator, &format!("# people\n\nann {ANN}\n"))
            .and_then(|it| it.with_lines(Role::Viewer, "0123456789abcdef\n"))
            .unwrap();
        let ann = tokens.identity_of(ANN).unwrap();
        assert_eq!((ann.actor(), ann.role()), ("ann", Role::Operator));
        let viewer = tokens.identity_of("0123456789abcdef").unwrap();
        assert_eq!((viewer.actor(), viewer.role()), ("viewer", Role::Viewer));
        for wrong in ["", "ann", "ann-0123456789abcdeF", "0123456789abcdef0"] {
            assert_eq!(tokens.identity_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let tokens = Tokens::new().with_lines(Role::Operator, &format!("ann {ANN}")).unwrap();
        let shown = format!("{tokens:?}");
        assert!(shown.contains("ann") && !shown.contains("0123456789"), "{shown}");
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_line() {
        let of = |text: &str| Tokens::new().with_lines(Role::Viewer, text).unwrap_err();
        assert_eq!(of("# none\n"), BadTokens::Empty);
        assert_eq!(of("\nshort"), BadTokens::Short { line: 2 });
        assert_eq!(of("0123456789\u{e4}bcdef"), BadTokens::Characters { line: 1 });
        assert_eq!(of("ann b 0123456789abcdef"), BadTokens::Form { line: 1 });
        assert_eq!(of(&format!("a {ANN}\nb {ANN}")), BadTokens::Twice { line: 2 });
        let said = of("short\n").to_string();
        assert!(!said.contains("short`"), "{said}");
    }
}
