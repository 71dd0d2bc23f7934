//! Reads an expression as authors write it, so that a row of a test can be read. The compiler has its own parser,
//! with places and findings; this one only has to build the tree.

use crate::expr::{Binary, Expr, Function, Unary};
use serde_json::Value;

/// From the loosest to the tightest; longer signs before those that they start with.
const LEVELS: [&[(&str, Binary)]; 7] = [
    &[("??", Binary::Coalesce)],
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[
        ("<=", Binary::LessOrEqual),
        (">=", Binary::GreaterOrEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

#[track_caller]
pub(super) fn parse(source: &str) -> Expr {
    let mut parser = Parser(source);
    let expr = parser.level(0);
    parser.space();
    assert_eq!(parser.0, "", "not read to its end: {source}");
    expr
}

struct Parser<'s>(&'s str);

impl<'s> Parser<'s> {
    fn space(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn eat(&mut self, sign: &str) -> bool {
        self.space();
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, sign: &str) {
        assert!(self.eat(sign), "`{sign}` expected before `{}`", self.0);
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'s str {
        let (part, rest) = self.0.split_at(self.0.find(|c| !is_part(c)).unwrap_or(self.0.len()));
        self.0 = rest;
        part
    }

    fn level(&mut self, level: usize) -> Expr {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1);
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.eat(sign)) {
            left = Expr::Binary(*operator, Box::new(left), Box::new(self.level(level + 1)));
        }
        left
    }

    fn unary(&mut self) -> Expr {
        match () {
            () if self.eat("!") => Expr::Unary(Unary::Not, Box::new(self.unary())),
            () if self.eat("-") => Expr::Unary(Unary::Negate, Box::new(self.unary())),
            () => self.postfix(),
        }
    }

    fn postfix(&mut self) -> Expr {
        let mut expr = self.primary();
        loop {
            expr = if self.eat(".") {
                Expr::Member(Box::new(expr), self.name().to_owned())
            } else if self.eat("['") {
                let name = self.take(|c| c != '\'').to_owned();
                self.expect("']");
                Expr::Member(Box::new(expr), name)
            } else if self.eat("[") {
                let index = self.take(|c| c.is_ascii_digit()).parse().unwrap();
                self.expect("]");
                Expr::Index(Box::new(expr), index)
            } else {
                return expr;
            }
        }
    }

    fn primary(&mut self) -> Expr {
        if self.eat("(") {
            let expr = self.level(0);
            self.expect(")");
            return expr;
        }
        if self.eat("'") {
            let text = self.take(|c| c != '\'').to_owned();
            self.expect("'");
            return Expr::Literal(text.into());
        }
        if self.0.starts_with(|c: char| c.is_ascii_digit()) {
            let number = self.take(|c| c.is_ascii_digit() || c == '.' || c == 'e');
            return Expr::Literal(serde_json::from_str(number).unwrap());
        }
        let name = self.name();
        match name {
            "null" => Expr::Literal(Value::Null),
            "true" | "false" => Expr::Literal((name == "true").into()),
            _ if self.eat("(") => self.call(name),
            _ => Expr::Name(name.to_owned()),
        }
    }

    fn call(&mut self, name: &str) -> Expr {
        let function = Function::ALL.iter().find(|one| one.name() == name).unwrap();
        let mut arguments = Vec::new();
        while !self.eat(")") {
            if !arguments.is_empty() {
                self.expect(",");
            }
            arguments.push(self.level(0));
        }
        Expr::Call(*function, arguments)
    }

    fn name(&mut self) -> &'s str {
        self.space();
        let name = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        assert!(!name.is_empty(), "a name expected before `{}`", self.0);
        name
    }
}
