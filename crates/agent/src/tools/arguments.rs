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
        let theirs = schema.clone().into();
        let compiled = jsonschema::validator_for(&theirs).map_err(|e| e.to_string())?;
        Ok(Self { compiled, schema: schema.clone() })
    }

    /// Says of each fault where it is, what was expected and what was there.
    pub(super) fn check(&self, tool: &str, arguments: &Object) -> Result<(), String> {
        let arguments = Value::Object(arguments.clone());
        let forms = forms(&arguments);
        let Some(wrong) = forms.iter().find(|form| !self.compiled.is_valid(form)) else { return Ok(()) };
        let faults: Vec<String> =
            self.compiled.iter_errors(wrong).take(MAX_FAULTS).map(|e| self.describe(&e, &arguments)).collect();
        Err(format!("invalid arguments of `{tool}`: {}", faults.join("; ")))
    }

    fn describe(&self, error: &ValidationError<'_>, arguments: &Value) -> String {
        let at = match error.instance_path().as_str() {
            "" => "at the top".to_owned(),
            path => format!("at `{path}`"),
        };
        let rule = error.schema_path().as_str();
        let keyword = rule.rsplit('/').next().unwrap_or_default();
        let got = quote(arguments.pointer(error.instance_path().as_str()).unwrap_or(&Value::Null));
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

/// The arguments in numbers of the machine, which is what a schema is compared with. Where a number is none of them, it
/// lies between two of them, and the arguments have to be good with either: so rounding lets none past a bound.
fn forms(arguments: &Value) -> Vec<serde_json::Value> {
    let nearest = arguments.clone().into();
    if is_of_machine(arguments) {
        return vec![nearest];
    }
    vec![nearest, leaning(arguments, f64::next_down), leaning(arguments, f64::next_up)]
}

fn is_of_machine(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_of_machine(),
        Value::Array(items) => items.iter().all(is_of_machine),
        Value::Object(members) => members.values().all(is_of_machine),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// The value with each number that no machine has replaced by a neighbour of the nearest that it has.
fn leaning(value: &Value, neighbour: fn(f64) -> f64) -> serde_json::Value {
    match value {
        Value::Number(number) if !number.is_of_machine() => {
            let nearest = serde_json::Value::from(value.clone());
            let beside = nearest.as_f64().map(neighbour).and_then(serde_json::Number::from_f64);
            beside.map_or(nearest, serde_json::Value::Number)
        }
        Value::Array(items) => items.iter().map(|item| leaning(item, neighbour)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), leaning(value, neighbour))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone().into(),
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

    /// Schemas know numbers of the machine only; what is beyond a bound stays beyond it.
    #[test]
    fn rounding_lets_no_number_past_a_bound() {
        let schema = r#"{"properties":{"n":{"type":"number","minimum":-0.5,"maximum":9007199254740992}}}"#;
        let validator = Validator::new(&domain::json::parse(schema).unwrap()).unwrap();
        let check = |number: &str| {
            let arguments = domain::json::parse(&format!(r#"{{"n":{number}}}"#)).unwrap();
            validator.check("t", arguments.as_object().unwrap()).err()
        };
        for good in ["1.50", "9007199254740992", "-0.5", "0.10000000000000000001", "12345678901234.567890123456789"] {
            assert_eq!(check(good), None, "{good}");
        }
        for bad in ["9007199254740992.5", "9007199254740993", "-0.50000000000000000001", "1e+999", "-1e+999"] {
            let rule = if bad.starts_with('-') { "minimum -0.5" } else { "maximum 9007199254740992" };
            let expected = format!("invalid arguments of `t`: at `/n`: expected {rule}, got {bad}");
            assert_eq!(check(bad), Some(expected));
        }
    }

    #[test]
    fn a_long_value_is_cut() {
        let text = check(json!({"path": "x", "mode": "\u{e9}".repeat(5000)}));
        assert!(text.chars().count() < 300 && text.ends_with('…'), "{text}");
    }
}
