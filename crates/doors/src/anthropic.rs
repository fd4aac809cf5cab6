//! The wire of Anthropic's messages.

use pintle_domain::json::{Object, Value};

use crate::request::{
    BadRequest, ClientTool, HostedTool, SeenCall, SeenMessage, SeenRequest, SeenResult, Speaker, items_of, result_text,
    texts,
};
use crate::spans::{JsonDocument, Node};

mod order;
mod parts;
mod stream;
mod whole;

pub use stream::MessageStream;
pub use whole::WholeMessage;

/// The parts that are texts.
const TEXTS: [&str; 1] = ["text"];

/// How the names of the vendor's own definitions of tools begin that the agent runs; any other runs at the vendor.
const RUN_BY_AGENT: [&str; 4] = ["bash_", "computer_", "memory_", "text_editor_"];

/// Reads a request.
///
/// # Errors
/// Something in it is not as the wire has it.
pub fn read(body: String) -> Result<SeenRequest, BadRequest> {
    let document = JsonDocument::read(body)?;
    let root = document.root.clone();
    let list = root.get("messages").filter(|list| list.is_array()).cloned();
    let list = list.ok_or_else(|| BadRequest::member("messages", "expected a list"))?;
    let messages = list.items().iter().enumerate().map(|(place, node)| message(&document, place, node));
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    let (mut tools, mut hosted) = (Vec::new(), Vec::new());
    for node in items_of(&document, "tools", root.get("tools"))? {
        let name = document.text_at(node, "name").unwrap_or_default();
        match document.text_at(node, "type") {
            Some(kind) if kind != "custom" && !RUN_BY_AGENT.iter().any(|own| kind.starts_with(own)) => {
                let name = if name.is_empty() { kind } else { name };
                hosted.push(HostedTool { name, arguments: object(&document, node) });
            }
            Some(_) | None => tools.push(ClientTool { name, node: node.clone() }),
        }
    }
    for server in items_of(&document, "mcp_servers", root.get("mcp_servers"))? {
        let name = document.text_at(server, "name").unwrap_or_default();
        // Its address and name say what it is; its key is nobody's business.
        let mut arguments = object(&document, server);
        arguments.shift_remove("authorization_token");
        hosted.push(HostedTool { name: format!("mcp_{name}"), arguments });
    }
    Ok(SeenRequest {
        model: document.text_at(&root, "model").unwrap_or_default(),
        streams: document.says(&root, "stream"),
        claim: root.at(&["metadata", "user_id"]).and_then(|node| document.string(node)),
        system: root.get("system").map(|system| texts(&document, system, &TEXTS)).unwrap_or_default(),
        messages,
        list,
        tools,
        tool_lists: root.get("tools").cloned().into_iter().collect(),
        namespaces: Vec::new(),
        hosted,
        previous: None,
        document,
    })
}

fn object(document: &JsonDocument, node: &Node) -> Object {
    document.value(node).as_object().cloned().unwrap_or_default()
}

fn message(document: &JsonDocument, place: usize, node: &Node) -> Result<SeenMessage, BadRequest> {
    let at = |name: &str| format!("messages[{place}].{name}");
    let speaker = match document.text_at(node, "role").as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("system") => Speaker::System,
        Some(_) | None => return Err(BadRequest::member(at("role"), "expected `user`, `assistant` or `system`")),
    };
    let content = node.get("content").ok_or_else(|| BadRequest::member(at("content"), "it is missing"))?;
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for part in content.items() {
        let text = |name: &str| document.text_at(part, name).unwrap_or_default();
        match document.text_at(part, "type").as_deref() {
            Some("tool_use") => {
                let arguments = part.get("input").map(|input| object(document, input)).unwrap_or_default();
                calls.push(SeenCall { id: text("id"), made: None, name: text("name"), arguments });
            }
            Some("tool_result") => {
                let content = part.get("content");
                results.push(SeenResult {
                    call: text("tool_use_id"),
                    text: result_text(document, content, &TEXTS),
                    is_error: document.says(part, "is_error"),
                    whole: part.clone(),
                    content: content.cloned(),
                    member: None,
                });
            }
            Some(_) => {}
            None => return Err(BadRequest::member(at("content"), "a part without `type`")),
        }
    }
    Ok(SeenMessage { speaker, node: node.clone(), texts: texts(document, content, &TEXTS), calls, results })
}

/// The result of the refused call `id`.
pub(crate) fn result(id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"tool_result","tool_use_id":{},"content":{},"is_error":true}}"#,
        Value::from(id),
        Value::from(text)
    )
}

/// A text, as a part of a message.
pub(crate) fn text_part(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, Value::from(text))
}

/// A message of `role`.
pub(crate) fn message_of(role: &str, parts: &[String]) -> String {
    format!(r#"{{"role":"{role}","content":[{}]}}"#, parts.join(","))
}

/// The body of an error answer.
pub fn error(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{}}}}}"#, Value::from(message))
}

/// An error within a stream.
pub fn error_event(message: &str) -> Vec<u8> {
    format!("event: error\ndata: {}\n\n", error("api_error", message)).into_bytes()
}
