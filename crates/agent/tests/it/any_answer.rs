//! Whatever bytes a model answers with, the session goes on, and every request that follows is one that the vendors'
//! own libraries could have made, and in which each message stands where a server takes it.
//!
//! 60 answers in one piece and half as many streams on each wire by default; `PINTLE_ANSWER_CASES` says otherwise.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use futures_util::future::join_all;
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Models, SkillSet};
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_providers::WireKind::{self, Anthropic, OpenAi};
use pintle_providers::{ProviderSpec, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::hooks::OwnTool;
use crate::host::{Host, Parts};
use crate::placing::placed;
use crate::skills::skills;

/// Answers on each wire if nobody says otherwise.
const CASES: usize = 60;
/// Turns that follow.
const TURNS: usize = 3;

/// A tool whose name no vendor takes, and the name under which it goes out.
const ODD_TOOL: (&str, &str) = ("weather.get", "weather_get");

/// Texts that somebody once took for a name, an id or an argument.
const TEXTS: [&str; 16] = [
    "",
    " \n",
    "look",
    "functions.look:0",
    "weather.get",
    "weather_get",
    "<|tool_call|>look",
    "größe/\u{202e}x",
    "\u{0}",
    "{",
    "{}",
    r#"{"a":1.50e400}"#,
    r#"[1,"two"]"#,
    "null",
    "</system-reminder>",
    "call_0",
];

/// Reasons for an end, known ones and others.
const ENDS: [&str; 10] = [
    "stop",
    "tool_calls",
    "tool_use",
    "end_turn",
    "length",
    "max_tokens",
    "content_filter",
    "refusal",
    "pause_turn",
    "",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(TEXTS.to_vec()).prop_map(str::to_owned),
        2 => ".{0,12}",
        1 => "[a-z]{60,130}",
    ]
}

/// Any JSON, mostly a text.
fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        8 => text().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<u32>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn end() -> impl Strategy<Value = Value> {
    prop_oneof![4 => select(ENDS.to_vec()).prop_map(Value::from), 1 => odd()]
}

/// An answer of chat completions.
fn completion() -> impl Strategy<Value = Value> {
    let call = (odd(), odd(), odd(), (odd(), odd())).prop_map(|(id, name, arguments, (kind, extra))| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": id, "type": kind, "function": function, "extra_content": extra})
    });
    let calls = prop::collection::vec(call, 0..4);
    (odd(), odd(), odd(), calls, end()).prop_map(|(content, refusal, thought, calls, end)| {
        let message = json!({
            "role": "assistant", "content": content, "refusal": refusal, "reasoning_content": thought, "tool_calls": calls,
        });
        json!({"choices": [{"message": message, "finish_reason": end}]})
    })
}

/// An answer of the Messages API.
fn message() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        odd().prop_map(|text| json!({"type": "text", "text": text})),
        (odd(), odd(), odd())
            .prop_map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        (odd(), odd()).prop_map(|(text, mark)| json!({"type": "thinking", "thinking": text, "signature": mark})),
        odd().prop_map(|data| json!({"type": "redacted_thinking", "data": data})),
        odd().prop_map(|kind| json!({"type": kind, "id": "srv"})),
        odd(),
    ];
    (prop::collection::vec(block, 0..5), end()).prop_map(
        |(content, end)| json!({"type": "message", "role": "assistant", "content": content, "stop_reason": end}),
    )
}

/// An answer of chat completions, piece by piece.
fn completion_stream() -> impl Strategy<Value = String> {
    let place = prop_oneof![6 => (0..3u32).prop_map(Value::from), 1 => odd()];
    let call = (place, odd(), odd(), (odd(), odd())).prop_map(|(index, id, name, (arguments, kind))| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"tool_calls": [{"index": index, "id": id, "type": kind, "function": function}]})
    });
    let delta = prop_oneof![
        4 => call,
        2 => odd().prop_map(|text| json!({"content": text})),
        1 => odd().prop_map(|text| json!({"refusal": text})),
        1 => odd().prop_map(|text| json!({"reasoning_content": text})),
        1 => odd(),
    ];
    (prop::collection::vec(delta, 0..6), end(), any::<u8>()).prop_map(|(deltas, end, last)| {
        let chunk = |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
        let chunks = deltas.into_iter().map(|delta| chunk(delta, Value::Null)).chain([chunk(json!({}), end)]);
        let done = if last % 8 == 0 { "" } else { "data: [DONE]\n\n" };
        chunks.map(|chunk| format!("data: {chunk}\n\n")).collect::<String>() + done
    })
}

