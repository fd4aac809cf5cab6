//! Files of replies, good and bad.

use super::*;
use std::sync::Mutex;

use pintle_domain::json::{Object, Rendered};
use pintle_domain::llm::ToolDef;
use pintle_domain::message::{Message, Role};

fn request(message: Message, tools: &[&str]) -> LlmRequest {
    LlmRequest {
        model: "s/m".into(),
        messages: vec![Rendered::new(Message::text(Role::System, "the system")), Rendered::new(message)],
        tools: tools.iter().map(|name| Rendered::new(ToolDef::new(name, "", json!({})))).collect(),
        options: Object::new(),
        graceful_terminal: false,
    }
}

fn user(text: &str) -> LlmRequest {
    request(Message::text(Role::User, text), &[])
}

/// What the user saw, then the answer's text or the error.
async fn ask(script: &Scripted, request: &LlmRequest) -> String {
    let seen = Mutex::new(String::new());
    let on_delta = |delta: Delta<'_>| match delta {
        Delta::Text(text) => seen.lock().unwrap().push_str(&format!("{text}|")),
        Delta::Reasoning(text) => seen.lock().unwrap().push_str(&format!("({text})")),
        Delta::Sent => {}
    };
    let outcome = script.call("m", request, &on_delta).await;
    let seen = seen.into_inner().unwrap();
    match outcome {
        Ok(reply) => format!("{seen} -> {} [{}]", reply.content, reply.finish_reason),
        Err(error) => format!("{seen} -> {error:?}"),
    }
}

fn script(text: &str) -> Scripted {
    Scripted::from_json(text, "s.json").unwrap()
}

#[tokio::test]
async fn replies_are_played_in_order_and_run_out() {
    let script = script(
        r#"{"replies":[{"text":["a","b"],"reasoning":"hm","delay_ms":1},{"text":"c","finish_reason":"length"}]}"#,
    );
    assert_eq!(script.remaining(), 2);
    assert_eq!(ask(&script, &user("x")).await, "(hm)a|b| -> ab [stop]");
    assert_eq!(ask(&script, &user("x")).await, "c| -> c [length]");
    assert_eq!(script.remaining(), 0);
    let expected = r#" -> Final { message: "the script `s.json` has no reply left: all 2 are used" }"#;
    assert_eq!(ask(&script, &user("x")).await, expected);
}

#[tokio::test]
async fn conditions_pick_the_reply() {
    let script = script(
        r#"{"replies":[
          {"when":{"contains":"apple"},"text":"last"},
          {"when":{"anywhere":"the system","tool":"t"},"text":"tool"},
          {"when":{"tool_result":"42"},"text":"result"},
          {"when":{"model":"other"},"text":"never"},
          {"when":{"no_tools":true},"text":"any","repeat":true}]}"#,
    );
    assert_eq!(ask(&script, &request(Message::text(Role::User, "?"), &["t"])).await, "tool| -> tool [stop]");
    assert_eq!(ask(&script, &user("42")).await, "any| -> any [stop]");
    assert_eq!(ask(&script, &request(Message::tool("c", "is 42"), &["u"])).await, "result| -> result [stop]");
    assert_eq!(ask(&script, &user("an apple")).await, "last| -> last [stop]");
    assert_eq!(ask(&script, &user("an apple")).await, "any| -> any [stop]");
    let unmatched = ask(&script, &request(Message::text(Role::User, "?"), &["u"])).await;
    assert_eq!(
        unmatched,
        r#" -> Final { message: "the script `s.json` has no reply for this request: none of its 2 that are left matches" }"#
    );
}

#[tokio::test]
async fn failures_follow_the_pieces() {
    let script = script(
        r#"{"replies":[
          {"text":"half","error":{"kind":"rate_limit","message":"slow","retry_after_ms":5}},
          {"text":"half","cut":true},
          {"error":{"kind":"final"}},
          {"error":{"kind":"context_limit"}}]}"#,
    );
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(ask(&script, &user("x")).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
        half| -> Transient { reason: RateLimit, message: "slow", retry_after: Some(5ms) }
        half| -> Transient { reason: Network, message: "the answer was cut: the stream ended without its last piece (scripted)", retry_after: None }
         -> Final { message: "scripted error" }
         -> Transient { reason: ContextLimit, message: "scripted context limit", retry_after: None }
        "#);
}

