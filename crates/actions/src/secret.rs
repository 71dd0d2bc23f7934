//! Secrets by reference: a workflow names them, a port resolves them at the time of the call, and nothing keeps them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use surefoot_kernel_core::BoxFuture;

/// What stands where a secret stood.
pub const REDACTED: &str = "***";

/// A value that is shown nowhere: it has no `Display`, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text out of sight.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this answers for where it goes.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// The place where secrets are kept could not be asked. Asking again may help.
#[derive(Debug, thiserror::Error)]
#[error("the secret `{name}` could not be read: {why}")]
pub struct SecretError {
    /// Which one.
    pub name: String,
    /// For people. Must not hold any part of a secret.
    pub why: String,
}

/// Where secrets come from. Asked for each call, so that a rotated one is used at once.
pub trait Secrets: Send + Sync {
    /// The secret of a name; `None` if there is none. Cancel safe.
    fn secret<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;
}

/// Secrets of the process's environment: `SUREFOOT_SECRET_NAME`, or the file that `SUREFOOT_SECRET_NAME_FILE` names.
/// One line break at the end of a file is not part of the secret.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvSecrets;

impl Secrets for EnvSecrets {
    fn secret<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(of_environment(name)))
    }
}

fn of_environment(name: &str) -> Result<Option<Secret>, SecretError> {
    // Names of other variables must not become readable by a trick with the name.
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(None);
    }
    let variable = format!("SUREFOOT_SECRET_{name}");
    if let Ok(text) = std::env::var(&variable) {
        return Ok(Some(Secret::new(text)).filter(|secret| !secret.0.is_empty()));
    }
    let Some(path) = std::env::var_os(format!("{variable}_FILE")) else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|error| SecretError {
        name: name.to_owned(),
        why: format!("the file that `{variable}_FILE` names: {}", error.kind()),
    })?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(Secret::new(text)).filter(|secret| !secret.0.is_empty()))
}

/// Secrets that the program holds itself: for tests, and for programs that have them from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct StaticSecrets(BTreeMap<String, Secret>);

impl StaticSecrets {
    /// One more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, secret: impl Into<String>) -> Self {
        self.0.insert(name.into(), Secret::new(secret));
        self
    }
}

impl Secrets for StaticSecrets {
    fn secret<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(Ok(self.0.get(name).cloned())))
    }
}

/// Takes the secrets of one call out of what is recorded of it: a server may well repeat what it was sent. They are found
/// as they are, and as they are written in a URL, in a form and in JSON, each character in its own way.
#[derive(Clone, Default)]
pub struct Redactor(Vec<String>);

impl Redactor {
    /// Hides this one too.
    pub fn hide(&mut self, secret: &Secret) {
        let text = secret.expose();
        if text.is_empty() || self.0.iter().any(|known| known == text) {
            return;
        }
        self.0.push(text.to_owned());
        // Longest first: a shorter one may be a part of it.
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// The text without them.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let found = self.0.iter().find_map(|secret| written(secret, rest));
            match found {
                Some(_) => clean.push_str(REDACTED),
                None => clean.push(char),
            }
            rest = rest.get(found.unwrap_or(char.len_utf8())..).unwrap_or_default();
        }
        clean
    }

    /// The bytes without them, where they stand as they are.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((first, behind)) = rest.split_first() {
            match self.0.iter().find_map(|secret| rest.strip_prefix(secret.as_bytes())) {
                Some(behind) => {
                    clean.extend_from_slice(REDACTED.as_bytes());
                    rest = behind;
                }
                None => {
                    clean.push(*first);
                    rest = behind;
                }
            }
        }
        clean
    }

    /// The value without them, also not in keys.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        if self.0.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let clean = members.into_iter().map(|(key, it)| (self.text(&key), self.value(it)));
                Value::Object(clean.collect::<Map<_, _>>())
            }
            Value::Number(number) => {
                let text = number.to_string();
                let clean = self.text(&text);
                if clean == text { Value::Number(number) } else { Value::String(clean) }
            }
            Value::Null | Value::Bool(_) => value,
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.0.len())
    }
}

