//! What holds of every input and every reason, hostile ones among them.

use pintle_domain::json::{self, Value, json};
use pintle_guard::{Answer, GuardHost, GuardRuling, HOSTS, HostEvent, HostWhat, Malformed};
use proptest::prelude::*;

use crate::recorded::{self, decode, rulings};

/// The members that Codex knows, by where they stand; it throws an answer with any other one away.
const CODEX_MEMBERS: [&str; 3] = ["decision", "reason", "hookSpecificOutput"];
const CODEX_SPECIFIC: [&str; 6] = [
    "hookEventName",
    "permissionDecision",
    "permissionDecisionReason",
    "updatedInput",
    "additionalContext",
    "decision",
];

fn check(host: &GuardHost, event: &HostEvent, ruling: &GuardRuling) {
    let answer = (host.adapter.encode)(event, ruling);
    let what = || format!("{} {} {ruling:?}: {answer:?}", host.id, event.event);
    let document = document(&answer).unwrap_or_else(|wrong| panic!("{}: {wrong}", what()));
    let stops = host.event(&event.event).is_some_and(|row| row.stops);
    let is_stop = event.what.is_stop();
    if ruling.stops() && stops && !is_stop && event.what != HostWhat::Other {
        assert!(!answer.stdout.is_empty() || answer.exit == 2, "nothing where a refusal is meant: {}", what());
        // Where the host is about to ask anyway, silence lets it.
        let asks_itself = matches!(ruling, GuardRuling::Ask { attended: true, .. })
            && matches!(event.what, HostWhat::Permission { .. });
        assert!(asks_itself || answer.stdout != "{}", "{}", what());
    }
    if answer.exit != 0 {
        assert!(answer.exit == 2 && !answer.stderr.trim().is_empty() && answer.stdout.is_empty(), "{}", what());
    }
    for reason in reasons(&document) {
        assert!(!reason.trim().is_empty(), "an empty reason: {}", what());
        let most = match host.id {
            "kimi" => 2_500,
            "codex" => 12_000,
            _ => 17_000,
        };
        assert!(reason.len() <= most, "a reason of {} bytes: {}", reason.len(), host.id);
    }
    if host.id == "codex"
        && let Value::Object(members) = &document
    {
        assert!(members.keys().all(|name| CODEX_MEMBERS.contains(&name.as_str())), "{}", what());
        let specific = members.get("hookSpecificOutput").and_then(Value::as_object);
        let known = |name: &String| CODEX_SPECIFIC.contains(&name.as_str());
        assert!(specific.is_none_or(|members| members.keys().all(known)), "{}", what());
    }
}

/// The one document on standard output; null where there is none.
fn document(answer: &Answer) -> Result<Value, String> {
    if answer.stdout.is_empty() {
        return Ok(Value::Null);
    }
    if answer.stdout.contains('\n') {
        return Err("a second line".to_owned());
    }
    json::parse(&answer.stdout)
}

/// Everything that stands for a reason.
fn reasons(document: &Value) -> Vec<String> {
    const NAMES: [&str; 6] = ["reason", "permissionDecisionReason", "message", "errorMessage", "stopReason", "deny"];
    let Value::Object(members) = document else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for (name, member) in members {
        if NAMES.contains(&name.as_str()) {
            found.extend(member.as_str().map(str::to_owned));
        } else if name == "hookSpecificOutput" || name == "decision" {
            found.extend(reasons(member));
        }
    }
    found
}

fn check_all(reason: &str) {
    for record in recorded::all() {
        let event = record.decode().unwrap();
        for ruling in rulings(&event, reason) {
            check(record.host, &event, &ruling);
        }
    }
}

#[test]
fn no_reason_breaks_an_answer() {
    for reason in ["", " \n\t", "\"}\n{\"decision\":\"allow\"}", "\u{0}\u{7f}\u{2028}\u{feff}", "\\ud800"] {
        check_all(reason);
    }
}

