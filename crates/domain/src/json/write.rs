//! Writers of values: compact, and canonical.

use std::fmt;

use super::{Object, Value};

/// RFC 8785 canonical form, except that each number keeps the digits it came with.
///
/// Two values that differ in any digit have different forms, so a digest over it separates them.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

pub(super) fn write_canonical(value: &Value, out: &mut String) {
    write(value, out, &write_object);
}

/// The canonical form of an object.
pub(super) fn write_object(members: &Object, out: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    // RFC 8785 3.2.3: member names sort by their UTF-16 code units. Of ASCII, these are the bytes.
    if sorted.iter().all(|(name, _)| name.is_ascii()) {
        sorted.sort_unstable_by_key(|(name, _)| *name);
    } else {
        sorted.sort_by_cached_key(|(name, _)| name.encode_utf16().collect::<Vec<u16>>());
    }
    write_members(sorted.into_iter(), out, &write_object);
}

/// The compact form of an object, with its members in their order.
fn write_in_order(members: &Object, out: &mut String) {
    write_members(members.iter(), out, &write_in_order);
}

/// Writes a value; `object` writes the objects in it.
fn write(value: &Value, out: &mut String, object: &impl Fn(&Object, &mut String)) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(number) => out.push_str(number.as_str()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out, object);
            }
            out.push(']');
        }
        Value::Object(members) => object(members, out),
    }
}

fn write_members<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    out: &mut String,
    object: &impl Fn(&Object, &mut String),
) {
    out.push('{');
    for (i, (name, value)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write(value, out, object);
    }
    out.push('}');
}

pub(super) fn write_string(text: &str, out: &mut String) {
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

impl fmt::Display for Value {
    /// Compact JSON, or in lines with `{:#}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f.write_str(&serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?);
        }
        let mut out = String::new();
        write(self, &mut out, &write_in_order);
        f.write_str(&out)
    }
}

impl fmt::Display for Object {
    /// Compact JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        write_in_order(self, &mut out);
        f.write_str(&out)
    }
}
