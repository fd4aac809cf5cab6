//! JSON as hooks exchange it: exact digits, one notion of equality, one canonical form.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Map, Number, Value};

mod members;

pub use members::Members;

/// A JSON object in the order in which it was written.
pub type Object = Map<String, Value>;

/// Deepest nesting of arrays and objects that is read from outside.
/// A bound for recursion: real messages stay below a tenth of it.
pub const MAX_DEPTH: usize = 512;

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

/// Parses JSON text of at most [`MAX_DEPTH`] levels; every number keeps its digits.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn parse(text: &str) -> Result<Value, String> {
    if depth(text.as_bytes()) > MAX_DEPTH {
        return Err(format!("nested deeper than {MAX_DEPTH} levels"));
    }
    if let Some(name) = reserved_name(text) {
        return Err(format!("the member name `{name}` is reserved"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    // The depth is bounded above, beyond serde_json's own 128.
    reader.disable_recursion_limit();
    let value = serde::Deserialize::deserialize(&mut reader).map_err(|e| e.to_string())?;
    reader.end().map_err(|e| e.to_string())?;
    Ok(value)
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

/// How many bytes of a string are looked at one by one before a search is set up: where quotes and backslashes
/// stand closer than this, a search costs more than it saves.
const NEAR: usize = 4;

/// How the member names begin by which serde_json marks a number or a raw value inside itself. An object of a hook
/// or a model that has one would turn into another value.
const RESERVED: &str = "$serde_json::private::";

/// The first member name in `text` that begins as the reserved ones do, however it is spelled.
fn reserved_name(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    // Without the words themselves and without an escape that could spell them, no name needs a look.
    let marks = [RESERVED.as_bytes(), b"\\u"];
    if marks.iter().all(|mark| memchr::memmem::find(bytes, mark).is_none()) {
        return None;
    }
    let mut at = 0;
    loop {
        let start = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        let end = end_of_string(bytes, start + 1);
        let after = bytes.get(end + 1..)?.iter().find(|byte| !byte.is_ascii_whitespace());
        if after == Some(&b':') {
            // What is no string is left to the parser.
            let name = serde_json::from_str::<String>(&text[start..=end]).unwrap_or_default();
            if name.starts_with(RESERVED) {
                return Some(name);
            }
        }
        at = end + 1;
    }
}

/// Index of the quote that closes the string whose first byte is at `from`.
fn end_of_string(text: &[u8], mut from: usize) -> usize {
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

/// RFC 8785 canonical form, except that each number keeps the digits it came with.
///
/// Two values that differ in any digit have different forms, so a digest over it separates them.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => {
            out.push_str(n.as_str());
        }
        Value::String(s) => write_string(s, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object(members: &Object, out: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    // RFC 8785 3.2.3: member names sort by their UTF-16 code units. Of ASCII, these are the bytes.
    if sorted.iter().all(|(name, _)| name.is_ascii()) {
        sorted.sort_unstable_by_key(|(name, _)| *name);
    } else {
        sorted.sort_by_cached_key(|(name, _)| name.encode_utf16().collect::<Vec<u16>>());
    }
    out.push('{');
    for (i, (name, value)) in sorted.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write_canonical(value, out);
    }
    out.push('}');
}

fn write_string(text: &str, out: &mut String) {
    // Most texts stand as they are.
    if !text.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    // serde_json escapes exactly what RFC 8785 3.2.2.2 asks for.
    out.push_str(&serde_json::to_string(text).expect("a string always serialises"));
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

    /// The same; if it has to be written, then into `scratch` first. Where many values are written one after the
    /// other, none of them has to let its text grow.
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
mod tests {
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

    #[test]
    fn a_name_that_would_make_another_value_is_refused() {
        for name in [
            "$serde_json::private::Number",
            "$serde_json::private::RawValue",
            r"\u0024serde_json::private::Number",
            r"$serde\u005Fjson::private::RawValue",
        ] {
            let plain = serde_json::from_str::<String>(&format!("\"{name}\"")).unwrap();
            for text in [
                format!(r#"{{"{name}":"5"}}"#),
                format!(r#"{{"x":[{{"{name}" : "5"}}]}}"#),
                format!("{{\"a\":\"\\u0041\\\"\",\"x\":{{\"{name}\"\n:\"{{}}\"}}}}"),
            ] {
                assert_eq!(parse(&text).unwrap_err(), format!("the member name `{plain}` is reserved"), "{text}");
            }
            // As a text it is as good as any other.
            let text = format!(r#"{{"x":["{name}"],"y":"{name}","\u0024":1.50}}"#);
            let expected = format!(r#"{{"$":1.50,"x":["{plain}"],"y":"{plain}"}}"#);
            assert_eq!(canonical(&parse(&text).unwrap()), expected);
        }
        assert!(parse(r#"{"\u0024serde"#).unwrap_err().starts_with("EOF"));
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

    /// The same value with the members of every object the other way round.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(members) => members.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    /// The same value with one more zero behind every number that has a fraction, another digit before every other.
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

    fn values() -> impl Strategy<Value = Value> {
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
