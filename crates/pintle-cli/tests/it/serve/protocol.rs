//! What goes over the wire, held against the published description of the protocol.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

/// The published schema, without room for members that it does not name.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let schema = pintle_gateway::reference::schema().unwrap();
    let mut schema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
    close(&mut schema);
    schema
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Holds `value` against the definition `name`.
#[track_caller]
pub(super) fn check(name: &str, value: &Value) {
    assert!(
        SCHEMA["$defs"].get(name).is_some(),
        "{name} is not described: add it to the table of `pintle_gateway::reference`"
    );
    let validator = VALIDATORS.lock().unwrap().get(name).cloned();
    let validator = validator.unwrap_or_else(|| {
        let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": SCHEMA["$defs"] });
        let validator = Arc::new(jsonschema::validator_for(&schema).unwrap());
        VALIDATORS.lock().unwrap().insert(name.to_owned(), validator.clone());
        validator
    });
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{} at `{}`", error, error.instance_path())).collect();
    assert!(wrong.is_empty(), "{name} is not as it is described in `pintle_gateway::reference`: {wrong:#?}\n{value:#}");
}

/// Holds a frame that came in against its definition; `asked` is what an answer is the answer to.
#[track_caller]
pub(super) fn check_frame(frame: &Value, asked: Option<&(String, Value)>) {
    match frame["type"].as_str().unwrap() {
        "res" => {
            check("ResponseFrame", frame);
            if let (Some((method, params)), true) = (asked, frame["ok"] == true) {
                check(&format!("{method}.payload"), &frame["payload"]);
                check(&format!("{method}.params"), &without_nulls(params));
            }
        }
        "event" => {
            check("EventFrame", frame);
            check(&format!("event.{}", frame["event"].as_str().unwrap()), &frame["payload"]);
        }
        "hook" => check("HookFrame", frame),
        other => panic!("`{other}` is not a type of a frame"),
    }
}

/// In params, `null` is like none.
fn without_nulls(params: &Value) -> Value {
    match params {
        Value::Object(members) => Value::Object(
            members.iter().filter(|(_, value)| !value.is_null()).map(|(n, v)| (n.clone(), v.clone())).collect(),
        ),
        Value::Null => json!({}),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other.clone(),
    }
}

#[test]
fn a_lie_is_found() {
    let lies = |name: &str, value: Value| std::panic::catch_unwind(|| check(name, &value)).is_err();
    assert!(!lies("hooks.toggle.payload", json!({ "hookId": "u", "enabled": true })));
    assert!(lies("hooks.toggle.payload", json!({ "hookId": "u" })));
    assert!(lies("hooks.toggle.payload", json!({ "hookId": "u", "enabled": 1 })));
    assert!(lies("hooks.toggle.payload", json!({ "hookId": "u", "enabled": true, "more": 1 })));
    assert!(lies("nothing.payload", json!({})));
    let completed = json!({ "type": "run.completed", "agentId": "a", "runId": "r", "sessionKey": "s", "userId": "u",
        "channel": "ws", "chatId": "c", "payload": { "content": "x" } });
    assert!(lies("event.agent", completed));
}
