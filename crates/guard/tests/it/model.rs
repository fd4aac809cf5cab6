//! Whether a call runs after what its hook answered, host by host, as the real clients were seen to do it: every
//! refusal of ours is held against that.

use pintle_domain::json::{self, Value, json};
use pintle_guard::{GuardRuling, HOSTS, HostWhat, panic_deny};

use crate::recorded;

/// How a hook ended.
struct Ended<'a> {
    exit: u8,
    stdout: &'a str,
    stderr: &'a str,
}

/// What stands on standard output.
enum Printed {
    Nothing,
    /// Neither nothing nor one JSON object.
    Broken,
    Document(Value),
}

impl Ended<'_> {
    fn printed(&self) -> Printed {
        match json::parse(self.stdout) {
            _ if self.stdout.trim().is_empty() => Printed::Nothing,
            Ok(document @ Value::Object(_)) => Printed::Document(document),
            Ok(_) | Err(_) => Printed::Broken,
        }
    }

    fn is_mute(&self) -> bool {
        self.stderr.trim().is_empty()
    }
}

/// The word of a decision, wherever it may stand.
fn decision(document: &Value) -> Option<&str> {
    let specific = document.get("hookSpecificOutput").and_then(|specific| specific.get("permissionDecision"));
    specific.or_else(|| document.get("decision")).and_then(Value::as_str)
}

fn claude(ended: &Ended<'_>) -> bool {
    match ended.printed() {
        _ if ended.exit == 2 => false,
        Printed::Nothing | Printed::Broken => true,
        Printed::Document(document) => !matches!(decision(&document), Some("deny" | "block" | "ask")),
    }
}

fn claude_on_failure_block(ended: &Ended<'_>) -> bool {
    let is_known = match ended.printed() {
        Printed::Document(document) => {
            decision(&document).is_none_or(|word| ["deny", "block", "ask", "allow"].contains(&word))
        }
        Printed::Nothing | Printed::Broken => true,
    };
    ended.exit == 0 && is_known && claude(ended)
}

/// Whether Codex takes a document: it knows each member, and each reason says something.
fn codex_takes(document: &Value) -> bool {
    const SPECIFIC: [&str; 6] = [
        "hookEventName",
        "permissionDecision",
        "permissionDecisionReason",
        "updatedInput",
        "additionalContext",
        "decision",
    ];
    let known = |value: &Value, names: &[&str]| {
        value.as_object().is_some_and(|members| members.keys().all(|name| names.contains(&name.as_str())))
    };
    let says = |value: Option<&Value>| value.and_then(Value::as_str).is_none_or(|text| !text.is_empty());
    let specific = document.get("hookSpecificOutput");
    known(document, &["decision", "reason", "hookSpecificOutput"])
        && specific.is_none_or(|specific| known(specific, &SPECIFIC))
        && says(document.get("reason"))
        && says(specific.and_then(|specific| specific.get("permissionDecisionReason")))
}

fn codex(ended: &Ended<'_>) -> bool {
    match (ended.exit, ended.printed()) {
        (2, _) => ended.is_mute(),
        (0, Printed::Document(document)) => {
            !codex_takes(&document) || !matches!(decision(&document), Some("deny" | "block"))
        }
        (_, Printed::Nothing | Printed::Broken | Printed::Document(_)) => true,
    }
}

fn gemini(ended: &Ended<'_>) -> bool {
    match ended.printed() {
        Printed::Document(document) => {
            let goes_on = document.get("continue").and_then(Value::as_bool) != Some(false);
            goes_on && !matches!(decision(&document), Some("deny" | "block" | "ask"))
        }
        Printed::Nothing | Printed::Broken => ended.exit < 2 || ended.is_mute(),
    }
}

fn qwen(ended: &Ended<'_>) -> bool {
    match (ended.exit, ended.printed()) {
        (2, _) => ended.is_mute(),
        (_, Printed::Document(document)) => {
            let goes_on = document.get("continue").and_then(Value::as_bool) != Some(false);
            goes_on && !matches!(decision(&document), Some("deny" | "block" | "ask"))
        }
        (_, Printed::Nothing | Printed::Broken) => true,
    }
}

fn copilot(ended: &Ended<'_>) -> bool {
    match ended.printed() {
        _ if ended.exit != 0 => false,
        Printed::Document(document) => {
            let word = document.get("permissionDecision").and_then(Value::as_str);
            !matches!(word, Some("deny" | "ask"))
        }
        Printed::Nothing | Printed::Broken => true,
    }
}

fn kimi(ended: &Ended<'_>) -> bool {
    match (ended.exit, ended.printed()) {
        (2, _) => false,
        (0, Printed::Document(document)) => {
            let specific = document.get("hookSpecificOutput");
            specific.and_then(|specific| specific.get("permissionDecision")).and_then(Value::as_str) != Some("deny")
        }
        (_, Printed::Nothing | Printed::Broken | Printed::Document(_)) => true,
    }
}

fn cline(ended: &Ended<'_>) -> bool {
    match ended.printed() {
        Printed::Document(document) => document.get("cancel").and_then(Value::as_bool) != Some(true),
        Printed::Nothing | Printed::Broken => true,
    }
}

