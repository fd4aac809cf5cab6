//! Where the requests of a long turn say that a cache may end.

use std::sync::Arc;

use pintle_agent::Models;
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_providers::WireKind::Anthropic;
use pintle_providers::{ProviderSpec, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::any_answer::checked;
use crate::hooks::OwnTool;
use crate::host::Parts;

const ROUNDS: usize = 10;

/// The pieces of a request in the order in which a cache reads them, without marks, and the places of these.
fn pieces(body: &Value) -> (Vec<String>, Vec<usize>) {
    let mut all: Vec<(String, Value)> = Vec::new();
    let of = |value: &Value| value.as_array().cloned().unwrap_or_default();
    all.extend(of(&body["tools"]).into_iter().map(|tool| ("tool".to_owned(), tool)));
    all.extend(of(&body["system"]).into_iter().map(|block| ("system".to_owned(), block)));
    for message in of(&body["messages"]) {
        let role = message["role"].as_str().unwrap().to_owned();
        all.extend(of(&message["content"]).into_iter().map(|block| (role.clone(), block)));
    }
    let marks = all.iter().enumerate().filter(|(_, (_, piece))| piece.get("cache_control").is_some()).map(|(at, _)| at);
    let marks = marks.collect();
    let bare = |(role, mut piece): (String, Value)| {
        piece.as_object_mut().unwrap().shift_remove("cache_control");
        format!("{role} {piece}")
    };
    (all.into_iter().map(bare).collect(), marks)
}

fn says(content: &Value, reason: &str) -> StubAnswer {
    StubAnswer::json(&json!({"type": "message", "content": content, "stop_reason": reason}).to_string())
}

#[tokio::test]
async fn what_a_cache_holds_only_grows_over_a_turn_of_ten_rounds() {
    // One round has more calls than a cache looks back over.
    let call = |round: usize, call: usize| json!({"type": "tool_use", "id": format!("c{round}_{call}"), "name": "look", "input": {"n": round}});
    let calls = |round: usize| -> Value { (0..if round == 5 { 24 } else { 2 }).map(|n| call(round, n)).collect() };
    let mut answers: Vec<StubAnswer> = (0..ROUNDS).map(|round| says(&calls(round), "tool_use")).collect();
    answers.push(says(&json!([{"type": "text", "text": "done"}]), "end_turn"));
    let stub = HttpStub::start(answers).await;
    // The vendor's entry counts for a provider of its name.
    let spec = ProviderSpec { base_url: Some(stub.url()), ..ProviderSpec::new("anthropic", Anthropic) };
    let mut parts = Parts::of(json!([]));
    parts.settings.model = "anthropic/claude-haiku-4-5".into();
    parts.settings.system = "S0".into();
    parts.settings.max_iterations = 20;
    parts.models = Some(Arc::new(Models::default().with("anthropic", connect(&spec).unwrap())));
    let mut host = parts.own(OwnTool::giving("look", ToolOutput::ok("seen"))).host();
    assert_eq!(host.turn("U1").await.reply, "done");

    let sent: Vec<Value> = stub.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(sent.len(), ROUNDS + 1);
    let mut held: Vec<String> = Vec::new();
    let mut before: Option<usize> = None;
    for (n, body) in sent.iter().enumerate() {
        let (all, marks) = pieces(body);
        assert!(marks.len() <= 4 && marks[..2] == [0, 1], "tools and system, then the history: {marks:?}");
        assert!(all.starts_with(&held), "request {n} does not begin with what the one before left in the cache");
        let last = *marks.last().unwrap();
        assert_eq!(last + 1, all.len(), "all of it stands in the next request too");
        assert!(last >= held.len(), "it grows");
        if let Some(before) = before {
            assert!(marks.contains(&before), "what was marked last is looked up: {marks:?} without {before}");
        }
        held = all;
        before = Some(last);
    }
    let lines: Vec<String> =
        stub.seen().iter().map(|seen| format!("{{\"wire\":\"anthropic\",\"body\":{}}}", seen.body)).collect();
    assert!(checked(&lines).iter().all(|verdict| verdict == "ok"));
}
