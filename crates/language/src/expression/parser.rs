//! The grammar: a Pratt parser over the tokens.

use std::ops::Range;

use serde_json::Value;
use surefoot_kernel_core::expr::{Binary, EXPRESSION_MAX_DEPTH, Function, Unary};

use super::lexer::{Token, tokens};
use super::{Fault, Tree, TreeKind};
use crate::diagnostic::closest;

/// Parses what stands between `${{` and `}}`.
pub(crate) fn parse(text: &str) -> Result<Tree, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, nesting: 0 };
    if parser.peek() == &Token::End {
        return Err(Fault::syntax(0..text.len(), "the expression is empty"));
    }
    let tree = parser.expression(0)?;
    if parser.peek() == &Token::End { Ok(tree) } else { Err(parser.trailing()) }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    /// How deep the calls of this parser are: parentheses and signs nest it without making nodes.
    nesting: usize,
}

/// How tightly an operator binds; the looser, the smaller.
const fn binary(sign: &str) -> Option<(Binary, u8)> {
    Some(match sign.as_bytes() {
        b"??" => (Binary::Coalesce, 1),
        b"||" => (Binary::Or, 2),
        b"&&" => (Binary::And, 3),
        b"==" => (Binary::Equal, 4),
        b"!=" => (Binary::NotEqual, 4),
        b"<" => (Binary::Less, 5),
        b"<=" => (Binary::LessOrEqual, 5),
        b">" => (Binary::Greater, 5),
        b">=" => (Binary::GreaterOrEqual, 5),
        b"+" => (Binary::Add, 6),
        b"-" => (Binary::Subtract, 6),
        b"*" => (Binary::Multiply, 7),
        b"/" => (Binary::Divide, 7),
        b"%" => (Binary::Remainder, 7),
        _ => return None,
    })
}

