//! What servers refuse, as they say it in their documents. The tests of the agent's loop read it too.

use pintle_domain::json::Value;

use crate::capabilities::{Capabilities, MessageAfter, MessageBefore, MidSystem};

/// Whether a server of the Messages API would take `messages`; why not, if it would not.
pub(super) fn blocks(messages: &[Value], capabilities: &Capabilities) -> Result<(), String> {
    nothing_is_empty(messages)?;
    results_in_blocks(messages)?;
    placed(messages, capabilities, true)?;
    alternate(messages)
}

/// Whether a server of chat completions would take `messages`.
pub(super) fn completions(messages: &[Value], capabilities: &Capabilities) -> Result<(), String> {
    nothing_is_empty(messages)?;
    results_of_their_own(messages, capabilities)?;
    placed(messages, capabilities, false)?;
    if capabilities.alternation { alternate(messages) } else { Ok(()) }
}

pub(super) fn role(message: &Value) -> &str {
    message["role"].as_str().expect("every message has a role")
}

pub(super) fn nothing_is_empty(messages: &[Value]) -> Result<(), String> {
    for message in messages {
        let empty = match &message["content"] {
            Value::String(text) => text.trim().is_empty(),
            Value::Array(parts) => {
                parts.is_empty()
                    || parts.iter().any(|part| part["text"].as_str().is_some_and(|text| text.trim().is_empty()))
            }
            Value::Null => message["tool_calls"].as_array().is_none_or(Vec::is_empty),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
        };
        if empty {
            return Err(format!("empty: {message}"));
        }
    }
    Ok(())
}

/// No two neighbours of one role, but for results of tools.
pub(super) fn alternate(messages: &[Value]) -> Result<(), String> {
    let mut last = "";
    for message in messages {
        match role(message) {
            role @ ("system" | "tool") => last = role,
            role if role == last => return Err(format!("two of `{role}`: {message}")),
            role => last = role,
        }
    }
    match messages.iter().map(role).find(|role| *role != "system") {
        Some("user") | None => Ok(()),
        Some(first) => Err(format!("the first is of `{first}`")),
    }
}

/// System messages only where they may stand.
pub(super) fn placed(messages: &[Value], capabilities: &Capabilities, apart: bool) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| role(message) == "system") {
        if at == 0 && !apart {
            continue;
        }
        let (before, behind) = (at.checked_sub(1).map(|at| &messages[at]), messages.get(at + 1));
        let Some(before) = before else { return Err(format!("a system message is first: {message}")) };
        let placement = &capabilities.placement;
        let begins = match role(before) {
            "user" => {
                let results =
                    before["content"].as_array().is_some_and(|all| all.iter().any(|b| b["type"] == "tool_result"));
                placement.after.contains(&if results { MessageBefore::Tool } else { MessageBefore::User })
            }
            "tool" => placement.after.contains(&MessageBefore::Tool),
            "assistant" => placement.after.contains(&MessageBefore::Assistant),
            _ => placement.consecutive,
        };
        let ends = match behind.map(role) {
            None => placement.before.contains(&MessageAfter::End),
            Some("user") => placement.before.contains(&MessageAfter::User),
            Some("assistant") => placement.before.contains(&MessageAfter::Assistant),
            Some(_) => placement.consecutive,
        };
        let may = match capabilities.mid_system {
            MidSystem::Free => true,
            MidSystem::Placed => begins && ends,
            // Servers that want one leading message also want it to be one.
            MidSystem::None => false,
        };
        if !may {
            return Err(format!("a system message may not stand here: {message}"));
        }
    }
    Ok(())
}

/// Each message with calls is followed by one of the user that begins with all of their results.
fn results_in_blocks(messages: &[Value]) -> Result<(), String> {
    let ids = |message: Option<&Value>, kind: &str, key: &str| -> Vec<String> {
        let blocks = message.and_then(|message| message["content"].as_array()).into_iter().flatten();
        blocks.filter(|block| block["type"] == kind).filter_map(|b| b[key].as_str().map(str::to_owned)).collect()
    };
    for (at, message) in messages.iter().enumerate() {
        let calls = ids(Some(message), "tool_use", "id");
        let next = messages.get(at + 1);
        if role(message) == "assistant" && ids(next, "tool_result", "tool_use_id") != calls {
            return Err(format!("calls without their results: {message}"));
        }
        let blocks = message["content"].as_array().expect("contents are blocks");
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        if results != ids(Some(message), "tool_result", "tool_use_id").len() {
            return Err(format!("results are not first: {message}"));
        }
    }
    Ok(())
}

/// Each message with calls is followed by all of their results.
fn results_of_their_own(messages: &[Value], capabilities: &Capabilities) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut last = "";
    for message in messages {
        let role = role(message);
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.is_empty() || open.remove(0) != id {
                return Err(format!("a result without its call: {message}"));
            }
        } else if !open.is_empty() {
            return Err(format!("between calls and results: {message}"));
        }
        if last == "tool" && role == "user" && !capabilities.user_after_tool {
            return Err(format!("a user behind a tool: {message}"));
        }
        open.extend(message["tool_calls"].as_array().into_iter().flatten().filter_map(|call| call["id"].as_str()));
        last = role;
    }
    if open.is_empty() { Ok(()) } else { Err("calls without results at the end".into()) }
}
