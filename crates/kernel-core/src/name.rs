//! Names that people give, and which of them are names.
//!
//! Stores keep any text. What is refused here is refused where a name first comes in: a blank, or a character that
//! nobody sees, would make two places of one.

use std::str::FromStr;

use crate::{App, Scope, WorkflowKey, is_unseen};

/// Characters of the name of an app, a scope, a workflow or an actor.
pub const NAME_MAX_CHARS: usize = 200;
/// Characters of a reason that stands in the audit.
pub const REASON_MAX_CHARS: usize = 2_000;

/// How much of a name an error repeats.
const SHOWN_CHARS: usize = 60;

/// A text that cannot be the name of what it was meant to name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} cannot be the name of {what}: {rule}")]
pub struct BadName {
    /// Of what: `an app`, `a scope`, `a workflow`, `an actor`, `a tag`.
    pub what: &'static str,
    /// What was given; of a long one, its beginning.
    pub given: String,
    /// What is wrong with it.
    pub rule: NameRule,
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRule {
    /// Nothing, or nothing but white space.
    #[error("it is blank")]
    Blank,
    /// Too long.
    #[error("it has {got} characters, the limit is {max}", max = NAME_MAX_CHARS)]
    TooLong {
        /// What it has.
        got: usize,
    },
    /// A character that no reader can tell from nothing.
    #[error("it has a character in it that nobody sees, U+{:04X}", u32::from(*.char))]
    Unseen {
        /// The first of them.
        char: char,
    },
    /// White space at an end.
    #[error("it begins or ends with white space")]
    Padded,
    /// White space anywhere, where none may be.
    #[error("it has white space in it; use `-` or `_`")]
    Spaced,
}

/// Whether a text may be an actor's name.
///
/// # Errors
/// [`BadName`].
pub fn check_actor(actor: &str) -> Result<(), BadName> {
    check("an actor", actor, Inside::Spaces)
}

/// Whether a text may be a tag: [`Event::tag`](crate::Event::tag).
///
/// # Errors
/// [`BadName`].
pub fn check_tag(tag: &str) -> Result<(), BadName> {
    check("a tag", tag, Inside::NoSpaces)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Spaces,
    NoSpaces,
}

fn check(what: &'static str, text: &str, inside: Inside) -> Result<(), BadName> {
    let got = text.chars().count();
    let rule = if text.chars().all(|char| char.is_whitespace() || is_joiner(char)) {
        NameRule::Blank
    } else if got > NAME_MAX_CHARS {
        NameRule::TooLong { got }
    } else if let Some(char) = text.chars().find(|char| is_unseen(*char) && !is_joiner(*char)) {
        NameRule::Unseen { char }
    } else if inside == Inside::NoSpaces && text.contains(char::is_whitespace) {
        NameRule::Spaced
    } else if text.trim().len() != text.len() {
        NameRule::Padded
    } else {
        return Ok(());
    };
    Err(BadName { what, given: text.chars().take(SHOWN_CHARS).collect(), rule })
}

/// There are languages that are written with them.
const fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}')
}

macro_rules! names {
    ($($name:ident, $what:literal, $inside:expr);* $(;)?) => {$(
        impl $name {
            /// Whether the text may be such a name: 1 to 200 characters, none of them unseen, no white space at its
            /// ends; a workflow's key has none at all. Stores keep any text: this is asked where a name comes in.
            ///
            /// # Errors
            /// [`BadName`].
            pub fn check(&self) -> Result<(), BadName> {
                check($what, self.as_str(), $inside)
            }
        }

        /// With [`check`](Self::check).
        impl FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                let name = Self::from(text);
                name.check().map(|()| name)
            }
        }
    )*};
}

names! {
    App, "an app", Inside::Spaces;
    Scope, "a scope", Inside::Spaces;
    WorkflowKey, "a workflow", Inside::NoSpaces;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_could_tell_apart_are_refused() {
        let long = "k".repeat(201);
        for (text, rule) in [
            ("", NameRule::Blank),
            (" \t", NameRule::Blank),
            ("\u{200d}", NameRule::Blank),
            (&*long, NameRule::TooLong { got: 201 }),
            ("north\u{1b}[2J", NameRule::Unseen { char: '\u{1b}' }),
            ("north\u{202e}", NameRule::Unseen { char: '\u{202e}' }),
            ("nor\u{200b}th", NameRule::Unseen { char: '\u{200b}' }),
            ("\u{3164}", NameRule::Unseen { char: '\u{3164}' }),
            ("north\u{fe0f}", NameRule::Unseen { char: '\u{fe0f}' }),
            ("north\u{e0101}", NameRule::Unseen { char: '\u{e0101}' }),
            (" north", NameRule::Padded),
            ("north ", NameRule::Padded),
        ] {
            let refused = text.parse::<Scope>().unwrap_err();
            assert_eq!((refused.what, refused.rule), ("a scope", rule), "{text:?}");
            assert_eq!(text.parse::<App>().unwrap_err().rule, rule, "{text:?}");
            assert!(text.parse::<WorkflowKey>().is_err() && check_actor(text).is_err(), "{text:?}");
        }
        let spaced = "my flow".parse::<WorkflowKey>().unwrap_err();
        assert_eq!(
            spaced.to_string(),
            "\"my flow\" cannot be the name of a workflow: it has white space in it; use `-` or `_`"
        );
    }

    #[test]
    fn names_of_all_languages_are_names() {
        for text in ["a", "a/b%20", "é😀", "Lager Süd", "می\u{200c}خواهم", &"ü".repeat(200)]
        {
            assert_eq!(text.parse::<Scope>(), Ok(Scope::from(text)));
            assert!(check_actor(text).is_ok());
        }
        assert!("größe-2/ab".parse::<WorkflowKey>().is_ok());
    }

    #[test]
    fn an_error_repeats_no_long_name() {
        let refused = "x".repeat(5_000).parse::<Scope>().unwrap_err();
        assert!(refused.to_string().len() < 200, "{refused}");
    }
}
