//! Schemas of tools as every server takes them.
//!
//! One schema that a server cannot read has it refuse the whole request. So what is not a schema there is left out: keywords
//! with values that they cannot have, anything at the top but an object with properties. A choice between objects at the
//! top, which no vendor takes, becomes one object with the properties of all. What a schema said that went is only said to
//! nobody: the tool gets what the model wrote, and judges it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pintle_domain::json::{Object, Value, json};

/// Longest name of a property where names are bounded.
const MAX_KEY_BYTES: usize = 64;
/// Most references that are followed at the top: more of them go in a circle.
const MAX_REFERENCES: usize = 8;
/// What the arguments of a call cannot be at the top: no object with properties of its own.
const CHOICES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// What servers take below, and not at the top.
const NOT_AT_THE_TOP: [&str; 10] = ["allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$ref"];
/// The types there are.
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Which names properties may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PropertyNames {
    /// Any.
    Free,
    /// Letters, digits, `_`, `.` and `-`, and not too many of them.
    Wordy,
}

/// The schema that goes out for `schema`; the same if every server takes that.
pub(crate) fn of(schema: &Value, names: PropertyNames) -> Cow<'_, Value> {
    let at_the_top = |members: &Object| {
        members.get("type").and_then(Value::as_str) == Some("object")
            && members.get("properties").is_some_and(Value::is_object)
            && !NOT_AT_THE_TOP.iter().any(|word| members.contains_key(word))
    };
    match schema.as_object() {
        Some(members) if at_the_top(members) && names.sound(schema) => Cow::Borrowed(schema),
        Some(_) | None => Cow::Owned(names.object(schema)),
    }
}

/// The value that a keyword has.
enum Wants {
    Schema,
    Schemas,
    Members,
    Words,
    Values,
    Count,
    Number,
    Text,
    Flag,
    Type,
    Anything,
}

fn wants(keyword: &str) -> Wants {
    match keyword {
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "additionalItems"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Wants::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Wants::Schemas,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Wants::Members,
        "required" => Wants::Words,
        "enum" => Wants::Values,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => Wants::Count,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Wants::Number,
        "title" | "description" | "pattern" | "format" | "$ref" | "$id" | "$schema" | "$anchor" | "$comment" => {
            Wants::Text
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Wants::Flag,
        "type" => Wants::Type,
        _ => Wants::Anything,
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|word| TYPES.contains(&word))
}

/// Whether `values` are some, and no two of them the same.
fn are_texts(values: &[Value]) -> bool {
    let texts: BTreeSet<&str> = values.iter().filter_map(Value::as_str).collect();
    texts.len() == values.len()
}

impl PropertyNames {
    fn allow(self, keyword: &str, name: &str) -> bool {
        let wordy = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let fits = || (1..=MAX_KEY_BYTES).contains(&name.len()) && name.bytes().all(wordy);
        self == Self::Free || keyword != "properties" || fits()
    }

    /// Whether `schema` is one, all the way down.
    fn sound(self, schema: &Value) -> bool {
        match schema {
            Value::Bool(_) => true,
            Value::Object(members) => members.iter().all(|(keyword, value)| self.is_said(keyword, value)),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
        }
    }

    /// Whether `keyword` can have `value`.
    fn is_said(self, keyword: &str, value: &Value) -> bool {
        match wants(keyword) {
            Wants::Schema => self.sound(value),
            Wants::Schemas => {
                value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(|one| self.sound(one)))
            }
            Wants::Members => value
                .as_object()
                .is_some_and(|all| all.iter().all(|(name, one)| self.allow(keyword, name) && self.sound(one))),
            Wants::Words => value.as_array().is_some_and(|all| are_texts(all)),
            Wants::Values => value.as_array().is_some_and(|all| !all.is_empty()),
            Wants::Count => value.as_u64().is_some(),
            Wants::Number => value.as_f64().is_some(),
            Wants::Text => value.is_string(),
            Wants::Flag => matches!(value, Value::Bool(_)),
            Wants::Type => match value {
                Value::Array(all) => !all.is_empty() && all.iter().all(is_type) && are_texts(all),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => is_type(value),
            },
            Wants::Anything => true,
        }
    }

    /// What is sound of `schema`.
    fn mended(self, schema: &Value) -> Value {
        match schema {
            Value::Bool(_) => schema.clone(),
            Value::Object(members) => {
                let said =
                    members.iter().filter_map(|(keyword, value)| Some((keyword.clone(), self.said(keyword, value)?)));
                Value::Object(said.collect())
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => json!({}),
        }
    }

    /// What is sound of `value` for `keyword`; nothing if it can say nothing then.
    fn said(self, keyword: &str, value: &Value) -> Option<Value> {
        if self.is_said(keyword, value) {
            return Some(value.clone());
        }
        match (wants(keyword), value) {
            (Wants::Schema, Value::Object(_)) => Some(self.mended(value)),
            (Wants::Schemas, Value::Array(all)) if !all.is_empty() => {
                Some(all.iter().map(|one| self.mended(one)).collect())
            }
            (Wants::Members, Value::Object(all)) => {
                let kept = all.iter().filter(|(name, _)| self.allow(keyword, name));
                Some(Value::Object(kept.map(|(name, one)| (name.clone(), self.mended(one))).collect()))
            }
            (Wants::Words, Value::Array(all)) => {
                let texts: BTreeSet<&str> = all.iter().filter_map(Value::as_str).collect();
                Some(texts.into_iter().map(Value::from).collect())
            }
            (
                Wants::Schema
                | Wants::Schemas
                | Wants::Members
                | Wants::Words
                | Wants::Values
                | Wants::Count
                | Wants::Number
                | Wants::Text
                | Wants::Flag
                | Wants::Type
                | Wants::Anything,
                _,
            ) => None,
        }
    }

    /// `schema` as an object with properties.
    fn object(self, schema: &Value) -> Value {
        let mended = self.mended(schema);
        let root = mended.as_object().cloned().unwrap_or_default();
        let mut whole = resolved(&root, &root);
        for word in CHOICES {
            if let Some(Value::Array(branches)) = whole.shift_remove(word) {
                let branches: Vec<Object> =
                    branches.iter().filter_map(Value::as_object).map(|branch| resolved(branch, &root)).collect();
                take_in(&mut whole, &branches, word == "allOf");
            }
        }
        whole.retain(|keyword, _| !NOT_AT_THE_TOP.contains(&keyword.as_str()));
        whole.insert("type".into(), "object".into());
        whole.entry("properties").or_insert(json!({}));
        Value::Object(whole)
    }
}

/// `members`, with what a reference at their top means in its place.
fn resolved(members: &Object, root: &Object) -> Object {
    let (mut whole, root) = (members.clone(), Value::Object(root.clone()));
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = whole.shift_remove("$ref") else { break };
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let Some(meant) = pointer.and_then(|pointer| root.pointer(pointer)).and_then(Value::as_object) else { break };
        for (keyword, value) in meant {
            if !whole.contains_key(keyword) {
                whole.insert(keyword.clone(), value.clone());
            }
        }
    }
    whole
}

