//! Values of applications' types, written as JSON: what JSON cannot say is refused with its place.

use serde::ser::{
    self, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Value;

use super::{PayloadError, Rule};

/// Writes a value as JSON. A float that is not finite would become null there, and a wide integer could not be read back:
/// both are refused, with their place.
///
/// ```
/// use surefoot_kernel_core::payload::to_value;
/// assert_eq!(to_value(&[0.5])?, serde_json::json!([0.5]));
/// assert_eq!(to_value(&[0.5, f64::NAN]).unwrap_err().pointer, "/1");
/// # Ok::<(), surefoot_kernel_core::payload::PayloadError>(())
/// ```
///
/// # Errors
/// [`Rule::NotFinite`], [`Rule::IntegerRange`], or [`Rule::NotJson`] with the word of the type.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, PayloadError> {
    let written = serde_json::to_value(value);
    let is_plain = written.as_ref().is_ok_and(|value| !has_null(value));
    let mut probe = Probe::default();
    // Only null may stand for a number that JSON does not have: whatever has none is as it was meant.
    if !is_plain && let Err(Found::Broken(rule)) = value.serialize(&mut probe) {
        return Err(PayloadError { pointer: probe.path, rule });
    }
    let not_json = |error: serde_json::Error| Rule::NotJson { message: error.to_string() };
    written.map_err(|error| PayloadError { pointer: String::new(), rule: not_json(error) })
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
    }
}

/// Looks through a value as it is written, and knows where it is.
#[derive(Default)]
struct Probe {
    /// JSON Pointer.
    path: String,
}

/// What ends the look.
#[derive(Debug, thiserror::Error)]
enum Found {
    #[error("{0}")]
    Broken(Rule),
    /// The type's own word, which the writer has heard as well.
    #[error("{0}")]
    Said(String),
}

impl ser::Error for Found {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Said(message.to_string())
    }
}

impl Probe {
    fn enter(&mut self, token: &str) -> usize {
        let back = self.path.len();
        self.path.push('/');
        self.path.push_str(&token.replace('~', "~0").replace('/', "~1"));
        back
    }

    /// Where it fails, the path stays.
    fn look<T: Serialize + ?Sized>(&mut self, token: &str, value: &T) -> Result<(), Found> {
        let back = self.enter(token);
        value.serialize(&mut *self)?;
        self.path.truncate(back);
        Ok(())
    }

    const fn float(is_finite: bool) -> Result<(), Found> {
        if is_finite { Ok(()) } else { Err(Found::Broken(Rule::NotFinite)) }
    }

    const fn integer(fits: bool) -> Result<(), Found> {
        if fits { Ok(()) } else { Err(Found::Broken(Rule::IntegerRange)) }
    }
}

/// A list, an object, or one of them inside an object with one member.
struct Inside<'p> {
    probe: &'p mut Probe,
    /// What the path is behind it.
    back: usize,
    next: usize,
    key: String,
}

impl Probe {
    const fn inside(&mut self) -> Inside<'_> {
        let back = self.path.len();
        Inside { probe: self, back, next: 0, key: String::new() }
    }

    fn variant(&mut self, name: &str) -> Inside<'_> {
        let back = self.enter(name);
        Inside { probe: self, back, next: 0, key: String::new() }
    }
}

impl Inside<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let index = self.next.to_string();
        self.next = self.next.saturating_add(1);
        self.probe.look(&index, value)
    }

    fn leave(self) {
        self.probe.path.truncate(self.back);
    }
}

macro_rules! nothing_to_find {
    ($($method:ident: $kind:ty),* $(,)?) => {$(
        fn $method(self, _: $kind) -> Result<(), Found> {
            Ok(())
        }
    )*};
}

impl<'p> Serializer for &'p mut Probe {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Inside<'p>;
    type SerializeTuple = Inside<'p>;
    type SerializeTupleStruct = Inside<'p>;
    type SerializeTupleVariant = Inside<'p>;
    type SerializeMap = Inside<'p>;
    type SerializeStruct = Inside<'p>;
    type SerializeStructVariant = Inside<'p>;