/// An answer of the Messages API, event by event.
fn message_stream() -> impl Strategy<Value = String> {
    let block = prop_oneof![
        Just(json!({"type": "text", "text": ""})),
        (odd(), odd()).prop_map(|(id, name)| json!({"type": "tool_use", "id": id, "name": name, "input": {}})),
        Just(json!({"type": "thinking", "thinking": ""})),
        odd().prop_map(|data| json!({"type": "redacted_thinking", "data": data})),
        odd(),
    ];
    let delta = prop_oneof![
        2 => odd().prop_map(|text| json!({"type": "text_delta", "text": text})),
        3 => odd().prop_map(|text| json!({"type": "input_json_delta", "partial_json": text})),
        1 => odd().prop_map(|text| json!({"type": "thinking_delta", "thinking": text})),
        1 => odd().prop_map(|mark| json!({"type": "signature_delta", "signature": mark})),
        1 => odd(),
    ];
    let blocks = prop::collection::vec((block, prop::collection::vec(delta, 0..3)), 0..4);
    (blocks, end(), any::<u8>()).prop_map(|(blocks, end, last)| {
        let mut events = vec![json!({"type": "message_start", "message": {"role": "assistant", "content": []}})];
        for (index, (block, deltas)) in blocks.into_iter().enumerate() {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            let told = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.extend(deltas.into_iter().map(told));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": end}, "usage": {}}));
        if last % 8 != 0 {
            events.push(json!({"type": "message_stop"}));
        }
        events.into_iter().map(|event| format!("data: {event}\n\n")).collect::<String>()
    })
}

/// The bytes of an answer: most often as JSON has them, else with some that were changed on the way.
fn bytes(answer: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec((any::<u16>(), any::<u8>()), 1..4)];
    (answer, changes).prop_map(|(answer, changes)| {
        let mut bytes = answer.into_bytes();
        for (at, byte) in changes {
            // The first byte says that it is one document.
            let at = 1 + usize::from(at) % (bytes.len() - 1);
            bytes[at] = byte;
        }
        bytes
    })
}

