//! Expressions as a plan stores them: a tree, its evaluator, and its limits.
//!
//! # Values
//!
//! - A reference that leads nowhere is *missing*: an error, which `??` handles if it comes out of its left side, and
//!   `has()` if it comes out of its argument. A value that is there and null is null: `has()` is true, `??` takes its
//!   right side.
//! - Only own members are found. Texts and lists have no members, only lists have items, and an index past the end
//!   is missing.
//! - `==` is structural and exact; the order of keys does not count. `<` and its kin compare two numbers, or two texts
//!   by code points.
//! - Numbers compare by mathematical value, whatever their type: `1 == 1.0`, but
//!   `9007199254740993 != 9007199254740992.0`.
//! - `+ - *` of two integers are integers, and an error beyond `i64`. `/` of two integers is an integer if it comes out
//!   even (`6 / 3` is 2), else a float (`7 / 2` is 3.5); `%` takes integers, and its sign is that of the dividend. If
//!   one side is a float, the other is taken as the nearest float. A division by zero and a result that is not finite
//!   are errors. An integer beyond `i64` can be compared and passed on, but not calculated with.
//! - There is no truthiness: `!`, `&&`, `||` and conditions take bools only. `&&` and `||` stop at the first operand
//!   that decides. One that still waits for its value is passed over, and the whole waits only if no later one
//!   decides; an operand that errs behind a waiting one decides nothing, because it might never be reached.

mod compare;
mod eval;
mod extent;
mod functions;
mod number;
mod render;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use eval::{EvalError, Names, equal, evaluate, evaluate_condition};
pub use render::render;

/// Characters of one expression's source.
pub const EXPRESSION_MAX_CHARS: usize = 4_000;
/// Nesting of one expression's tree.
pub const EXPRESSION_MAX_DEPTH: usize = 32;
/// Evaluation steps of one expression: one a node, and one for each 64 bytes or item that a function or an operator
/// walks over.
pub const EXPRESSION_MAX_STEPS: u32 = 10_000;
/// Bytes of JSON that one expression, or one text around expressions, may yield; also of each text on the way.
pub const EXPRESSION_MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// Bytes of JSON that the values of one template may take together.
pub const TEMPLATE_MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// One expression. The stored form is part of every plan and only ever grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expr {
    /// `null`, `true`, `12`, `1.5`, `'text'`.
    Literal(Value),
    /// The root of a reference: `inputs`, `run`, a saved name.
    Name(String),
    /// `of.name` or `of['name']`.
    Member(Box<Expr>, String),
    /// `of[3]`.
    Index(Box<Expr>, u64),
    /// `!x`, `-x`.
    Unary(Unary, Box<Expr>),
    /// `a + b`, `a ?? b`, `a && b`.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `size(x)`.
    Call(Function, Vec<Expr>),
}

impl Expr {
    /// Whether its tree has more than this many levels; a single literal or name is one. Looks no deeper than that.
    #[must_use]
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else { return true };
        match self {
            Self::Literal(_) | Self::Name(_) => false,
            Self::Member(of, _) | Self::Index(of, _) | Self::Unary(_, of) => {
                of.is_deeper_than(below)
            }
            Self::Binary(_, left, right) => {
                left.is_deeper_than(below) || right.is_deeper_than(below)
            }
            Self::Call(_, arguments) => arguments.iter().any(|one| one.is_deeper_than(below)),
        }
    }
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unary {
    /// `!`
    Not,
    /// `-`
    Negate,
}

/// Operators with two operands, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Binary {
    /// `??`: the right side if the left is missing or null.
    Coalesce,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal / $arity:literal),* $(,)?) => {
        /// The functions of the language; each is total for arguments of its types.
        ///
        #[doc = include_str!("functions.md")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Function {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As authors write it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How many arguments it takes.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Self::$variant => $arity,)* }
            }
        }
    };
}

functions! {
    /// The event's time, RFC 3339, microseconds, `Z`.
    Now = "now" / 0,
    /// Whether a reference leads to a value; null is one.
    Has = "has" / 1,
    /// Characters (Unicode scalar values), items or keys.
    Size = "size" / 1,
    /// A scalar as text: numbers in their shortest form that reads back the same, floats marked as such.
    String = "string" / 1,
    /// A text as number: what JSON takes as one. An integer must fit 64 bits.
    Number = "number" / 1,
    /// Any value as JSON text, in the canonical encoding: keys sorted, no white space.
    Json = "json" / 1,
    /// Lower case, independent of any locale.
    Lower = "lower" / 1,
    /// Upper case, independent of any locale.
    Upper = "upper" / 1,
    /// Without white space at both ends.
    Trim = "trim" / 1,
    /// Whether a text has a part.
    Contains = "contains" / 2,
    /// Whether a text starts with another.
    StartsWith = "startsWith" / 2,
    /// Whether a text ends with another.
    EndsWith = "endsWith" / 2,
    /// Equal after NFKC and lower-casing.
    SameText = "sameText" / 2,
    /// Whether a list has a value, as `==` compares.
    Includes = "includes" / 2,
    /// The texts of a list with a text between them.
    Join = "join" / 2,
    /// A text cut at each place of another text; at an empty one, into its characters.
    Split = "split" / 2,
    /// The keys of an object, sorted by code points.
    Keys = "keys" / 1,
    /// The smaller of two numbers; the first of equal ones.
    Min = "min" / 2,
    /// The larger of two numbers; the first of equal ones.
    Max = "max" / 2,
    /// To a whole number, half away from zero: an integer if it fits `i64`.
    Round = "round" / 1,
    /// A time plus a duration such as `2h30m`.
    Plus = "plus" / 2,
}

/// A value slot of the authored source: literal parts, and expressions where the author wrote `${{ }}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Template {
    /// A value without any expression in it.
    Literal(Value),
    /// A scalar that is exactly one expression: it keeps the value's type.
    Expr(Expr),
    /// Text around expressions: each value must be a scalar; null renders empty.
    Text(Vec<Piece>),
    /// A list with at least one expression in it.
    List(Vec<Template>),
    /// An object with at least one expression in it; keys sorted, no key twice.
    Object(Vec<(String, Template)>),
}

impl Template {
    /// Whether the value at this JSON pointer is written as it is, and does not come out of an expression.
    #[must_use]
    pub fn is_written(&self, pointer: &str) -> bool {
        let mut here = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let inside = match here {
                Self::Literal(_) => return true,
                Self::Expr(_) | Self::Text(_) => return false,
                Self::List(items) => token.parse::<usize>().ok().and_then(|at| items.get(at)),
                Self::Object(members) => {
                    members.iter().find(|(key, _)| *key == token).map(|(_, value)| value)
                }
            };
            let Some(inside) = inside else { return false };
            here = inside;
        }
        match here {
            Self::Literal(_) | Self::List(_) | Self::Object(_) => true,
            Self::Expr(_) | Self::Text(_) => false,
        }
    }
}

/// A part of an interpolated text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Piece {
    /// As written.
    Text(String),
    /// `${{ }}`.
    Expr(Expr),
}
