//! How large the schema of a tool becomes once each of its references is followed: a few lines that refer to each other
//! can ask for more work than a program has time for.

use std::collections::BTreeMap;
use std::ptr;

use crate::json::{Object, Value};

/// Most schemas that one schema may come to, references followed: large ones of the field come to some hundreds, and
/// this many are read in some milliseconds.
pub const MAX_SCHEMAS: u64 = 10_000;
/// Deepest nesting, references followed, in schemas. Readers take some stack for each.
const MAX_LEVELS: usize = 200;
/// What a schema of schemas counts: those of the standard have about so many parts.
const META_SCHEMAS: u64 = 300;
/// Where the schemas of schemas are that every reader knows.
const META: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// Keywords with one schema, and whether that is about the same value.
const SINGLE: [(&str, bool); 11] = [
    ("not", true),
    ("if", true),
    ("then", true),
    ("else", true),
    ("items", false),
    ("additionalItems", false),
    ("contains", false),
    ("additionalProperties", false),
    ("unevaluatedItems", false),
    ("unevaluatedProperties", false),
    ("propertyNames", false),
];
/// Keywords with several schemas in a list or under names, and whether these are about the same value.
const SEVERAL: [(&str, bool); 9] = [
    ("allOf", true),
    ("anyOf", true),
    ("oneOf", true),
    ("dependentSchemas", true),
    ("dependencies", true),
    ("items", false),
    ("prefixItems", false),
    ("properties", false),
    ("patternProperties", false),
];
/// Keywords that refer to a schema about the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Why a schema is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaRefusal {
    /// It is too much work.
    #[error("its schema comes to more than {MAX_SCHEMAS} schemas once its references are followed; send a smaller one")]
    TooLarge,
    /// It is nested too deeply.
    #[error(
        "its schema is nested deeper than {MAX_LEVELS} levels once its references are followed; send a flatter one"
    )]
    TooDeep,
    /// It never ends.
    #[error("its schema refers to itself for one and the same value, which never ends")]
    Endless,
    /// A reference leads out of it, or to nothing.
    #[error("its schema refers to \"{0}\", which is not in it; expected `#`, `#/PATH` or `#ANCHOR`")]
    Elsewhere(String),
    /// A part of it is a schema of its own, so that it is not plain what a reference in there means.
    #[error("a part of its schema has an `$id` of its own and refers to \"{0}\"; write it as one schema")]
    Inner(String),
}

/// What a schema comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The schemas in it once its references are followed. A reference back into what is being followed counts as one.
    pub schemas: u64,
    /// Whether there are references in it, so that the work with a value may be more than one schema a part of it.
    pub refers: bool,
}

/// What `schema` comes to.
///
/// # Errors
/// It is too large, too deep or without an end, or refers to what is not in it.
pub fn expanded(schema: &Value) -> Result<Expansion, SchemaRefusal> {
    let mut walk = Walk {
        root: schema,
        anchors: BTreeMap::new(),
        counted: BTreeMap::new(),
        ended: BTreeMap::new(),
        refers: false,
    };
    walk.find_anchors(schema, 0)?;
    walk.counted.insert(schema, (schema, None));
    let schemas = walk.count(schema, At { levels: 0, inner: false })?;
    for target in walk.targets() {
        walk.ends(target, 0)?;
    }
    Ok(Expansion { schemas, refers: walk.refers })
}

/// Where in a schema somebody is.
#[derive(Clone, Copy)]
struct At {
    levels: usize,
    /// Whether it is within a part that has an `$id` of its own.
    inner: bool,
}

/// What is known of the schemas that references lead to, by their address: the schema stays where it is meanwhile.
struct Walk<'a> {
    root: &'a Value,
    anchors: BTreeMap<&'a str, &'a Value>,
    /// What each comes to; nothing while it is being counted.
    counted: BTreeMap<*const Value, (&'a Value, Option<u64>)>,
    /// Whether it is known that each ends; if not, it is being followed.
    ended: BTreeMap<*const Value, bool>,
    refers: bool,
}

