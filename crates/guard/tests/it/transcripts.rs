//! What hosts write down, in the shapes of their wires: which calls were asked about, and which were not.

use pintle_domain::json::json;
use pintle_guard::host::HostRefusals;
use pintle_guard::transcript::{KnownCalls, TranscriptCall, call_content, transcript_calls};
use pintle_guard::{HOSTS, host, panic_deny};

fn lines(lines: &[pintle_domain::json::Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Two calls in the words of each wire, of which the second has no result yet.
fn written() -> Vec<(&'static str, String)> {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": id}});
    let messages = lines(&[
        json!({"type": "assistant", "timestamp": "2026-11-26T07:00:00Z", "message": {"content": [call("c1"), call("c2")]}}),
        json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "out"}]}
        ]}}),
    ]);
    let item = |payload: pintle_domain::json::Value| json!({"timestamp": "2026-11-26T07:00:00Z", "type": "response_item", "payload": payload});
    let function = |id: &str| {
        let arguments = json!({"command": id}).to_string();
        item(json!({"type": "function_call", "name": "Bash", "call_id": id, "arguments": arguments}))
    };
    let responses = lines(&[
        function("c1"),
        item(json!({"type": "function_call_output", "call_id": "c1", "output": "out"})),
        function("c2"),
    ]);
    let part = |id: &str| json!({"functionCall": {"id": id, "name": "Bash", "args": {"command": id}}});
    let parts = lines(&[
        json!({"type": "assistant", "timestamp": "2026-11-26T07:00:00Z", "message": {"parts": [part("c1"), part("c2")]}}),
        json!({"type": "tool_result", "message": {"parts": [
            {"functionResponse": {"id": "c1", "name": "Bash", "response": {"output": "out"}}}
        ]}}),
    ]);
    let done = json!({"id": "c1", "name": "Bash", "args": {"command": "c1"}, "result": [{"output": "out"}], "status": "success"});
    let waits = json!({"id": "c2", "name": "Bash", "args": {"command": "c2"}, "status": "executing"});
    let beside = json!({"sessionId": "s", "messages": [
        {"type": "gemini", "timestamp": "2026-11-26T07:00:00Z", "toolCalls": [done, waits]}
    ]});
    let event = |kind: &str, data: pintle_domain::json::Value| json!({"type": kind, "timestamp": "2026-11-26T07:00:00Z", "data": data});
    let start = |id: &str| {
        event("tool.execution_start", json!({"toolCallId": id, "toolName": "Bash", "arguments": {"command": id}}))
    };
    let events = lines(&[
        start("c1"),
        event("tool.execution_complete", json!({"toolCallId": "c1", "success": true, "result": {"content": "out"}})),
        start("c2"),
    ]);
    let step = |event: pintle_domain::json::Value| json!({"type": "context.append_loop_event", "event": event, "time": 1_795_677_717_757_u64});
    let called =
        |id: &str| step(json!({"type": "tool.call", "toolCallId": id, "name": "Bash", "args": {"command": id}}));
    let steps = lines(&[
        called("c1"),
        step(json!({"type": "tool.result", "toolCallId": "c1", "result": {"output": "out"}})),
        called("c2"),
    ]);
    let message = |message: pintle_domain::json::Value| json!({"type": "message", "timestamp": "2026-11-26T07:00:00Z", "message": message});
    let wanted = |id: &str| json!({"type": "toolCall", "id": id, "name": "Bash", "arguments": {"command": id}});
    let turns = lines(&[
        message(json!({"role": "assistant", "content": [wanted("c1"), wanted("c2")]})),
        message(json!({"role": "toolResult", "toolCallId": "c1", "toolName": "Bash", "content": [{"text": "out"}]})),
    ]);
    let state = |id: &str, status: &str| {
        let times = json!({"start": 1_795_677_717_757_u64, "end": 1_795_677_717_800_u64});
        json!({"status": status, "input": {"command": id}, "output": "out", "title": "Bash", "time": times})
    };
    let stored =
        |id: &str, status: &str| json!({"type": "tool", "callID": id, "tool": "Bash", "state": state(id, status)});
    let store = lines(&[stored("c1", "completed"), stored("c2", "running"), json!({"type": "text", "text": "hello"})]);
    vec![
        ("steps", steps),
        ("store", store),
        ("turns", turns),
        ("messages", messages),
        ("responses", responses),
        ("parts", parts),
        ("beside", format!("{beside:#}")),
        ("events", events),
    ]
}

