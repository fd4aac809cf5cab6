//! Which tool a model must call, in the words of the Messages API.

use std::borrow::Cow;

use pintle_domain::json::{Object, Value, json};

/// Which tool must be called, on either wire.
const CHOICE: &str = "tool_choice";
/// Whether one answer may hold several calls, in chat completions.
const PARALLEL: &str = "parallel_tool_calls";
/// The member inside the choice that says the contrary.
const NOT_PARALLEL: &str = "disable_parallel_tool_use";

/// `options` with the forms of chat completions in the words of this wire. Its own forms, and whatever is neither,
/// stay as they are.
pub(super) fn translated(options: &Object, with_tools: bool) -> Cow<'_, Object> {
    if !options.contains_key(CHOICE) && !options.contains_key(PARALLEL) {
        return Cow::Borrowed(options);
    }
    let mut options = options.clone();
    if let Some(choice) = options.get_mut(CHOICE)
        && let Some(ours) = translated_choice(choice)
    {
        *choice = ours;
    }
    let parallel = match options.get(PARALLEL) {
        Some(Value::Bool(parallel)) => *parallel,
        Some(Value::Null) => true,
        Some(Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) | None => {
            return Cow::Owned(options);
        }
    };
    options.shift_remove(PARALLEL);
    // Without tools there is nothing to choose, and this wire refuses a choice.
    if !parallel && with_tools {
        one_at_a_time(options.entry(CHOICE).or_insert(Value::Null));
    }
    Cow::Owned(options)
}

fn translated_choice(choice: &Value) -> Option<Value> {
    match (choice.as_str(), choice["type"].as_str(), choice["function"]["name"].as_str()) {
        (Some("auto"), ..) => Some(json!({"type": "auto"})),
        (Some("required"), ..) => Some(json!({"type": "any"})),
        (Some("none"), ..) => Some(json!({"type": "none"})),
        (None, Some("function"), Some(name)) => Some(json!({"type": "tool", "name": name})),
        _ => None,
    }
}

/// Allows one call an answer, unless `choice` says something on it itself.
fn one_at_a_time(choice: &mut Value) {
    if choice.is_null() {
        *choice = json!({"type": "auto"});
    }
    let calls = choice["type"] != "none";
    if let Value::Object(members) = choice
        && calls
    {
        members.entry(NOT_PARALLEL).or_insert(Value::Bool(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(options: &str, with_tools: bool, expected: &str) {
        let Value::Object(members) = pintle_domain::json::parse(options).unwrap() else {
            panic!("options are an object")
        };
        let translated = Value::Object(translated(&members, with_tools).into_owned());
        assert_eq!(translated.to_string(), expected, "{options}");
    }

    #[test]
    fn forms_of_chat_completions_become_those_of_this_wire() {
        let only = r#""tool_choice":{"type":"function","function":{"name":"decide"}}"#;
        let table = [
            (format!("{{{only}}}"), r#"{"tool_choice":{"type":"tool","name":"decide"}}"#),
            (
                format!("{{{only},\"top_k\":3,\"parallel_tool_calls\":false}}"),
                r#"{"tool_choice":{"type":"tool","name":"decide","disable_parallel_tool_use":true},"top_k":3}"#,
            ),
            (r#"{"a":1,"tool_choice":"auto","b":2}"#.into(), r#"{"a":1,"tool_choice":{"type":"auto"},"b":2}"#),
            (r#"{"tool_choice":"required"}"#.into(), r#"{"tool_choice":{"type":"any"}}"#),
            (r#"{"tool_choice":"none"}"#.into(), r#"{"tool_choice":{"type":"none"}}"#),
            (
                r#"{"tool_choice":"required","parallel_tool_calls":false}"#.into(),
                r#"{"tool_choice":{"type":"any","disable_parallel_tool_use":true}}"#,
            ),
            (r#"{"tool_choice":"none","parallel_tool_calls":false}"#.into(), r#"{"tool_choice":{"type":"none"}}"#),
            (
                r#"{"parallel_tool_calls":false}"#.into(),
                r#"{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}"#,
            ),
            (r#"{"parallel_tool_calls":true,"a":1}"#.into(), r#"{"a":1}"#),
            (r#"{"parallel_tool_calls":null}"#.into(), "{}"),
        ];
        for (options, expected) in table {
            check(&options, true, expected);
        }
        check(r#"{"parallel_tool_calls":false,"a":1}"#, false, r#"{"a":1}"#);
    }

    #[test]
    fn own_forms_and_unknown_ones_stay() {
        for own in [
            r#"{"temperature":0.50}"#,
            r#"{"tool_choice":{"type":"any"}}"#,
            r#"{"tool_choice":{"type":"tool","name":"x","disable_parallel_tool_use":false}}"#,
            r#"{"tool_choice":"sometimes"}"#,
            r#"{"tool_choice":{"type":"function"}}"#,
            r#"{"parallel_tool_calls":"no"}"#,
        ] {
            check(own, true, own);
        }
        check(
            r#"{"tool_choice":{"type":"tool","name":"x","disable_parallel_tool_use":false},"parallel_tool_calls":false}"#,
            true,
            r#"{"tool_choice":{"type":"tool","name":"x","disable_parallel_tool_use":false}}"#,
        );
    }
}
