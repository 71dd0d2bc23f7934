//! Expressions as a plan stores them: a tree, its evaluator, and its limits.

mod eval;
mod functions;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use eval::{EvalError, Names, equal, evaluate, evaluate_condition, render};

/// Characters of one expression's source.
pub const EXPRESSION_MAX_CHARS: usize = 4_000;
/// Nesting of one expression's tree.
pub const EXPRESSION_MAX_DEPTH: usize = 32;
/// Evaluation steps of one expression: one a node, and one for each 64 bytes or item that a function walks over.
pub const EXPRESSION_MAX_STEPS: u32 = 10_000;
/// Bytes of JSON that one expression may yield.
pub const EXPRESSION_MAX_OUTPUT_BYTES: usize = 1024 * 1024;

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
        /// The functions of the language; each is total.
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
    /// Characters, items or keys.
    Size = "size" / 1,
    /// A scalar as text, shortest round trip.
    String = "string" / 1,
    /// A text as number.
    Number = "number" / 1,
    /// Any value as JSON text.
    Json = "json" / 1,
    /// Lower case.
    Lower = "lower" / 1,
    /// Upper case.
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
    /// Whether a list has a value.
    Includes = "includes" / 2,
    /// The texts of a list with a text between them.
    Join = "join" / 2,
    /// A text cut at another text.
    Split = "split" / 2,
    /// The keys of an object, sorted.
    Keys = "keys" / 1,
    /// The smaller of two numbers.
    Min = "min" / 2,
    /// The larger of two numbers.
    Max = "max" / 2,
    /// To a whole number, half away from zero.
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
    /// An object with at least one expression in it; keys in source order, no key twice.
    Object(Vec<(String, Template)>),
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