#[test]
fn calls_with_a_result_are_found_in_every_wire() {
    for (name, text) in written() {
        for text in [text.clone(), format!("{text}\n{{\"half\": [")] {
            if name == "beside" && text.ends_with('[') {
                continue;
            }
            let calls = transcript_calls(&text);
            let [TranscriptCall { id, tool, arguments, at, result, failed: false }] = calls.as_slice() else {
                panic!("{name}: {calls:?}");
            };
            assert_eq!((id.as_deref(), tool.as_str()), (Some("c1"), "Bash"), "{name}");
            assert_eq!(arguments, &json!({"command": "c1"}), "{name}");
            let when = if ["steps", "store"].contains(&name) { "1795677717757" } else { "2026-11-26T07:00:00Z" };
            assert_eq!(at.as_deref(), Some(when), "{name}");
            assert!(result.contains("out"), "{name}: {result}");
        }
    }
}

#[test]
fn what_a_call_or_a_result_is_about_is_no_call() {
    let inner = json!({"type": "tool_use", "id": "x", "name": "Bash", "input": {}});
    let text = lines(&[
        json!({"type": "tool_use", "id": "c1", "name": "Write", "input": {"content": [inner]}}),
        json!({"type": "tool_result", "tool_use_id": "c1", "content": [
            inner, {"type": "tool_result", "tool_use_id": "x", "content": "y"}
        ]}),
    ]);
    let calls = transcript_calls(&text);
    assert_eq!(calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["Write"]);
}

#[test]
fn what_nobody_asked_about_is_found_by_id_or_by_content() {
    let call = |id: Option<&str>, command: &str, result: &str| TranscriptCall {
        id: id.map(str::to_owned),
        tool: "Bash".into(),
        arguments: json!({"command": command}),
        at: None,
        result: result.into(),
        failed: false,
    };
    let digest = |content: &str| format!("<{content}>");
    let mut known = KnownCalls::default();
    known.asked_id("c1");
    known.asked_content(&digest(&call_content("Bash", &json!({"command": "twice"}))));
    let unknown = known.unknown(
        vec![
            call(Some("c1"), "by its id", "ok"),
            call(Some("g1"), "twice", "ok"),
            call(Some("g2"), "twice", "ok"),
            call(Some("g3"), "other", "ok"),
            call(Some("g4"), "stopped", "Pintle's guard did not answer, so this call is refused."),
            call(Some("g5"), "ran", "out\nPintle's guard did not answer, so this call is refused."),
        ],
        &HostRefusals::BARE,
        digest,
    );
    let ids: Vec<_> = unknown.iter().map(|call| call.id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["g2", "g3", "g5"]);
}

#[test]
fn a_call_that_was_changed_counts_once() {
    let call = |command: &str| TranscriptCall {
        id: None,
        tool: "Bash".into(),
        arguments: json!({"command": command}),
        at: None,
        result: "ok".into(),
        failed: false,
    };
    let digest = |content: &str| format!("<{content}>");
    let content = |command: &str| digest(&call_content("Bash", &json!({"command": command})));
    let unknown = |asked: usize, ran: &[&str]| {
        let mut known = KnownCalls::default();
        (0..asked).for_each(|_| known.asked_content(&content("before")));
        (0..asked).for_each(|_| known.changed_content(&content("before"), &content("after")));
        let calls = ran.iter().map(|command| call(command)).collect();
        known.unknown(calls, &HostRefusals::BARE, digest).len()
    };
    for ran in [["before"], ["after"]] {
        assert_eq!(unknown(1, &ran), 0, "{ran:?}");
    }
    for ran in [["before", "after"], ["after", "before"], ["after", "after"], ["before", "before"]] {
        assert_eq!((unknown(1, &ran), unknown(2, &ran)), (1, 0), "{ran:?}");
    }
}