/// The operands of `!` and `-` bind tighter than every operator between two.
const PREFIX: u8 = 8;

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    fn range(&self) -> Range<usize> {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0..0, |(_, range)| range.clone())
    }

    fn next(&mut self) -> (Token, Range<usize>) {
        let token = (self.peek().clone(), self.range());
        self.at += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.takes(sign) {
            return Ok(());
        }
        let met = self.met();
        Err(Fault::syntax(self.range(), format!("expected `{sign}`, found {met}")))
    }

    /// The current token, for people.
    fn met(&self) -> String {
        match self.peek() {
            Token::Name(name) => format!("`{name}`"),
            Token::Whole(_) | Token::Decimal(_) => "a number".to_owned(),
            Token::Text(_) => "a text".to_owned(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        }
    }

    fn trailing(&self) -> Fault {
        let met = self.met();
        let fault = Fault::syntax(self.range(), format!("an operator is missing before {met}"));
        match self.peek() {
            Token::Name(name) if name.eq_ignore_ascii_case("and") => fault.help("write `&&`"),
            Token::Name(name) if name.eq_ignore_ascii_case("or") => fault.help("write `||`"),
            Token::Sign(")" | "]") => Fault::syntax(self.range(), format!("{met} closes nothing")),
            Token::Sign(",") => Fault::syntax(self.range(), "`,` stands between arguments only"),
            Token::Name(_)
            | Token::Whole(_)
            | Token::Decimal(_)
            | Token::Text(_)
            | Token::Sign(_)
            | Token::End => fault,
        }
    }

    /// Operands and the operators between them that bind tighter than `loosest`.
    fn expression(&mut self, loosest: u8) -> Result<Tree, Fault> {
        self.nesting += 1;
        if self.nesting > EXPRESSION_MAX_DEPTH {
            return Err(too_deep(self.range()));
        }
        let mut left = self.prefix()?;
        let mut last = 0;
        while let Token::Sign(sign) = *self.peek() {
            let Some((operator, strength)) = binary(sign) else { break };
            if strength <= loosest {
                break;
            }
            if matches!(strength, 4 | 5) && strength == last {
                // It would compare a bool with something, which nobody means.
                return Err(Fault::syntax(self.range(), "comparisons cannot be chained")
                    .help("join two comparisons with `&&`"));
            }
            last = strength;
            self.at += 1;
            let right = self.expression(strength)?;
            left = node_of_two(operator, left, right)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Tree, Fault> {
        let start = self.range().start;
        let operator = match self.peek() {
            Token::Sign("!") => Unary::Not,
            Token::Sign("-") => Unary::Negate,
            Token::Name(_)
            | Token::Whole(_)
            | Token::Decimal(_)
            | Token::Text(_)
            | Token::Sign(_)
            | Token::End => return self.postfix(),
        };
        self.at += 1;
        if let (Unary::Negate, Some(literal)) = (operator, self.negative_literal(start)?) {
            return Ok(literal);
        }
        let of = self.expression(PREFIX - 1)?;
        let (range, depth) = (start..of.range.end, of.depth + 1);
        node(range, depth, TreeKind::Unary(operator, Box::new(of)))
    }

    /// `-5` is a literal, so that the smallest integer can be written.
    fn negative_literal(&mut self, start: usize) -> Result<Option<Tree>, Fault> {
        let range = start..self.range().end;
        let value = match self.peek() {
            Token::Whole(digits) => whole(&format!("-{digits}"), &range)?,
            Token::Decimal(float) => Value::from(-*float),
            Token::Name(_) | Token::Text(_) | Token::Sign(_) | Token::End => return Ok(None),
        };
        self.at += 1;
        node(range, 1, TreeKind::Literal(value)).map(Some)
    }

    fn postfix(&mut self) -> Result<Tree, Fault> {
        let mut tree = self.primary()?;
        loop {
            if self.takes(".") {
                tree = self.member(tree)?;
            } else if self.takes("[") {
                tree = self.subscript(tree)?;
            } else {
                return Ok(tree);
            }
        }
    }

    fn member(&mut self, of: Tree) -> Result<Tree, Fault> {
        let (token, name_range) = self.next();
        let Token::Name(name) = token else {
            self.at -= 1;
            let met = self.met();
            return Err(Fault::syntax(
                name_range,
                format!("expected a name after `.`, found {met}"),
            )
            .help("other members are written in brackets: `['Due date']`, `[0]`"));
        };
        let (range, depth) = (of.range.start..name_range.end, of.depth + 1);
        node(range, depth, TreeKind::Member { of: Box::new(of), name, name_range })
    }

    fn subscript(&mut self, of: Tree) -> Result<Tree, Fault> {
        let (token, inner) = self.next();
        let (depth, start) = (of.depth + 1, of.range.start);
        let kind = match token {
            Token::Text(name) => {
                TreeKind::Member { of: Box::new(of), name, name_range: inner.clone() }
            }
            Token::Whole(digits) => {
                let index = digits.parse::<u64>();
                let index =
                    index.map_err(|_| Fault::syntax(inner.clone(), "this index is too large"))?;
                TreeKind::Index { of: Box::new(of), index }
            }
            Token::Name(_) | Token::Decimal(_) | Token::Sign(_) | Token::End => {
                let message = "an index is written with digits, a member as 'text'";
                return Err(Fault::syntax(inner, message)
                    .help("to look at each item of a list, use `forEach`; the first is `[0]`"));
            }
        };
        let end = self.range().end;
        self.expect("]")?;
        node(start..end, depth, kind)
    }

    fn primary(&mut self) -> Result<Tree, Fault> {
        let (token, range) = self.next();
        match token {
            Token::Whole(digits) => {
                let value = whole(&digits, &range)?;
                node(range, 1, TreeKind::Literal(value))
            }
            Token::Decimal(float) => node(range, 1, TreeKind::Literal(Value::from(float))),
            Token::Text(text) => node(range, 1, TreeKind::Literal(Value::String(text))),
            Token::Name(name) => self.named(name, range),
            Token::Sign("(") => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign(_) | Token::End => {
                self.at -= 1;
                let met = self.met();
                Err(Fault::syntax(range, format!("expected a value, found {met}")).help(
                    "a value is a name, a number, 'text', `true`, `false`, `null` or `(...)`",
                ))
            }
        }
    }

    fn named(&mut self, name: String, range: Range<usize>) -> Result<Tree, Fault> {
        if self.takes("(") {
            return self.call(&name, range);
        }
        let literal = match name.as_str() {
            "null" => Some(Value::Null),
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        };
        node(range, 1, literal.map_or(TreeKind::Name(name), TreeKind::Literal))
    }

    fn call(&mut self, name: &str, range: Range<usize>) -> Result<Tree, Fault> {
        let Some(function) = Function::ALL.iter().find(|function| function.name() == name) else {
            return Err(unknown_function(name, range));
        };
        let mut arguments = Vec::new();
        if !self.takes(")") {
            loop {
                arguments.push(self.expression(0)?);
                if !self.takes(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        let end = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let range = range.start..end.map_or(range.end, |(_, last)| last.end);
        check_arity(*function, arguments.len(), &range)?;
        let stranger = arguments.iter().find(|argument| !argument.is_reference());
        if let (Function::Has, Some(stranger)) = (*function, stranger) {
            return Err(Fault::syntax(stranger.range.clone(), "`has` takes a reference")
                .help("write it like `has(inputs.order.note)`"));
        }
        let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0) + 1;
        node(range, depth, TreeKind::Call(*function, arguments))
    }
}

/// Every node is made here, so that no tree can be deeper than its limit.
fn node(range: Range<usize>, depth: usize, kind: TreeKind) -> Result<Tree, Fault> {
    if depth > EXPRESSION_MAX_DEPTH {
        return Err(too_deep(range));
    }
    Ok(Tree { range, depth, kind })
}

fn node_of_two(operator: Binary, left: Tree, right: Tree) -> Result<Tree, Fault> {
    let range = left.range.start..right.range.end;
    let depth = left.depth.max(right.depth) + 1;
    node(range, depth, TreeKind::Binary(operator, Box::new(left), Box::new(right)))
}

fn too_deep(range: Range<usize>) -> Fault {
    let message = format!("an expression may be nested {EXPRESSION_MAX_DEPTH} deep");
    Fault { code: "EXPRESSION_TOO_DEEP", ..Fault::syntax(range, message) }
        .help("split it: bind parts of it with `setVariable`")
}

fn whole(digits: &str, range: &Range<usize>) -> Result<Value, Fault> {
    let value = digits.parse::<i64>().map(Value::from);
    value.map_err(|_| Fault::syntax(range.clone(), "an integer has 64 bits; this one is too large"))
}

fn unknown_function(name: &str, range: Range<usize>) -> Fault {
    let names = Function::ALL.iter().map(|function| function.name());
    let fault = Fault::syntax(range, format!("there is no function `{name}`"));
    let fault = Fault { code: "UNKNOWN_FUNCTION", ..fault };
    match closest(name, names.clone()) {
        Some(known) => fault.help(format!("did you mean `{known}`?")),
        None => {
            let known: Vec<String> = names.map(|known| format!("`{known}`")).collect();
            fault.help(format!("the functions are {}", known.join(", ")))
        }
    }
}

fn check_arity(function: Function, given: usize, range: &Range<usize>) -> Result<(), Fault> {
    let wanted = function.arity();
    if given == wanted {
        return Ok(());
    }
    let arguments = if wanted == 1 { "argument" } else { "arguments" };
    let message = format!("`{}` takes {wanted} {arguments}, not {given}", function.name());
    Err(Fault::syntax(range.clone(), message))
}
