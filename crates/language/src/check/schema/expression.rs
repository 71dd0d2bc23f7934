//! A keyword of our own: a text that is an expression, which an action evaluates later. It is checked where the author is.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use crate::expression::parse_expression_over;

/// Its value is the list of names that the expression may read.
pub(super) const KEYWORD: &str = "expressionOver";

struct ExpressionOver(Vec<String>);

impl ExpressionOver {
    fn wrong(&self, instance: &Value) -> Option<String> {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let parsed = parse_expression_over(instance.as_str()?, &names);
        parsed.err().map(|error| error.to_string())
    }
}

impl<'i> Keyword<'i> for ExpressionOver {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.wrong(instance).map_or(Ok(()), |wrong| Err(ValidationError::custom(wrong)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.wrong(instance).is_none()
    }
}

pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let names = value.as_array().into_iter().flatten();
    let names = names.filter_map(|name| name.as_str().map(str::to_owned)).collect();
    Ok(Box::new(ExpressionOver(names)))
}