/// Adds the properties of `branches` to `whole`. Required is what `whole` requires, and what each of them does, or any
/// where `all` hold at once.
fn take_in(whole: &mut Object, branches: &[Object], all: bool) {
    let required = |branch: &Object| -> BTreeSet<String> {
        let words = branch.get("required").and_then(Value::as_array);
        words.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut properties = whole.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, schema) in branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten() {
        if !properties.contains_key(name) {
            properties.insert(name.clone(), schema.clone());
        }
    }
    let shared = branches.iter().map(required).reduce(|some, more| match all {
        true => &some | &more,
        false => &some & &more,
    });
    let words: BTreeSet<String> = &required(whole) | &shared.unwrap_or_default();
    whole.insert("properties".into(), Value::Object(properties));
    if !words.is_empty() {
        whole.insert("required".into(), words.into_iter().map(Value::from).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(schema: &str, names: PropertyNames) -> String {
        of(&pintle_domain::json::parse(schema).unwrap(), names).to_string()
    }

    #[test]
    fn what_every_server_takes_goes_out_as_it_is() {
        for schema in [
            r#"{"type":"object","properties":{}}"#,
            r#"{"properties":{"n":{"type":["integer","null"],"minimum":1.50},"x":true},"type":"object","required":["n"],"x-own":[1]}"#,
            r##"{"type":"object","properties":{"p":{"$ref":"#/$defs/p"},"q":{"anyOf":[{"type":"string"},{"enum":[1]}]}},"$defs":{"p":{}}}"##,
        ] {
            assert_eq!(sent(schema, PropertyNames::Wordy), schema);
        }
    }

    #[test]
    fn anything_else_becomes_an_object_with_properties() {
        let table = [
            "{}",
            "null",
            r#"{"type":"string"}"#,
            r#"{"type":"object"}"#,
            r#"{"type":["object","null"],"properties":{"a":{"type":"text","minLength":-1,"description":"d"}}}"#,
            r#"{"type":"object","properties":[],"required":"a"}"#,
            r#"{"type":"object","properties":{"l":{"type":"array","items":[{"type":"string"}]},"n":{"exclusiveMinimum":true}},"required":["l","l",1]}"#,
            r#"{"anyOf":[{"properties":{"a":{}},"required":["a","c"]},{"properties":{"b":{}},"required":["c"]}]}"#,
            r##"{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{}},"required":["a"]}}}"##,
            r##"{"allOf":[{"$ref":"#/$defs/x"},{"properties":{"b":{}},"required":["b"]}],"$defs":{"x":{"properties":{"a":{}},"required":["a"]}}}"##,
            r##"{"$ref":"#"}"##,
        ];
        let lines: Vec<String> = table.iter().map(|schema| sent(schema, PropertyNames::Free)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"type":"object","properties":{}}
        {"type":"object","properties":{}}
        {"type":"object","properties":{}}
        {"type":"object","properties":{}}
        {"type":"object","properties":{"a":{"description":"d"}}}
        {"type":"object","properties":{}}
        {"type":"object","properties":{"l":{"type":"array"},"n":{}},"required":["l"]}
        {"properties":{"a":{},"b":{}},"required":["c"],"type":"object"}
        {"$defs":{"x":{"type":"object","properties":{"a":{}},"required":["a"]}},"type":"object","properties":{"a":{}},"required":["a"]}
        {"$defs":{"x":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{},"b":{}},"required":["a","b"],"type":"object"}
        {"type":"object","properties":{}}
        "#);
        for schema in &lines {
            assert_eq!(sent(schema, PropertyNames::Wordy), *schema, "what went out stays");
        }
    }

    #[test]
    fn names_of_properties_are_bounded_where_they_are() {
        let schema = r#"{"type":"object","properties":{"größe":{},"a.b":{}}}"#;
        assert_eq!(sent(schema, PropertyNames::Free), schema);
        assert_eq!(sent(schema, PropertyNames::Wordy), r#"{"type":"object","properties":{"a.b":{}}}"#);
    }
}
