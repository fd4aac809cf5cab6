//! The Messages API in its published shapes.

use pintle_domain::json::{Rendered, json};
use pintle_domain::message::Message;
use pintle_providers::WireKind::Anthropic;
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::{KEY, answered, ask, provider, request};

const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me thïnk"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: ping
data: {"type": "ping"}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Checking "}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"…"}}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 1.5"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"0e+400}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: something_new
data: {"type":"something_new","index":9}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

data: {broken
"#;

#[tokio::test]
async fn a_stream_is_read_and_its_thoughts_go_back_unchanged() {
    for answer in [StubAnswer::events(STREAM), StubAnswer::events(STREAM).drip(1), StubAnswer::events(STREAM).drip(7)] {
        let stub = HttpStub::start(vec![answer, StubAnswer::events(STREAM)]).await;
        let provider = provider(Anthropic, &stub);
        let mut request = request();
        let (pieces, outcome) = ask(&*provider, &request).await;
        let reply = outcome.unwrap();
        assert_eq!(pieces, ["(Let me thïnk)", "Checking ", "…"]);
        assert_eq!(reply.content, "Checking …");
        assert_eq!(reply.reasoning_content, "Let me thïnk");
        assert_eq!(reply.finish_reason, "tool_calls");
        let usage = reply.usage.unwrap();
        assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (30, 15, 45));
        assert_eq!(reply.tool_calls[0].id, "toolu_1");
        assert_eq!(reply.tool_calls[0].function.arguments, r#"{"n": 1.50e+400}"#);

        request.messages.push(Rendered::new(reply.into_message("m")));
        request.messages.push(Rendered::new(Message::tool("toolu_1", "15 °C")));
        ask(&*provider, &request).await.1.unwrap();
        let sent = stub.seen()[1].json();
        assert_eq!(
            sent["messages"][1]["content"].to_string(),
            r#"[{"type":"thinking","thinking":"Let me thïnk","signature":"EqQB"},{"type":"redacted_thinking","data":"xyz"},{"type":"text","text":"Checking …"},{"type":"tool_use","id":"toolu_1","name":"weather","input":{"n":1.50e+400}}]"#
        );
        let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "15 °C"}]);
        assert_eq!(sent["messages"][2], json!({"role": "user", "content": result}));
    }
}

#[tokio::test]
async fn the_request_leaves_as_it_stands() {
    let stub = HttpStub::start(vec![StubAnswer::events(STREAM)]).await;
    ask(&*provider(Anthropic, &stub), &request()).await.1.unwrap();
    let seen = stub.seen().remove(0);
    assert_eq!(seen.line, "POST /v1/messages");
    assert_eq!(seen.header("x-api-key"), Some(KEY));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        seen.body,
        r#"{"model":"m","system":[{"type":"text","text":"be good"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[{"name":"weather","description":"tells the weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"maximum":1.10}}],"max_tokens":4096,"temperature":0.20,"stream":true}"#
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_is_as_good() {
    let body = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"weather","input":{"n":10000000000000000000000.0}}],"stop_reason":"refusal","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let (pieces, outcome) = answered(Anthropic, StubAnswer::json(body)).await;
    let reply = outcome.unwrap();
    assert_eq!(pieces, ["hi"]);
    assert_eq!(reply.finish_reason, "refusal");
    assert_eq!(reply.tool_calls[0].function.arguments, r#"{"n":10000000000000000000000.0}"#);
    assert!(reply.private.blocks.is_empty());
}

#[tokio::test]
async fn reasons_to_stop_are_translated() {
    for (reason, expected) in [("end_turn", "stop"), ("max_tokens", "length"), ("pause_turn", "pause_turn")] {
        let body = STREAM.replace("\"tool_use\",\"stop_sequence\"", &format!("\"{reason}\",\"stop_sequence\""));
        assert_eq!(answered(Anthropic, StubAnswer::events(&body)).await.1.unwrap().finish_reason, expected);
    }
}
