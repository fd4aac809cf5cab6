//! What commands are given, beside what the agent whose wire it is was seen to give.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_dialects::claude::documents::{of_notice, of_subject};
use pintle_dialects::claude::{ClaudeEvent, Documents, Surroundings};
use pintle_domain::checkpoint::{
    AfterTool, Notice, ObservedEvent, PreToolUse, SubagentStart, Subject, UserPromptSubmit,
};
use pintle_domain::id::{EventId, TurnId};
use pintle_domain::identity::{ForeignEvent, ForeignPlace, ForeignResult, Identity};
use pintle_domain::json::{Object, Value, json, same_value};
use pintle_domain::llm::Usage;
use pintle_domain::tool::{ToolCall, ToolOutput};

/// Members of recorded payloads that say nothing here: how hard the model thinks, and the server of a tool.
const NOT_GIVEN: [&str; 2] = ["effort", "mcp_server"];

fn who() -> Identity {
    Identity::top("main", "s1", TurnId::from("t1"))
}

/// The payload that was recorded under `name`.
fn recorded(name: &str) -> Object {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../guard/tests/fixtures/claude/2.1.330").join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let text = text.replace("$CWD", "/w").replace("$HOME", "/h/me");
    let Value::Object(mut whole) = pintle_domain::json::parse(&text).unwrap() else { panic!("{name}") };
    let Some(Value::Object(payload)) = whole.shift_remove("payload") else { panic!("{name}") };
    payload
}

fn call(tool: &str, payload: &Object) -> ToolCall {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap().to_owned();
    let arguments = payload.get("tool_input").and_then(Value::as_object).unwrap().clone();
    ToolCall { id: text("tool_use_id").as_str().into(), tool: tool.to_owned(), raw_tool: text("tool_name"), arguments }
}

/// The one document that a command is given.
fn one(event: ClaudeEvent, subject: Subject<'_>) -> Value {
    let identity = who();
    match of_subject((event, None), subject, Surroundings { who: &identity, cwd: Path::new("/w") }).unwrap() {
        Documents::One(document) => document,
        Documents::OfCall(mut parts) if parts.len() == 1 => parts.remove(0).0,
        other @ (Documents::None | Documents::OfCall(_)) => panic!("{other:?}"),
    }
}

/// Everything that was recorded is there, of the same type; what is about the call, with the same value.
fn check(ours: &Value, recorded: &Object) {
    for (name, value) in recorded.iter().filter(|(name, _)| !NOT_GIVEN.contains(&name.as_str())) {
        let own = ours.get(name).unwrap_or_else(|| panic!("`{name}` is missing in {ours}"));
        assert_eq!(std::mem::discriminant(own), std::mem::discriminant(value), "{name}: {own}");
        if ["tool_name", "tool_input", "tool_use_id", "hook_event_name", "prompt", "source", "error"]
            .contains(&name.as_str())
        {
            assert!(same_value(own, value), "{name}: {own} and not {value}");
        }
    }
}

#[test]
fn calls_look_as_they_were_recorded() {
    for (file, tool) in [
        ("PreToolUse.Bash.json", "exec"),
        ("PreToolUse.Write.json", "write_file"),
        ("PreToolUse.Read.json", "read_file"),
        ("PreToolUse.Agent.json", "delegate"),
        ("PreToolUse.mcp__box__touch.json", "mcp_box_touch"),
    ] {
        let payload = recorded(file);
        let gate = PreToolUse { call: call(tool, &payload) };
        check(&one(ClaudeEvent::PreToolUse, Subject::PreToolUse(&gate)), &payload);
    }
    for (file, tool) in [
        ("PostToolUse.Bash.json", "exec"),
        ("PostToolUse.Write.json", "write_file"),
        ("PostToolUse.mcp__box__touch.json", "mcp_box_touch"),
    ] {
        let payload = recorded(file);
        let done =
            AfterTool { call: call(tool, &payload), result: ToolOutput::ok("ran"), duration: Duration::from_millis(7) };
        check(&one(ClaudeEvent::PostToolUse, Subject::AfterTool(&done)), &payload);
    }
    let payload = recorded("PostToolUseFailure.Bash.json");
    let failed =
        AfterTool { call: call("exec", &payload), result: ToolOutput::error("Exit code 3"), duration: Duration::ZERO };
    check(&one(ClaudeEvent::PostToolUseFailure, Subject::AfterTool(&failed)), &payload);
    let identity = who();
    let around = Surroundings { who: &identity, cwd: Path::new("/w") };
    let other = of_subject((ClaudeEvent::PostToolUse, None), Subject::AfterTool(&failed), around);
    assert_eq!(other, Ok(Documents::None), "a failure has an event of its own");
}

