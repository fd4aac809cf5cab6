//! The members of an answer: the known ones in any [spelling](super::spelling), each once and of its type; `null` is
//! absent, others are ignored.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use pintle_domain::json::{self, Object, Value};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::{spelling, text};

/// The kind of thing that a text turned out to be.
pub(super) enum Read {
    /// An object whose known members stand in it once, under their names.
    Object(Object),
    /// JSON of another kind: its name.
    Other(&'static str),
    /// No JSON: why.
    NotJson(String),
}

/// Reads `text`, in which none of `known` may stand twice: which of the two would count depends on the reader, and
/// a hook must not allow to one what it blocks to another.
///
/// # Errors
/// What is wrong with a text that is JSON.
pub(super) fn read(text: &str, known: &'static [&'static str]) -> Result<Read, String> {
    let value = match json::parse(text) {
        Ok(value) => value,
        // JSON that is deeper or stranger than what is read is no plain text, which would count for nothing.
        Err(why) if is_json(text) => return Err(text::line(&why).unwrap_or_default()),
        Err(why) => return Ok(Read::NotJson(why)),
    };
    let Value::Object(members) = value else { return Ok(Read::Other(kind(&value))) };
    match twice(text, known) {
        None => spelling::settled(members, known).map(Read::Object),
        Some(name) => Err(format!("the member `{name}` stands in it twice; send it once")),
    }
}

/// The kind of a value, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Takes `name` out of `members`; `null` is absent.
pub(super) fn take(members: &mut Object, name: &str) -> Option<Value> {
    members.get_mut(name).map(Value::take).filter(|value| !value.is_null())
}

/// The string `name`, if it is there.
pub(super) fn string(members: &mut Object, name: &str) -> Result<Option<String>, String> {
    match take(members, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(name, "a string", &other)),
    }
}

/// The boolean `name`, if it is there.
pub(super) fn flag(members: &mut Object, name: &str) -> Result<Option<bool>, String> {
    match take(members, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(other) => Err(wrong(name, "a boolean", &other)),
    }
}

/// The object `name`, if it is there.
pub(super) fn object(members: &mut Object, name: &str) -> Result<Option<Object>, String> {
    match take(members, name) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong(name, "an object", &other)),
    }
}

/// The reason `name`, if it says something.
pub(super) fn reason(members: &mut Object, name: &str) -> Result<Option<String>, String> {
    Ok(string(members, name)?.and_then(|reason| text::line(&reason)))
}

/// The context `name`, if it says something.
pub(super) fn context(members: &mut Object, name: &str) -> Result<Option<String>, String> {
    Ok(string(members, name)?.and_then(text::context))
}

fn wrong(name: &str, expected: &str, got: &Value) -> String {
    format!("{name} must be {expected}, got {}", kind(got))
}

/// Whether `text` is JSON by its grammar, however deep.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The first spelling of one of `known` that stands twice at the top of the object `text`.
fn twice(text: &str, known: &'static [&'static str]) -> Option<String> {
    let found = serde_json::Deserializer::from_str(text).deserialize_map(Twice(known));
    // A text that does not read as an object has no members.
    found.unwrap_or_default()
}

struct Twice(&'static [&'static str]);

impl<'de> Visitor<'de> for Twice {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut twice) = (BTreeSet::new(), None);
        while let Some((name, IgnoredAny)) = members.next_entry::<Cow<'de, str>, IgnoredAny>()? {
            if spelling::known_as(&name, self.0).is_some() && !seen.insert(name.clone()) {
                twice.get_or_insert_with(|| name.into_owned());
            }
        }
        Ok(twice)
    }
}