/// What our own plugins do: nothing but an allow lets a call pass.
fn plugin(ended: &Ended<'_>) -> bool {
    match ended.printed() {
        Printed::Document(document) => document.get("allow").and_then(Value::as_bool) == Some(true),
        Printed::Nothing | Printed::Broken => false,
    }
}

/// Says of how a hook ended whether the call runs.
type Model = fn(&Ended<'_>) -> bool;

const MODELS: [(&str, Model); 10] = [
    ("claude", claude),
    ("claude", claude_on_failure_block),
    ("codex", codex),
    ("gemini", gemini),
    ("qwen", qwen),
    ("copilot", copilot),
    ("kimi", kimi),
    ("cline", cline),
    ("opencode", plugin),
    ("pi", plugin),
];

/// A decision in the form of the host at `at` in [`MODELS`].
fn says(at: usize, word: &str, reason: &str) -> Value {
    match MODELS[at].0 {
        "gemini" => json!({"decision": word, "reason": reason}),
        "copilot" => json!({"permissionDecision": word, "permissionDecisionReason": reason}),
        "cline" if word == "ask" => json!({"review": true, "errorMessage": reason}),
        "cline" => json!({"cancel": word == "deny", "errorMessage": reason}),
        _ => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": word,
            "permissionDecisionReason": reason,
        }}),
    }
}

fn with(mut document: Value, name: &str, value: &Value) -> String {
    document[name] = value.clone();
    document.to_string()
}

