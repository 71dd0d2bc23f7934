//! Text of users and actions, made fit to be looked at.
//!
//! The templates escape markup. Here goes what markup is not: characters that nobody sees, or that change what stands
//! beside them, become visible, and what is long is cut, with its true length.

use std::fmt::{self, Write as _};

use surefoot_kernel_core::is_unseen;

/// Characters of a name or an id in a list.
const NAME_CHARS: usize = 80;
/// Characters of a sentence.
const SENTENCE_CHARS: usize = 600;
/// Characters of a payload.
const PAYLOAD_CHARS: usize = 4_000;

/// Text that was made fit to be looked at. Its `Display` is what a template escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text {
    shown: String,
    /// The length in bytes, if this is not all.
    cut: Option<usize>,
}

impl Text {
    /// A name, an id, a word.
    pub(crate) fn name(text: impl AsRef<str>) -> Self {
        Self::of(text.as_ref(), NAME_CHARS)
    }

    /// A message.
    pub(crate) fn sentence(text: impl AsRef<str>) -> Self {
        Self::of(text.as_ref(), SENTENCE_CHARS)
    }

    /// A payload.
    pub(crate) fn payload(text: impl AsRef<str>) -> Self {
        Self::of(text.as_ref(), PAYLOAD_CHARS)
    }

    /// All of it, however long.
    pub(crate) fn whole(text: impl AsRef<str>) -> Self {
        Self::of(text.as_ref(), usize::MAX)
    }

    fn of(text: &str, limit: usize) -> Self {
        let mut shown = String::with_capacity(text.len().min(limit.saturating_mul(2)));
        let mut chars = text.chars();
        for char in chars.by_ref().take(limit) {
            push(&mut shown, char);
        }
        let cut = chars.next().map(|_| text.len());
        if cut.is_some() {
            shown.push('…');
        }
        Self { shown, cut }
    }

    /// Whether there is more than this.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// In pieces: what stands between back quotes is code.
    pub(crate) fn parts(&self) -> Vec<(bool, &str)> {
        let pieces: Vec<&str> = self.shown.split('`').collect();
        if pieces.len().is_multiple_of(2) {
            return vec![(false, &self.shown)];
        }
        pieces.into_iter().enumerate().map(|(index, piece)| (index % 2 == 1, piece)).collect()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.shown
    }

    /// How much there is, in words.
    pub(crate) fn size(&self) -> String {
        size(self.cut.unwrap_or(self.shown.len()))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Bytes in words.
pub(crate) fn size(bytes: usize) -> String {
    const KIB: usize = 1_024;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        _ if bytes < KIB * KIB => format!("{} KiB", bytes / KIB),
        _ => format!("{}.{} MiB", bytes / KIB / KIB, bytes / KIB * 10 / KIB % 10),
    }
}

fn push(shown: &mut String, char: char) {
    // Line breaks and tabs are seen, in a page.
    if is_unseen(char) && !matches!(char, '\n' | '\t') {
        let _ = write!(shown, "\\u{{{:04x}}}", u32::from(char));
    } else {
        shown.push(char);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_becomes_visible() {
        assert_eq!(
            Text::name("a\0b\u{202e}c\u{200b}\r").as_str(),
            "a\\u{0000}b\\u{202e}c\\u{200b}\\u{000d}"
        );
        assert_eq!(
            Text::name("a\u{115f}b\u{34f}c\u{2800}d\u{fe0f}e\u{e0101}").as_str(),
            "a\\u{115f}b\\u{034f}c\\u{2800}d\\u{fe0f}e\\u{e0101}"
        );
        assert_eq!(Text::sentence("two\nlines\tשלום").as_str(), "two\nlines\tשלום");
    }

    #[test]
    fn what_stands_between_back_quotes_is_code() {
        let said = Text::sentence("step `a` of `b`");
        assert_eq!(
            said.parts(),
            [(false, "step "), (true, "a"), (false, " of "), (true, "b"), (false, "")]
        );
        assert_eq!(Text::sentence("one ` alone").parts(), [(false, "one ` alone")]);
    }

    #[test]
    fn what_is_long_is_cut_and_says_how_long_it_is() {
        let long = Text::name("ä".repeat(1_000_000));
        assert_eq!(long.as_str().chars().count(), NAME_CHARS + 1);
        assert!(long.is_cut());
        assert_eq!(long.size(), "1.9 MiB");
        assert!(!Text::name("short").is_cut());
        assert_eq!(Text::payload("x".repeat(2_000)).size(), "1 KiB");
    }
}