#[test]
fn other_events_look_as_they_were_recorded() {
    let payload = recorded("UserPromptSubmit.json");
    let prompt = UserPromptSubmit::first(payload.get("prompt").and_then(Value::as_str).unwrap());
    check(&one(ClaudeEvent::UserPromptSubmit, Subject::UserPromptSubmit(&prompt)), &payload);
    let start = SubagentStart::new("general-purpose".into(), "look", 1, None);
    check(&one(ClaudeEvent::SubagentStart, Subject::SubagentStart(&start)), &recorded("SubagentStart.subagent.json"));
    let told = |event, what| {
        let notice = Notice { event_id: EventId::from("e1"), at: jiff::Timestamp::UNIX_EPOCH, who: who(), what };
        of_notice(event, &notice, Path::new("/w"))
    };
    let (document, source) = told(ClaudeEvent::SessionStart, ObservedEvent::SessionStart).unwrap();
    check(&document, &recorded("SessionStart.json"));
    assert_eq!(source, "startup");
    let stop = || ObservedEvent::Stop {
        reply: "done".into(),
        iterations: 1,
        usage: Usage::default(),
        duration: Duration::ZERO,
    };
    check(&told(ClaudeEvent::Stop, stop()).unwrap().0, &recorded("Stop.json"));
    assert_eq!(told(ClaudeEvent::SessionStart, stop()), None);
}

#[test]
fn who_works_for_another_agent_says_so() {
    let below = Identity { depth: 1, ..who() };
    let gate = PreToolUse { call: ToolCall::new("c1", "exec", [("command", "ls")]) };
    let around = Surroundings { who: &below, cwd: Path::new("/w") };
    let Documents::OfCall(parts) =
        of_subject((ClaudeEvent::PreToolUse, None), Subject::PreToolUse(&gate), around).unwrap()
    else {
        panic!("it is a call")
    };
    check(&parts[0].0, &{
        let mut payload = recorded("PreToolUse.Bash.subagent.json");
        payload.insert("tool_input".into(), json!({"command": "ls"}));
        payload.insert("tool_use_id".into(), "c1".into());
        payload
    });
}

/// Who acts where the agent `host` under guard said `payload`, of which hooks read the result as `text`.
fn guarded(host: &str, payload: &Object, text: &str) -> Identity {
    let said = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
    let foreign = ForeignEvent {
        host: host.into(),
        event: said("hook_event_name").unwrap(),
        raw: payload.clone(),
        place: ForeignPlace {
            session: said("session_id").unwrap(),
            transcript: said("transcript_path"),
            agent_id: said("agent_id"),
            agent_kind: said("agent_type"),
        },
        result: payload.get("tool_response").map(|value| ForeignResult { text: text.into(), value: value.clone() }),
        ..ForeignEvent::default()
    };
    Identity { foreign: Some(Arc::new(foreign)), ..Identity::top("main", "claude:s1", TurnId::from("turn-of-ours")) }
}

/// What a command is told after `payload`, of which hooks read the result as `text` and left `left`.
fn told_under_guard(who: &Identity, (tool, payload): (&str, &Object), left: &str) -> Value {
    let done =
        AfterTool { call: call(tool, payload), result: ToolOutput::ok(left), duration: Duration::from_millis(7) };
    let around = Surroundings { who, cwd: Path::new("/w") };
    match of_subject((ClaudeEvent::PostToolUse, None), Subject::AfterTool(&done), around).unwrap() {
        Documents::OfCall(mut parts) if parts.len() == 1 => parts.remove(0).0,
        other @ (Documents::None | Documents::One(_) | Documents::OfCall(_)) => panic!("{other:?}"),
    }
}

#[test]
fn under_guard_a_command_hears_what_its_own_agent_said() {
    for (file, tool) in [
        ("PostToolUse.Bash.json", "exec"),
        ("PostToolUse.Write.json", "write_file"),
        ("PostToolUse.mcp__box__touch.json", "mcp_box_touch"),
        ("PostToolUse.Bash.subagent.json", "exec"),
    ] {
        let payload = recorded(file);
        let who = guarded("claude", &payload, "ran");
        let told = told_under_guard(&who, (tool, &payload), "ran");
        for name in ["session_id", "transcript_path", "permission_mode", "agent_id", "agent_type", "tool_response"] {
            assert_eq!(told.get(name), payload.get(name), "{file}: {name}");
        }
        // The turn is the one that records have: the door takes it over from the agent where it says one.
        assert_eq!(told["prompt_id"], "turn-of-ours", "{file}");
        assert_ne!(told.get("prompt_id"), payload.get("prompt_id"), "{file}");
        // The mode is what was said, whichever it is.
        let mut other = payload.clone();
        other.insert("permission_mode".into(), "plan".into());
        let told = told_under_guard(&guarded("claude", &other, "ran"), (tool, &other), "ran");
        assert_eq!(told["permission_mode"], "plan", "{file}");
        // A result that a hook has changed is what it left of it, and that of another agent has Claude's shape.
        let changed = told_under_guard(&who, (tool, &payload), "[gone]");
        assert!(changed["tool_response"].to_string().contains("[gone]"), "{changed}");
        assert_ne!(changed.get("tool_response"), payload.get("tool_response"));
        let codex = told_under_guard(&guarded("codex", &payload, "ran"), (tool, &payload), "ran");
        assert_eq!(codex.get("session_id"), payload.get("session_id"));
        assert!(codex["tool_response"].to_string().contains("ran"), "{codex}");
        let gemini = told_under_guard(&guarded("gemini", &payload, "ran"), (tool, &payload), "ran");
        assert_eq!((&gemini["session_id"], &gemini["permission_mode"]), (&json!("claude:s1"), &json!("default")));
    }
}
