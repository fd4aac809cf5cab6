//! Hooks of other people taken over from generated settings, and given back.

use pintle_domain::json::{Object, Value, json};
use pintle_guard::host::RowPosition;
use pintle_guard::settings::adopt::{Adopting, FoundHook, adopts, install_adopting, runnable, uninstall_adopted};
use pintle_guard::{GuardHost, HOSTS, host};
use proptest::prelude::*;

use super::settings::{PROGRAM, content, hook, read, style, written};

/// The events that are taken over here.
const EVENTS: [&str; 2] = ["PreToolUse", "UserPromptSubmit"];

fn takes(found: &FoundHook) -> Result<(), String> {
    let is_theirs = found.hook["command"].as_str().is_some_and(|command| command.starts_with("theirs"));
    if EVENTS.contains(&found.event.as_str()) && is_theirs { Ok(()) } else { Err("it stays".to_owned()) }
}

/// The commands of others in a file, by event.
fn theirs(text: &str) -> Vec<(String, String)> {
    let whole = read(text);
    let mut found = Vec::new();
    for (event, list) in whole.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let hooks = list.as_array().into_iter().flatten().filter_map(|group| group.get("hooks")?.as_array()).flatten();
        let commands =
            hooks.filter_map(|hook| hook["command"].as_str()).filter(|command| command.starts_with("theirs"));
        found.extend(commands.map(|command| (event.clone(), command.to_owned())));
    }
    found
}

fn taken_commands(taken: &Object) -> Vec<(String, String)> {
    theirs(&json!({"hooks": Value::Object(taken.clone())}).to_string())
}

/// Taken over, again, and given back: as it was where nobody touched it, and with everything in it where somebody did.
fn round(host: &'static GuardHost, old: &str) {
    let entry = hook(host, PROGRAM);
    let nothing = Object::new();
    let fresh = Adopting { kept: None, taken: &nothing, takes: &takes };
    let first = install_adopting(host, &entry, Some(old), fresh).unwrap();
    let (all, mut both) = (theirs(old), taken_commands(&first.taken));
    let is_taken = |(event, _): &&(String, String)| EVENTS.contains(&event.as_str());
    assert_eq!(taken_commands(&first.taken).len(), all.iter().filter(is_taken).count(), "{old:?}");
    let mut wanted: Vec<_> = all.iter().filter(is_taken).cloned().collect();
    let mut taken = both.clone();
    wanted.sort();
    taken.sort();
    assert_eq!(taken, wanted);
    let text = &first.edited.text;
    let left = theirs(text);
    assert!(!left.iter().any(|one| EVENTS.contains(&one.0.as_str())), "{text:?}");
    assert_eq!(first.left.len(), left.len());
    both.extend(left);
    let mut every = all.clone();
    both.sort();
    every.sort();
    assert_eq!(both, every, "nothing is lost: {text:?}");
    let kept = &first.edited.kept;
    let known = Adopting { kept: Some(kept), taken: &first.taken, takes: &takes };
    let again = install_adopting(host, &entry, Some(text), known).unwrap();
    assert_eq!((&again.edited.text, &again.taken, &again.edited.kept), (text, &first.taken, kept));
    let back = uninstall_adopted(host, Some(text), (Some(kept), &first.taken)).unwrap();
    assert_eq!(back.as_deref(), Some(old), "byte by byte");
    // Nobody knows what was there before.
    let found = uninstall_adopted(host, Some(text), (None, &first.taken)).unwrap().unwrap();
    let mut found = theirs(&found);
    found.sort();
    assert_eq!(found, every, "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn hooks_of_claude_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("claude").unwrap();
        round(host, &written(host, &content, &style));
    }

    #[test]
    fn hooks_of_codex_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("codex").unwrap();
        round(host, &written(host, &content, &style));
    }

    #[test]
    fn hooks_of_qwen_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("qwen").unwrap();
        round(host, &written(host, &content, &style));
    }
}

#[test]
fn those_are_taken_over_whose_wire_is_claudes() {
    let all: Vec<&str> = HOSTS.iter().filter(|host| adopts(host)).map(|host| host.id).collect();
    assert_eq!(all, ["claude", "codex", "qwen"]);
}

#[test]
fn parts_of_an_entry_keep_their_matcher_and_their_order() {
    let claude = host("claude").unwrap();
    let old = r#"{"hooks": {"PreToolUse": [
      {"matcher": "Bash", "hooks": [{"command": "theirs 1"}, {"type": "prompt"}, {"command": "theirs 2"}]},
      {"matcher": "Bash", "hooks": [{"command": "theirs 3"}]}
    ]}}"#;
    let fresh = Adopting { kept: None, taken: &Object::new(), takes: &takes };
    let adopted = install_adopting(claude, &hook(claude, PROGRAM), Some(old), fresh).unwrap();
    let taken = Value::Object(adopted.taken.clone());
    let expected = json!({"PreToolUse": [
        {"matcher": "Bash", "hooks": [{"command": "theirs 1"}, {"command": "theirs 2"}]},
        {"matcher": "Bash", "hooks": [{"command": "theirs 3"}]},
    ]});
    assert_eq!(taken, expected);
    let left = read(&adopted.edited.text);
    let list = left["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(list.len(), 2, "ours, and what is left of theirs");
    assert_eq!(list[1], json!({"matcher": "Bash", "hooks": [{"type": "prompt"}]}));
    assert_eq!(claude.config.position, RowPosition::First);
    assert_eq!(adopted.left[0].hook.runs, "something that is no command");
}

#[test]
fn what_runs_has_seconds_and_no_remarks() {
    let qwen = host("qwen").unwrap();
    let taken = json!({"PreToolUse": [{"name": "g", "sequential": true, "matcher": "x", "hooks": [
        {"type": "command", "command": "a", "timeout": 2500, "name": "n", "description": "d", "async": false, "once": false},
    ]}]});
    let runs = runnable(qwen, taken.as_object().unwrap());
    let expected =
        json!({"PreToolUse": [{"matcher": "x", "hooks": [{"type": "command", "command": "a", "timeout": 3}]}]});
    assert_eq!(Value::Object(runs), expected);
}
