//! The check of a call's arguments against the tool's JSON Schema.

use domain::json::{Object, Value};
use jsonschema::ValidationError;

/// How many faults one message names; more would bury the first.
const MAX_FAULTS: usize = 3;

/// How much of a wrong value is quoted, in characters; enough to recognise it.
const MAX_QUOTED: usize = 120;

/// A compiled schema.
pub(super) struct Validator {
    compiled: jsonschema::Validator,
    schema: Value,
}

impl Validator {
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        let compiled = jsonschema::validator_for(schema).map_err(|e| e.to_string())?;
        Ok(Self { compiled, schema: schema.clone() })
    }

    /// Says of each fault where it is, what was expected and what was there.
    pub(super) fn check(&self, tool: &str, arguments: &Object) -> Result<(), String> {
        let arguments = Value::Object(arguments.clone());
        if self.compiled.is_valid(&arguments) {
            return Ok(());
        }
        let faults: Vec<String> =
            self.compiled.iter_errors(&arguments).take(MAX_FAULTS).map(|e| self.describe(&e)).collect();
        Err(format!("invalid arguments of `{tool}`: {}", faults.join("; ")))
    }

    fn describe(&self, error: &ValidationError<'_>) -> String {
        let at = match error.instance_path().as_str() {
            "" => "at the top".to_owned(),
            path => format!("at `{path}`"),
        };
        let rule = error.schema_path().as_str();
        let keyword = rule.rsplit('/').next().unwrap_or_default();
        let got = quote(error.instance());
        match keyword {
            "additionalProperties" => format!("{at}: {error}; known are {}", self.known()),
            "required" => format!("{at}: {error}, got {got}"),
            _ => match self.schema.pointer(rule) {
                Some(Value::String(word)) => format!("{at}: expected {keyword} {word}, got {got}"),
                Some(value) => format!("{at}: expected {keyword} {}, got {got}", quote(value)),
                None => format!("{at}: {error}, got {got}"),
            },
        }
    }

    fn known(&self) -> String {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let names: Vec<String> =
            properties.into_iter().flat_map(Object::keys).map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

fn quote(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use domain::json::json;

    use super::*;

    fn check(arguments: Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"enum": ["a", "b"]},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let arguments = arguments.as_object().unwrap().clone();
        Validator::new(&schema).unwrap().check("t", &arguments).err().unwrap_or_default()
    }

    #[test]
    fn a_fault_names_the_place_the_rule_and_the_value() {
        for (arguments, text) in [
            (json!({"path": "x", "limit": 3}), ""),
            (json!({"path": 3}), "invalid arguments of `t`: at `/path`: expected type string, got 3"),
            (json!({"path": ""}), r#"invalid arguments of `t`: at `/path`: expected minLength 1, got """#),
            (
                json!({"path": "x", "limit": "ten"}),
                r#"invalid arguments of `t`: at `/limit`: expected type integer, got "ten""#,
            ),
            (json!({"path": "x", "limit": 11}), "invalid arguments of `t`: at `/limit`: expected maximum 10, got 11"),
            (
                json!({"path": "x", "mode": "c"}),
                r#"invalid arguments of `t`: at `/mode`: expected enum ["a","b"], got "c""#,
            ),
            (
                json!({"limit": 0}),
                "invalid arguments of `t`: at `/limit`: expected minimum 1, got 0; \
                 at the top: \"path\" is a required property, got {\"limit\":0}",
            ),
            (
                json!({"path": "x", "patch": 1}),
                "invalid arguments of `t`: at the top: Additional properties are not allowed ('patch' was unexpected); \
                 known are `path`, `limit`, `mode`",
            ),
        ] {
            assert_eq!(check(arguments.clone()), text, "{arguments}");
        }
    }

    #[test]
    fn a_long_value_is_cut() {
        let text = check(json!({"path": "x", "mode": "\u{e9}".repeat(5000)}));
        assert!(text.chars().count() < 300 && text.ends_with('…'), "{text}");
    }
}
