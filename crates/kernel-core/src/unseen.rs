//! Characters that no reader sees. Names must not hold them, and whatever is shown to people shows them by their number.

/// Whether a character is one that nobody sees, or that acts on what stands beside it: control characters, tab and line
/// breaks among them; what breaks a line all the same; what Unicode has every display leave out; and what is drawn as
/// nothing. White space is seen, by the gap that it leaves.
///
/// ```
/// use surefoot_kernel_core::is_unseen;
/// assert!(is_unseen('\u{202e}') && is_unseen('\u{3164}') && is_unseen('\n'));
/// assert!(!is_unseen(' ') && !is_unseen('é') && !is_unseen('😀'));
/// ```
#[must_use]
pub fn is_unseen(char: char) -> bool {
    char.is_control()
        || is_default_ignorable(char)
        || matches!(
            char,
            // Line and paragraph separator; marks around annotations.
            '\u{2028}' | '\u{2029}' | '\u{fff9}'
                ..='\u{fffb}'
            // Drawn as nothing: a Braille cell without dots, a musical null notehead, the filler of Khitan.
            | '\u{2800}' | '\u{1d159}' | '\u{16fe4}'
        )
}

/// `Default_Ignorable_Code_Point` of Unicode's `DerivedCoreProperties.txt`: soft hyphen, joiners, marks of direction,
/// fillers of Hangul, variation selectors, tags. It holds what is reserved for such characters and not assigned yet.
const fn is_default_ignorable(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_known_by_its_whole_range() {
        for (first, last) in [
            ('\0', '\u{1f}'),
            ('\u{7f}', '\u{9f}'),
            ('\u{ad}', '\u{ad}'),
            ('\u{34f}', '\u{34f}'),
            ('\u{115f}', '\u{1160}'),
            ('\u{200b}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2800}', '\u{2800}'),
            ('\u{3164}', '\u{3164}'),
            ('\u{fe00}', '\u{fe0f}'),
            ('\u{ffa0}', '\u{ffa0}'),
            ('\u{e0001}', '\u{e007f}'),
            ('\u{e0100}', '\u{e01ef}'),
        ] {
            for char in first..=last {
                assert!(is_unseen(char), "{}", char.escape_unicode());
            }
        }
    }

    #[test]
    fn what_people_write_is_seen() {
        for text in [
            "Lager Süd 7",
            "größe",
            "倉庫",
            "창고",
            "склад",
            "مخزن",
            "गोदाम",
            "é😀",
            "a\u{a0}b\u{3000}c",
        ] {
            assert_eq!(text.chars().find(|char| is_unseen(*char)), None, "{text}");
        }
    }
}
