//! The form in which Claude Code tells its hooks what happens, and the hosts that took it over.

use pintle_domain::json::{Value, json};

use crate::event::{HookInput, HostEvent, HostWhat, Malformed, Subagent};
use crate::host::GuardHost;
use crate::wire::{Payload, call, prompt_text};

/// Reads an event in Claude's form.
pub(super) fn decode(host: &GuardHost, input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    decode_payload(host, Payload::read(input)?, input)
}

/// Reads an event in Claude's form from what was read already.
pub(super) fn decode_payload(
    host: &GuardHost,
    mut said: Payload,
    input: &HookInput<'_>,
) -> Result<HostEvent, Malformed> {
    let name = said.text("hook_event_name")?;
    let mut event = said.begin(host, name, input);
    event.session = said.text("session_id")?;
    event.transcript = said.said("transcript_path");
    event.turn = said.said("prompt_id").or_else(|| said.said("turn_id"));
    event.call = said.said("tool_use_id").or_else(|| said.said("tool_call_id"));
    event.what = happening(host, &event.event, &mut said)?;
    event.subagent = subagent(&event.what, &mut said);
    event.host_raw = said.rest();
    Ok(event)
}

fn subagent(what: &HostWhat, said: &mut Payload) -> Option<Subagent> {
    let is_about_one = matches!(what, HostWhat::SubagentStart | HostWhat::SubagentStop { .. });
    let kind = said.said("agent_type").or_else(|| is_about_one.then(|| said.said("agent_name")).flatten());
    let agent = Subagent { id: said.said("agent_id"), kind, parent: None };
    (agent != Subagent::default() || is_about_one).then_some(agent)
}

fn happening(host: &GuardHost, name: &str, said: &mut Payload) -> Result<HostWhat, Malformed> {
    Ok(match name {
        "SessionStart" => HostWhat::SessionStart,
        "SessionEnd" => HostWhat::SessionEnd,
        "UserPromptSubmit" => {
            let prompt = said.take("prompt").ok_or(Malformed::Member("prompt"))?;
            let text = prompt_text(&prompt, "prompt")?;
            // Parts that are no texts would be lost.
            if prompt.is_array() {
                said.put("prompt", prompt);
            }
            HostWhat::Prompt { text }
        }
        "PreToolUse" => HostWhat::Tool(tool(host, said)?),
        "PermissionRequest" => HostWhat::Permission { tool: tool(host, said)? },
        "PostToolUse" => {
            let tool = tool(host, said)?;
            let result = ["tool_response", "tool_output", "tool_result"].iter().find_map(|name| said.take(name));
            HostWhat::ToolDone { tool, result: result.unwrap_or(Value::Null), failed: false }
        }
        "PostToolUseFailure" => {
            let tool = tool(host, said)?;
            HostWhat::ToolDone { tool, result: said.take("error").unwrap_or(Value::Null), failed: true }
        }
        "SubagentStart" => HostWhat::SubagentStart,
        "SubagentStop" => {
            let text = said.said("last_assistant_message").or_else(|| said.said("response"));
            HostWhat::SubagentStop { text, again: said.flag("stop_hook_active") }
        }
        "Stop" => HostWhat::Stop { text: said.said("last_assistant_message"), again: said.flag("stop_hook_active") },
        "ConfigChange" => {
            let source = said.said("source").unwrap_or_default();
            HostWhat::ConfigChange { source, path: said.said("file_path") }
        }
        _ => HostWhat::Other,
    })
}

fn tool(host: &GuardHost, said: &mut Payload) -> Result<crate::event::HostCall, Malformed> {
    let native = said.text("tool_name")?;
    Ok(call(host, native, said.object("tool_input")?))
}

/// A refusal of a call, as Claude takes it at `event`.
pub(super) fn denied(event: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": event,
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }})
}

/// A question to the person before the host.
pub(super) fn asked(event: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": event,
        "permissionDecision": "ask",
        "permissionDecisionReason": reason,
    }})
}

/// A refusal where the host is about to ask a person.
pub(super) fn not_permitted(event: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "decision": {"behavior": "deny", "message": reason}}})
}

/// The same, which spares that question.
pub(super) fn permitted(event: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "decision": {"behavior": "allow"}}})
}

/// `document` with a text that the host shows its person.
pub(super) fn noted(mut document: Value, text: &str) -> Value {
    document["systemMessage"] = Value::from(text);
    document
}

/// A refusal of anything but a call.
pub(super) fn blocked(reason: &str) -> Value {
    json!({"decision": "block", "reason": reason})
}

/// A text for the model.
pub(super) fn context(event: &str, text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}
