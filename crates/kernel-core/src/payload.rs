//! Payloads: what can be kept exactly, and what is refused with its place.
//!
//! A payload is JSON text, kept byte for byte, beside the value it stands for. What a reader could not get back
//! exactly never gets in: [`Payload::parse`] refuses it and names the place.
//!
//! Numbers keep value and type: a number without point and exponent is an integer and must fit `i64` or `u64`; any
//! other is the nearest `f64` and must be finite. `-0` is the integer 0: as a number of the language it is equal to
//! 0 and to `-0.0`, and its text stays `-0`.

mod written;

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use written::to_value;

/// Levels of nesting, the value at the bottom counted: at most 127 lists and objects around a scalar. It is the
/// limit up to which every reader that is built on `serde_json` can follow.
pub const PAYLOAD_MAX_DEPTH: usize = 128;
/// Levels of nesting of what the kernel itself stores around payloads: facts, results, signals.
const STORED_MAX_DEPTH: usize = 4 * PAYLOAD_MAX_DEPTH;
/// What no key of a payload begins with: `serde_json` takes an object with such a key for something that stands for
/// another value, and reads that in its place.
const RESERVED_KEYS: &str = "$serde_json::private::";
/// Bytes of an error message or panic text as it is stored.
pub const STORED_TEXT_MAX_BYTES: usize = 8 * 1024;

/// JSON text as it came, and its value.
///
/// ```
/// use surefoot_kernel_core::payload::Payload;
/// let payload = Payload::parse(r#"{ "id": 3544790567247868102 }"#)?;
/// assert_eq!(payload.text(), r#"{ "id": 3544790567247868102 }"#);
/// assert_eq!(payload.value()["id"], 3544790567247868102_i64);
///
/// let error = Payload::parse(r#"{"lines": [{"id": 18446744073709551616}]}"#).unwrap_err();
/// assert_eq!(error.pointer, "/lines/0/id");
/// # Ok::<(), surefoot_kernel_core::payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    text: String,
    value: Value,
}

impl Payload {
    /// Takes JSON text that can be kept exactly.
    pub fn parse(text: &str) -> Result<Self, PayloadError> {
        Ok(Self { value: read(text)?, text: text.to_owned() })
    }

    /// Takes JSON text as bytes; they must be UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PayloadError> {
        let (valid, is_utf8) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, true),
            // The text before the first bad byte leads to its place.
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                (std::str::from_utf8(valid).unwrap_or_default(), false)
            }
        };
        match Self::parse(valid) {
            Ok(payload) if is_utf8 => Ok(payload),
            Ok(_) => Err(PayloadError { pointer: String::new(), rule: Rule::InvalidUtf8 }),
            Err(PayloadError { pointer, rule: Rule::NotJson { .. } }) if !is_utf8 => {
                Err(PayloadError { pointer, rule: Rule::InvalidUtf8 })
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a value as compact JSON. Only its nesting and its keys can be at fault.
    pub fn from_value(value: &Value) -> Result<Self, PayloadError> {
        check(value)?;
        // A `Value` displays as compact JSON.
        Ok(Self { text: value.to_string(), value: value.clone() })
    }

    /// The JSON text, byte for byte as it came.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the text stands for.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The JSON text alone.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// The value alone.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.value
    }
}

/// Whether a value can be kept exactly.
///
/// ```
/// use surefoot_kernel_core::payload::check;
/// let value = serde_json::json!({ "lines": [{ "$serde_json::private::RawValue": "[1]" }] });
/// assert_eq!(check(&value).unwrap_err().pointer, "/lines/0/$serde_json::private::RawValue");
/// ```
///
/// # Errors
/// [`Rule::TooDeep`] or [`Rule::ReservedKey`], and where.
pub fn check(value: &Value) -> Result<(), PayloadError> {
    let Some((mut steps, rule)) = unkept(value, PAYLOAD_MAX_DEPTH) else { return Ok(()) };
    steps.reverse();
    Err(PayloadError { pointer: pointer(&steps), rule })
}

/// Whether an object with this key would be taken for something else.
#[must_use]
pub fn is_reserved_key(key: &str) -> bool {
    key.starts_with(RESERVED_KEYS)
}

/// Reads JSON text that the kernel wrote. Unlike `serde_json::from_str` it can follow a payload of full depth that
/// stands inside a fact, a result or a wake. For stores: use it for everything that holds payloads.
///
/// # Errors
/// The text is not what a kernel wrote.
pub fn from_stored<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    // The reader recurses: what no kernel wrote must not exhaust the stack.
    if nesting(text) > STORED_MAX_DEPTH {
        return Err(serde::de::Error::custom("it is nested deeper than anything a kernel writes"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The deepest nesting of brackets outside of texts.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Why a payload is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadError {
    /// JSON Pointer (RFC 6901) to the value at fault; empty is the whole payload.
    pub pointer: String,
    /// What it breaks.
    pub rule: Rule,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "the payload cannot be kept exactly: {}", self.rule)
        } else {
            let place = text_for_storage(&self.pointer);
            write!(f, "the payload cannot be kept exactly: at `{place}`, {}", self.rule)
        }
    }
}

