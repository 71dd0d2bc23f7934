//! What a confirming answer says: expressions of the author over status, headers and body.

use serde_json::{Value, json};
use surefoot_kernel_core::Timestamp;
use surefoot_kernel_core::expr::{EvalError, Expr, Names, evaluate_condition};
use surefoot_language::{NotAnExpression, parse_expression_over};

use super::answer::HttpAnswer;
use super::input::Confirm;

/// The conditions of a `confirm`, read.
#[derive(Debug)]
pub(super) struct Conditions {
    failed: Option<Expr>,
    succeeded: Expr,
    not_found: Expr,
}

/// What became of the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    Succeeded,
    Failed,
    NotFound,
    /// None of the three, or not to be told.
    Unknown(String),
}

impl Conditions {
    pub(super) fn read(confirm: &Confirm) -> Result<Self, NotAnExpression> {
        Ok(Self {
            failed: confirm.failed.as_deref().map(read).transpose()?,
            succeeded: read(&confirm.succeeded)?,
            not_found: read(&confirm.not_found)?,
        })
    }

    /// A no goes before a yes: whoever wrote both meant the exception.
    pub(super) fn judge(&self, answer: &HttpAnswer) -> Word {
        let seen = Seen::of(answer);
        let mut odd = None;
        let asked = [
            (self.failed.as_ref(), Word::Failed),
            (Some(&self.succeeded), Word::Succeeded),
            (Some(&self.not_found), Word::NotFound),
        ];
        for (condition, word) in asked {
            let Some(condition) = condition else { continue };
            match evaluate_condition(condition, &seen) {
                Ok(true) => return word,
                // What an answer does not have cannot speak for anything.
                Ok(false) | Err(EvalError::Missing { .. }) => {}
                Err(error) => odd = odd.or(Some(error.to_string())),
            }
        }
        let why = odd.map_or_else(String::new, |error| format!(" ({error})"));
        Word::Unknown(format!("the answer with status {} confirms nothing{why}", answer.status))
    }
}

fn read(text: &str) -> Result<Expr, NotAnExpression> {
    parse_expression_over(text, &["status", "headers", "body"])
}

/// What the conditions can see.
struct Seen {
    status: Value,
    headers: Value,
    body: Value,
}

impl Seen {
    fn of(answer: &HttpAnswer) -> Self {
        Self {
            status: json!(answer.status),
            headers: json!(answer.headers),
            body: answer.body.clone(),
        }
    }
}

impl Names for Seen {
    fn root(&self, name: &str) -> Option<&Value> {
        match name {
            "status" => Some(&self.status),
            "headers" => Some(&self.headers),
            "body" => Some(&self.body),
            _ => None,
        }
    }

    /// A confirmation is about the server's state, not about any time.
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::answer::Encoding;
    use super::*;

    fn word(written: Value, status: u16, body: Value) -> Word {
        let confirm: Confirm = serde_json::from_value(written).unwrap();
        let headers = BTreeMap::new();
        let encoding = Encoding::Json;
        let (headers_truncated, truncated) = (false, false);
        let answer = HttpAnswer { status, headers, headers_truncated, body, encoding, truncated };
        Conditions::read(&confirm).unwrap().judge(&answer)
    }

    #[test]
    fn a_status_alone_says_done_or_not_known() {
        let plain = json!({ "url": "https://a" });
        assert_eq!(word(plain.clone(), 200, Value::Null), Word::Succeeded);
        assert_eq!(word(plain.clone(), 404, Value::Null), Word::NotFound);
        assert!(matches!(word(plain, 500, Value::Null), Word::Unknown(_)));
    }

    #[test]
    fn expressions_say_more_and_an_error_says_nothing() {
        let written = json!({
            "url": "https://a",
            "succeeded": "status == 200 && body.state == 'paid'",
            "failed": "body.state == 'declined'",
            "notFound": "status == 404 || size(body.items) == 0",
        });
        assert_eq!(word(written.clone(), 200, json!({"state": "paid"})), Word::Succeeded);
        assert_eq!(word(written.clone(), 200, json!({"state": "declined"})), Word::Failed);
        assert_eq!(word(written.clone(), 200, json!({"state": "?", "items": []})), Word::NotFound);
        assert!(matches!(word(written.clone(), 200, json!({"state": "open"})), Word::Unknown(_)));
        let Word::Unknown(why) = word(written, 200, json!({"state": 1, "items": 7})) else {
            panic!("an error decides nothing")
        };
        assert!(why.contains("status 200"), "{why}");
    }

    #[test]
    fn what_is_no_expression_is_said_with_its_text() {
        let confirm = json!({ "url": "https://a", "succeeded": "status = 200" });
        let confirm: Confirm = serde_json::from_value(confirm).unwrap();
        assert!(Conditions::read(&confirm).unwrap_err().to_string().contains("`status = 200`"));
        let misspelt = json!({ "url": "https://a", "failed": "boddy.state == 'no'" });
        let misspelt: Confirm = serde_json::from_value(misspelt).unwrap();
        assert!(Conditions::read(&misspelt).unwrap_err().to_string().contains("`boddy`"));
    }
}
