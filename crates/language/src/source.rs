//! Places in a source text: byte spans, and the lines and columns that people count.

use std::ops::Range;

/// A stretch of a source, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    pub(crate) const fn new(start: usize, end: usize) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// As a range, to slice the source with.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Bytes between two marks of [`Lines`]: how far a column may have to be counted.
const MARK_EVERY_BYTES: usize = 256;

/// An index of a source: constant time from a byte to its line and column, also in a file of one long line.
#[derive(Debug)]
pub(crate) struct Lines<'s> {
    text: &'s str,
    /// The first byte of each line.
    starts: Vec<usize>,
    /// Characters before every [`MARK_EVERY_BYTES`]th byte.
    marks: Vec<usize>,
}

impl<'s> Lines<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        let bytes = text.as_bytes();
        let ends_line = |at: usize| {
            bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'))
        };
        let ends = (0..bytes.len()).filter(|&at| ends_line(at)).map(|at| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        let mut marks = Vec::with_capacity(bytes.len() / MARK_EVERY_BYTES + 1);
        let mut characters = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if at % MARK_EVERY_BYTES == 0 {
                marks.push(characters);
            }
            characters += usize::from(is_first_of_character(*byte));
        }
        Self { text, starts, marks }
    }

    pub(crate) const fn text(&self) -> &'s str {
        self.text
    }

    /// The nearest place at or before a byte where the text can be cut.
    pub(crate) fn clamp(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at.min(self.text.len()))
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        let at = self.clamp(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line, self.characters(at).saturating_sub(self.characters(start)) + 1)
    }

    /// Characters before a byte.
    fn characters(&self, at: usize) -> usize {
        let block = at / MARK_EVERY_BYTES;
        let Some(before) = self.marks.get(block) else {
            return self.text.chars().count();
        };
        let rest = &self.text.as_bytes()[block * MARK_EVERY_BYTES..at];
        before + rest.iter().filter(|byte| is_first_of_character(**byte)).count()
    }
}

const fn is_first_of_character(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_every_kind_of_line_break_counts_once() {
        let lines = Lines::new("a\r\nü€x\rb\n\n");
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(3), (2, 1));
        assert_eq!(lines.place(8), (2, 3));
        assert_eq!(lines.place(10), (3, 1));
        assert_eq!(lines.place(12), (4, 1));
        assert_eq!(lines.place(13), (5, 1));
        assert_eq!(lines.place(99), (5, 1));
    }

    #[test]
    fn a_long_line_is_counted_from_marks() {
        let text = "é".repeat(10_000);
        let lines = Lines::new(&text);
        for character in [0, 1, 127, 128, 129, 9_999, 10_000] {
            assert_eq!(lines.place(character * 2), (1, character + 1));
        }
    }
}