/// What a hook does, and for each of the first eight models whether the call was seen to run (`R`) or not (`-`).
type Seen = (&'static str, u8, fn(usize) -> String, &'static str, &'static str);

const SEEN: &[Seen] = &[
    ("silent", 0, |_| String::new(), "", "RRRRRRRR"),
    ("exit 1", 1, |_| String::new(), "", "R-RRR-RR"),
    ("exit 1 with a text", 1, |_| String::new(), "x", "R-RRR-RR"),
    ("exit 2 with a text", 2, |_| String::new(), "x", "-------R"),
    ("exit 2", 2, |_| String::new(), "", "--RRR--R"),
    ("exit 3 with a text", 3, |_| String::new(), "x", "R-R-R-RR"),
    ("a text", 0, |_| "a text\n".to_owned(), "", "RRRRRRRR"),
    ("half a document", 0, |_| r#"{"hookSpecificOutput": {"permi"#.to_owned(), "", "RRRRRRRR"),
    ("deny", 0, |at| says(at, "deny", "no").to_string(), "", "--------"),
    ("deny, exit 1", 1, |at| says(at, "deny", "no").to_string(), "", "--R---R-"),
    ("deny, exit 2", 2, |at| says(at, "deny", "no").to_string(), "", "--R-R---"),
    ("allow, exit 2 with a text", 2, |at| says(at, "allow", "yes").to_string(), "x", "---R---R"),
    ("a line before a deny", 0, |at| format!("a line\n{}", says(at, "deny", "no")), "", "RRRRRRRR"),
    ("a line behind a deny", 0, |at| format!("{}\na line", says(at, "deny", "no")), "", "RRRRRRRR"),
    ("deny and an unknown member", 0, |at| with(says(at, "deny", "no"), "pintle", &json!({})), "", "--R-----"),
    ("deny without a reason", 0, |at| says(at, "deny", "").to_string(), "", "--R-----"),
    ("deny and the end", 0, |at| with(says(at, "deny", "no"), "continue", &json!(false)), "", "- R--   "),
    ("the end alone", 0, |_| json!({"continue": false}).to_string(), "", "R R--RRR"),
    ("block", 0, |_| json!({"decision": "block", "reason": "no"}).to_string(), "", "-----RRR"),
    ("an unknown word", 0, |at| says(at, "nonsense", "no").to_string(), "", "R-RRRRR "),
    ("ask, nobody there", 0, |at| says(at, "ask", "no").to_string(), "", "--R---RR"),
];

#[test]
fn the_models_are_what_was_seen() {
    for (name, exit, stdout, stderr, cells) in SEEN {
        for (at, cell) in cells.chars().enumerate() {
            let text = stdout(at);
            let runs = MODELS[at].1(&Ended { exit: *exit, stdout: &text, stderr });
            if cell != ' ' && !(MODELS[at].0 == "gemini" && *name == "block") {
                assert_eq!(runs, cell == 'R', "{name}, {} ({at})", MODELS[at].0);
            }
        }
    }
}

fn models_of(host: &str) -> impl Iterator<Item = Model> {
    MODELS.iter().filter(move |(id, _)| *id == host).map(|(_, model)| *model)
}

#[test]
fn every_refusal_of_a_call_holds_it() {
    let long = "x".repeat(100_000);
    for record in recorded::all() {
        let event = record.decode().unwrap();
        if !matches!(event.what, HostWhat::Tool(_)) || record.host.event(&event.event).is_none() {
            continue;
        }
        for reason in ["no", "", "\"}\n{}", long.as_str()] {
            for ruling in recorded::rulings(&event, reason) {
                let goes_on =
                    matches!(ruling, GuardRuling::NoObjection | GuardRuling::Allow | GuardRuling::Inject { .. });
                let answer = (record.host.adapter.encode)(&event, &ruling);
                let is_ask = matches!(ruling, GuardRuling::Ask { attended: true, .. });
                let degraded = answer.degraded.is_some();
                if goes_on || is_ask || !(ruling.stops() || degraded) {
                    continue;
                }
                let ended = Ended { exit: answer.exit, stdout: &answer.stdout, stderr: &answer.stderr };
                for model in models_of(record.host.id) {
                    assert!(!model(&ended), "{} {}: {ruling:?} runs with {answer:?}", record.host.id, record.name);
                }
            }
        }
    }
}

#[test]
fn a_question_is_asked_only_where_it_cannot_let_a_call_run() {
    for record in recorded::all() {
        let event = record.decode().unwrap();
        if !matches!(event.what, HostWhat::Tool(_)) {
            continue;
        }
        let ask = |attended| GuardRuling::Ask {
            tool: "exec".to_owned(),
            approval: "0190-3".to_owned(),
            reason: "why".to_owned(),
            attended,
        };
        let unattended = (record.host.adapter.encode)(&event, &ask(false));
        let says = "this call of `exec` needs a person's approval with the id 0190-3";
        assert!(unattended.stdout.contains(says), "{}: {unattended:?}", record.host.id);
        let asked = (record.host.adapter.encode)(&event, &ask(true));
        let asks = record.host.asks != pintle_guard::host::AskSupport::Never;
        assert_eq!(asked.degraded.is_none(), asks, "{}: {asked:?}", record.host.id);
    }
}

/// The event before a call, host by host.
const BEFORE_A_CALL: [&str; 5] = ["PreToolUse", "BeforeTool", "preToolUse", "tool.execute.before", "tool_call"];

#[test]
fn every_panic_holds_the_call() {
    for host in HOSTS {
        let before = host.events.iter().find(|row| BEFORE_A_CALL.contains(&row.name)).unwrap();
        let ended = Ended { exit: 0, stdout: panic_deny(host.id, before.name), stderr: "" };
        for model in models_of(host.id) {
            assert!(!model(&ended), "{}", host.id);
        }
    }
}

#[test]
fn no_panic_of_claude_code_leaves_a_result_to_its_model() {
    for event in ["PostToolUse", "PostToolUseFailure"] {
        let said = json::parse(panic_deny("claude", event)).unwrap();
        assert_eq!((&said["decision"], &said["continue"]), (&json!("block"), &json!(false)), "{said}");
        assert_eq!(said["reason"], said["stopReason"]);
    }
}

#[test]
fn a_panic_says_what_a_refusal_says() {
    for record in recorded::all() {
        let event = record.decode().unwrap();
        let text = panic_deny(record.host.id, &event.event);
        if text.is_empty() {
            continue;
        }
        let row = record.host.event(&event.event).unwrap();
        let is_told = event.what == HostWhat::SessionStart || event.what.is_done();
        assert!(row.stops || is_told, "{} {}", record.host.id, event.event);
        let said = json::parse(text).unwrap();
        let ruling = GuardRuling::Deny { reason: "x".to_owned() };
        let answer = (record.host.adapter.encode)(&event, &ruling).stdout;
        // A prompt that is empty is no prompt: nothing is refused there.
        if matches!(event.what, HostWhat::Other) {
            continue;
        }
        assert_eq!(bones(&said), bones(&json::parse(&answer).unwrap()), "{} {}", record.host.id, event.event);
    }
}

/// The shell around the client takes every other code for a client that failed, and a tab at the end for its own.
#[test]
fn where_there_is_a_panic_every_answer_ends_well_and_has_no_tab() {
    for record in recorded::all() {
        let event = record.decode().unwrap();
        for ruling in recorded::rulings(&event, "no\t") {
            let answer = (record.host.adapter.encode)(&event, &ruling);
            let is_framed = !panic_deny(record.host.id, &event.event).is_empty();
            assert!(!is_framed || answer.exit == 0, "{} {}: {answer:?}", record.host.id, record.name);
            assert!(!answer.stdout.contains('\t'), "{} {}: {answer:?}", record.host.id, record.name);
        }
    }
}

/// A document without its sentences.
fn bones(document: &Value) -> Value {
    match document {
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), bones(member))).collect(),
        Value::String(text) if text.contains(' ') || text == "x" => Value::Null,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => document.clone(),
    }
}

#[test]
fn what_cannot_be_stopped_has_no_panic() {
    for host in HOSTS {
        for row in host.events {
            let text = panic_deny(host.id, row.name);
            // Nothing is stopped when a session begins, but a person is told why nothing will go on in it.
            let begins = row.name.eq_ignore_ascii_case("SessionStart") && row.answers;
            // Nor does a call that has run: the turn ends before the model sees what came of it.
            let withholds = host.id == "claude" && row.name.starts_with("PostToolUse");
            assert!(row.stops || text.is_empty() != (begins || withholds), "{} {}", host.id, row.name);
        }
        assert_eq!(panic_deny(host.id, "nothing"), "");
    }
}
