//! Values that are written as text: names, ids, spans, lists.

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use surefoot_kernel_core::{
    BadName, Clock, EmitError, Micros, NAME_MAX_CHARS, Timestamp, check_event_type, check_tag,
};

/// One that has to be there.
pub(crate) fn one<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// One that may be absent.
pub(crate) fn maybe<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = Option::<Cow<str>>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

/// How many rows a page has: 1 to 1,000, and 50 where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) u32);

impl Limit {
    const DEFAULT: u32 = 50;
    const MAX: u32 = 1_000;
}

impl Default for Limit {
    fn default() -> Self {
        Self(Self::DEFAULT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = u32::deserialize(deserializer)?;
        if (1..=Self::MAX).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(D::Error::custom(format!("{limit} is not 1 to {}", Self::MAX)))
        }
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer", "minimum": 1, "maximum": Self::MAX, "default": Self::DEFAULT
        })
    }
}

/// Several, separated by commas. `S` is the shape of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T, S>(pub(crate) Vec<T>, PhantomData<S>);

impl<T, S> Default for List<T, S> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<'de, T: FromStr<Err: Display>, S> Deserialize<'de> for List<T, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let each = text.split(',').map(str::parse).collect::<Result<_, _>>();
        each.map(|each| Self(each, PhantomData)).map_err(D::Error::custom)
    }
}

impl<T, S: JsonSchema> JsonSchema for List<T, S> {
    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", S::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array", "items": generator.subschema_for::<S>(), "minItems": 1
        })
    }
}

/// The shape of the name of an app, a scope or a workflow. What stays unsaid is that characters which cannot be seen are
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameShape;

impl JsonSchema for NameShape {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A name: 1 to 200 characters that can be seen, without white space at its ends.",
            "type": "string",
            "minLength": 1,
            "maxLength": NAME_MAX_CHARS,
            "pattern": "^\\S(.*\\S)?$",
        })
    }
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) String);

impl FromStr for Tag {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        check_tag(text).map(|()| Self(text.to_owned()))
    }
}

/// The type of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventType(pub(crate) String);

impl FromStr for EventType {
    type Err = EmitError;

    fn from_str(text: &str) -> Result<Self, EmitError> {
        check_event_type(text).map(|()| Self(text.to_owned()))
    }
}

impl JsonSchema for EventType {
    fn schema_name() -> Cow<'static, str> {
        "EventType".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 200 })
    }
}

/// An instant, or how long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    At(Timestamp),
    Ago(Micros),
}

impl Since {
    pub(crate) fn instant(self, clock: &dyn Clock) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(span) => {
                Timestamp::from_micros(clock.wall().micros().saturating_sub(span.get()))
            }
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let instant = text.parse().map(Self::At);
        instant.or_else(|_| text.parse().map(Self::Ago)).map_err(|_| {
            format!("`{text}` is neither an instant like `2026-11-29T16:06:45Z` nor how long ago, like `2h`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_an_instant_or_a_span() {
        assert_eq!("3s".parse(), Ok(Since::Ago(Micros::from_secs(3))));
        let at = "1970-01-01T00:00:01Z".parse();
        assert_eq!(at, Ok(Since::At(Timestamp::from_micros(1_000_000))));
        assert!("yesterday".parse::<Since>().is_err());
    }
}
