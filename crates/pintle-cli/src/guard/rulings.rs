//! What hooks concluded, as the host is told it. Pure.

use pintle_domain::chain::Note;
use pintle_domain::json::{Object, Value};
use pintle_domain::ruling::Aborted;
use pintle_domain::verdict::AbortScope;
use pintle_engine::{Clearance, Stopped};
use pintle_guard::{GuardRuling, HostCall};

/// The reason where the hooks did not rule in time.
pub(crate) const TOO_LATE: &str = "the guard did not rule in time, so the call is refused";

/// What the host is told of a call that was cleared; where it `host_asks`, one that nobody has answered is put to its own
/// person.
pub(crate) fn of_clearance(clearance: Clearance, asked: &HostCall, host_asks: bool) -> GuardRuling {
    match clearance {
        Clearance::Run(permit, left) => {
            // The host runs the tool: the permit ends here.
            let call = permit.into_call();
            if call.tool != asked.canonical {
                let reason = format!(
                    "a hook made it a call of `{}`, and only the agent itself can call another tool",
                    call.tool
                );
                return GuardRuling::Deny { reason };
            }
            let context = texts(&left.notes);
            match (call.arguments == asked.arguments, context) {
                (true, None) => GuardRuling::NoObjection,
                (true, Some(text)) => GuardRuling::Inject { text },
                (false, context) => GuardRuling::ModifyInput { arguments: call.arguments, context },
            }
        }
        Clearance::Substituted { output, by, .. } => GuardRuling::Respond { by: by.to_string(), text: output.for_llm },
        Clearance::Waiting { approval, .. } => {
            let tool = asked.native.clone();
            GuardRuling::Ask { tool, approval: approval.id, reason: approval.reason, attended: host_asks }
        }
        Clearance::Refused { text, .. } => GuardRuling::Deny { reason: text },
        Clearance::Abort { aborted, .. } => of_abort(&aborted),
    }
}

/// The refusal of every call after a prompt that hooks changed and the host sent as it was.
pub(crate) const LOST_PROMPT: &str =
    "a hook changed the prompt, and the agent has not sent it as it was changed: nothing that it wants may run";

/// What the host is told where something goes no further.
pub(crate) fn of_stopped(stopped: &Stopped) -> GuardRuling {
    match stopped {
        Stopped::Denied(denied) => GuardRuling::Deny { reason: denied.text() },
        Stopped::Aborted(aborted) => of_abort(aborted),
        Stopped::Cancelled => GuardRuling::Deny { reason: TOO_LATE.into() },
    }
}

fn of_abort(aborted: &Aborted) -> GuardRuling {
    let reason = aborted.text();
    match aborted.abort.abort_scope {
        AbortScope::Turn => GuardRuling::AbortTurn { reason },
        AbortScope::Run => GuardRuling::AbortRun { reason },
    }
}

/// What the host is told of a prompt that may go on as `text`, with `notes` beside it.
pub(crate) fn of_prompt(before: &str, text: String, notes: &[Note]) -> GuardRuling {
    match (text == before, texts(notes)) {
        (true, None) => GuardRuling::NoObjection,
        (true, Some(text)) => GuardRuling::Inject { text },
        (false, None) => GuardRuling::ModifyPrompt { text },
        (false, Some(more)) => GuardRuling::ModifyPrompt { text: format!("{text}\n\n{more}") },
    }
}

fn texts(notes: &[Note]) -> Option<String> {
    let all: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// The members of a result that hold its text, in the order in which a person reads them. Source: what hosts were seen
/// to hand over.
const RESULT_TEXTS: [&str; 7] = ["stdout", "stderr", "textResultForLlm", "llmContent", "output", "content", "error"];

/// The text of a result as hooks read it.
pub(crate) fn result_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let texts = RESULT_TEXTS.iter().filter_map(|name| members.get(name).and_then(plain_text));
            let mut found: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
            // What else is in it can hold anything: hooks read that, too.
            let is_read = |name: &str, value: &Value| RESULT_TEXTS.contains(&name) && plain_text(value).is_some();
            let has_more = |value: &Value| matches!(value, Value::Object(_) | Value::Array(_));
            let more: Object = members
                .iter()
                .filter(|(name, value)| has_more(value) && !is_read(name, value))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            match (found.is_empty(), more.is_empty()) {
                (true, _) => result.to_string(),
                (false, true) => found.join("\n"),
                (false, false) => {
                    found.push(Value::Object(more).to_string());
                    found.join("\n")
                }
            }
        }
        Value::Null => String::new(),
        Value::Array(_) => plain_text(result).unwrap_or_else(|| result.to_string()),
        Value::Bool(_) | Value::Number(_) => result.to_string(),
    }
}

