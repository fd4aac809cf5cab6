//! Frames of the protocol: one JSON text message each. Pure.

use pintle_domain::json::{NotAlike, Object, Value, json, parse, parse_alike};

use crate::error::{ApiError, stands_twice};

/// How much of the id of a request the log shows, in bytes: more than two UUIDs.
const MAX_ID_BYTES: usize = 80;

/// A request as it came in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A frame that is no request, and the id that its refusal is answered under, as far as it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BadFrame {
    pub(crate) id: String,
    pub(crate) error: Box<ApiError>,
}

/// Reads one message.
pub(crate) fn read(text: &str) -> Result<Request, BadFrame> {
    let bad = |id: &str, message: String| BadFrame { id: id.to_owned(), error: Box::new(ApiError::invalid(message)) };
    let value = parse_alike(text).map_err(|error| match error {
        NotAlike::NotJson(why) => bad("", format!("malformed request: {why}")),
        NotAlike::Twice(name) => bad(&id_beside(&name, text), format!("malformed request: {}", stands_twice(&name))),
    })?;
    let Value::Object(frame) = value else { return Err(bad("", "invalid frame: expected a JSON object".into())) };
    let id = frame.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = match frame.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(_) => return Err(bad(&id, "invalid frame: `type` must be a string".into())),
        None => return Err(bad(&id, "invalid frame: `type` is missing".into())),
    };
    if kind != "req" {
        return Err(bad(&id, format!("unexpected frame type: {kind}")));
    }
    request(id, frame).map_err(|(id, why)| bad(&id, format!("invalid frame: {why}")))
}

/// The id of a frame in which the member `twice` stands twice; of two ids none is meant.
fn id_beside(twice: &str, text: &str) -> String {
    let frame = parse(text).ok().filter(|_| twice != "id");
    frame.and_then(|frame| frame.get("id")?.as_str().map(str::to_owned)).unwrap_or_default()
}

fn request(id: String, mut frame: Object) -> Result<Request, (String, &'static str)> {
    if id.is_empty() {
        return Err((id, "`id` must be a string that is not empty"));
    }
    let method = match frame.get("method").and_then(Value::as_str) {
        Some(method) if !method.is_empty() => method.to_owned(),
        Some(_) | None => return Err((id, "`method` must be a string that is not empty")),
    };
    let params = frame.shift_remove("params").unwrap_or(Value::Null);
    Ok(Request { id, method, params })
}

/// The answer to the request `id`, as text.
pub(crate) fn response(id: &str, outcome: &Result<Value, ApiError>) -> String {
    let frame = match outcome {
        Ok(payload) => json!({ "type": "res", "id": id, "ok": true, "payload": payload }),
        Err(error) => json!({ "type": "res", "id": id, "ok": false, "error": error.to_json() }),
    };
    text_of(&frame)
}

/// An event, as text, up to its number in the connection.
pub(crate) fn event_head(event: &str, payload: &Value) -> String {
    let mut text = text_of(&json!({ "type": "event", "event": event, "payload": payload }));
    // The number is another one in each connection; the rest is written once for all of them.
    text.pop();
    text
}

/// The text of a hook that stays, up to its number in the connection.
pub(crate) fn hook_head(hook: &Object) -> String {
    let mut frame = Object::new();
    frame.insert("type".to_owned(), json!("hook"));
    hook.iter().for_each(|(name, value)| drop(frame.insert(name.clone(), value.clone())));
    let mut text = text_of(&Value::Object(frame));
    text.pop();
    text
}

/// A frame that [`event_head`] or [`hook_head`] began, with its number.
pub(crate) fn numbered(head: &str, seq: u64) -> String {
    format!("{head},\"seq\":{seq}}}")
}

fn text_of(frame: &Value) -> String {
    serde_json::to_string(frame).expect("a JSON value can always be written")
}

/// As much of the id of a request as the log shows: clients of the socket give any.
pub(crate) fn beginning_of(id: &str) -> &str {
    &id[..id.floor_char_boundary(MAX_ID_BYTES)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn a_request_is_an_object_with_three_members_that_count() {
        let read_it = read(r#"{"type":"req","id":"1","method":"x.y","params":{"a":1},"more":true}"#).unwrap();
        assert_eq!(read_it, Request { id: "1".into(), method: "x.y".into(), params: json!({ "a": 1 }) });
        assert_eq!(read(r#"{"type":"req","id":"1","method":"x"}"#).unwrap().params, Value::Null);
        // What is a text holds what it wants.
        let text = read(r#"{"type":"req","id":"1","method":"x","params":{"message":"{\"a\":1,\"a\":2}"}}"#).unwrap();
        assert_eq!(text.params, json!({ "message": r#"{"a":1,"a":2}"# }));
    }

    #[test]
    fn everything_else_is_refused_in_the_words_of_the_protocol() {
        let check = |text: &str, id: &str, message: &str| {
            let bad = read(text).unwrap_err();
            assert_eq!((bad.id.as_str(), bad.error.code), (id, ErrorCode::InvalidRequest), "{text}");
            assert!(bad.error.message.starts_with(message), "{text}: {}", bad.error.message);
        };
        check("", "", "malformed request: ");
        check("{", "", "malformed request: ");
        check("[]", "", "invalid frame: expected a JSON object");
        check("{}", "", "invalid frame: `type` is missing");
        check(r#"{"type":7,"id":"1"}"#, "1", "invalid frame: `type` must be a string");
        check(r#"{"type":"res","id":"1"}"#, "1", "unexpected frame type: res");
        check(r#"{"type":"req","method":"x"}"#, "", "invalid frame: `id` must be");
        check(r#"{"type":"req","id":1,"method":"x"}"#, "", "invalid frame: `id` must be");
        check(r#"{"type":"req","id":"1"}"#, "1", "invalid frame: `method` must be");
        check(r#"{"type":"req","id":"1","method":7}"#, "1", "invalid frame: `method` must be");
        let twice = |name: &str| format!("malformed request: the member \"{name}\" stands twice in one object");
        check(r#"{"type":"req","id":"1","method":"a.b","method":"c.d"}"#, "1", &twice("method"));
        check(r#"{"type":"req","id":"1","id":"2","method":"a.b"}"#, "", &twice("id"));
        let params = r#"{"type":"req","id":"1","method":"a.b","params":{"x":[{"y":1,"\u0079":2}]}}"#;
        check(params, "1", &twice("y"));
    }

    #[test]
    fn answers_and_events_are_written_as_published() {
        let ok = response("1", &Ok(json!({ "hookId": "u" })));
        assert_eq!(ok, r#"{"type":"res","id":"1","ok":true,"payload":{"hookId":"u"}}"#);
        let refused = response("2", &Err(ApiError::exhausted("too often", 250)));
        assert_eq!(
            refused,
            r#"{"type":"res","id":"2","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"too often","retryable":true,"retryAfterMs":250}}"#
        );
        let event = numbered(&event_head("name", &json!({})), 7);
        assert_eq!(event, r#"{"type":"event","event":"name","payload":{},"seq":7}"#);
        let hook = json!({ "name": "tone", "role": "system" });
        let hook = numbered(&hook_head(hook.as_object().unwrap()), 8);
        assert_eq!(hook, r#"{"type":"hook","name":"tone","role":"system","seq":8}"#);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            drop(read(&text));
        }
    }
}