#[test]
fn a_reason_of_100_kilobytes_is_cut_to_what_the_host_takes() {
    let long = "ä\"\n".repeat(25_000);
    let mut seen = Vec::new();
    for record in recorded::all() {
        let event = record.decode().unwrap();
        let what = (record.host.id, event.event.clone());
        if seen.contains(&what) {
            continue;
        }
        seen.push(what);
        for ruling in rulings(&event, &long) {
            check(record.host, &event, &ruling);
        }
    }
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(any::<char>(), 0..40).prop_map(|chars| chars.into_iter().collect()),
        (0_usize..120_000).prop_map(|length| "\u{1F980}x".repeat(length / 5)),
    ]
}

/// A recorded payload with one member changed, taken away or put in.
fn bent() -> impl Strategy<Value = (usize, String, Option<String>)> {
    (any::<usize>(), "[a-zA-Z_]{0,14}", proptest::option::of("(null|[1-9][0-9]{0,19}|\"\"|\\[\\]|\\{\\}|true|\"x\")"))
}

proptest! {
    #[test]
    fn no_reason_breaks_an_answer_of_any_host(reason in hostile(), at in any::<usize>()) {
        let records = recorded::all();
        let record = &records[at % records.len()];
        let event = record.decode().unwrap();
        for ruling in rulings(&event, &reason) {
            check(record.host, &event, &ruling);
        }
    }

    #[test]
    fn no_bytes_break_reading(bytes in proptest::collection::vec(any::<u8>(), 0..400), event in "[a-zA-Z.]{0,20}") {
        for host in HOSTS {
            if let Ok(event) = decode(host, Some(&event), &[], &bytes) {
                prop_assert!(event.session_id().as_str().starts_with(host.id));
            }
        }
    }

    #[test]
    fn no_bent_payload_breaks_reading_or_answering((at, name, value) in bent(), which in any::<usize>()) {
        let records = recorded::all();
        let record = &records[at % records.len()];
        let mut payload = record.payload.clone();
        let members = payload.as_object_mut().unwrap();
        let known: Vec<String> = members.keys().cloned().collect();
        let name = if name.len() % 3 == 0 { name } else { known[which % known.len()].clone() };
        match value {
            Some(text) => { members.insert(name, json::parse(&text).unwrap()); }
            None => { members.shift_remove(&name); }
        }
        if let Ok(event) = decode(record.host, Some(&record.event), &[], payload.to_string().as_bytes()) {
            for ruling in rulings(&event, "no") {
                check(record.host, &event, &ruling);
            }
        }
    }
}

/// A prompt of `host`, with `prompt` where its text stands.
fn prompt(host: &GuardHost, prompt: &Value) -> Option<(&'static str, Value)> {
    Some(match host.id {
        "claude" | "codex" | "kimi" | "qwen" => {
            ("UserPromptSubmit", json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}))
        }
        "gemini" => ("BeforeAgent", json!({"hook_event_name": "BeforeAgent", "session_id": "s", "prompt": prompt})),
        "cline" => ("UserPromptSubmit", json!({"taskId": "t", "userPromptSubmit": {"prompt": prompt}})),
        "opencode" => ("chat.message", json!({"input": {"sessionID": "s"}, "output": {"parts": prompt}})),
        "pi" => ("input", json!({"type": "input", "text": prompt})),
        _ => return None,
    })
}

#[test]
fn a_prompt_that_is_neither_text_nor_parts_is_malformed() {
    for host in HOSTS {
        for wrong in [json!(null), json!(1), json!(true), json!({"text": "x"})] {
            let Some((event, payload)) = prompt(host, &wrong) else { continue };
            let read = decode(host, Some(event), &[], payload.to_string().as_bytes());
            assert!(matches!(read, Err(Malformed::Member(_))), "{} {wrong}: {read:?}", host.id);
        }
    }
}

#[test]
fn parts_without_a_text_are_a_prompt_that_says_something() {
    let parts = json!([{"type": "image", "url": "data:x"}]);
    for host in HOSTS.iter().filter(|host| !["gemini", "pi"].contains(&host.id)) {
        let Some((event, payload)) = prompt(host, &parts) else { continue };
        let read = decode(host, Some(event), &[], payload.to_string().as_bytes()).unwrap();
        assert_eq!(read.what, HostWhat::Prompt { text: parts.to_string() }, "{}", host.id);
        assert!(!pintle_guard::is_blank_prompt(&read), "{}", host.id);
    }
}
