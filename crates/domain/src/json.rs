//! JSON as hooks exchange it: exact digits, one notion of equality, one canonical form.

use std::sync::{Arc, OnceLock};

use serde::Serialize;

mod canonical;
mod count;
mod diff;
mod foreign;
mod literal;
mod members;
mod number;
mod object;
mod read;
mod tree;
mod twin;
mod typed;
mod value;
mod write;

pub use canonical::canonical_members;
pub use count::holds_more_than;
pub use diff::diff;
pub use members::Members;
pub use number::{NoNumber, Number};
pub use object::Iter;
pub use read::parse;
pub use twin::{NotAlike, parse_alike};
pub use typed::{from_value, to_value};
pub use value::{Object, Place, Value};
pub use write::canonical;

pub use crate::json_value as json;
use write::{write_object, write_string};

/// Deepest nesting of arrays and objects that is read from outside.
/// A bound for recursion: real messages stay below a tenth of it.
pub const MAX_DEPTH: usize = 512;

/// Most values of one request or event that is read from outside: a tree of them takes a hundred times the bytes of small
/// ones. A conversation of ten thousand messages has fewer, and long texts in it are one value each.
pub const MAX_VALUES: usize = 200_000;

/// Whether two values are equal regardless of member order and of how a number is spelled,
/// as long as both spellings denote the same double.
pub fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || same_double(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
            _,
        ) => false,
    }
}

/// Numbers beyond the doubles denote none, so two of them are equal only in their digits.
fn same_double(a: &Number, b: &Number) -> bool {
    a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}

