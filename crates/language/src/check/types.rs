//! The kinds that functions and operators take and give.

use surefoot_kernel_core::expr::{Binary, Function};

use super::shape::Kinds;

/// What a function takes at each place, and what it gives.
pub(crate) const fn signature(function: Function) -> (&'static [Kinds], Kinds) {
    const TEXT: Kinds = Kinds::TEXT;
    const NUMBER: Kinds = Kinds::NUMBER;
    const SIZED: Kinds = TEXT.or(Kinds::LIST).or(Kinds::OBJECT);
    match function {
        Function::Now => (&[], TEXT),
        Function::Has => (&[Kinds::ANY], Kinds::BOOL),
        Function::Size => (&[SIZED], Kinds::INTEGER),
        Function::String => (&[Kinds::SCALAR], TEXT),
        Function::Number => (&[TEXT], NUMBER),
        Function::Json => (&[Kinds::ANY], TEXT),
        Function::Lower | Function::Upper | Function::Trim => (&[TEXT], TEXT),
        Function::Contains | Function::StartsWith | Function::EndsWith | Function::SameText => {
            (&[TEXT, TEXT], Kinds::BOOL)
        }
        Function::Includes => (&[Kinds::LIST, Kinds::ANY], Kinds::BOOL),
        Function::Join => (&[Kinds::LIST, TEXT], TEXT),
        Function::Split => (&[TEXT, TEXT], Kinds::LIST),
        Function::Keys => (&[Kinds::OBJECT], Kinds::LIST),
        Function::Min | Function::Max => (&[NUMBER, NUMBER], NUMBER),
        Function::Round => (&[NUMBER], NUMBER),
        Function::Plus => (&[TEXT, TEXT], TEXT),
    }
}

/// As authors write it.
pub(crate) const fn sign(operator: Binary) -> &'static str {
    match operator {
        Binary::Coalesce => "??",
        Binary::Or => "||",
        Binary::And => "&&",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
    }
}

/// What both operands of an operator have to be of: one of these, the same on both sides.
pub(crate) const fn operands(operator: Binary) -> &'static [Kinds] {
    match operator {
        Binary::Coalesce | Binary::Equal | Binary::NotEqual => &[Kinds::ANY],
        Binary::Or | Binary::And => &[Kinds::BOOL],
        Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::Add => &[Kinds::NUMBER, Kinds::TEXT],
        Binary::Subtract | Binary::Multiply | Binary::Divide => &[Kinds::NUMBER],
        Binary::Remainder => &[Kinds::INTEGER],
    }
}

/// What an operator gives for operands of these kinds.
pub(crate) fn result(operator: Binary, left: Kinds, right: Kinds) -> Kinds {
    match operator {
        Binary::Coalesce => left.without(Kinds::NULL).or(right),
        Binary::Or
        | Binary::And
        | Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual => Kinds::BOOL,
        Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => Kinds::NUMBER,
        Binary::Add => [Kinds::NUMBER, Kinds::TEXT]
            .into_iter()
            .filter(|kinds| kinds.overlaps(left) && kinds.overlaps(right))
            .fold(Kinds::NONE, Kinds::or),
    }
}
