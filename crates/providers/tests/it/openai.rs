//! Chat completions in the shapes that servers really send.

use pintle_domain::json::json;
use pintle_providers::WireKind::OpenAi;
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::{KEY, answered, ask, provider, request, stream_of};

const TEXT: [&str; 5] = [
    r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    r#"{"id":"x","choices":[{"index":0,"delta":{"content":"Grüße "},"finish_reason":null}]}"#,
    r#"{"id":"x","choices":[{"index":0,"delta":{"content":"😀"},"finish_reason":null}]}"#,
    r#"{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"id":"x","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#,
];

fn text() -> String {
    stream_of(&[&TEXT[..], &["[DONE]"]].concat())
}

#[tokio::test]
async fn a_stream_of_text_is_read_however_it_is_split() {
    let whole = text();
    let inside_a_letter = whole.find('ü').unwrap() + 1;
    let inside_a_line = whole.find("data:").unwrap() + 2;
    let answers = vec![
        StubAnswer::events(&whole),
        StubAnswer::events(&whole).drip(1),
        StubAnswer::events(&whole).split_at(&[inside_a_line, inside_a_letter]),
        StubAnswer::events(&whole.replace('\n', "\r\n")).drip(3),
        StubAnswer::events(whole.trim_end()),
        StubAnswer::events(&format!(": keep-alive\n\n{whole}data: {{broken")),
    ];
    let stub = HttpStub::start(answers.clone()).await;
    let provider = provider(OpenAi, &stub);
    for _ in answers {
        let (pieces, outcome) = ask(&*provider, &request()).await;
        let reply = outcome.unwrap();
        assert_eq!(pieces, ["Grüße ", "😀"]);
        assert_eq!((reply.content.as_str(), reply.finish_reason.as_str()), ("Grüße 😀", "stop"));
        let usage = reply.usage.unwrap();
        assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (9, 3, 12));
    }
}

#[tokio::test]
async fn the_request_leaves_as_it_stands() {
    let stub = HttpStub::start(vec![StubAnswer::events(&text())]).await;
    ask(&*provider(OpenAi, &stub), &request()).await.1.unwrap();
    let seen = stub.seen().remove(0);
    assert_eq!(seen.line, "POST /v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        seen.body,
        r#"{"model":"m","messages":[{"role":"system","content":"be good"},{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"weather","description":"tells the weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"maximum":1.10}}}],"temperature":0.20,"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[tokio::test]
async fn calls_arrive_in_pieces() {
    let body = stream_of(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\": 1.5"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"time","arguments":"{}"}},{"index":0,"function":{"arguments":"0e400}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]);
    let (pieces, outcome) = answered(OpenAi, StubAnswer::events(&body).drip(11)).await;
    let reply = outcome.unwrap();
    assert!(pieces.is_empty());
    assert_eq!(reply.finish_reason, "tool_calls");
    assert_eq!(
        pintle_domain::json::to_value(&reply.tool_calls).unwrap(),
        json!([
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"n\": 1.50e400}"}},
            {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
        ])
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_is_as_good() {
    let body = r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":"{}"}}]},"finish_reason":"eos"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    for answer in [StubAnswer::json(body), StubAnswer::events(body), StubAnswer::new(200, format!("\n {body}")).drip(2)]
    {
        let (pieces, outcome) = answered(OpenAi, answer).await;
        let reply = outcome.unwrap();
        assert_eq!(pieces, ["(hm)", "hi"]);
        assert_eq!((reply.content.as_str(), reply.reasoning_content.as_str()), ("hi", "hm"));
        assert_eq!((reply.finish_reason.as_str(), reply.tool_calls.len()), ("eos", 1));
        assert_eq!(reply.usage.unwrap().total_tokens, 3);
    }
}

#[tokio::test]
async fn any_reason_to_finish_is_taken() {
    let table = [
        (r#""eos""#, "", "eos"),
        (r#""""#, "[DONE]", "stop"),
        ("null", "[DONE]", "stop"),
        (r#""length""#, "[DONE]", "length"),
    ];
    for (reason, done, expected) in table {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"x"}},"finish_reason":{reason}}}]}}"#);
        let body = stream_of(&[&chunk]) + &if done.is_empty() { String::new() } else { stream_of(&[done]) };
        let (_, outcome) = answered(OpenAi, StubAnswer::events(&body)).await;
        assert_eq!(outcome.unwrap().finish_reason, expected, "{reason}");
    }
}

#[tokio::test]
async fn thoughts_and_refusals_are_told() {
    let body = stream_of(&[
        r#"{"choices":[{"delta":{"reasoning_content":"a","reasoning":"a"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"I "}],"refusal":"cannot"}}]}"#,
        "[DONE]",
    ]);
    let (pieces, outcome) = answered(OpenAi, StubAnswer::events(&body)).await;
    let reply = outcome.unwrap();
    assert_eq!(pieces, ["(a)", "(b)", "I ", "cannot"]);
    assert_eq!((reply.reasoning_content.as_str(), reply.reasoning.as_str()), ("a", "ab"));
    assert_eq!(reply.reasoning_details, json!([{"type": "reasoning.text", "text": "b"}]));
    assert_eq!(reply.content, "I cannot");
}

#[tokio::test]
async fn a_server_without_stream_options_is_asked_again_without_them() {
    let refused = StubAnswer::new(400, r#"{"error":{"message":"Unrecognized request argument: stream_options"}}"#);
    let stub = HttpStub::start(vec![refused, StubAnswer::events(&text()), StubAnswer::events(&text())]).await;
    let provider = provider(OpenAi, &stub);
    for _ in 0..2 {
        assert_eq!(ask(&*provider, &request()).await.1.unwrap().content, "Grüße 😀");
    }
    let asked: Vec<bool> = stub.seen().iter().map(|seen| seen.json().get("stream_options").is_some()).collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn thoughts_in_the_text_are_no_part_of_the_answer_and_go_back_to_their_provider_as_they_came() {
    let chunk = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string();
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let pieces = ["<thi", "nk>\nhm", "\n</think>\n\nhe", "llo"].map(chunk);
    let documents: Vec<&str> = pieces.iter().map(String::as_str).chain([end, "[DONE]"]).collect();
    let answers = [stream_of(&documents), text(), text()].map(|body| StubAnswer::events(&body));
    let stub = HttpStub::start(answers.to_vec()).await;
    let provider = provider(OpenAi, &stub);
    let (pieces, outcome) = ask(&*provider, &request()).await;
    let reply = outcome.unwrap();
    assert_eq!(pieces, ["(\nhm)", "(\n)", "he", "llo"]);
    assert_eq!((reply.content.as_str(), reply.reasoning_content.as_str()), ("hello", "hm"));
    for (author, sent) in [("", "<think>\nhm\n</think>\n\nhello"), ("other/m", "hello")] {
        let mut again = request();
        again.messages.push(reply.clone().into_message(author).into());
        ask(&*provider, &again).await.1.unwrap();
        let body = pintle_domain::json::parse(&stub.seen().pop().unwrap().body).unwrap();
        assert_eq!(body["messages"][2]["content"], sent, "{author}");
    }
}
