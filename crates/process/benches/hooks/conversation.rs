//! Conversations as agents have them: mixed roles, calls of tools with their results, text in several scripts.

use anyhow::ensure;
use pintle_domain::json::{Object, Rendered, json};
use pintle_domain::llm::{LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use serde::Serialize;

const ASKED: &str = "Can you find out why the nightly import of the supplier list stops half way? \
                     Die Umlaute in „Größe“ und „Maße“ kommen falsch an. 見出しの行も二回あります。";
const ANSWERED: &str = "I looked at the log first: the import reads 4 096 rows and then meets a row whose third \
                        column is longer than the table allows. That row is cut — not refused — so the next one \
                        begins in its middle.\n\n1. widen the column,\n2. refuse rows that do not fit,\n3. run it again.";
const RESULT: &str = "import.log:118: INFO  batch 7 of 12 (4096 rows, 0 errors)\n\
                      import.log:119: WARN  value too long for column `größe`: \"Ø 12 × 40 mm\\tpassend zu …\"\n\
                      import.log:120: ERROR unexpected token at offset 33554 ✗\n";
/// What a message takes besides its text, more than enough: below this nothing more is added to a conversation.
const ROOM: usize = 1500;

/// The messages of one conversation; their JSON is an array of exactly `bytes` bytes.
pub(crate) fn messages(bytes: usize) -> anyhow::Result<Vec<Message>> {
    let mut messages = vec![Message::text(Role::System, "You are an agent that mends data pipelines. Be brief.")];
    let mut len = length(&messages)?;
    for turn in 0.. {
        if len + ROOM > bytes {
            break;
        }
        let message = next(turn);
        len += length(&message)? + 1;
        messages.push(message);
    }
    let last = Message::text(Role::User, "");
    let pad = bytes.checked_sub(len + length(&last)? + 1);
    ensure!(pad.is_some(), "a conversation of {bytes} bytes is too short to be one");
    messages.push(Message { content: "x".repeat(pad.unwrap_or_default()), ..last });
    ensure!(length(&messages)? == bytes, "the conversation is not as long as it should be");
    Ok(messages)
}

fn next(turn: usize) -> Message {
    let id = format!("call_{turn:08}");
    match turn % 4 {
        0 => Message { created_at: Some("2026-03-01T09:30:00Z".into()), ..Message::text(Role::User, ASKED) },
        1 => {
            let arguments = json!({ "path": "logs/import.log", "pattern": "ERROR|WARN", "from_line": turn });
            let calls = vec![CallPart::new(&id, "search", &arguments.to_string())];
            Message { tool_calls: calls, model_name: "main/large".into(), ..Message::text(Role::Assistant, "") }
        }
        2 => Message::tool(&id, RESULT),
        _ => Message { model_name: "main/large".into(), ..Message::text(Role::Assistant, ANSWERED) },
    }
}

fn length(value: &impl Serialize) -> anyhow::Result<usize> {
    Ok(serde_json::to_vec(value)?.len())
}

/// The tools of the agent.
pub(crate) fn tools() -> Vec<ToolDef> {
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "pattern": { "type": "string" }, "from_line": { "type": "integer" } },
        "required": ["path"],
    });
    ["read", "write", "edit", "search", "list", "find", "exec", "fetch"]
        .map(|name| ToolDef::new(name, "Works on one file of the workspace, or on all of them.", parameters.clone()))
        .to_vec()
}

/// The options of every request.
pub(crate) fn options() -> Object {
    json!({ "temperature": 0.2, "max_tokens": 4096 }).as_object().cloned().unwrap_or_default()
}

/// The request that `messages` are on their way in. None of them was written as JSON before.
pub(crate) fn request(messages: &[Message]) -> LlmRequest {
    LlmRequest {
        model: "main/large".into(),
        messages: messages.iter().cloned().map(Rendered::new).collect(),
        tools: tools().into_iter().map(Rendered::new).collect(),
        options: options(),
        graceful_terminal: false,
    }
}

/// Arguments of a tool; their JSON has exactly `bytes` bytes.
pub(crate) fn arguments(bytes: usize) -> anyhow::Result<Object> {
    let around = length(&json!({ "path": "notes/größe.md", "text": "" }))?;
    let text = "x".repeat(bytes.saturating_sub(around));
    let arguments = json!({ "path": "notes/größe.md", "text": text });
    ensure!(length(&arguments)? == bytes, "arguments of {bytes} bytes are too short");
    Ok(arguments.as_object().cloned().unwrap_or_default())
}
