//! Values inside types of Rust, and between: how serde reads and writes them.
//!
//! serde has no words for the digits of a number. Of serde_json, and of nothing else, a value asks for the raw text
//! instead, in the way in which its `RawValue` does. What buffers in between, such as `flatten`, `untagged` and
//! internal tags, and what is not JSON, hands over numbers of the machine.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::number::Plain;
use super::read::{Flaw, plain, read};
use super::tree::{RAW, Tree};
use super::{MAX_DEPTH, Number, Object, Value};

/// Deepest value inside a type: what is read from outside, and the levels that rows and patches put around it.
const MAX_INNER_DEPTH: usize = MAX_DEPTH + 16;

/// The value that `what` serialises to.
///
/// # Errors
/// A serialiser that fails, and a map with keys that are no texts, numbers or booleans.
pub fn to_value<T: Serialize>(what: T) -> Result<Value, serde_json::Error> {
    what.serialize(Tree)
}

/// A `T` out of a value.
///
/// # Errors
/// What does not fit.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    // The place in a text that nobody has seen would help nobody.
    serde_json::from_str(&value.to_string()).map_err(|error| de::Error::custom(plain(&error)))
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(inner) => serializer.serialize_bool(*inner),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.plain() {
            Some(Plain::Unsigned(number)) => serializer.serialize_u64(number),
            Some(Plain::Signed(number)) => serializer.serialize_i64(number),
            Some(Plain::Double(number)) => serializer.serialize_f64(number),
            None => {
                let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, AnyValue { raw: true })
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(members) => Ok(members),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(de::Error::invalid_type(unexpected(&other), &"a map"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(number),
            other @ (Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                Err(de::Error::invalid_type(unexpected(&other), &"a JSON number"))
            }
        }
    }
}

fn unexpected(value: &Value) -> de::Unexpected<'_> {
    match value {
        Value::Null => de::Unexpected::Unit,
        Value::Bool(inner) => de::Unexpected::Bool(*inner),
        Value::Number(number) => match number.plain() {
            Some(Plain::Unsigned(number)) => de::Unexpected::Unsigned(number),
            Some(Plain::Signed(number)) => de::Unexpected::Signed(number),
            Some(Plain::Double(number)) => de::Unexpected::Float(number),
            None => de::Unexpected::Other("number"),
        },
        Value::String(text) => de::Unexpected::Str(text),
        Value::Array(_) => de::Unexpected::Seq,
        Value::Object(_) => de::Unexpected::Map,
    }
}

/// A visitor that takes any value. Whether the raw text may come, and then as a map with [`RAW`] as its first name, is
/// known from what was asked for: a name that stands in the input means nothing.
#[derive(Clone, Copy)]
struct AnyValue {
    raw: bool,
}

impl<'de> de::DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self { raw: false })
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self { raw: false })
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, inner: bool) -> Result<Value, E> {
        Ok(Value::Bool(inner))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Self { raw: false })? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Object::new();
        let mut next: Option<Cow<'de, str>> = members.next_key_seed(Text)?;
        if self.raw && next.as_deref() == Some(RAW) {
            let text = members.next_value_seed(Text)?;
            // The text was weighed before it came here; the place of what is left to refuse is added by serde_json.
            return read(&text, MAX_INNER_DEPTH).map_err(|flaw| de::Error::custom(bare(flaw, &text)));
        }
        while let Some(name) = next {
            all.insert(name.into_owned(), members.next_value_seed(Self { raw: false })?);
            next = members.next_key_seed(Text)?;
        }
        Ok(Value::Object(all))
    }
}

/// The flaw in words, without a place: that would be one inside of the value.
fn bare(flaw: Flaw, text: &str) -> String {
    let told = flaw.told(text);
    told.rsplit_once(" at line ").map_or(told.as_str(), |(said, _)| said).to_owned()
}

/// A text, borrowed where that is possible.
struct Text;