#[tokio::test]
async fn calls_keep_their_digits_and_each_answer_says_that_it_is_scripted() {
    let script = script(
        r#"{"replies":[{"tool_calls":[
          {"name":"x","arguments":{"n":1.50e+400}},{"name":"y","arguments":"{broken","id":"own"},{"name":"z"}],
          "usage":{"prompt_tokens":3,"completion_tokens":4}}]}"#,
    );
    let reply = script.call("m", &user("x"), &|_| {}).await.unwrap();
    let calls: Vec<String> =
        reply.tool_calls.iter().map(|c| format!("{} {}{}", c.id, c.function.name, c.function.arguments)).collect();
    assert_eq!(calls, [r#"scripted_1 x{"n":1.50e+400}"#, "own y{broken", "scripted_3 z{}"]);
    assert_eq!(reply.finish_reason, "tool_calls");
    assert_eq!(reply.usage.unwrap().total_tokens, 7);
    assert_eq!(reply.reasoning_details, json!({"scripted": true}));
    assert_eq!(reply.private.blocks, [json!({"type": "scripted"})]);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let error = |text: &str| Scripted::from_json(text, "s.json").err().unwrap().to_string();
    let lines = [
        "{\"replies\":[\n {\"txt\":\"a\"}]}",
        "{\"replies\":[\n {\"text\":5}]}",
        "{\"replies\":[{\"tool_calls\":[{\"name\":\"x\",\"arguments\":[1]}]}]}",
        "{\"replies\":[{\"error\":{\"kind\":\"boom\"}}]}",
        "{\"replies\":[{\"delay_ms\":600001}]}",
        "{\"replies\":[{\"when\":{\"says\":\"x\"}}]}",
        "{}",
        "{\"replies\":[",
    ]
    .map(error);
    insta::assert_snapshot!(lines.join("\n"), @r#"
        the script `s.json` is not a list of replies: unknown field `txt`, expected one of `when`, `text`, `reasoning`, `tool_calls`, `finish_reason`, `usage`, `delay_ms`, `error`, `cut`, `repeat` at line 2 column 7
        the script `s.json` is not a list of replies: invalid type: integer `5`, expected a text or a list of texts at line 2 column 10
        the script `s.json` is not a list of replies: `arguments` is `[1]`, expected an object or JSON text at line 1 column 55
        the script `s.json` is not a list of replies: unknown variant `boom`, expected one of `rate_limit`, `server_error`, `timeout`, `network`, `context_limit`, `final` at line 1 column 35
        the script `s.json` is not a list of replies: `delay_ms` is 600001, expected at most 600000 at line 1 column 31
        the script `s.json` is not a list of replies: unknown field `says`, expected one of `contains`, `anywhere`, `tool_result`, `tool`, `no_tools`, `model` at line 1 column 27
        the script `s.json` is not a list of replies: missing field `replies` at line 1 column 2
        the script `s.json` is not a list of replies: EOF while parsing a list at line 1 column 12
        "#);
}

#[test]
fn a_file_that_cannot_be_played_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let error = |path: &Path| Scripted::from_file(path).err().unwrap().to_string().replace(&place, "DIR");
    assert_eq!(error(folder.path()), "cannot read the script `DIR`: it is not a file");
    assert_eq!(
        error(&folder.path().join("none.json")),
        "cannot read the script `DIR/none.json`: No such file or directory (os error 2)"
    );
    let file = folder.path().join("s.json");
    std::fs::write(&file, r#"{"replies":[{"text":"a"}]}"#).unwrap();
    assert_eq!(Scripted::from_file(&file).unwrap().remaining(), 1);
}