    nothing_to_find! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_i128(self, value: i128) -> Result<(), Found> {
        Probe::integer(i64::try_from(value).is_ok() || u64::try_from(value).is_ok())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Found> {
        Probe::integer(u64::try_from(value).is_ok())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Found> {
        Probe::float(value.is_finite())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Found> {
        Probe::float(value.is_finite())
    }

    fn serialize_none(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        self.look(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'p>, Found> {
        Ok(self.inside())
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'p>, Found> {
        Ok(self.inside())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'p>, Found> {
        Ok(self.inside())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'p>, Found> {
        Ok(self.variant(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'p>, Found> {
        Ok(self.inside())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'p>, Found> {
        Ok(self.inside())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'p>, Found> {
        Ok(self.variant(variant))
    }
}

macro_rules! items {
    ($($kind:ident $method:ident),* $(,)?) => {$(
        impl $kind for Inside<'_> {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
                self.item(value)
            }

            fn end(self) -> Result<(), Found> {
                self.leave();
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! members {
    ($($kind:ident),* $(,)?) => {$(
        impl $kind for Inside<'_> {
            type Ok = ();
            type Error = Found;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Found> {
                self.probe.look(key, value)
            }

            fn end(self) -> Result<(), Found> {
                self.leave();
                Ok(())
            }
        }
    )*};
}

members!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Found> {
        let key = serde_json::to_value(key).map_err(ser::Error::custom)?;
        self.key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let key = std::mem::take(&mut self.key);
        self.probe.look(&key, value)
    }

    fn end(self) -> Result<(), Found> {
        self.leave();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Line {
        id: u32,
        share: Option<f32>,
        way: Way,
    }

    #[derive(Serialize)]
    enum Way {
        Nowhere,
        By(f64),
        Both(f64, f64),
        Named { x: f64 },
    }

    fn line(share: Option<f32>, way: Way) -> Line {
        Line { id: 1, share, way }
    }

    #[test]
    fn what_json_can_say_is_written_as_ever() {
        let fine = (line(None, Way::Nowhere), line(Some(0.5), Way::Both(1.0, -2.5)), ());
        let written = to_value(&fine).unwrap();
        assert_eq!(written, serde_json::to_value(&fine).unwrap());
        assert_eq!(written[0], json!({ "id": 1, "share": null, "way": "Nowhere" }));
        assert_eq!(to_value(&Some(u128::from(u64::MAX))).unwrap(), json!(u64::MAX));
    }

    #[test]
    fn what_json_cannot_say_is_refused_with_its_place() {
        let lines =
            |way| BTreeMap::from([("a/b", vec![line(None, Way::Nowhere), line(None, way)])]);
        let place = |way| {
            let PayloadError { pointer, rule } = to_value(&lines(way)).unwrap_err();
            assert_eq!(rule, Rule::NotFinite);
            pointer
        };
        assert_eq!(place(Way::By(f64::NAN)), "/a~1b/1/way/By");
        assert_eq!(place(Way::Both(1.0, f64::INFINITY)), "/a~1b/1/way/Both/1");
        assert_eq!(place(Way::Named { x: f64::NEG_INFINITY }), "/a~1b/1/way/Named/x");
        let share = to_value(&line(Some(f32::NAN), Way::Nowhere)).unwrap_err();
        assert_eq!((share.pointer.as_str(), share.rule), ("/share", Rule::NotFinite));
        assert_eq!(to_value(&f64::NAN).unwrap_err().pointer, "");
        let wide = to_value(&BTreeMap::from([(7, i128::MIN)])).unwrap_err();
        assert_eq!((wide.pointer.as_str(), wide.rule), ("/7", Rule::IntegerRange));
    }

    #[test]
    fn a_type_that_is_no_json_has_its_own_word() {
        let refused = to_value(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
        assert!(matches!(refused.rule, Rule::NotJson { .. }), "{refused}");
    }
}