/// Whether a call with `result` is no gap of the agent `id`.
fn is_excused(id: &str, (result, failed): (pintle_domain::json::Value, bool)) -> bool {
    let text = lines(&[
        json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}),
        json!({"type": "tool_result", "tool_use_id": "c1", "content": result, "is_error": failed}),
    ]);
    let refusals = &host(id).unwrap().config.refusals;
    KnownCalls::default().unknown(transcript_calls(&text), refusals, str::to_owned).is_empty()
}

#[test]
fn only_a_result_that_is_nothing_but_a_refusal_excuses_a_call() {
    const REASON: &str = "Pintle's guard did not answer, so this call is refused.";
    for host in HOSTS {
        let denies = host.events.iter().map(|row| panic_deny(host.id, row.name));
        assert_eq!(denies.filter(|deny| deny.contains(REASON)).count().min(1), 1, "{}", host.id);
        for (before, behind) in host.config.refusals.around {
            let whole =
                if behind.is_empty() { format!("{before}{REASON}") } else { format!("{before}{REASON}{behind}x") };
            for said in
                [json!(whole), json!([{"type": "text", "text": whole}]), json!({"error": whole, "code": "denied"})]
            {
                assert!(is_excused(host.id, (said.clone(), true)), "{}: {said}", host.id);
                assert_eq!(
                    is_excused(host.id, (said.clone(), false)),
                    !host.config.refusals.marked,
                    "{}: {said}",
                    host.id
                );
            }
            for more in
                [format!("x{whole}"), format!("out\n{whole}"), format!("{before}{REASON}\nout"), REASON[1..].to_owned()]
            {
                for said in [json!(more), json!([{"text": whole}, {"text": more}]), json!({"output": more})] {
                    assert!(!is_excused(host.id, (said.clone(), true)), "{}: {said}", host.id);
                }
            }
        }
    }
}

#[test]
fn what_an_agent_rejects_itself_is_no_gap() {
    let said = "<tool_use_error>InputValidationError: `command` is missing</tool_use_error>";
    for said in [json!(said), json!([{"type": "text", "text": said}])] {
        assert!(is_excused("claude", (said.clone(), true)));
        assert!(!is_excused("claude", (said.clone(), false)) && !is_excused("codex", (said, true)));
    }
    for said in [json!("out <tool_use_error>"), json!([{"text": "<tool_use_error>x"}, {"text": "out"}]), json!([])] {
        assert!(!is_excused("claude", (said.clone(), true)), "{said}");
    }
}

#[test]
fn a_call_that_its_agent_did_not_start_never_ran() {
    let call =
        json!({"parts": [{"functionCall": {"id": "a", "name": "run_shell_command", "args": {"command": "sleep 5"}}}]});
    let told = |ended: pintle_domain::json::Value| {
        let response = json!({"id": "a", "name": "run_shell_command", "response": {"error": "Blocked"}});
        let line = json!({"message": {"parts": [{"functionResponse": response}]}, "toolCallResult": ended});
        transcript_calls(&format!("{call}\n{line}\n")).len()
    };
    let end = |id: &str, how: &str| json!({"callId": id, "status": "error", "executionStatus": how});
    assert_eq!(told(end("a", "not_started")), 0);
    // Another call, another end, and what a tool can write.
    for other in [end("b", "not_started"), end("a", "completed"), json!({"resultDisplay": end("a", "not_started")})] {
        assert_eq!(told(other.clone()), 1, "{other}");
        assert_eq!(told(json!({"toolCallResult": end("a", "not_started")})), 1);
    }
}

#[test]
fn no_text_breaks_reading() {
    for text in ["", "{", "null", "[[[", "{\"type\": \"tool_use\"}", "{\"id\": 1, \"name\": {}, \"args\": []}\n\u{0}"] {
        assert_eq!(transcript_calls(text), [], "{text}");
    }
}