impl<'a> Walk<'a> {
    fn targets(&self) -> Vec<&'a Value> {
        self.counted.values().map(|(target, _)| *target).collect()
    }

    /// Anchors may stand anywhere; where one stands twice, the first counts, and both are counted where they stand.
    fn find_anchors(&mut self, value: &'a Value, depth: usize) -> Result<(), SchemaRefusal> {
        if depth > crate::json::MAX_DEPTH {
            return Err(SchemaRefusal::TooDeep);
        }
        match value {
            Value::Object(members) => {
                for keyword in ["$anchor", "$dynamicAnchor", "$id"] {
                    if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                        self.anchors.entry(name.trim_start_matches('#')).or_insert(value);
                    }
                }
                members.values().try_for_each(|value| self.find_anchors(value, depth + 1))
            }
            Value::Array(items) => items.iter().try_for_each(|value| self.find_anchors(value, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn count(&mut self, schema: &'a Value, at: At) -> Result<u64, SchemaRefusal> {
        if at.levels > MAX_LEVELS {
            return Err(SchemaRefusal::TooDeep);
        }
        let Value::Object(members) = schema else { return Ok(1) };
        let is_own = members.get("$id").or_else(|| members.get("id")).is_some_and(Value::is_string);
        let below = At { levels: at.levels + 1, inner: at.inner || (is_own && !ptr::eq(schema, self.root)) };
        let mut count = 1;
        for (child, _) in children(members) {
            count = within(count + self.count(child, below)?)?;
        }
        for reference in references(members) {
            if below.inner {
                return Err(SchemaRefusal::Inner(shown(reference)));
            }
            self.refers = true;
            count = within(count + self.count_target(reference, below)?)?;
        }
        Ok(count)
    }

    fn count_target(&mut self, reference: &str, at: At) -> Result<u64, SchemaRefusal> {
        let Some(target) = self.target(reference)? else { return Ok(META_SCHEMAS) };
        match self.counted.get(&ptr::from_ref(target)) {
            Some((_, Some(known))) => Ok(*known),
            Some((_, None)) => Ok(1),
            None => {
                self.counted.insert(target, (target, None));
                let count = self.count(target, at)?;
                self.counted.insert(target, (target, Some(count)));
                Ok(count)
            }
        }
    }

    /// Follows only what is about the same value: a way back to the beginning has no end then.
    fn ends(&mut self, schema: &'a Value, levels: usize) -> Result<(), SchemaRefusal> {
        if levels > MAX_LEVELS {
            return Err(SchemaRefusal::TooDeep);
        }
        let Value::Object(members) = schema else { return Ok(()) };
        match self.ended.insert(schema, false) {
            Some(true) => {}
            Some(false) => return Err(SchemaRefusal::Endless),
            None => {
                for (child, _) in children(members).into_iter().filter(|(_, same_value)| *same_value) {
                    self.ends(child, levels + 1)?;
                }
                for reference in references(members) {
                    if let Some(target) = self.target(reference)? {
                        self.ends(target, levels + 1)?;
                    }
                }
            }
        }
        self.ended.insert(schema, true);
        Ok(())
    }

    /// What a reference leads to; nothing for a schema of schemas.
    fn target(&self, reference: &str) -> Result<Option<&'a Value>, SchemaRefusal> {
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let local = match own.filter(|own| !own.is_empty()).and_then(|own| reference.strip_prefix(own)) {
            Some("") => "#",
            Some(rest) if rest.starts_with('#') => rest,
            Some(_) | None => reference,
        };
        let found = match local.strip_prefix('#').map(decoded) {
            Some(path) if path.is_empty() || path.starts_with('/') => self.root.pointer(&path),
            Some(anchor) => self.anchors.get(anchor.as_str()).copied(),
            None if META.iter().any(|meta| reference.starts_with(meta)) => return Ok(None),
            None => None,
        };
        found.map(Some).ok_or_else(|| SchemaRefusal::Elsewhere(shown(reference)))
    }
}

/// The schemas in a schema, and whether each is about the same value as that.
fn children(members: &Object) -> Vec<(&Value, bool)> {
    let single = SINGLE.iter().filter_map(|(keyword, same)| Some((members.get(keyword)?, *same)));
    let mut found: Vec<_> = single.filter(|(value, _)| value.is_object()).collect();
    for (keyword, same) in SEVERAL {
        match members.get(keyword) {
            Some(Value::Array(items)) => found.extend(items.iter().map(|item| (item, same))),
            Some(Value::Object(named)) if keyword != "items" => found.extend(named.values().map(|item| (item, same))),
            Some(_) | None => {}
        }
    }
    found
}

fn references(members: &Object) -> impl Iterator<Item = &str> {
    REFERENCES.iter().filter_map(|keyword| members.get(keyword)?.as_str())
}

fn within(count: u64) -> Result<u64, SchemaRefusal> {
    if count > MAX_SCHEMAS { Err(SchemaRefusal::TooLarge) } else { Ok(count) }
}

/// A fragment without its percent signs; what is not text then is left as it is.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

/// The beginning of a reference, for messages.
fn shown(reference: &str) -> String {
    reference.escape_debug().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn nested(levels: usize, keyword: &str) -> Value {
        let mut defs = Object::new();
        for at in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({keyword: [next, next]}));
        }
        defs.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    }

    #[test]
    fn what_doubles_with_each_reference_is_refused_at_once() {
        assert!(nested(59, "allOf").to_string().len() < 6_000);
        for keyword in ["allOf", "anyOf", "prefixItems"] {
            assert_eq!(expanded(&nested(59, keyword)), Err(SchemaRefusal::TooLarge), "{keyword}");
        }
        assert_eq!(expanded(&nested(3, "allOf")), Ok(Expansion { schemas: 31, refers: true }));
    }

    #[test]
    fn what_never_ends_or_leads_elsewhere_is_refused() {
        let to = |reference: &str| json!({"$ref": reference});
        let elsewhere = |reference: &str| Err(SchemaRefusal::Elsewhere(reference.into()));
        for (schema, said) in [
            (to("#"), Err(SchemaRefusal::Endless)),
            (json!({"properties": {"x": {"allOf": [to("#/properties/x")]}}}), Err(SchemaRefusal::Endless)),
            // One way back is about a part, the other about the value itself.
            (
                json!({"$ref": "#/$defs/a", "$defs": {
                    "a": {"properties": {"x": to("#/$defs/b")}, "anyOf": [to("#/$defs/b")]},
                    "b": {"not": to("#/$defs/a")},
                }}),
                Err(SchemaRefusal::Endless),
            ),
            (json!({"$recursiveRef": "#"}), Err(SchemaRefusal::Endless)),
            (to("#/$defs/none"), elsewhere("#/$defs/none")),
            (to("#none"), elsewhere("#none")),
            (to("https://example.org/s.json"), elsewhere("https://example.org/s.json")),
            (to("file:///etc/passwd"), elsewhere("file:///etc/passwd")),
            (
                json!({"properties": {"x": {"$id": "y", "$ref": "#/$defs/a", "$defs": {"a": true}}}}),
                Err(SchemaRefusal::Inner("#/$defs/a".into())),
            ),
        ] {
            assert_eq!(expanded(&schema), said, "{schema}");
        }
        let mut deep = json!(true);
        for _ in 0..300 {
            deep = json!({"items": deep});
        }
        assert_eq!(expanded(&deep), Err(SchemaRefusal::TooDeep));
    }

    #[test]
    fn what_is_in_use_is_taken() {
        let tree = json!({
            "$id": "https://example.org/tree",
            "type": "object",
            "properties": {
                "left": {"$ref": "#"},
                "right": {"$ref": "https://example.org/tree#"},
                "leaf": {"$ref": "#leaf"},
                "same": {"$ref": "#/definitions/a%20b~1c"},
                "$ref": {"type": "string"},
                "schema": {"$ref": "http://json-schema.org/draft-07/schema#"},
            },
            "definitions": {"a b/c": {"$anchor": "leaf", "enum": [1, {"$ref": "#nowhere"}]}},
            "required": ["leaf"],
        });
        assert_eq!(expanded(&tree), Ok(Expansion { schemas: 311, refers: true }));
        for plain in [json!({"type": "object"}), json!(true), json!({}), json!(7)] {
            assert_eq!(expanded(&plain), Ok(Expansion { schemas: 1, refers: false }));
        }
    }
}
