//! JSON as it is written, inside of rmcp's messages. Their values have numbers of the machine and sorted members, so
//! beside what has to arrive as it was sent goes its text, under a key of `_meta` that leaves this process never.

use super::outline::outline;
use pintle_domain::json::{Object, Value, parse, to_value};
use rmcp::model::{JsonObject, MetaObject, ServerResult};
use serde::Serialize;

/// The key of the text.
const KEY: &str = "pintle/exact";

/// What a result has that came of a call or a list of tools.
const OF_TOOLS: [&str; 4] = ["content", "structuredContent", "isError", "tools"];

/// `object` as rmcp's messages hold one.
pub(crate) fn theirs(object: Object) -> JsonObject {
    object.into_iter().map(|(name, value)| (name, value.into())).collect()
}

/// The text of `value`, to go beside it.
pub(crate) fn meta(value: &impl ToString) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert(KEY.to_owned(), value.to_string().into());
    meta
}

/// A message as it is written: what has a text beside it is replaced by that.
///
/// # Errors
/// It is not JSON, in rmcp's words, or a text beside it is none.
pub(crate) fn written(message: &impl Serialize) -> Result<Value, serde_json::Error> {
    let mut value = to_value(message)?;
    if let Some(params) = value.get_mut("params").and_then(Value::as_object_mut) {
        restore(params, "arguments")?;
    }
    let tools = value.get_mut("result").and_then(|result| result.get_mut("tools")).and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
        restore(tool, "inputSchema")?;
    }
    Ok(value)
}

/// Puts the text that goes with `holder` under `name`. A text that cannot be read is an error: what stands under `name`
/// has lost digits.
fn restore(holder: &mut Object, name: &str) -> Result<(), serde_json::Error> {
    let Some(meta) = holder.get_mut("_meta").and_then(Value::as_object_mut) else { return Ok(()) };
    let Some(text) = meta.shift_remove(KEY) else { return Ok(()) };
    if meta.is_empty() {
        holder.shift_remove("_meta");
    }
    let value = parse(text.as_str().unwrap_or_default()).map_err(serde::ser::Error::custom)?;
    holder.insert(name.to_owned(), value);
    Ok(())
}

/// Lays the text of a result of tools beside it.
pub(crate) fn noted(result: &mut Value) {
    let Some(members) = result.as_object_mut() else { return };
    if !OF_TOOLS.iter().any(|name| members.contains_key(name)) {
        return;
    }
    let text = members.to_string();
    let meta = members.entry("_meta").or_default();
    if !meta.is_object() {
        *meta = Value::Object(Object::new());
    }
    meta[KEY] = text.into();
}

/// A whole message with the text of its result, if it has one, beside that; nothing if it is not JSON.
pub(crate) fn noted_text(message: &str) -> Option<String> {
    let mut value = parse(message).ok()?;
    noted(value.get_mut("result")?);
    Some(value.to_string())
}

/// The method of a message that is a notice.
pub(crate) fn notice(message: &str) -> Option<String> {
    let top = outline(message);
    if !top.has_method || top.id.is_some() {
        return None;
    }
    parse(message).ok()?.get("method")?.as_str().map(str::to_owned)
}

/// A result as it was written.
///
/// # Errors
/// It is not JSON, in words.
pub(crate) fn result(result: ServerResult) -> Result<Value, String> {
    let value = to_value(result).map_err(|error| error.to_string())?;
    match value.get("_meta").and_then(|meta| meta.get(KEY)).and_then(Value::as_str) {
        Some(text) => parse(text),
        None => Ok(value),
    }
}

/// The arguments of a call that came in, none if it brought none.
///
/// # Errors
/// They are not as the wire left them, in words.
pub(crate) fn arguments(noted: &JsonObject) -> Result<Object, String> {
    if noted.is_empty() {
        return Ok(Object::new());
    }
    match noted.get(KEY).and_then(serde_json::Value::as_str).map(parse) {
        Some(Ok(Value::Object(arguments))) => Ok(arguments),
        Some(Ok(_)) | None => Err("expected an object".to_owned()),
        Some(Err(why)) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"z":1.10,"content":[],"structuredContent":{"b":123456789012345678901234567890,"a":1.0}}"#;

    /// Over HTTP it is rmcp that reads messages.
    #[test]
    fn a_result_comes_through_rmcp_as_it_was_written() {
        for text in [RESULT, r#"{"tools":[{"name":"t","inputSchema":{"type":"object","b":1.50,"a":2}}]}"#] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{text}}}"#);
            let noted = noted_text(&message).unwrap();
            let read: rmcp::model::ServerJsonRpcMessage = serde_json::from_str(&noted).unwrap();
            let rmcp::model::JsonRpcMessage::Response(response) = read else { panic!("{noted}") };
            assert_eq!(result(response.result).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_server_cannot_say_what_the_text_was() {
        let forged = r#"{"content":[],"_meta":{"pintle/exact":"{\"content\":[1]}"}}"#;
        let mut value = parse(forged).unwrap();
        noted(&mut value);
        assert_eq!(value["_meta"][KEY], forged);
    }

    #[test]
    fn arguments_that_cannot_be_read_are_no_empty_arguments() {
        assert_eq!(arguments(&JsonObject::new()), Ok(Object::new()));
        for text in ["{", "[]"] {
            assert!(arguments(&meta(&text).0).is_err(), "{text}");
            let message = serde_json::json!({"params": {"arguments": {"a": 1}, "_meta": {KEY: text}}});
            assert_eq!(written(&message).is_err(), text == "{", "{text}");
        }
        assert!(arguments(&JsonObject::from_iter([("a".to_owned(), 1.into())])).is_err());
    }

    #[test]
    fn other_results_stay_as_they_are() {
        for text in
            [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}"#]
        {
            assert_eq!(noted_text(text).as_deref(), Some(text));
        }
        assert_eq!(noted_text(r#"{"jsonrpc":"2.0","method":"x"}"#), None);
    }
}
