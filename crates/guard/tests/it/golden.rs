//! What each recorded event is read as, and what each ruling about it is to the host.

use std::fmt::Write as _;
use std::path::Path;

use pintle_domain::checkpoint::AgentInfo as _;
use pintle_domain::id::CallId;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::tool::ToolCall;
use pintle_guard::clients::{ClientKnowledge, client_protects};
use pintle_guard::coverage::GuardLevel;
use pintle_guard::shell_tools::known_as;
use pintle_guard::tools::{ToolClass, shell_texts};
use pintle_guard::{Answer, GuardRuling, HOSTS, HostCall, HostEvent, HostWhat, host};

use crate::recorded::{self, Recorded, rulings};

fn shown(event: &HostEvent) -> String {
    let mut text = format!("{} in session {:?}", event.event, event.session);
    let mut also = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            write!(text, ", {name} {value:?}").unwrap();
        }
    };
    also("turn", event.turn.as_deref());
    also("call", event.call.as_deref());
    also("cwd", Some(&event.cwd));
    also("transcript", event.transcript.as_deref());
    if let Some(attended) = event.attended {
        write!(text, ", attended {attended}").unwrap();
    }
    if let Some(agent) = &event.subagent {
        write!(text, "\n  {agent:?}").unwrap();
    }
    write!(text, "\n  {:?}\n  raw {}", event.what, event.host_raw).unwrap();
    text
}

fn said(answer: &Answer) -> String {
    let mut text = if answer.stdout.is_empty() { "nothing".to_owned() } else { answer.stdout.clone() };
    if answer.exit != 0 {
        write!(text, " and exit {} with {:?}", answer.exit, answer.stderr).unwrap();
    }
    if let Some(degraded) = &answer.degraded {
        write!(text, "   ({degraded})").unwrap();
    }
    text
}

fn check(id: &str) {
    let host = host(id).unwrap();
    let mut text = String::new();
    for record in recorded::of(host) {
        let event = record.decode().unwrap_or_else(|wrong| panic!("{id}, {}: {wrong}", record.name));
        write!(text, "## {}\n{}\n", record.name, shown(&event)).unwrap();
        let answered = host.event(&event.event).is_some_and(|row| row.answers);
        for ruling in rulings(&event, "why not").iter().filter(|_| answered) {
            let answer = (host.adapter.encode)(&event, ruling);
            writeln!(text, "  {:14} {}", ruling.word().word(), said(&answer)).unwrap();
        }
        text.push('\n');
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(id, text) });
}

#[test]
fn claude_is_read_and_answered() {
    check("claude");
}

#[test]
fn codex_is_read_and_answered() {
    check("codex");
}

#[test]
fn gemini_is_read_and_answered() {
    check("gemini");
}

#[test]
fn qwen_is_read_and_answered() {
    check("qwen");
}

#[test]
fn copilot_is_read_and_answered() {
    check("copilot");
}

#[test]
fn kimi_is_read_and_answered() {
    check("kimi");
}

#[test]
fn cline_is_read_and_answered() {
    check("cline");
}

#[test]
fn opencode_is_read_and_answered() {
    check("opencode");
}

#[test]
fn pi_is_read_and_answered() {
    check("pi");
}

/// One rule about the tool of a server is one for every host: each has a name of its own for it, and rules have ours.
#[test]
fn a_tool_of_a_server_has_one_name_for_rules() {
    let opencode = |tool: &str| {
        let payload = json!({
            "input": {"tool": tool, "sessionID": "s", "callID": "c"}, "output": {"args": {"text": "x"}}, "directory": "/w",
        });
        (host("opencode").unwrap(), "tool.execute.before", payload)
    };
    let claude = |tool: &str| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": tool, "tool_input": {"text": "x"},
        });
        (host("claude").unwrap(), "PreToolUse", payload)
    };
    for ((host, event, payload), canonical, class) in [
        (claude("mcp__box__touch"), "mcp_box_touch", ToolClass::Mcp),
        (opencode("box_touch"), "mcp_box_touch", ToolClass::Mcp),
        (opencode("my-box_touch_it"), "mcp_my-box_touch_it", ToolClass::Mcp),
        (opencode("mcp_box_touch"), "mcp_box_touch", ToolClass::Mcp),
        (opencode("apply_patch"), "edit_file", ToolClass::FileWrite),
        (opencode("plan_exit"), "plan_exit", ToolClass::Other),
        (opencode("todowrite"), "todowrite", ToolClass::Other),
    ] {
        let read = recorded::decode(host, Some(event), &[], payload.to_string().as_bytes()).unwrap();
        let tool = read.tool().unwrap();
        assert_eq!((tool.canonical.as_str(), tool.class), (canonical, class), "{} {}", host.id, tool.native);
    }
}

