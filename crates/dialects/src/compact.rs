//! Writes compact JSON piece by piece: what stands in every call is written far more often than anything else.

use std::ops::Range;

use jiff::fmt::temporal::DateTimePrinter;
use pintle_domain::json::{Object, Value};
use serde::Serialize;

/// How times are written: straight into the bytes, which is faster than by way of `Display`.
const TIME: DateTimePrinter = DateTimePrinter::new().precision(Some(9));

/// JSON text that grows.
pub struct Json(Vec<u8>);

impl Json {
    /// A writer with room for `bytes`.
    #[inline]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// What was written.
    #[inline]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Where the next piece begins, in bytes.
    #[inline]
    pub fn position(&self) -> usize {
        self.0.len()
    }

    /// A piece that was written before, once more.
    #[inline]
    pub fn again(&mut self, piece: Range<usize>) -> &mut Self {
        self.0.extend_from_within(piece);
        self
    }

    /// A piece that is JSON already: brackets, commas, names of members.
    #[inline]
    pub fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// A string.
    #[inline]
    pub fn text(&mut self, text: &str) -> &mut Self {
        if is_plain(text.as_bytes()) {
            self.0.push(b'"');
            self.0.extend_from_slice(text.as_bytes());
            self.0.push(b'"');
            self
        } else {
            self.serialised(text)
        }
    }

    /// A string, or `null` where there is none.
    #[inline]
    pub fn text_or_null(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.raw("null"),
        }
    }

    /// A time, as RFC 3339 in UTC with nine digits of nanoseconds.
    pub fn time(&mut self, at: jiff::Timestamp) -> &mut Self {
        self.0.push(b'"');
        TIME.print_timestamp(&at, &mut self.0).expect("memory takes every write");
        self.raw("\"")
    }

    /// Whatever says itself how it is written.
    pub fn serialised(&mut self, what: &(impl Serialize + ?Sized)) -> &mut Self {
        serde_json::to_writer(&mut self.0, what).expect("our own types have string keys and no failing serialiser");
        self
    }

    /// A list of what is JSON already.
    pub fn list<'a>(&mut self, elements: impl Iterator<Item = &'a [u8]>) -> &mut Self {
        self.0.push(b'[');
        for (i, element) in elements.enumerate() {
            self.raw(if i > 0 { "," } else { "" });
            self.0.extend_from_slice(element);
        }
        self.raw("]")
    }

    /// An object, its members in their order.
    pub fn object(&mut self, members: &Object) -> &mut Self {
        self.0.push(b'{');
        for (i, (name, value)) in members.iter().enumerate() {
            self.raw(if i > 0 { "," } else { "" }).text(name).raw(":").value(value);
        }
        self.raw("}")
    }

    /// A value as it was read: numbers keep their digits.
    fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.raw("null"),
            Value::Bool(true) => self.raw("true"),
            Value::Bool(false) => self.raw("false"),
            Value::Number(number) => self.raw(number.as_str()),
            Value::String(text) => self.text(text),
            Value::Object(members) => self.object(members),
            Value::Array(items) => {
                self.0.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    self.raw(if i > 0 { "," } else { "" }).value(item);
                }
                self.raw("]")
            }
        }
    }
}

/// Whether nothing in a string has to be escaped. Looks at every byte, so that many are looked at together.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    !text.iter().fold(false, |found, byte| found | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_written_as_serde_writes_them() {
        let text = r#"{"a\n":[1,2.50,-3e400,{}],"b":{"c":null,"d":[true,false,[]]},"é\"":"\\\u0001 plain"}"#;
        let members: Object = serde_json::from_str(text).unwrap();
        let mut json = Json::with_capacity(0);
        json.object(&members);
        assert_eq!(json.0, serde_json::to_vec(&members).unwrap());
    }

    #[test]
    fn a_piece_can_be_written_twice_and_nothing_is_null() {
        let mut json = Json::with_capacity(0);
        let start = json.raw("[").position();
        let end = json.text("ä\"").position();
        json.raw(",").again(start..end).raw(",").text_or_null(None).raw("]");
        assert_eq!(String::from_utf8(json.0).unwrap(), r#"["ä\"","ä\"",null]"#);
    }

    proptest! {
        #[test]
        fn texts_are_written_as_serde_writes_them(text in "[\\PC\u{0}-\u{1f}\"\\\\]{0,80}") {
            let mut json = Json::with_capacity(0);
            json.text(&text);
            prop_assert_eq!(json.0, serde_json::to_vec(&text).unwrap());
        }
    }
}
