//! What only the author of a workflow may say: the names of its secrets, and by what `confirm` judges.
//!
//! Whatever comes out of an expression is data, of an event, a server or a model: it must not choose a secret to be sent,
//! nor say when something counts as done.

use serde_json::Value;
use surefoot_language::StepCx;

use super::body::reference;
use super::input::{Argument, Confirm, HttpInput, SUCCEEDED_DEFAULT, Text, UNKNOWN_DEFAULT};
use super::policy::Forbidden;
use crate::config::below;

/// What stands in a `confirm` for the key that was sent.
pub(super) const PLACEHOLDER: &str = "{effectKey}";

/// Refuses secrets that data names.
pub(super) fn check_written(cx: &StepCx, input: &HttpInput) -> Result<(), Forbidden> {
    named(input).iter().try_for_each(|named| named.check(cx))
}

/// The same for the request that tells what became of another one, and for what it is judged by.
pub(super) fn check_confirm_written(cx: &StepCx, confirm: &Confirm) -> Result<(), Forbidden> {
    named_by_confirm(confirm).iter().try_for_each(|named| named.check(cx))?;
    let conditions = [
        ("succeeded", Some(&confirm.succeeded), SUCCEEDED_DEFAULT),
        ("failed", confirm.failed.as_ref(), ""),
        ("notFound", Some(&confirm.not_found), UNKNOWN_DEFAULT),
    ];
    for (name, text, default) in conditions {
        let is_said = text.is_some_and(|text| text != default);
        if is_said && !cx.is_written(&format!("/confirm/{name}")) {
            return Err(Forbidden::NotAllowed(format!(
                "`confirm.{name}` comes out of an expression: write the condition as it is, without `${{{{ }}}}`"
            )));
        }
    }
    for (pointer, text) in texts_of(confirm) {
        if cx.is_written(&pointer)
            && let Some(why) = misspelt(text)
        {
            return Err(Forbidden::Malformed(why));
        }
    }
    Ok(())
}

/// The texts of a `confirm` in which the key that was sent may stand.
fn texts_of(confirm: &Confirm) -> impl Iterator<Item = (String, &str)> {
    let query = confirm.query.iter().filter_map(|(name, argument)| match argument {
        Argument::Plain(text) => Some((below("/confirm/query", name), text.as_str())),
        Argument::Flag(_) | Argument::Number(_) | Argument::Secret(_) => None,
    });
    query.chain([("/confirm/url".to_owned(), confirm.url.as_str())])
}

/// What is wrong with a text that an author wrote, if a word in braces in it is not the key that was sent.
pub(super) fn misspelt(text: &str) -> Option<String> {
    let mut parts = text.split('{');
    parts.next();
    let words = parts.filter_map(|part| Some(part.split_once('}')?.0));
    let is_word = |word: &&str| {
        !word.is_empty() && word.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    };
    let odd = words.filter(is_word).find(|word| format!("{{{word}}}") != PLACEHOLDER)?;
    Some(format!("nothing is filled in for `{{{odd}}}`: the key that was sent is `{PLACEHOLDER}`"))
}

/// A secret, and where in the config it is named.
pub(super) struct Named {
    pub(super) pointer: String,
    pub(super) secret: String,
}

impl Named {
    fn check(&self, cx: &StepCx) -> Result<(), Forbidden> {
        let Self { pointer, secret } = self;
        if cx.is_written(pointer) && cx.is_written(&format!("{pointer}/secret")) {
            return Ok(());
        }
        Err(Forbidden::NotAllowed(format!(
            "the secret `{secret}` at `{pointer}` is named by data and not by the workflow: write `secret:` and its name where it belongs, without an expression"
        )))
    }
}

/// Every secret that a request names.
pub(super) fn named(input: &HttpInput) -> Vec<Named> {
    let mut named = Vec::new();
    named.extend(in_headers("/headers", &input.headers));
    named.extend(in_query("/query", &input.query));
    if let Some(json) = &input.json {
        in_json("/json".to_owned(), json, &mut named);
    }
    named
}

/// The same for the request that tells what became of another one.
pub(super) fn named_by_confirm(confirm: &Confirm) -> Vec<Named> {
    let headers = in_headers("/confirm/headers", &confirm.headers);
    headers.chain(in_query("/confirm/query", &confirm.query)).collect()
}

fn in_headers<'a>(
    place: &'a str,
    headers: impl IntoIterator<Item = (&'a String, &'a Text)>,
) -> impl Iterator<Item = Named> {
    headers.into_iter().filter_map(move |(name, text)| match text {
        Text::Secret(it) => Some(at(place, name, &it.secret)),
        Text::Plain(_) => None,
    })
}

fn in_query<'a>(
    place: &'a str,
    query: impl IntoIterator<Item = (&'a String, &'a Argument)>,
) -> impl Iterator<Item = Named> {
    query.into_iter().filter_map(move |(name, argument)| match argument {
        Argument::Secret(it) => Some(at(place, name, &it.secret)),
        Argument::Plain(_) | Argument::Flag(_) | Argument::Number(_) => None,
    })
}

fn in_json(pointer: String, value: &Value, found: &mut Vec<Named>) {
    match value {
        Value::Object(members) => match reference(members) {
            Some(it) => found.push(Named { pointer, secret: it.secret }),
            None => {
                for (name, value) in members {
                    in_json(below(&pointer, name), value, found);
                }
            }
        },
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                in_json(format!("{pointer}/{at}"), item, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn at(place: &str, name: &str, secret: &str) -> Named {
    Named { pointer: below(place, name), secret: secret.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_braces_that_is_not_the_key_is_misspelt() {
        for text in ["", "{effectKey}", "a/{effectKey}?b={}", "{\"a\": 1}", "{a b}", "}{", "{ä}"] {
            assert_eq!(misspelt(text), None, "{text}");
        }
        for text in ["{effectkey}", "a{effectKey}b{key}", "{{effect_key}}", "{1}"] {
            assert!(misspelt(text).unwrap().contains("`{effectKey}`"), "{text}");
        }
    }
}