#[test]
fn what_copilot_types_into_an_open_shell_is_a_text_of_the_shell() {
    let copilot = host("copilot").unwrap();
    for tool in ["write_bash", "write_powershell"] {
        let payload = json!({
            "sessionId": "s", "cwd": "/w", "toolName": tool, "toolArgs": {"shellId": "0", "input": "git push --force"},
        });
        let read = recorded::decode(copilot, Some("preToolUse"), &[], payload.to_string().as_bytes()).unwrap();
        let call = read.tool().unwrap();
        assert_eq!((call.canonical.as_str(), call.class), ("exec", ToolClass::Shell));
        assert_eq!(shell_texts(copilot.tool(tool).unwrap(), &call.arguments), ["git push --force"]);
        // At the model door it comes as a command, and can be judged.
        let (name, arguments) = known_as(tool, &call.arguments).unwrap();
        let told = ToolCall { id: CallId::from("c"), tool: name, raw_tool: tool.into(), arguments };
        assert_eq!(client_protects(Some(copilot), &told, (Path::new("/w"), "/u/ann", &[])), None);
    }
    // There the `input` of other tools is a script of another language.
    let knowledge = ClientKnowledge::new(Some(copilot), Some("/w".into()), String::new());
    let script = json!({"input": "git push --force"});
    assert!(knowledge.shell("exec", script.as_object().unwrap()).commands.is_empty());
}

/// A client can be stopped by a signal that nobody can catch: the hosts that let a call run when a hook is late say so, of
/// every class that is held.
#[test]
fn whoever_lets_late_hooks_pass_is_named() {
    for host in HOSTS {
        // Claude Code is told to refuse then, and our plugins have a clock of their own.
        let refuses = ["claude", "opencode", "pi"].contains(&host.id);
        for row in host.coverage.iter().filter(|row| row.level == GuardLevel::Held) {
            let says_so = row.around.iter().any(|why| why.contains("SIGSTOP"));
            assert_eq!(says_so, !refuses, "{} {:?}: {:?}", host.id, row.class, row.around);
        }
    }
}

/// Every text, number and truth in `value`.
fn leaves(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Bool(truth) => all.push(truth.to_string()),
        Value::Number(number) => all.push(number.to_string()),
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, all)),
        Value::Object(members) => members.iter().for_each(|(_, member)| leaves(member, all)),
    }
}

fn lost(record: &Recorded) -> Vec<String> {
    let event = record.decode().unwrap();
    let kept = format!("{event:?}").replace("\\\\", "\\");
    let mut said = Vec::new();
    leaves(&record.payload, &mut said);
    // A text that is JSON itself stands in the event as what it says.
    said.retain(|text| !kept.contains(text.as_str()) && !kept.contains(&format!("{text:?}").replace("\\\\", "\\")));
    said
}

#[test]
fn no_recorded_event_is_read_as_less_than_it_says() {
    for record in recorded::all() {
        let lost = lost(record);
        assert!(lost.is_empty(), "{} {} loses {lost:?}", record.host.id, record.name);
    }
}

#[test]
fn every_host_has_its_records_its_rows_and_its_panics() {
    for host in HOSTS {
        let classes: Vec<_> = host.coverage.iter().map(|row| row.class).collect();
        assert_eq!(classes, pintle_guard::tools::ToolClass::ALL, "{}", host.id);
        assert!(!recorded::of(host).is_empty(), "{}", host.id);
        assert!(host.events.iter().any(|row| row.installed && row.stops), "{}", host.id);
    }
}

#[test]
fn what_was_said_of_a_result_stands_beside_it_and_the_turn_goes_on() {
    let said = |added: Option<&str>| GuardRuling::ModifyResult {
        text: "written\n\neslint: 1 problem".into(),
        shaped: None,
        added: added.map(str::to_owned),
    };
    for (id, tool) in [("claude", "Write"), ("claude", "Read"), ("qwen", "write_file")] {
        let host = host(id).unwrap();
        let call = json!({"file_path": "/w/a.js", "content": "x"}).as_object().cloned().unwrap();
        let call =
            HostCall { native: tool.into(), canonical: tool.into(), class: ToolClass::FileWrite, arguments: call };
        let what = HostWhat::ToolDone { tool: call, result: json!({"filePath": "/w/a.js"}), failed: false };
        let event = HostEvent {
            host: host.id,
            event: "PostToolUse".into(),
            session: "s".into(),
            turn: None,
            call: None,
            subagent: None,
            cwd: "/w".into(),
            transcript: None,
            attended: None,
            what,
            host_raw: Object::new(),
        };
        let Answer { stdout, degraded, .. } = (host.adapter.encode)(&event, &said(Some("eslint: 1 problem")));
        let beside =
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "eslint: 1 problem"}});
        assert_eq!((pintle_domain::json::parse(&stdout).unwrap(), degraded), (beside, None), "{id} {tool}");
        let Answer { degraded, .. } = (host.adapter.encode)(&event, &said(None));
        assert!(degraded.is_some(), "{id} cannot replace the result of {tool}");
    }
}
