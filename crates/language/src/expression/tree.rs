//! The tree of an expression with the place of every node; the plan's tree is made from it.

use std::ops::Range;

use serde_json::Value;
use surefoot_kernel_core::expr::{Binary, Expr, Function, Unary};

/// A node with its place. At most `EXPRESSION_MAX_DEPTH` deep, so that it may be walked by recursion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    pub(crate) range: Range<usize>,
    pub(crate) depth: usize,
    pub(crate) kind: TreeKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TreeKind {
    Literal(Value),
    Name(String),
    Member { of: Box<Tree>, name: String, name_range: Range<usize> },
    Index { of: Box<Tree>, index: u64 },
    Unary(Unary, Box<Tree>),
    Binary(Binary, Box<Tree>, Box<Tree>),
    Call(Function, Vec<Tree>),
}

impl Tree {
    pub(crate) fn lower(&self) -> Expr {
        match &self.kind {
            TreeKind::Literal(value) => Expr::Literal(value.clone()),
            TreeKind::Name(name) => Expr::Name(name.clone()),
            TreeKind::Member { of, name, .. } => Expr::Member(Box::new(of.lower()), name.clone()),
            TreeKind::Index { of, index } => Expr::Index(Box::new(of.lower()), *index),
            TreeKind::Unary(operator, of) => Expr::Unary(*operator, Box::new(of.lower())),
            TreeKind::Binary(operator, left, right) => {
                Expr::Binary(*operator, Box::new(left.lower()), Box::new(right.lower()))
            }
            TreeKind::Call(function, arguments) => {
                Expr::Call(*function, arguments.iter().map(Self::lower).collect())
            }
        }
    }

    /// Whether it is a name with members and indexes and nothing else.
    pub(crate) fn is_reference(&self) -> bool {
        match &self.kind {
            TreeKind::Name(_) => true,
            TreeKind::Member { of, .. } | TreeKind::Index { of, .. } => of.is_reference(),
            TreeKind::Literal(_)
            | TreeKind::Unary(..)
            | TreeKind::Binary(..)
            | TreeKind::Call(..) => false,
        }
    }
}