impl<'de> de::DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::json::tests::values;
    use crate::json::{json, parse};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        name: String,
        value: Value,
        #[serde(default)]
        members: Object,
        list: Vec<Value>,
        maybe: Option<Value>,
        number: Option<Number>,
    }

    const TEXT: &str = concat!(
        r#"{"name":"n","value":{"z":1.50,"a":12345678901234567890.10,"$serde_json::private::RawValue":"{}"},"#,
        r#""members":{"b":-0,"a":1e+2},"list":[1e+999,null,"é\"\n",{}],"maybe":0.10000000000000000001,"number":7.0}"#
    );

    #[test]
    fn a_value_in_a_type_keeps_its_digits_and_its_order() {
        let holder: Holder = serde_json::from_str(TEXT).unwrap();
        assert_eq!(serde_json::to_string(&holder).unwrap(), TEXT);
        assert_eq!(serde_json::from_slice::<Holder>(TEXT.as_bytes()).unwrap(), holder);
        assert_eq!(serde_json::from_reader::<_, Holder>(TEXT.as_bytes()).unwrap(), holder);
        let value = to_value(&holder).unwrap();
        assert_eq!(value.to_string(), TEXT);
        assert_eq!(from_value::<Holder>(value).unwrap(), holder);
        assert_eq!(serde_json::from_str::<Value>(TEXT).unwrap(), parse(TEXT).unwrap());
        assert_eq!(serde_json::to_string_pretty(&parse("[1.0]").unwrap()).unwrap(), "[\n  1.0\n]");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        #[track_caller]
        fn check<T: serde::de::DeserializeOwned + fmt::Debug>(text: &str, expected: &str) {
            assert_eq!(serde_json::from_str::<T>(text).unwrap_err().to_string(), expected);
        }
        check::<Object>("5", "invalid type: integer `5`, expected a map");
        check::<BTreeMap<String, Object>>(
            "{\"a\":\n \"x\"}",
            "invalid type: string \"x\", expected a map at line 2 column 5",
        );
        check::<BTreeMap<String, Value>>("{\"a\":\"\\ud800\"}", "unexpected end of hex escape at line 1 column 14");
        check::<BTreeMap<String, Number>>(
            "{\"a\":[]}",
            "invalid type: sequence, expected a JSON number at line 1 column 8",
        );
        check::<Vec<Value>>("[tru]", "expected ident at line 1 column 5");
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        check::<Value>(&nested(MAX_INNER_DEPTH + 1), "nested deeper than 528 levels");
        let deepest = nested(MAX_INNER_DEPTH);
        assert_eq!(serde_json::from_str::<Value>(&deepest).unwrap().to_string(), deepest);
        let error = from_value::<Vec<u8>>(json!([1, "x"])).unwrap_err();
        assert_eq!(error.to_string(), "invalid type: string \"x\", expected u8");
    }

    #[test]
    fn other_formats_hand_over_numbers_of_the_machine() {
        let members = json!({"a": 1, "b": [-1, 1.5, true, null, "t"], "c": {"d": 18_446_744_073_709_551_615_u64}});
        let theirs = serde_json::Value::from(members.clone());
        // serde_json's own value answers as its text does; a map of the standard library has no raw text.
        assert_eq!(serde_json::from_value::<Value>(theirs.clone()).unwrap(), members);
        let map: BTreeMap<String, serde_json::Value> = serde_json::from_value(theirs).unwrap();
        let map = de::value::MapDeserializer::<_, serde_json::Error>::new(map.into_iter());
        assert_eq!(Value::deserialize(map).unwrap(), members);
    }

    #[test]
    fn what_is_buffered_keeps_its_shape() {
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            A { value: Value },
        }
        let Tagged::A { value } = serde_json::from_str(r#"{"value":{"b":[1.5,2],"a":"x"},"kind":"A"}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"b":[1.5,2],"a":"x"}"#);
    }

    /// serde_json asks for its raw text by this name.
    #[test]
    fn raw_text_is_asked_for_as_serde_json_does() {
        let mut written = Vec::new();
        let raw = RawValue::from_string("1.0".into()).unwrap();
        assert_eq!(to_value(&raw).unwrap().to_string(), "1.0");
        raw.serialize(&mut serde_json::Serializer::new(&mut written)).unwrap();
        assert_eq!(written, b"1.0");
        // Without the name, the digits would be lost.
        assert_eq!(serde_json::from_str::<Value>("1.00").unwrap().to_string(), "1.00");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn every_way_keeps_digits_and_order(value in values()) {
            let text = value.to_string();
            let holder = Holder {
                name: String::new(),
                value: value.clone(),
                members: Object::from([("m".to_owned(), value.clone())]),
                list: vec![value.clone(), value.clone()],
                maybe: Some(value.clone()).filter(|value| !value.is_null()),
                number: None,
            };
            prop_assert_eq!(parse(&text).unwrap().to_string(), &text[..]);
            prop_assert_eq!(serde_json::to_string(&value).unwrap(), &text[..]);
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap().to_string(), &text[..]);
            prop_assert_eq!(to_value(&value).unwrap().to_string(), &text[..]);
            let written = serde_json::to_string(&holder).unwrap();
            let back: Holder = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), &written[..]);
            prop_assert_eq!(to_value(&holder).unwrap().to_string(), written);
        }
    }
}
