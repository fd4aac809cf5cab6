//! Waterfalls of turns that are made up.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use pintle_domain::id::TurnId;
use pintle_domain::json::{Value, from_value, json};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::StoredEvent;

use super::waterfall::{Kept, handed_over, handed_to, parent_of, waterfall};
use crate::model_doors::ModelPrices;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap()
}

fn event(ms: i64, name: &str, round: u32, call: Option<&str>, hooks: Value) -> StoredEvent {
    let mut event = json!({
        "event_id": format!("e{ms}{name}"), "at": at(ms).to_string(), "event": name, "checkpoint": name,
        "tenant_id": "", "agent_id": "", "session_id": "", "turn_id": "t", "iteration": round, "is_test": false,
        "ruling": "continue", "substituted": false, "hooks": hooks,
    });
    if let Some(call) = call {
        event["tool_call_id"] = json!(call);
        event["tool"] = json!("exec");
    }
    from_value(event).unwrap()
}

fn ran(name: &str, took: f64) -> Value {
    json!([{ "hook": name, "family": "process", "checkpoint": "x", "ran": true, "verdict": "continue", "duration_ms": took }])
}

fn entry(ms: i64, fact: Value) -> (Timestamp, JournalEntry) {
    (at(ms), from_value(json!({ "turn": fact })).unwrap())
}

fn replied(ms: i64, round: u32, calls: Value) -> (Timestamp, JournalEntry) {
    let message = json!({ "role": "assistant", "content": "text", "model_name": "m", "tool_calls": calls });
    let usage = json!({ "prompt_tokens": 9 * round, "completion_tokens": 2, "total_tokens": 9 * round + 2 });
    let replied = json!({ "iteration": round, "message": { "message": message }, "read_only": [], "usage": usage });
    entry(ms, json!({ "replied": replied }))
}

static NO_PRICES: LazyLock<ModelPrices> = LazyLock::new(ModelPrices::default);

fn kept<'a>(events: &'a [StoredEvent], journal: &'a [(Timestamp, JournalEntry)], whole: bool) -> Kept<'a> {
    Kept { events, journal, executions: &[], prices: &NO_PRICES, whole }
}

/// A turn of one call: a hook before the model, the model, a gate, the tool.
fn one_call() -> (Vec<StoredEvent>, Vec<(Timestamp, JournalEntry)>) {
    let events = vec![
        event(30, "before_llm", 1, None, ran("weather", 20.0)),
        event(140, "before_tool", 1, Some("c"), ran("guard", 30.0)),
        event(140, "pre_tool_use", 1, Some("c"), json!([])),
    ];
    let call = json!([{ "id": "c", "type": "function", "function": { "name": "exec", "arguments": "{}" } }]);
    let answer =
        json!({ "text": "done", "media": [], "handled": false, "execution": { "name": "exec", "success": true } });
    let turn = TurnId::from("t");
    let journal = vec![
        entry(5, json!({ "begun": { "turn_id": turn, "prompts": [], "max_iterations": 5 } })),
        replied(100, 1, call),
        entry(145, json!({ "used": { "place": 0, "read_only": false, "tool": "exec", "digest": "d" } })),
        entry(200, json!({ "answered": { "place": 0, "answer": answer } })),
        replied(260, 2, json!([])),
    ];
    (events, journal)
}

fn line(span: &Value) -> (String, Value, f64, f64) {
    let number = |name: &str| span[name].as_f64().unwrap();
    (span["id"].as_str().unwrap().to_owned(), span["parentId"].clone(), number("startMs"), number("durationMs"))
}