impl std::error::Error for PayloadError {}

/// What a payload must keep to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// It is JSON.
    #[error("it is not JSON: {message}")]
    NotJson {
        /// What the parser says, with line and column.
        message: String,
    },
    /// A key stands once in an object.
    #[error("the key stands twice in its object; one of the two values would be lost")]
    DuplicateKey,
    /// A key is no name of the reader's own.
    #[error(
        "a key that begins with `{RESERVED_KEYS}` would be taken for something else; name it otherwise"
    )]
    ReservedKey,
    /// Integers fit 64 bits.
    #[error("the integer is outside of 64 bits and would lose digits; keep it as a text")]
    IntegerRange,
    /// Numbers are finite as `f64`.
    #[error("the number is too large for a 64-bit float; keep it as a text")]
    NumberRange,
    /// Numbers are finite.
    #[error("the number is not finite, and JSON has none such; leave it out, or keep it as a text")]
    NotFinite,
    /// Text is Unicode.
    #[error(
        "a text has one half of a surrogate pair (`\\ud800` to `\\udfff`), which is no character"
    )]
    LoneSurrogate,
    /// Bytes are UTF-8.
    #[error("the bytes are not UTF-8")]
    InvalidUtf8,
    /// Nesting is bounded: [`PAYLOAD_MAX_DEPTH`].
    #[error("it is nested deeper than {PAYLOAD_MAX_DEPTH} levels")]
    TooDeep,
}

/// A number of JSON, exactly: an integer of 64 bits, or a finite float. The token must be JSON's.
fn exact_number(token: &str) -> Result<Number, Rule> {
    if token.contains(['.', 'e', 'E']) {
        // The standard library's parser is correctly rounded; serde_json's may be off in the last digit.
        let float: f64 = token.parse().unwrap_or(f64::NAN);
        return Number::from_f64(float).ok_or(Rule::NumberRange);
    }
    let signed = token.parse::<i64>().map(Number::from);
    signed.or_else(|_| token.parse::<u64>().map(Number::from)).map_err(|_| Rule::IntegerRange)
}

/// One step of the way from the root to a value.
enum Step {
    Key(String),
    Index(usize),
}

fn pointer(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        text.push('/');
        match step {
            Step::Key(key) => text.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => {
                let _ = write!(text, "{index}");
            }
        }
    }
    text
}

/// Whether a value is nested deeper than a payload may be.
pub(crate) fn is_too_deep(value: &Value) -> bool {
    check(value).is_err_and(|error| error.rule == Rule::TooDeep)
}

/// The way to the first value below `levels`, or to the first key that is reserved, innermost step first.
fn unkept(value: &Value, levels: usize) -> Option<(Vec<Step>, Rule)> {
    let (is_container, below) = (value.is_array() || value.is_object(), levels.saturating_sub(1));
    if is_container && below == 0 {
        return Some((Vec::new(), Rule::TooDeep));
    }
    let found = |inner: &Value, step: &dyn Fn() -> Step| {
        let (mut steps, rule) = unkept(inner, below)?;
        steps.push(step());
        Some((steps, rule))
    };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| found(item, &|| Step::Index(index)))
        }
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let step = || Step::Key(key.clone());
            if is_reserved_key(key) {
                return Some((vec![step()], Rule::ReservedKey));
            }
            found(member, &step)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn read(text: &str) -> Result<Value, PayloadError> {
    let mut reading =
        Reading { numbers: NumberTokens { rest: text }, steps: Vec::new(), rule: None };
    let mut source = serde_json::Deserializer::from_str(text);
    let result = Node(&mut reading).deserialize(&mut source);
    result.and_then(|value| source.end().map(|()| value)).map_err(|error| reading.explain(&error))
}

/// What the visitor knows beside the value it builds.
struct Reading<'t> {
    /// The numbers of the source that were not visited yet: the parser hands out numbers in the order of the
    /// source, but an integer beyond 64 bits as a float.
    numbers: NumberTokens<'t>,
    /// The way to the fault, innermost step first; each level adds its own while the error passes through it.
    steps: Vec<Step>,
    /// What is broken, if the visitor itself found it.
    rule: Option<Rule>,
}