/// The deepest nesting of brackets outside strings; JSON or not.
pub fn depth(text: &[u8]) -> usize {
    let (mut level, mut deepest, mut at) = (0_usize, 0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            b'"' => at = end_of_string(text, at + 1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// The number of bytes of a string that are looked at one by one before a search is set up: where quotes and
/// backslashes stand closer than this, a search costs more than it saves.
const NEAR: usize = 4;

/// Index of the quote that closes the string whose first byte is at `from`; the length of `text`, JSON or not, where none
/// does.
pub fn end_of_string(text: &[u8], mut from: usize) -> usize {
    while let Some(rest) = text.get(from..) {
        let near = rest.iter().take(NEAR).position(|byte| matches!(byte, b'"' | b'\\'));
        let Some(found) = near.or_else(|| memchr::memchr2(b'"', b'\\', rest)) else { break };
        if rest[found] == b'"' {
            return from + found;
        }
        // A backslash takes the next byte with it.
        from += found + 2;
    }
    text.len()
}

/// A value that is written as JSON at most once, however many hooks and calls send it.
///
/// Cloning shares both the value and its written form, so a long conversation
/// costs one serialisation in its life and a copy of pointers per round.
pub struct Rendered<T>(Arc<Inner<T>>);

struct Inner<T> {
    value: T,
    json: OnceLock<Box<[u8]>>,
}

impl<T> Rendered<T> {
    /// Takes `value`; its JSON is written when first asked for.
    pub fn new(value: T) -> Self {
        Self(Arc::new(Inner { value, json: OnceLock::new() }))
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.0.value
    }

    /// Whether both are the very same shared value.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Serialize> Rendered<T> {
    /// The value as compact JSON, which is UTF-8.
    pub fn json(&self) -> &[u8] {
        self.json_by_way_of(&mut Vec::new())
    }

    /// The value as JSON; if it has to be written, then into `scratch` first. Where many values are written one after
    /// the other, none of them has to let its text grow.
    pub fn json_by_way_of(&self, scratch: &mut Vec<u8>) -> &[u8] {
        self.0.json.get_or_init(|| {
            scratch.clear();
            serde_json::to_writer(&mut *scratch, &self.0.value)
                .expect("our own types have string keys and no failing serialiser");
            scratch.as_slice().into()
        })
    }
}

impl<T> Clone for Rendered<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Rendered<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Rendered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is(other) || self.0.value == other.0.value
    }
}

impl<T> From<T> for Rendered<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Serialize> Serialize for Rendered<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(serializer)
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Rendered<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_compare_as_doubles() {
        let a: Value = serde_json::from_str(r#"{"b":1.0,"a":12345678901234567890.10}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":12345678901234567890.1,"b":1}"#).unwrap();
        assert!(same_value(&a, &b));
        assert_eq!(canonical(&a), r#"{"a":12345678901234567890.10,"b":1.0}"#);
        assert_ne!(canonical(&a), canonical(&b));
    }

    #[test]
    fn canonical_form_sorts_by_utf16_units() {
        let v: Value = serde_json::from_str("{\"\u{e000}\":1,\"\u{10000}\":2,\"a\":\"\\u001f\\n\"}").unwrap();
        assert_eq!(canonical(&v), "{\"a\":\"\\u001f\\n\",\"\u{10000}\":2,\"\u{e000}\":1}");
    }

    #[test]
    fn numbers_beyond_the_doubles_are_equal_only_in_their_digits() {
        let value = |text: &str| parse(text).unwrap();
        assert!(same_value(&value("1e999"), &value("1e999")));
        assert!(!same_value(&value("1e999"), &value("2e999")));
        assert!(!same_value(&value("1e999"), &value("-1e999")));
        assert!(same_value(&value("1e2"), &value("100.0")));
    }

    #[test]
    fn text_is_read_to_the_bound_and_no_deeper() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH + 1)).unwrap_err(), "nested deeper than 512 levels");
        assert_eq!(canonical(&parse(&nested(MAX_DEPTH)).unwrap()), nested(MAX_DEPTH));
        assert!(parse("[1] 2").is_err());
        assert!(parse(&"[".repeat(1_000_000)).is_err());
    }

    /// The depth as one would write it without a thought for speed.
    fn naive_depth(text: &[u8]) -> usize {
        let (mut level, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
        for byte in text {
            match (quoted, *byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (true, b'"') => quoted = false,
                (false, b'"') => quoted = true,
                (false, b'[' | b'{') => {
                    level += 1;
                    deepest = deepest.max(level);
                }
                (false, b']' | b'}') => level = level.saturating_sub(1),
                (true | false, _) => {}
            }
        }
        deepest
    }

    /// This value with the members of every object the other way round.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(members) => members.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    /// This value with one more zero behind every number that has a fraction, another digit before every other.
    fn respelled(value: &Value, spell: fn(&str) -> String) -> Value {
        match value {
            Value::Number(n) => serde_json::from_str(&spell(n.as_str())).unwrap(),
            Value::Array(items) => items.iter().map(|item| respelled(item, spell)).collect(),
            Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), respelled(v, spell))).collect(),
            Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
        }
    }

    fn has_number(value: &Value) -> bool {
        match value {
            Value::Number(_) => true,
            Value::Array(items) => items.iter().any(has_number),
            Value::Object(members) => members.values().any(has_number),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }

    /// Any values of few members.
    pub(crate) fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?".prop_map(|text| serde_json::from_str(&text).unwrap()),
            "[a-c\"\\\\\u{1f}\u{e000}\u{10000}]{0,3}".prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            let name = "[a-c\u{e000}\u{10000}]{0,2}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((name, inner), 0..4).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn cases(cases: u32) -> ProptestConfig {
        let (rng_seed, failure_persistence) = (RngSeed::Fixed(0), None);
        ProptestConfig { cases, rng_seed, failure_persistence, ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(cases(10_000))]

        #[test]
        fn depth_is_what_a_naive_reader_counts(text in "[\\[\\]{}\"\\\\a]{0,60}", pad in 0_usize..40) {
            let padded = format!("{{\"{}{text}", "a".repeat(pad));
            prop_assert_eq!(depth(text.as_bytes()), naive_depth(text.as_bytes()));
            prop_assert_eq!(depth(padded.as_bytes()), naive_depth(padded.as_bytes()));
        }
    }

    proptest! {
        #![proptest_config(cases(1_000))]

        #[test]
        fn the_order_of_members_has_no_part_in_the_canonical_form(value in values()) {
            let other = reversed(&value);
            prop_assert!(same_value(&value, &other));
            prop_assert_eq!(canonical(&value), canonical(&other));
            prop_assert_eq!(parse(&canonical(&value)).unwrap(), value);
        }

        #[test]
        fn any_digit_changes_the_canonical_form(value in values()) {
            let longer = respelled(&value, |text| format!("{text}{}", if text.contains('.') { "0" } else { ".0" }));
            prop_assert!(same_value(&value, &longer));
            prop_assert_eq!(canonical(&value) == canonical(&longer), !has_number(&value));
            let finer = respelled(&value, |text| format!("{text}{}1", if text.contains('.') { "" } else { "." }));
            prop_assert_eq!(canonical(&value) == canonical(&finer), !has_number(&value));
        }

        #[test]
        fn equal_canonical_forms_are_equal_values(a in values(), b in values()) {
            prop_assert_eq!(canonical(&a) == canonical(&b), a == b);
        }
    }

    #[test]
    fn a_rendered_value_is_written_once() {
        let r = Rendered::new(vec![1, 2]);
        let shared = r.clone();
        assert!(std::ptr::eq(r.json(), shared.json()));
    }
}