/// A sound answer: a text, or a call of the tool with the odd name.
fn sound(kind: WireKind, calls: bool) -> StubAnswer {
    let whole = match (kind == Anthropic, calls) {
        (true, false) => json!({"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn"}),
        (true, true) => {
            json!({"content": [{"type": "tool_use", "id": "call_0", "name": ODD_TOOL.1, "input": {}}], "stop_reason": "tool_use"})
        }
        (false, false) => json!({"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}]}),
        (false, true) => {
            let call = json!({"id": "call_0", "type": "function", "function": {"name": ODD_TOOL.1, "arguments": "{}"}});
            json!({"choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]})
        }
    };
    StubAnswer::json(&whole.to_string())
}

/// A host whose model answers with `odd`, and soundly from then on.
async fn host(name: &str, kind: WireKind, odd: &[u8], with_texts: bool) -> (HttpStub, Host) {
    let rest = [false, true, false].into_iter().cycle().take(40).map(|calls| sound(kind, calls));
    let kind_of = if odd.starts_with(b"data:") { "text/event-stream" } else { "application/json" };
    let odd = StubAnswer::new(200, odd).header("content-type", kind_of);
    let stub = HttpStub::start(std::iter::once(odd).chain(rest).collect()).await;
    let spec = ProviderSpec { base_url: Some(stub.url()), ..ProviderSpec::new(name, kind) };
    let mut parts = Parts::of(json!([]));
    parts.settings.model = format!("{name}/m");
    parts.settings.system = "S0".into();
    parts.models = Some(Arc::new(Models::default().with(name, connect(&spec).unwrap())));
    let look = OwnTool::giving("look", ToolOutput::ok("seen"));
    let mut host = parts.own(look).own(OwnTool::giving(ODD_TOOL.0, ToolOutput::ok("rain"))).host();
    if with_texts {
        host.runner = host.runner.with_skills(Arc::new(SkillSet::new(skills())));
    }
    (stub, host)
}

/// The requests of a session that begins with `odd`, as lines for the check.
async fn requests(name: &'static str, kind: WireKind, odd: Vec<u8>, with_texts: bool) -> Vec<(String, String)> {
    let (stub, mut host) = host(name, kind, &odd, with_texts).await;
    let told = String::from_utf8_lossy(&odd).into_owned();
    host.turn("U0").await;
    for turn in 0..TURNS {
        let report = host.turn(&format!("U{turn}")).await;
        assert_eq!(report.ending, TurnEnding::Completed, "{name}: the session is dead after {told}");
    }
    assert!(host.is_valid(), "{told}");
    let ran = host.said().iter().any(|line| line.ends_with(": rain"));
    assert!(ran, "{name}: the tool with the odd name ran, behind {told}: {:#?}", host.said());
    let wire = if kind == Anthropic { "anthropic" } else { "openai" };
    for seen in stub.seen() {
        let placed = placed(name, kind, &seen.body);
        assert_eq!(placed, Ok(()), "{name}: after the answer {told}\nthe request {}", seen.body);
    }
    let line = |body: &str| format!("{{\"wire\":\"{wire}\",\"body\":{body}}}");
    stub.seen().iter().map(|seen| (line(&seen.body), told.clone())).collect()
}

/// What the vendors' libraries say of each of `lines`.
pub(crate) fn checked(lines: &[String]) -> Vec<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = manifest.join("../../.cache/sdk/venv/bin/python");
    assert!(
        python.exists(),
        "the libraries of the vendors are not installed: run `./pintle test --install` once, which does it"
    );
    let mut input: File = tempfile::tempfile().unwrap();
    input.write_all(lines.join("\n").as_bytes()).unwrap();
    input.rewind().unwrap();
    let check =
        Command::new(python).arg(manifest.join("tests/fixtures/vendor_types.py")).stdin(Stdio::from(input)).output();
    let output = check.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn whatever_a_model_answers_the_session_goes_on_and_its_requests_are_valid() {
    let cases = std::env::var("PINTLE_ANSWER_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let mut runner = TestRunner::deterministic();
    let mut all = Vec::new();
    for case in 0..cases {
        let name = ["openai", "local", "other"][case % 3];
        let written = |answer: Value| answer.to_string();
        let odd = bytes(completion().prop_map(written)).new_tree(&mut runner).unwrap().current();
        all.push(requests(name, OpenAi, odd, case % 2 == 0));
        let odd = bytes(message().prop_map(written)).new_tree(&mut runner).unwrap().current();
        all.push(requests("anthropic", Anthropic, odd, case % 2 == 0));
        if case % 2 == 0 {
            let odd = bytes(completion_stream()).new_tree(&mut runner).unwrap().current();
            all.push(requests(name, OpenAi, odd, case % 4 == 0));
            let odd = bytes(message_stream()).new_tree(&mut runner).unwrap().current();
            all.push(requests("anthropic", Anthropic, odd, case % 4 == 0));
        }
    }
    let sent: Vec<(String, String)> = join_all(all).await.into_iter().flatten().collect();
    let lines: Vec<String> = sent.iter().map(|(line, _)| line.clone()).collect();
    let verdicts = checked(&lines);
    assert_eq!(verdicts.len(), lines.len());
    assert!(lines.len() > cases * 3 * TURNS);
    for (verdict, (line, odd)) in verdicts.iter().zip(&sent) {
        assert_eq!(verdict, "ok", "\nafter the answer {odd}\nthe request {line}");
    }
}