#[test]
fn the_model_and_the_tool_stand_between_what_hooks_did() {
    let (events, journal) = one_call();
    let (spans, took) = waterfall(&kept(&events, &journal, true));
    let lines: Vec<_> = spans.iter().map(line).collect();
    // The turn begins with the first hook, 10 ms on this clock.
    let expected = [
        ("round:1", Value::Null, 0.0, 190.0),
        ("round:2", Value::Null, 190.0, 60.0),
        ("e30before_llm:0", json!("round:1"), 0.0, 20.0),
        ("model:1", json!("round:1"), 20.0, 70.0),
        ("call:1:c", json!("round:1"), 100.0, 90.0),
        ("e140before_tool:1", json!("call:1:c"), 100.0, 30.0),
        ("e140pre_tool_use:2", json!("call:1:c"), 130.0, 0.0),
        ("tool:1:c", json!("call:1:c"), 135.0, 55.0),
        ("model:2", json!("round:2"), 190.0, 60.0),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(id, parent, start, took)| (id.to_owned(), parent, start, took)).collect();
    assert_eq!((lines, took), (expected, 250.0));
    let call = spans.iter().find(|span| span["kind"] == "call").unwrap();
    assert_eq!((&call["result"], &call["isError"], &call["digest"]), (&json!("done"), &json!(false), &json!("d")));
    let tokens = |id: &str| spans.iter().find(|span| span["id"] == id).unwrap()["usage"]["total_tokens"].clone();
    assert_eq!((tokens("model:1"), tokens("model:2"), tokens("round:1")), (json!(11), json!(20), Value::Null));
    let gate = spans.iter().find(|span| span["name"] == "before_tool").unwrap();
    assert_eq!((&gate["hooks"][0]["startMs"], &gate["hooks"][0]["durationMs"]), (&json!(100.0), &json!(30.0)));
}

#[test]
fn without_a_conversation_there_are_the_records() {
    let (events, _) = one_call();
    let (spans, took) = waterfall(&kept(&events, &[], true));
    let kinds: Vec<&str> = spans.iter().map(|span| span["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds, took), (vec!["round", "checkpoint", "call", "checkpoint", "checkpoint"], 130.0));
    assert_eq!(waterfall(&kept(&[], &[], true)), (vec![], 0.0));
}

#[test]
fn what_a_program_wrote_before_its_end_is_for_those_who_run_the_host() {
    let failed = |fault: &str| {
        json!([{ "hook": "guard", "family": "process", "checkpoint": "x", "ran": true, "verdict": "deny",
            "fault": fault, "fault_detail": "failed", "cause": "KeyError: 'x'" }])
    };
    let cause = |fault: &str, whole| {
        let events = [event(10, "before_tool", 1, None, failed(fault))];
        let (spans, _) = waterfall(&kept(&events, &[], whole));
        let span = spans.iter().find(|span| span["kind"] == "checkpoint").unwrap();
        assert_eq!(span["hooks"][0]["faultDetail"], "failed");
        span["hooks"][0]["cause"].as_str().is_some()
    };
    for (fault, everybody) in [
        ("bad_exit", false),
        ("killed", false),
        ("cannot_start", false),
        ("protocol_error", true),
        ("unreadable", true),
    ] {
        assert_eq!((cause(fault, true), cause(fault, false)), (true, everybody), "{fault}");
    }
}

#[test]
fn a_sub_agent_works_for_the_call_that_asked_for_it_last() {
    let events = [
        event(10, "subagent_start", 1, Some("a"), json!([])),
        event(20, "subagent_start", 1, Some("b"), json!([])),
        event(90, "subagent_start", 2, Some("c"), json!([])),
    ];
    for (began, call) in [(5, None), (15, Some("call:1:a")), (50, Some("call:1:b")), (95, Some("call:2:c"))] {
        assert_eq!(parent_of(&events, &at(began).to_string()).as_deref(), call, "{began}");
    }
}

#[test]
fn without_any_hook_a_sub_agent_works_for_the_first_call_that_nobody_works_for() {
    let call =
        |id: &str, tool: &str| json!({ "id": id, "type": "function", "function": { "name": tool, "arguments": "{}" } });
    let used = |ms, place: usize, tool: &str| {
        entry(ms, json!({ "used": { "place": place, "read_only": false, "tool": tool, "digest": "d" } }))
    };
    // The third was refused, and the first is no sub-agent's.
    let calls = json!([call("l", "list_dir"), call("a", "delegate"), call("r", "delegate"), call("b", "spawn")]);
    let journal = [replied(10, 1, calls), used(12, 0, "list_dir"), used(20, 1, "delegate"), used(21, 3, "spawn")];
    let handed = handed_over(&journal);
    let mut taken = BTreeSet::new();
    for (began, expected) in [(15, None), (25, Some("call:1:a")), (25, Some("call:1:b")), (30, None)] {
        let found = handed_to(&handed, &at(began).to_string(), &taken);
        assert_eq!(found.as_deref(), expected, "{began}");
        taken.extend(found);
    }
}
