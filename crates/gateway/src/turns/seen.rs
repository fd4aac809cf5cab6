//! What a model was sent in one round of a turn: the request as the journal makes it again, and what hooks made of it by
//! the records. Pure.

use pintle_agent::driver::rehearsal::{CallPurpose, RehearsedTurn};
use pintle_domain::checkpoint::{CheckpointKind, Snapshot};
use pintle_domain::execution::masked;
use pintle_domain::json::{Value, json};
use pintle_domain::store::StoredEvent;

use super::patched::Patched;

/// How much of a message is shown, in characters: a few screens.
const MAX_MESSAGE_CHARS: usize = 16_000;

/// The call of the round `round` of `went`, whose records are `events`; nothing if there is none.
pub(crate) fn seen(went: &RehearsedTurn, round: u32, events: &[StoredEvent]) -> Option<Value> {
    let is_it = |call: &pintle_agent::driver::rehearsal::ModelCall| {
        call.round == round && (call.aim == CallPurpose::Plan) == (round == 0)
    };
    let place = went.calls.iter().rposition(is_it)?;
    let call = &went.calls[place];
    let request = Snapshot::Request(call.request.clone()).to_json();
    let sources: Vec<Value> = call.request.messages.iter().map(|message| json!(message.get().provenance())).collect();
    let new: Vec<bool> = call.request.messages.iter().map(|own| went.since(place, own).1).collect();
    let old = listed(&request["messages"]);
    let before = old.iter().zip(&sources).zip(&new).map(|((message, from), new)| shown(message, from, *new));
    let mut patched = Patched::new(request.clone());
    let mut changed_by: Vec<&str> = Vec::new();
    let asked = events.iter().filter(|it| it.iteration == round && it.event == CheckpointKind::BeforeLlm.name());
    for hook in asked.flat_map(|event| &event.hooks) {
        if let Some(change) = &hook.change {
            patched.lay(change);
            if !changed_by.contains(&hook.hook.as_str()) {
                changed_by.push(&hook.hook);
            }
        }
    }
    let after = (!changed_by.is_empty()).then(|| {
        let left = listed(&patched.value["messages"]);
        let messages = left.iter().enumerate().map(|(at, message)| {
            if let Some(place) = old.iter().position(|other| other == message) {
                return shown(message, &sources[place], new[place]);
            }
            // One that stands in the place of another is that one, changed; any other is the hook's own.
            let same = old.get(at).filter(|other| old.len() == left.len() && other["role"] == message["role"]);
            let mut shown = match same {
                Some(_) => shown(message, &sources[at], new[at]),
                None => shown(message, &json!({ "origin": "hook" }), true),
            };
            shown["changed"] = json!(true);
            shown
        });
        sent(&patched.value, messages.collect())
    });
    Some(json!({
        "round": round,
        "purpose": call.aim.word(),
        "before": sent(&request, before.collect()),
        "after": after,
        "complete": patched.is_complete(),
        "changedBy": changed_by,
        "notes": call.notes,
    }))
}

fn listed(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn sent(request: &Value, messages: Vec<Value>) -> Value {
    let tools = listed(&request["tools"]).iter().map(|tool| tool["function"]["name"].clone());
    json!({ "model": request["model"], "messages": messages, "tools": tools.collect::<Vec<_>>() })
}

/// A message with where it comes from.
fn shown(message: &Value, from: &Value, is_new: bool) -> Value {
    let text = message["content"].as_str().unwrap_or_default();
    let clean = masked(text);
    let cut: String = clean.chars().take(MAX_MESSAGE_CHARS).collect();
    let mut shown = json!({ "role": message["role"], "content": cut, "from": from["origin"], "isNew": is_new });
    if cut.len() < clean.len() {
        shown["bytes"] = json!(text.len());
    }
    let calls = listed(&message["tool_calls"]).iter().map(without_secrets);
    if let Some(calls) = message.get("tool_calls").map(|_| calls.collect::<Vec<_>>()) {
        shown["tool_calls"] = json!(calls);
    }
    for (source, name) in [(message, "tool_call_id"), (from, "skill"), (from, "hook")] {
        if let Some(value) = source.get(name) {
            shown[name] = value.clone();
        }
    }
    shown
}

fn without_secrets(call: &Value) -> Value {
    let mut call = call.clone();
    if let Some(arguments) = call["function"]["arguments"].as_str().map(masked) {
        call["function"]["arguments"] = json!(arguments);
    }
    call
}
