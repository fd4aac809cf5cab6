//! Models that are given a schema instead of tools.

use pintle_providers::WireKind;
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::{ask, by_schema, provider, request, stream_of};

fn saying(pieces: &[&str]) -> StubAnswer {
    let chunks: Vec<String> = pieces
        .iter()
        .map(|piece| pintle_domain::json::json!({"choices": [{"delta": {"content": piece}}]}).to_string())
        .collect();
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).chain(["[DONE]"]).collect();
    StubAnswer::events(&stream_of(&chunks))
}

#[tokio::test]
async fn the_user_sees_the_reply_and_never_the_json() {
    let stub = HttpStub::start(vec![
        saying(&[r#"{"reply": "#, r#""15 °C"}"#]),
        saying(&[r#"{"tool": "weather", "#, r#""arguments": {"n": 1.50}}"#]),
        saying(&["plain ", "words"]),
    ])
    .await;
    let provider = by_schema(&stub);
    let (pieces, outcome) = ask(&*provider, &request()).await;
    assert_eq!((pieces, outcome.unwrap().content), (vec!["15 °C".to_owned()], "15 °C".to_owned()));

    let (pieces, outcome) = ask(&*provider, &request()).await;
    let reply = outcome.unwrap();
    assert!(pieces.is_empty() && reply.content.is_empty());
    assert_eq!(reply.finish_reason, "tool_calls");
    assert_eq!(reply.tool_calls[0].function.name, "weather");
    assert_eq!(reply.tool_calls[0].function.arguments, r#"{"n": 1.50}"#);

    let (pieces, outcome) = ask(&*provider, &request()).await;
    assert_eq!((pieces, outcome.unwrap().content), (vec!["plain words".to_owned()], "plain words".to_owned()));

    let sent = stub.seen()[0].json();
    assert!(sent.get("tools").is_none());
    assert_eq!(sent["max_tokens"], 1024);
    assert_eq!(sent["response_format"]["json_schema"]["schema"]["anyOf"][0]["properties"]["tool"]["const"], "weather");
    let system = sent["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("be good\n\n") && system.contains("- weather: tells the weather"));
}

#[tokio::test]
async fn half_a_call_is_an_error() {
    let stub = HttpStub::start(vec![saying(&[r#"{"tool": "weather", "argu"#])]).await;
    let (pieces, outcome) = ask(&*by_schema(&stub), &request()).await;
    assert!(pieces.is_empty());
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "provider `local`: the answer is not the JSON that was asked for \
         (EOF while parsing a string at line 1 column 25): does the server hold to schemas?"
    );
}

#[tokio::test]
async fn without_tools_the_answer_streams() {
    let stub = HttpStub::start(vec![saying(&["{\"a\":", "1}"]), saying(&["{", "}"])]).await;
    let mut request = request();
    request.tools.clear();
    let (pieces, outcome) = ask(&*by_schema(&stub), &request).await;
    assert_eq!(pieces, ["{\"a\":", "1}"]);
    assert_eq!(outcome.unwrap().content, "{\"a\":1}");
    let (_, outcome) = ask(&*provider(WireKind::OpenAi, &stub), &request).await;
    assert_eq!(outcome.unwrap().content, "{}");
}
