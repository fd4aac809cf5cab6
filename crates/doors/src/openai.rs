//! The wire of OpenAI's chat completions.

use pintle_domain::json::{Object, Value};

use crate::answer::arguments;
use crate::request::{
    BadRequest, ClientTool, HostedTool, SeenCall, SeenMessage, SeenRequest, SeenResult, Speaker, items_of, result_text,
    texts,
};
use crate::spans::{JsonDocument, Node};

mod call;
mod form;
mod held;
mod stream;
mod texts;
mod whole;

pub use stream::CompletionStream;
pub use whole::WholeCompletion;

/// The parts that are texts.
const TEXTS: [&str; 1] = ["text"];

/// Reads a request.
///
/// # Errors
/// Something in it is not as the wire has it.
pub fn read(body: String) -> Result<SeenRequest, BadRequest> {
    let document = JsonDocument::read(body)?;
    let root = document.root.clone();
    let list = root.get("messages").filter(|list| list.is_array()).cloned();
    let list = list.ok_or_else(|| BadRequest::member("messages", "expected a list"))?;
    if document.says(&root, "functions") {
        return Err(BadRequest::member("functions", "expected `tools`: this form has been given up"));
    }
    let messages = list.items().iter().enumerate().map(|(place, node)| message(&document, place, node));
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    let (mut tools, mut hosted) = (Vec::new(), Vec::new());
    for node in items_of(&document, "tools", root.get("tools"))? {
        let kind = document.text_at(node, "type").unwrap_or_default();
        match kind.as_str() {
            "function" | "custom" => {
                let name = node.get(&kind).and_then(|inner| document.text_at(inner, "name"));
                tools.push(ClientTool { name: name.unwrap_or_default(), node: node.clone() });
            }
            _ => hosted.push(HostedTool { name: kind, arguments: object(&document, node) }),
        }
    }
    if let Some(options) = root.get("web_search_options").filter(|node| document.raw(node) != "null") {
        hosted.push(HostedTool { name: "web_search".into(), arguments: object(&document, options) });
    }
    let claim = ["prompt_cache_key", "user"].iter().find_map(|name| document.text_at(&root, name));
    Ok(SeenRequest {
        model: document.text_at(&root, "model").unwrap_or_default(),
        streams: document.says(&root, "stream"),
        claim,
        system: Vec::new(),
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
    let role = document.text_at(node, "role").unwrap_or_default();
    let speaker = match role.as_str() {
        "system" | "developer" => Speaker::System,
        "user" => Speaker::User,
        "assistant" => Speaker::Assistant,
        "tool" => Speaker::Tool,
        _ => {
            let why = "expected `system`, `developer`, `user`, `assistant` or `tool`";
            return Err(BadRequest::member(at("role"), why));
        }
    };
    let content = node.get("content");
    let mut seen =
        SeenMessage { speaker, node: node.clone(), texts: Vec::new(), calls: Vec::new(), results: Vec::new() };
    if speaker == Speaker::Tool {
        seen.results.push(SeenResult {
            call: document.text_at(node, "tool_call_id").unwrap_or_default(),
            text: result_text(document, content, &TEXTS),
            is_error: false,
            whole: node.clone(),
            content: content.cloned(),
            member: None,
        });
        return Ok(seen);
    }
    seen.texts = content.map(|content| texts(document, content, &TEXTS)).unwrap_or_default();
    for call in node.get("tool_calls").map(Node::items).unwrap_or_default() {
        seen.calls.push(made_call(document, call));
    }
    Ok(seen)
}

/// A call as the agent sends it back.
fn made_call(document: &JsonDocument, call: &Node) -> SeenCall {
    let kind =
        if call.get("custom").is_some_and(|custom| document.raw(custom) != "null") { "custom" } else { "function" };
    let text = |name: &str| call.get(kind).and_then(|inner| document.text_at(inner, name)).unwrap_or_default();
    let id = document.text_at(call, "id").unwrap_or_default();
    let arguments = match kind {
        "custom" => free_text(&text("input")),
        _ => arguments(&text("arguments")).unwrap_or_else(|| free_text(&text("arguments"))),
    };
    SeenCall { id, made: None, name: text("name"), arguments }
}

/// The arguments of a call that has a text and no object.
pub(crate) fn free_text(input: &str) -> Object {
    let mut arguments = Object::new();
    arguments.insert("input".into(), input.into());
    arguments
}

/// The result of the refused call `id`.
pub(crate) fn result(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":{},"content":{}}}"#, Value::from(id), Value::from(text))
}

/// The message of a model that said `text` and wants `calls`.
pub(crate) fn message_of(text: &str, calls: &[String]) -> String {
    let content = if text.is_empty() { "null".to_owned() } else { Value::from(text).to_string() };
    format!(r#"{{"role":"assistant","content":{content},"tool_calls":[{}]}}"#, calls.join(","))
}

/// The body of an error answer.
pub fn error(kind: &str, message: &str) -> String {
    format!(r#"{{"error":{{"message":{},"type":"{kind}","param":null,"code":"{kind}"}}}}"#, Value::from(message))
}

/// An error within a stream.
pub fn error_event(message: &str) -> Vec<u8> {
    format!("data: {}\n\n", error("door_error", message)).into_bytes()
}

/// What stands between the texts of two rounds.
pub(crate) const BETWEEN: &str = "\n\n";
