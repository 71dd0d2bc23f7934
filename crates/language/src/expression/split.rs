//! Finding the expressions in a text.

use std::ops::Range;

use surefoot_kernel_core::expr::EXPRESSION_MAX_CHARS;

use super::Fault;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// As written.
    Text(Range<usize>),
    /// What stands between `${{` and `}}`.
    Expression {
        /// With the marks.
        whole: Range<usize>,
        /// Without them.
        inner: Range<usize>,
    },
}

/// The parts of a text, or the first mark that is never closed.
pub(crate) fn split(text: &str) -> Result<Vec<Part>, Fault> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${{") {
        let open = at + found;
        if open > at {
            parts.push(Part::Text(at..open));
        }
        let Some(length) = closing(&text[open + 3..]) else {
            return Err(unclosed(text, open));
        };
        let inner = open + 3..open + 3 + length;
        if text[inner.clone()].chars().nth(EXPRESSION_MAX_CHARS).is_some() {
            let message = format!("an expression has at most {EXPRESSION_MAX_CHARS} characters");
            let fault = Fault::syntax(open..inner.end + 2, message);
            return Err(Fault { code: "EXPRESSION_TOO_LONG", ..fault }
                .help("split it: bind parts of it with `setVariable`"));
        }
        at = inner.end + 2;
        parts.push(Part::Expression { whole: open..at, inner });
    }
    if at < text.len() {
        parts.push(Part::Text(at..text.len()));
    }
    Ok(parts)
}

/// Bytes up to the `}}` that is outside of every `'text'`.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quoted = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            b'}' if !quoted && bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
    }
    None
}

fn unclosed(text: &str, open: usize) -> Fault {
    let rest = &text[open..];
    let shown = rest.split_inclusive('\n').next().unwrap_or(rest).trim_end();
    let fault = Fault::syntax(open..open + shown.len(), "`${{` is never closed by `}}`");
    let cure = "put the whole value in double quotes: YAML cuts a plain value at ` #` and refuses `: ` in it";
    let odd_quotes = rest.matches('\'').count() % 2 == 1 && rest.contains("}}");
    let fault = Fault { code: "EXPRESSION_UNCLOSED", ..fault };
    if odd_quotes {
        fault.help(
            "a text in the expression is never closed: write 'text', and '' for a quote in it",
        )
    } else {
        fault.help(cure)
    }
}
