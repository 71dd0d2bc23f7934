//! Configs against the JSON Schema of their action, as far as they are literal.
//!
//! The config is validated with a stand-in for every expression. What the validator then says about a place
//! whose value is not known yet is dropped, unless the kinds that the expression can yield settle it.

mod expression;
mod judge;
mod probe;

use std::collections::BTreeMap;
use std::rc::Rc;

use jsonschema::Validator;
use serde_json::Value;

pub(crate) use judge::problems;
pub(crate) use probe::Probe;

/// Compiled schemas by the name of what they belong to.
#[derive(Default)]
pub(crate) struct Validators(BTreeMap<String, Option<Rc<Validator>>>);

impl Validators {
    /// The validator of a schema, or why it is no schema. The second time a broken one is simply absent.
    pub(crate) fn get(
        &mut self,
        name: &str,
        schema: &Value,
    ) -> Result<Option<Rc<Validator>>, String> {
        if let Some(known) = self.0.get(name) {
            return Ok(known.clone());
        }
        let options = jsonschema::options().with_keyword(expression::KEYWORD, expression::keyword);
        let built = options.build(schema).map(Rc::new).map_err(|error| error.to_string());
        self.0.insert(name.to_owned(), built.as_ref().ok().cloned());
        built.map(Some)
    }
}
