//! What an application registers, and what a store's connection does with it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use surefoot_kernel_core::{BoxFuture, Source};

/// What kind of value a parameter takes. Null fits each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A number, as a float of 64 bits.
    Number,
    /// `true` or `false`.
    Bool,
    /// Any value, as JSON text.
    Json,
}

/// A value on its way into a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// Of [`Kind::Text`] and [`Kind::Json`].
    Text(Option<String>),
    /// Of [`Kind::Integer`].
    Integer(Option<i64>),
    /// Of [`Kind::Number`].
    Number(Option<f64>),
    /// Of [`Kind::Bool`].
    Bool(Option<bool>),
}

/// Whether a statement changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// It yields rows.
    Reads,
    /// It changes rows.
    Writes,
}

/// A statement of the application, with `$1`, `$2`, .. in the order in which its parameters are declared.
///
/// ```
/// use surefoot_actions::query::Statement;
/// let stock = Statement::reads("stockOf", "SELECT pieces FROM stock WHERE item = $1 AND pieces >= $2")
///     .text("item")
///     .integer("atLeast");
/// assert_eq!(stock.name(), "stockOf");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a statement does nothing until it is given to `Query::new`"]
pub struct Statement {
    name: &'static str,
    sql: &'static str,
    verb: Verb,
    params: Vec<(&'static str, Kind)>,
}

impl Statement {
    /// A `SELECT`.
    pub const fn reads(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, verb: Verb::Reads, params: Vec::new() }
    }

    /// An `INSERT`, `UPDATE` or `DELETE`.
    pub const fn writes(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, verb: Verb::Writes, params: Vec::new() }
    }

    /// The next parameter is a text.
    pub fn text(self, name: &'static str) -> Self {
        self.param(name, Kind::Text)
    }

    /// The next parameter is a whole number.
    pub fn integer(self, name: &'static str) -> Self {
        self.param(name, Kind::Integer)
    }

    /// The next parameter is a number.
    pub fn number(self, name: &'static str) -> Self {
        self.param(name, Kind::Number)
    }

    /// The next parameter is `true` or `false`.
    pub fn bool(self, name: &'static str) -> Self {
        self.param(name, Kind::Bool)
    }

    /// The next parameter is any value; it is bound as JSON text.
    pub fn json(self, name: &'static str) -> Self {
        self.param(name, Kind::Json)
    }

    fn param(mut self, name: &'static str, kind: Kind) -> Self {
        self.params.push((name, kind));
        self
    }

    /// What authors write.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it does.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    pub(super) const fn sql(&self) -> &'static str {
        self.sql
    }

    /// The values in the order of the parameters.
    pub(super) fn bind(&self, given: &BTreeMap<String, Value>) -> Result<Vec<Bound>, String> {
        let is_declared = |name: &String| self.params.iter().any(|(known, _)| known == name);
        if let Some(odd) = given.keys().find(|name| !is_declared(name)) {
            return Err(format!("`{}` has no parameter `{odd}`", self.name));
        }
        let values = self.params.iter().map(|(name, kind)| {
            let value = given.get(*name);
            let value =
                value.ok_or_else(|| format!("`{}` needs the parameter `{name}`", self.name))?;
            bound(*kind, value).ok_or_else(|| {
                format!("the parameter `{name}` of `{}` takes {}", self.name, kind.noun())
            })
        });
        values.collect()
    }
}

impl Kind {
    const fn noun(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Integer => "a whole number of 64 bits",
            Self::Number => "a number",
            Self::Bool => "`true` or `false`",
            Self::Json => "a value",
        }
    }
}

fn bound(kind: Kind, value: &Value) -> Option<Bound> {
    if value.is_null() {
        return Some(match kind {
            Kind::Text | Kind::Json => Bound::Text(None),
            Kind::Integer => Bound::Integer(None),
            Kind::Number => Bound::Number(None),
            Kind::Bool => Bound::Bool(None),
        });
    }
    Some(match kind {
        Kind::Text => Bound::Text(Some(value.as_str()?.to_owned())),
        Kind::Json => Bound::Text(Some(value.to_string())),
        Kind::Integer => Bound::Integer(Some(value.as_i64()?)),
        Kind::Number => Bound::Number(Some(value.as_f64()?)),
        Kind::Bool => Bound::Bool(Some(value.as_bool()?)),
    })
}

/// Why there are no rows.
#[derive(Debug)]
pub enum RowError {
    /// A value that is no JSON, or cannot be kept exactly.
    Unreadable(String),
    /// More than were asked for.
    TooMany,
    /// The database's word.
    Database(Source),
}

/// A connection inside a transaction, as statements run on it. Implemented for the transactions of our stores.
pub trait StatementTx: Send + 'static {
    /// Reads at most so many rows.
    fn read<'a>(
        &'a mut self,
        sql: &'static str,
        values: Vec<Bound>,
        rows_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, RowError>>;

    /// Changes rows, and says how many.
    fn write<'a>(
        &'a mut self,
        sql: &'static str,
        values: Vec<Bound>,
    ) -> BoxFuture<'a, Result<u64, Source>>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bind(params: &Value) -> Result<Vec<Bound>, String> {
        let statement = Statement::writes("put", "-").text("a").integer("b").json("c");
        statement.bind(&serde_json::from_value(params.clone()).unwrap())
    }

    #[test]
    fn values_are_bound_by_name_in_the_order_of_the_statement() {
        let values = bind(&json!({ "c": { "x": 1 }, "b": 7, "a": "t" })).unwrap();
        let json = Bound::Text(Some(r#"{"x":1}"#.to_owned()));
        assert_eq!(values, [Bound::Text(Some("t".to_owned())), Bound::Integer(Some(7)), json]);
        assert_eq!(
            bind(&json!({ "a": null, "b": null, "c": null })).unwrap()[0],
            Bound::Text(None)
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (params, why) in [
            (json!({ "a": "t", "b": 7 }), "`put` needs the parameter `c`"),
            (json!({ "a": "t", "b": 7, "c": 1, "d": 1 }), "`put` has no parameter `d`"),
            (json!({ "a": 1, "b": 7, "c": 1 }), "the parameter `a` of `put` takes a text"),
            (
                json!({ "a": "", "b": 1.5, "c": 1 }),
                "the parameter `b` of `put` takes a whole number of 64 bits",
            ),
        ] {
            assert_eq!(bind(&params).unwrap_err(), why);
        }
    }
}
