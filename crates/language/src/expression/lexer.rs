//! The words of an expression.

use std::ops::Range;

use super::Fault;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// Digits only; parsed where it is known whether a `-` stands before it.
    Whole(String),
    Decimal(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// Signs, longer ones first.
const SIGNS: &[&str] = &[
    "??", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", ".", "[",
    "]", "(", ")", ",",
];

/// The tokens of an expression, the last of them [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if matches!(first, ' ' | '\t' | '\n' | '\r') {
            at += 1;
            continue;
        }
        let (token, length) = token(&text[at..], first).map_err(|fault| shift(fault, at))?;
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, at..at));
    Ok(tokens)
}

fn shift(fault: Fault, by: usize) -> Fault {
    Fault { range: fault.range.start + by..fault.range.end + by, ..fault }
}

fn token(text: &str, first: char) -> Result<(Token, usize), Fault> {
    if first.is_ascii_alphabetic() || first == '_' {
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = text.find(|char| !is_part(char)).unwrap_or(text.len());
        return Ok((Token::Name(text[..end].to_owned()), end));
    }
    if first.is_ascii_digit() {
        return number(text);
    }
    if first == '\'' {
        return quoted(text);
    }
    let sign = SIGNS.iter().find(|sign| text.starts_with(**sign));
    sign.map(|sign| (Token::Sign(sign), sign.len())).ok_or_else(|| stranger(text, first))
}

fn number(text: &str) -> Result<(Token, usize), Fault> {
    let digits = |from: usize| {
        text[from..].find(|char: char| !char.is_ascii_digit()).map_or(text.len(), |at| from + at)
    };
    let whole = digits(0);
    let is_decimal = text[whole..].starts_with('.')
        && text[whole + 1..].starts_with(|c: char| c.is_ascii_digit());
    let end = if is_decimal { digits(whole + 1) } else { whole };
    let is_glued = text[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if whole > 1 && text.starts_with('0') {
        return Err(Fault::syntax(0..end, "a number has no leading zeros"));
    }
    if is_glued {
        let stop = text[end..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let range = 0..stop.map_or(text.len(), |stop| end + stop);
        return Err(Fault::syntax(range, "a number is written with digits and at most one point")
            .help("write it like `12` or `0.5`; a text is written in single quotes"));
    }
    if !is_decimal {
        return Ok((Token::Whole(text[..end].to_owned()), end));
    }
    match text[..end].parse::<f64>() {
        Ok(float) if float.is_finite() => Ok((Token::Decimal(float), end)),
        Ok(_) | Err(_) => Err(Fault::syntax(0..end, "this number is too large")),
    }
}

/// `'text'`; two quotes are one quote of the text.
fn quoted(text: &str) -> Result<(Token, usize), Fault> {
    let mut value = String::new();
    let mut rest = &text[1..];
    while let Some(end) = rest.find('\'') {
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            None => return Ok((Token::Text(value), text.len() - rest.len())),
            Some(after) => {
                value.push('\'');
                rest = after;
            }
        }
    }
    Err(Fault::syntax(0..text.len(), "this text is never closed")
        .help("write 'text', and '' for a quote in it"))
}

fn stranger(text: &str, first: char) -> Fault {
    let range = 0..first.len_utf8();
    let fault = |message: &str| Fault::syntax(range.clone(), message);
    match first {
        '"' => fault("a text is written in single quotes").help("write 'text'"),
        '=' => fault("`=` is no operator").help("write `==` to compare"),
        '&' => fault("`&` is no operator").help("write `&&`"),
        '|' => fault("`|` is no operator").help("write `||`"),
        '?' => fault("there is no `? :`")
            .help("use an `if` step, or `??` for a value that may be missing"),
        '{' | '}' => fault("an expression has no object literals"),
        '$' if text.starts_with("${{") => Fault::syntax(0..3, "`${{` stands inside an expression")
            .help("close the first expression with `}}`, or leave the second `${{` out"),
        other => Fault::syntax(range.clone(), format!("`{other}` has no meaning in an expression")),
    }
}