impl Reading<'_> {
    fn refuse<E: serde::de::Error>(&mut self, rule: Rule) -> E {
        let error = E::custom(&rule);
        self.rule = Some(rule);
        error
    }

    fn explain(mut self, error: &serde_json::Error) -> PayloadError {
        let rule = self.rule.take().unwrap_or_else(|| self.parser_rule(error));
        self.steps.reverse();
        PayloadError { pointer: pointer(&self.steps), rule }
    }

    /// The parser has no codes, so its sentences decide; the tests fail if they ever change.
    fn parser_rule(&mut self, error: &serde_json::Error) -> Rule {
        let message = error.to_string();
        let says = |sentence: &str| message.starts_with(sentence);
        if says("number out of range") {
            let token = self.numbers.next().unwrap_or_default();
            return exact_number(token).err().unwrap_or(Rule::NumberRange);
        }
        if says("lone leading surrogate") || says("unexpected end of hex escape") {
            return Rule::LoneSurrogate;
        }
        if says("recursion limit exceeded") { Rule::TooDeep } else { Rule::NotJson { message } }
    }
}

/// The number tokens of JSON text in their order. It relies on the parser for everything else: all it must know is
/// where strings end.
struct NumberTokens<'t> {
    rest: &'t str,
}

impl<'t> Iterator for NumberTokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            let start = self.rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            let found = self.rest.get(start..)?;
            if let Some(string) = found.strip_prefix('"') {
                self.rest = after_string(string);
                continue;
            }
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
            let end = found.find(|c| !is_part(c)).unwrap_or(found.len());
            let (token, rest) = found.split_at(end);
            self.rest = rest;
            return Some(token);
        }
    }
}

/// What follows the quote that ends a string.
fn after_string(text: &str) -> &str {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        // Both are one byte long, and the character after a backslash is part of the string.
        let is_end = rest.get(at..).is_some_and(|found| found.starts_with('"'));
        let mut behind = rest.get(at + 1..).unwrap_or_default().chars();
        if is_end {
            return behind.as_str();
        }
        behind.next();
        rest = behind.as_str();
    }
    ""
}

/// Builds one value and everything below it.
struct Node<'r, 't>(&'r mut Reading<'t>);

impl<'r> Node<'r, '_> {
    /// The number comes from its token: the parser's own may have lost what it was.
    fn number<E: serde::de::Error>(self) -> Result<Value, E> {
        let token = self.0.numbers.next().unwrap_or_default();
        exact_number(token).map(Value::Number).map_err(|rule| self.0.refuse(rule))
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Value, E> {
        self.number()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Value, E> {
        self.number()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Value, E> {
        self.number()
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            match source.next_element_seed(Node(&mut *self.0)) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Value::Array(items)),
                Err(error) => {
                    self.0.steps.push(Step::Index(items.len()));
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = source.next_key::<String>()? {
            let value = if is_reserved_key(&key) {
                Err(self.0.refuse(Rule::ReservedKey))
            } else if members.contains_key(&key) {
                Err(self.0.refuse(Rule::DuplicateKey))
            } else {
                source.next_value_seed(Node(&mut *self.0))
            };
            match value {
                Ok(value) => members.insert(key, value),
                Err(error) => {
                    self.0.steps.push(Step::Key(key));
                    return Err(error);
                }
            };
        }
        Ok(Value::Object(members))
    }
}

/// Whether every store can keep a text as it is, outside of a payload: PostgreSQL holds no NUL in a text. In a payload it
/// is escaped, and so is no trouble.
///
/// ```
/// use surefoot_kernel_core::payload::is_storable;
/// assert!(is_storable("order:7") && !is_storable("order\0 7"));
/// ```
#[must_use]
pub fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// A text as every store can keep it: NUL becomes the six characters `\u0000`, and what is longer than
/// [`STORED_TEXT_MAX_BYTES`] is cut between two characters and ends with `…`.
///
/// ```
/// use surefoot_kernel_core::payload::text_for_storage;
/// assert_eq!(text_for_storage("a\0b"), r"a\u0000b");
/// assert!(text_for_storage(&"long ".repeat(1_000_000)).ends_with('…'));
/// ```
#[must_use]
pub fn text_for_storage(text: &str) -> String {
    const MARK: &str = "…";
    let mut out = String::new();
    // Where the text ends if the mark must follow.
    let mut cut = 0;
    for char in text.chars() {
        if char == '\0' {
            out.push_str("\\u0000");
        } else {
            out.push(char);
        }
        if out.len() > STORED_TEXT_MAX_BYTES {
            out.truncate(cut);
            out.push_str(MARK);
            break;
        }
        if out.len() <= STORED_TEXT_MAX_BYTES - MARK.len() {
            cut = out.len();
        }
    }
    out
}

#[cfg(test)]
mod tests;
