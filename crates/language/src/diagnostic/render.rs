//! Findings as excerpts of their source.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Finding, Severity};
use crate::source::Span;

/// Characters of a source line that an excerpt shows; longer lines are cut around the finding.
const TERMINAL_WIDTH: usize = 120;
/// Bytes around a finding in a line so long that the renderer should not see all of it.
const LONG_LINE_BYTES: usize = 2_000;

pub(super) fn render(source: &str, findings: &[Finding], file: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(TERMINAL_WIDTH);
    let blocks: Vec<String> =
        findings.iter().map(|finding| excerpt(&renderer, source, finding, file)).collect();
    blocks.join("\n\n")
}

fn excerpt(renderer: &Renderer, source: &str, finding: &Finding, file: &str) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&finding.message).id(finding.code);
    let mut group = Group::with_title(title);
    if !source.is_empty() && finding.severity != Severity::Note {
        let window = window(source, finding);
        let inside = |span: Span| clip(span, &window);
        let first_line = line_of(source, window.start);
        let mut snippet = Snippet::source(&source[window.clone()])
            .path(file)
            .line_start(first_line)
            .annotation(AnnotationKind::Primary.span(inside(finding.span)));
        for related in &finding.related {
            if related.span.start >= window.start && related.span.end <= window.end {
                let label = related.message.as_str();
                let note = AnnotationKind::Context.span(inside(related.span)).label(label);
                snippet = snippet.annotation(note);
            }
        }
        group = group.element(snippet);
    }
    for related in &finding.related {
        let message =
            format!("{} in line {}", related.message, line_of(source, related.span.start));
        group = group.element(Level::NOTE.message(message));
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group])
}

/// The lines that the finding and its related places are on, unless they are too long to show as a whole.
fn window(source: &str, finding: &Finding) -> Range<usize> {
    let related = finding.related.iter().map(|related| related.span);
    let spans = related.chain([finding.span]).map(|span| (span.start, span.end));
    let (start, end) =
        spans.fold((usize::MAX, 0), |(start, end), span| (start.min(span.0), end.max(span.1)));
    let whole = line_start(source, start)..line_end(source, end);
    if whole.len() <= LONG_LINE_BYTES * 8 {
        return whole;
    }
    let start = line_start(source, finding.span.start);
    let start =
        start.max(source.floor_char_boundary(finding.span.start.saturating_sub(LONG_LINE_BYTES)));
    let end = line_end(source, finding.span.start);
    start..end.min(source.ceil_char_boundary(finding.span.start + LONG_LINE_BYTES))
}

fn clip(span: Span, window: &Range<usize>) -> Range<usize> {
    let bounded = |at: usize| at.clamp(window.start, window.end) - window.start;
    bounded(span.start)..bounded(span.end)
}

fn line_start(source: &str, at: usize) -> usize {
    source[..at.min(source.len())].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(source: &str, at: usize) -> usize {
    let at = at.min(source.len());
    source[at..].find('\n').map_or(source.len(), |newline| at + newline)
}

fn line_of(source: &str, at: usize) -> usize {
    source.as_bytes()[..at.min(source.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