/// How much of the text's beginning is the secret, in whichever way each of its characters is written.
fn written(secret: &str, text: &str) -> Option<usize> {
    let mut chars = secret.chars();
    // Nearly every place is over with its first character.
    let mut ends: Vec<usize> = forms(chars.next()?, text).into_iter().flatten().collect();
    if ends.is_empty() {
        return None;
    }
    for char in chars {
        let mut next: Vec<usize> = Vec::new();
        for end in ends {
            let rest = text.get(end..).unwrap_or_default();
            next.extend(forms(char, rest).into_iter().flatten().map(|length| end + length));
        }
        if next.is_empty() {
            return None;
        }
        next.sort_unstable();
        next.dedup();
        ends = next;
    }
    ends.into_iter().max()
}

/// The lengths of what may stand for a character at the beginning of a text.
fn forms(char: char, text: &str) -> [Option<usize>; 5] {
    let begins = |form: &str| {
        let begin = text.get(..form.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(form)).then_some(form.len())
    };
    let itself = text.starts_with(char).then_some(char.len_utf8());
    if !matches!(text.as_bytes().first(), Some(b'%' | b'+' | b'\\')) {
        return [itself, None, None, None, None];
    }
    let (mut bytes, mut units) = ([0; 4], [0; 2]);
    let in_url: String =
        char.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02x}")).collect();
    let in_form = if char == ' ' { begins("+") } else { None };
    let unicode: String =
        char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    let short = match char {
        '"' => begins("\\\""),
        '\\' => begins("\\\\"),
        '/' => begins("\\/"),
        '\n' => begins("\\n"),
        '\r' => begins("\\r"),
        '\t' => begins("\\t"),
        '\u{8}' => begins("\\b"),
        '\u{c}' => begins("\\f"),
        _ => None,
    };
    [itself, begins(&in_url), in_form, begins(&unicode), short]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_shown_nowhere() {
        let secret = Secret::new("canary-7");
        assert_eq!(format!("{secret:?}"), "Secret(***)");
        let secrets = StaticSecrets::default().with("KEY", "canary-7");
        assert!(!format!("{secrets:?}").contains("canary"));
    }

    #[test]
    fn every_form_of_a_secret_is_hidden() {
        let mut redactor = Redactor::default();
        redactor.hide(&Secret::new("s p\"1/2"));
        redactor.hide(&Secret::new("31415926"));
        for form in [
            "s p\"1/2",
            "s%20p%221%2F2",
            "s+p%221%2f2",
            "s%20p%221/2",
            "s p\\\"1/2",
            "s p\\\"1\\/2",
            "\\u0073\\u0020p\\u00221\\u002F2",
            "%73 p\"1/2",
        ] {
            assert_eq!(redactor.text(&format!("ä{form}ü{form}")), "ä***ü***", "{form}");
        }
        assert_eq!(redactor.bytes(b"\xffs p\"1/2s p"), b"\xff***s p");
        let echoed = json!({ "31415926": ["x31415926y", 31_415_926, 5, null, true] });
        assert_eq!(redactor.value(echoed), json!({ "***": ["x***y", "***", 5, null, true] }));
        assert_eq!(format!("{redactor:?}"), "Redactor(2)");
        let mut odd = Redactor::default();
        odd.hide(&Secret::new("%25~ü\\"));
        for form in ["%25~ü\\", "%2525%7E%c3%BC%5C", "%25~\\u00FC\\\\"] {
            assert_eq!(odd.text(&format!("x{form}y")), "x***y", "{form}");
        }
    }

    #[test]
    fn a_name_cannot_reach_other_variables() {
        assert_eq!(of_environment("../HOME").unwrap(), None);
        assert_eq!(of_environment("NOT_THERE").unwrap(), None);
    }
}
