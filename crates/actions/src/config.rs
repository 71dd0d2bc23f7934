//! What can be told of a config before any run: the checks that a step begins with, on as much of the config as is written.

use std::collections::BTreeMap;

use serde_json::Value;
use surefoot_kernel_core::expr::{Piece, Template};
use surefoot_language::ConfigRemark;

/// Says of the config of a ready-made action what its schema cannot: what a step would refuse whatever its expressions
/// give, and what hardly means what it looks like. Of other actions it says nothing.
///
/// ```
/// # #[cfg(feature = "http")] {
/// use serde_json::json;
/// use surefoot_kernel_core::expr::Template;
/// let config = json!({ "url": "https://a.example", "json": 7 });
/// let said = surefoot_actions::check_config("httpCall", &Template::Literal(config));
/// assert_eq!(said[0].message, "a GET request has no body");
/// # }
/// ```
#[must_use]
pub fn check_config(action: &str, config: &Template) -> Vec<ConfigRemark> {
    let draft = Draft::of(config);
    match action {
        #[cfg(feature = "http")]
        "httpRequest" | "httpCall" => crate::http::judge(&draft),
        #[cfg(feature = "events")]
        "emitEvent" => crate::event::judge_event(&draft),
        #[cfg(feature = "events")]
        "signal" => crate::event::judge_signal(&draft),
        #[cfg(feature = "ai")]
        action if crate::ai::AI_ACTIONS.contains(&action) => crate::ai::judge(action, &draft),
        _ => Vec::new(),
    }
}

/// The action refuses it.
pub(crate) fn refused(pointer: &str, message: impl Into<String>) -> ConfigRemark {
    ConfigRemark { pointer: pointer.to_owned(), message: message.into(), is_refused: true }
}

/// A config as it is written.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// With null in the place of each expression.
    pub(crate) value: Value,
    /// The places of expressions, as JSON pointers, and the text around each of them, a line for each piece.
    pub(crate) computed: BTreeMap<String, String>,
}

impl Draft {
    fn of(config: &Template) -> Self {
        let mut draft = Self::default();
        draft.value = draft.read(config, String::new());
        draft
    }

    fn read(&mut self, template: &Template, pointer: String) -> Value {
        match template {
            Template::Literal(value) => value.clone(),
            Template::Expr(_) => self.compute(pointer, String::new()),
            Template::Text(pieces) => {
                let texts = pieces.iter().map(|piece| match piece {
                    Piece::Text(text) => text.as_str(),
                    Piece::Expr(_) => "\n",
                });
                let text = texts.collect();
                self.compute(pointer, text)
            }
            Template::List(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| self.read(item, format!("{pointer}/{at}"))).collect()
            }
            Template::Object(members) => {
                let read = members
                    .iter()
                    .map(|(name, member)| (name.clone(), self.read(member, below(&pointer, name))));
                Value::Object(read.collect())
            }
        }
    }

    fn compute(&mut self, pointer: String, text: String) -> Value {
        self.computed.insert(pointer, text);
        Value::Null
    }

    #[cfg(feature = "http")]
    pub(crate) fn is_computed(&self, pointer: &str) -> bool {
        self.computed.contains_key(pointer)
    }

    /// With a stand-in for each expression: which place gets which value, or, without one, is left out.
    pub(crate) fn filled(&self, stand_in: impl Fn(&str) -> (String, Option<Value>)) -> Value {
        let mut value = self.value.clone();
        for pointer in self.computed.keys() {
            match stand_in(pointer) {
                (place, Some(known)) => {
                    if let Some(at) = value.pointer_mut(&place) {
                        *at = known;
                    }
                }
                (place, None) => remove(&mut value, &place),
            }
        }
        value
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// The JSON pointer of a member.
pub(crate) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
