//! From a range in the text of a scalar to its place in the source.

use std::ops::Range;

use crate::source::Span;
use crate::yaml::Scalar;

/// Characters of an expression shown on each side of its fault.
const SHOWN_CHARS: usize = 40;

/// Where the expressions of one scalar stand in the source.
pub(crate) struct Place<'t> {
    scalar: Span,
    text: &'t str,
    /// For each `${{` of the text: its byte in the text, and in the source if both hold the same expressions.
    marks: Vec<(usize, Option<usize>)>,
}

impl<'t> Place<'t> {
    /// Unescaping and folding move text about; an expression that stands in the source as it stands in the text
    /// is found again by its number.
    pub(crate) fn new(source: &str, span: Span, scalar: &'t Scalar) -> Self {
        let text = scalar.text.as_str();
        let slice = &source[span.range()];
        let written: Vec<usize> = slice.match_indices("${{").map(|(at, _)| at).collect();
        let read: Vec<usize> = text.match_indices("${{").map(|(at, _)| at).collect();
        let same = written.len() == read.len();
        let in_source =
            |index: usize| written.get(index).filter(|_| same).map(|at| span.start + at);
        let marks = read.iter().enumerate().map(|(index, at)| (*at, in_source(index))).collect();
        Self { scalar: span, text, marks }
    }

    /// The place of a range of the text: exact, or the whole scalar with an excerpt of the expression.
    pub(crate) fn locate(&self, source: &str, range: &Range<usize>) -> (Span, Option<String>) {
        let index = self.marks.partition_point(|(at, _)| *at <= range.start);
        let mark = index.checked_sub(1).and_then(|index| self.marks.get(index));
        if let Some((in_text, Some(in_source))) = mark {
            let start = in_source + (range.start - in_text);
            let end = in_source + (range.end - in_text);
            let same = source.get(*in_source..end) == self.text.get(*in_text..range.end);
            if same {
                return (Span::new(start, end), None);
            }
        }
        (self.scalar, Some(self.excerpt(range)))
    }

    /// The line of the text with a caret below the fault.
    fn excerpt(&self, range: &Range<usize>) -> String {
        let before = self.text.get(..range.start).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        let left: Vec<char> = line.chars().rev().take(SHOWN_CHARS).collect();
        let left: String = left.into_iter().rev().collect();
        let rest = self.text.get(range.start..).unwrap_or("");
        let right: String =
            rest.split('\n').next().unwrap_or(rest).chars().take(SHOWN_CHARS).collect();
        format!("in the expression:\n  {left}{right}\n  {}^", " ".repeat(left.chars().count()))
    }
}
