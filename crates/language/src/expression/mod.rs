//! Expressions as authors write them: texts with `${{ }}` in them, parsed with places.

mod lexer;
mod parser;
mod split;
mod tree;

use std::ops::Range;

use surefoot_kernel_core::expr::Expr;

pub(crate) use parser::parse;
pub(crate) use split::{Part, split};
pub(crate) use tree::{Tree, TreeKind};

/// A text that is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no expression: {why}")]
pub struct NotAnExpression {
    /// What was given; of a long one, its beginning.
    pub text: String,
    /// What is wrong with it, and what would help.
    pub why: String,
}

/// Reads an expression that stands for itself, without `${{ }}` around it: for actions whose config has one that is
/// evaluated later, over what the action itself finds.
///
/// ```
/// use surefoot_language::parse_expression;
/// assert!(parse_expression("status == 200 && body.state == 'paid'").is_ok());
/// assert!(parse_expression("status = 200").is_err());
/// ```
///
/// # Errors
/// [`NotAnExpression`], with what would help.
pub fn parse_expression(text: &str) -> Result<Expr, NotAnExpression> {
    parse(text).map(|tree| tree.lower()).map_err(|fault| {
        let help = fault.help.map_or_else(String::new, |help| format!("; {help}"));
        let text = text.chars().take(SHOWN_CHARS).collect();
        NotAnExpression { text, why: format!("{}{help}", fault.message) }
    })
}

/// The same, if it reads nothing but these names.
///
/// ```
/// use surefoot_language::parse_expression_over;
/// assert!(parse_expression_over("status == 200", &["status", "body"]).is_ok());
/// assert!(parse_expression_over("statsu == 200", &["status", "body"]).is_err());
/// ```
///
/// # Errors
/// [`NotAnExpression`], with what would help.
pub fn parse_expression_over(text: &str, names: &[&str]) -> Result<Expr, NotAnExpression> {
    let expr = parse_expression(text)?;
    let Some(unknown) = unknown_name(&expr, names) else { return Ok(expr) };
    let known: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let why = format!("`{unknown}` is not known here; there are {}", known.join(", "));
    Err(NotAnExpression { text: text.chars().take(SHOWN_CHARS).collect(), why })
}

fn unknown_name<'e>(expr: &'e Expr, names: &[&str]) -> Option<&'e str> {
    match expr {
        Expr::Literal(_) => None,
        Expr::Name(name) => (!names.contains(&name.as_str())).then_some(name.as_str()),
        Expr::Member(of, _) | Expr::Index(of, _) | Expr::Unary(_, of) => unknown_name(of, names),
        Expr::Binary(_, left, right) => {
            unknown_name(left, names).or_else(|| unknown_name(right, names))
        }
        Expr::Call(_, arguments) => arguments.iter().find_map(|one| unknown_name(one, names)),
    }
}

/// How much of a text an error repeats.
const SHOWN_CHARS: usize = 60;

/// What is wrong with an expression; the range is in bytes of the text that was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Fault {
    fn syntax(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { code: "EXPRESSION_SYNTAX", range, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
