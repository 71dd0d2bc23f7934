//! Expressions as authors write them: texts with `${{ }}` in them, parsed with places.

mod lexer;
mod parser;
mod split;
mod tree;

use std::ops::Range;

pub(crate) use parser::parse;
pub(crate) use split::{Part, split};
pub(crate) use tree::{Tree, TreeKind};

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
