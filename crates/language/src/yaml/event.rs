//! Our own view of the parser's events: the only file that names the parser, so that it can be replaced.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event as Raw, Marker, Parser, ScalarStyle, StrInput};

use super::SOURCE_MAX_DEPTH;
use crate::source::Span;

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes: what it means depends on how it reads.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// Literal (`|`) or folded (`>`).
    Block,
}

/// What the parser met.
pub(super) enum Event<'s> {
    Document,
    Scalar { text: Cow<'s, str>, style: Style, tag: Option<Span> },
    ListStart { tag: Option<Span> },
    ListEnd,
    MapStart { tag: Option<Span> },
    MapEnd,
    Anchor,
    Alias,
    Other,
}

/// Why the parser stopped.
pub(super) struct Failure {
    pub(super) at: usize,
    pub(super) kind: FailureKind,
}

pub(super) enum FailureKind {
    TooDeep,
    Directive,
    Syntax(String),
}

/// The events of a source with their places.
pub(super) struct Events<'s> {
    source: &'s str,
    parser: Parser<'s, StrInput<'s>>,
}

impl<'s> Events<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        let mut options = granit_parser::options! {
            disallow_directives: true,
            emit_anchor_events: true,
            emit_unresolved_aliases: true,
            flow_nesting_limit: SOURCE_MAX_DEPTH,
            block_nesting_limit: SOURCE_MAX_DEPTH,
        };
        options.set_emit_comments(false);
        Self { source, parser: Parser::new_from_str_with_options(source, options) }
    }

    fn offset(&self, marker: &Marker) -> usize {
        let at = marker.byte_offset().unwrap_or_else(|| {
            self.source.char_indices().nth(marker.index()).map_or(self.source.len(), |(at, _)| at)
        });
        self.source.floor_char_boundary(at.min(self.source.len()))
    }

    fn span(&self, raw: &granit_parser::Span) -> Span {
        Span::new(self.offset(&raw.start), self.offset(&raw.end))
    }
}

impl<'s> Iterator for Events<'s> {
    type Item = Result<(Event<'s>, Span), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let (raw, place) = match self.parser.next_event()? {
            Ok(met) => met,
            Err(error) => {
                let at = self.offset(error.marker());
                return Some(Err(Failure { at, kind: failure_kind(error.kind(), error.info()) }));
            }
        };
        let tag = place.tag_span().or_else(|| place.tag_start().map(granit_parser::Span::empty));
        let tag = tag.map(|tag| self.span(&tag));
        let span = self.span(&place);
        Some(Ok((written(event(raw, tag), span), span)))
    }
}

/// The parser gives `~` for a value that was left out; nobody wrote that.
fn written(event: Event<'_>, span: Span) -> Event<'_> {
    match event {
        Event::Scalar { style: Style::Plain, tag, .. } if span.start == span.end => {
            Event::Scalar { text: Cow::Borrowed(""), style: Style::Plain, tag }
        }
        Event::Document
        | Event::Scalar { .. }
        | Event::ListStart { .. }
        | Event::ListEnd
        | Event::MapStart { .. }
        | Event::MapEnd
        | Event::Anchor
        | Event::Alias
        | Event::Other => event,
    }
}

fn event(raw: Raw<'_>, tag: Option<Span>) -> Event<'_> {
    match raw {
        Raw::DocumentStart(..) => Event::Document,
        Raw::Scalar(text, style, _, _) => Event::Scalar { text, style: self::style(style), tag },
        Raw::SequenceStart(..) => Event::ListStart { tag },
        Raw::SequenceEnd => Event::ListEnd,
        Raw::MappingStart(..) => Event::MapStart { tag },
        Raw::MappingEnd => Event::MapEnd,
        Raw::Anchor(..) => Event::Anchor,
        Raw::Alias(_) | Raw::UnresolvedAlias(_) => Event::Alias,
        Raw::StreamStart | Raw::StreamEnd | Raw::DocumentEnd | Raw::Comment(..) | _ => Event::Other,
    }
}

const fn style(raw: ScalarStyle) -> Style {
    match raw {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    }
}

fn failure_kind(kind: &ErrorKind, info: String) -> FailureKind {
    if matches!(kind, ErrorKind::RecursionLimitExceeded) {
        FailureKind::TooDeep
    } else if matches!(kind, ErrorKind::DirectiveDisallowed) {
        FailureKind::Directive
    } else {
        FailureKind::Syntax(info)
    }
}