/// The text that `value` is, where it is one or a list of nothing but texts, as MCP servers answer.
fn plain_text(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let parts = value.as_array().filter(|parts| !parts.is_empty())?;
    let text_of = |part: &Value| {
        let members = part.as_object()?;
        let is_known = |name: &str, value: &Value| name == "text" || name == "type" && value.as_str() == Some("text");
        let is_text = members.iter().all(|(name, value)| is_known(name, value));
        members.get("text").filter(|_| is_text)?.as_str().map(str::to_owned)
    };
    Some(parts.iter().map(text_of).collect::<Option<Vec<String>>>()?.join("\n"))
}

/// What the host is told of `result`, which hooks read as `before` and left as `text`.
pub(crate) fn of_result(result: &Value, before: &str, text: String) -> GuardRuling {
    if text == before {
        return GuardRuling::NoObjection;
    }
    let added = text.strip_prefix(before).map(str::trim).filter(|added| !added.is_empty()).map(str::to_owned);
    GuardRuling::ModifyResult { shaped: shaped(result, &text), text, added }
}

/// `text` in the shape of `result`, where that shape is known to be taken.
pub(crate) fn shaped(result: &Value, text: &str) -> Option<Value> {
    let members = result.as_object().filter(|members| members.contains_key("stdout"))?;
    let kept = |name: &str| members.get(name).cloned();
    let mut shaped = Object::new();
    shaped.insert("stdout".into(), text.into());
    shaped.insert("stderr".into(), "".into());
    for name in ["interrupted", "isImage"] {
        shaped.insert(name.into(), kept(name).unwrap_or(Value::Bool(false)));
    }
    Some(Value::Object(shaped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::id::HookName;
    use pintle_domain::json::json;

    #[test]
    fn a_prompt_goes_on_as_hooks_left_it() {
        let note = |text: &str| Note { by: HookName::from("h"), text: text.into(), judged: false };
        let of = |text: &str, notes: &[Note]| of_prompt("hello", text.into(), notes);
        assert_eq!(of("hello", &[]), GuardRuling::NoObjection);
        assert_eq!(of("hello", &[note("a"), note("b")]), GuardRuling::Inject { text: "a\n\nb".into() });
        assert_eq!(of("bye", &[]), GuardRuling::ModifyPrompt { text: "bye".into() });
        assert_eq!(of("bye", &[note("a")]), GuardRuling::ModifyPrompt { text: "bye\n\na".into() });
    }

    #[test]
    fn a_result_is_read_whole() {
        for (result, text) in [
            (json!("plain"), "plain"),
            (json!({"stdout": "a", "stderr": "b", "interrupted": false}), "a\nb"),
            (json!({"stdout": "a", "edits": ["secret"]}), "a\n{\"edits\":[\"secret\"]}"),
            (json!({"n": 1}), r#"{"n":1}"#),
            (json!(null), ""),
            (json!([{"type": "text", "text": "a \"b\""}, {"type": "text", "text": "c"}]), "a \"b\"\nc"),
            (json!({"content": [{"type": "text", "text": "touched"}]}), "touched"),
            (json!({"llmContent": [{"text": "touched"}], "returnDisplay": "x"}), "touched"),
            (json!([{"type": "image", "data": "x"}]), r#"[{"type":"image","data":"x"}]"#),
            (json!([{"type": "text", "text": "a", "more": 1}]), r#"[{"type":"text","text":"a","more":1}]"#),
            (json!([]), "[]"),
        ] {
            assert_eq!(result_text(&result), text);
        }
    }

    #[test]
    fn what_hooks_say_of_a_result_is_told_apart_from_another_result() {
        let result = json!("a.js was written");
        let of = |text: &str| of_result(&result, "a.js was written", text.to_owned());
        let changed = |text: &str, added: Option<&str>| GuardRuling::ModifyResult {
            text: text.into(),
            shaped: None,
            added: added.map(str::to_owned),
        };
        assert_eq!(of("a.js was written"), GuardRuling::NoObjection);
        let behind = "a.js was written\n\neslint: 1 problem";
        assert_eq!(of(behind), changed(behind, Some("eslint: 1 problem")));
        assert_eq!(of("[gone]\n\neslint: 1 problem"), changed("[gone]\n\neslint: 1 problem", None));
        assert_eq!(of_result(&json!(null), "", "said".into()), changed("said", Some("said")));
    }

    #[test]
    fn a_changed_result_has_the_shape_that_is_taken_or_none() {
        let shell = json!({"stdout": "key", "stderr": "x", "interrupted": true, "isImage": false, "more": 1});
        let expected = json!({"stdout": "-", "stderr": "", "interrupted": true, "isImage": false});
        assert_eq!(shaped(&shell, "-"), Some(expected));
        assert_eq!(shaped(&json!({"content": "key"}), "-"), None);
    }
}
