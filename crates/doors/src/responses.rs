//! The wire of OpenAI's responses.

use pintle_domain::json::{Object, Value};

use crate::answer::arguments;
use crate::openai::{error, free_text};
use crate::request::{
    BadRequest, ClientTool, HostedTool, Previous, SeenCall, SeenMessage, SeenRequest, SeenResult, SeenText, Speaker,
    items_of, result_text, texts,
};
use crate::spans::{JsonDocument, Kind, Node};
use crate::strict::folded;

mod item;
mod order;
mod round;
mod stream;
mod whole;

pub use stream::ResponseStream;
pub use whole::WholeResponse;

/// The parts that are texts.
const TEXTS: [&str; 2] = ["input_text", "output_text"];

/// What a request names that stands at the vendor, where no hook saw it.
const ELSEWHERE: [(&str, &str); 3] = [
    ("conversation", "it names a conversation that stands at the vendor; send the whole of it in `input`"),
    ("prompt", "it names a prompt that stands at the vendor; send it in `instructions` and `input`"),
    ("background", "an answer in the background would be fetched past the door"),
];

/// The member that names the answer which a request goes on from.
const PREVIOUS: &str = "previous_response_id";

/// Why a member is refused that is called as one which names something at the vendor, but for its letters.
const SPELLED: &str = "it is spelled as the vendor may read it, and the door does not";

/// Members of a tool that are nobody's business.
const SECRETS: [&str; 2] = ["authorization", "headers"];

/// Reads a request.
///
/// # Errors
/// Something in it is not as the wire has it.
pub fn read(body: String) -> Result<SeenRequest, BadRequest> {
    let document = JsonDocument::read(body)?;
    let root = document.root.clone();
    if let Some((name, why)) = ELSEWHERE.iter().find(|(name, _)| document.says(&root, name)) {
        return Err(BadRequest::member(*name, why));
    }
    if let Some(name) = spelled_otherwise(&root) {
        return Err(BadRequest::member(name, SPELLED));
    }
    let previous = previous(&document, &root)?;
    let list = root.get("input").cloned().ok_or_else(|| BadRequest::member("input", "expected a text or a list"))?;
    let messages = match document.string(&list) {
        Some(text) => vec![SeenMessage {
            texts: vec![SeenText { text, node: list.clone(), part: None }],
            ..empty(Speaker::User, &list)
        }],
        None if list.is_array() => {
            let items = list.items().iter().enumerate().map(|(place, node)| item(&document, place, node));
            items.collect::<Result<_, _>>()?
        }
        None => return Err(BadRequest::member("input", "expected a text or a list")),
    };
    if previous.is_some() && list.items().iter().any(|node| is_approval(&document, node)) {
        let why = "it answers what was asked at the vendor; send the whole conversation, with the question";
        return Err(BadRequest::member("input", why));
    }
    let offered = offered(&document, &root)?;
    let claim = ["prompt_cache_key", "user"].iter().find_map(|name| document.text_at(&root, name));
    Ok(SeenRequest {
        model: document.text_at(&root, "model").unwrap_or_default(),
        streams: document.says(&root, "stream"),
        claim,
        system: root.get("instructions").map(|node| texts(&document, node, &TEXTS)).unwrap_or_default(),
        messages,
        list,
        tools: offered.tools,
        tool_lists: offered.lists,
        namespaces: offered.namespaces,
        hosted: offered.hosted,
        previous,
        document,
    })
}

/// The answer that a request goes on from, if it names one.
fn previous(document: &JsonDocument, root: &Node) -> Result<Option<Previous>, BadRequest> {
    if !document.says(root, PREVIOUS) {
        return Ok(None);
    }
    let id = document.text_at(root, PREVIOUS).ok_or_else(|| BadRequest::member(PREVIOUS, "expected a text"))?;
    Ok(Some(Previous::Named(id)))
}

/// The member of a request that is called as one which names something at the vendor, but for its letters.
fn spelled_otherwise(root: &Node) -> Option<&str> {
    let Kind::Object(members) = &root.kind else { return None };
    let names = || ELSEWHERE.iter().map(|(name, _)| *name).chain([PREVIOUS]);
    let is_other = |name: &str| names().any(|known| name != known && folded(name) == known);
    members.iter().map(|(name, _)| name.as_str()).find(|name| is_other(name))
}

/// Whether an item lets a tool of the vendor's run that it asked about.
fn is_approval(document: &JsonDocument, node: &Node) -> bool {
    document.text_at(node, "type").as_deref() == Some("mcp_approval_response")
}

/// The tools that a request offers.
#[derive(Default)]
struct Offered {
    tools: Vec<ClientTool>,
    lists: Vec<Node>,
    namespaces: Vec<String>,
    hosted: Vec<HostedTool>,
}

fn offered(document: &JsonDocument, root: &Node) -> Result<Offered, BadRequest> {
    let mut offered = Offered::default();
    for node in items_of(document, "tools", root.get("tools"))? {
        if document.text_at(node, "type").as_deref() != Some("namespace") {
            offer(&mut offered, document, (None, node));
            continue;
        }
        let namespace = document.text_at(node, "name").unwrap_or_default();
        for own in items_of(document, "tools[].tools", node.get("tools"))? {
            offer(&mut offered, document, (Some(&namespace), own));
        }
        offered.lists.extend(node.get("tools").cloned());
        offered.namespaces.push(namespace);
    }
    offered.lists.extend(root.get("tools").cloned());
    Ok(offered)
}

fn offer(offered: &mut Offered, document: &JsonDocument, (namespace, node): (Option<&str>, &Node)) {
    let kind = document.text_at(node, "type").unwrap_or_default();
    match kind.as_str() {
        "function" | "custom" => {
            let name = document.text_at(node, "name").unwrap_or_default();
            offered.tools.push(ClientTool { name: tool_name(namespace, &name), node: node.clone() });
        }
        _ => offered.hosted.push(hosted_tool(document, node, kind)),
    }
}

/// What hooks call the tool `name` of a namespace: as Codex calls tools of MCP servers.
fn tool_name(namespace: Option<&str>, name: &str) -> String {
    match namespace.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{}__{name}", namespace.trim_end_matches("__")),
        None => name.to_owned(),
    }
}

/// A tool of the vendor's. Its address and name say what it is; its keys are nobody's business.
fn hosted_tool(document: &JsonDocument, node: &Node, kind: String) -> HostedTool {
    let mut arguments = document.value(node).as_object().cloned().unwrap_or_default();
    SECRETS.iter().for_each(|name| drop(arguments.shift_remove(name)));
    let name = match kind.as_str() {
        "mcp" => format!("mcp_{}", document.text_at(node, "server_label").unwrap_or_default()),
        _ => kind,
    };
    HostedTool { name, arguments }
}

fn empty(speaker: Speaker, node: &Node) -> SeenMessage {
    SeenMessage { speaker, node: node.clone(), texts: Vec::new(), calls: Vec::new(), results: Vec::new() }
}

fn item(document: &JsonDocument, place: usize, node: &Node) -> Result<SeenMessage, BadRequest> {
    let at = |name: &str| format!("input[{place}].{name}");
    let text = |name: &str| document.text_at(node, name).unwrap_or_default();
    let kind = text("type");
    match kind.as_str() {
        "" | "message" => message(document, place, node),
        "function_call" | "custom_tool_call" => {
            let call = text("call_id");
            let name = tool_name(document.text_at(node, "namespace").as_deref(), &text("name"));
            let arguments = if kind == "function_call" { said(&text("arguments")) } else { free_text(&text("input")) };
            let calls = vec![SeenCall { id: call, made: None, name, arguments }];
            Ok(SeenMessage { calls, ..empty(Speaker::Assistant, node) })
        }
        "item_reference" => {
            let why = "it names what stands at the vendor, where no hook saw it; send the item itself";
            Err(BadRequest::member(at("type"), why))
        }
        kind if kind.ends_with("_output") => {
            let content = node.get("output").ok_or_else(|| BadRequest::member(at("output"), "it is missing"))?;
            let result = SeenResult {
                call: text("call_id"),
                text: result_text(document, Some(content), &TEXTS),
                is_error: false,
                whole: node.clone(),
                content: Some(content.clone()),
                member: None,
            };
            Ok(SeenMessage { results: vec![result], ..empty(Speaker::Tool, node) })
        }
        "reasoning" | "compaction" | "mcp_list_tools" | "mcp_approval_request" => Ok(empty(Speaker::Assistant, node)),
        "mcp_approval_response" => Ok(empty(Speaker::User, node)),
        kind if kind.ends_with("_call") => Ok(empty(Speaker::Assistant, node)),
        _ => Err(BadRequest::member(at("type"), "expected a message, a call, the output of one, or a thought")),
    }
}

fn said(written: &str) -> Object {
    arguments(written).unwrap_or_else(|| free_text(written))
}

fn message(document: &JsonDocument, place: usize, node: &Node) -> Result<SeenMessage, BadRequest> {
    let at = |name: &str| format!("input[{place}].{name}");
    let speaker = match document.text_at(node, "role").as_deref() {
        Some("system" | "developer") => Speaker::System,
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some(_) | None => {
            let why = "expected `system`, `developer`, `user` or `assistant`";
            return Err(BadRequest::member(at("role"), why));
        }
    };
    let content = node.get("content").ok_or_else(|| BadRequest::member(at("content"), "it is missing"))?;
    Ok(SeenMessage { texts: texts(document, content, &TEXTS), ..empty(speaker, node) })
}

/// The result of the refused call `id`.
fn result(id: &str, is_custom: bool, text: &str) -> String {
    let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
    format!(r#"{{"type":"{kind}","call_id":{},"output":{}}}"#, Value::from(id), Value::from(text))
}

/// A message of the model's with `text`.
fn message_of(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":{},"type":"message","status":"completed","role":"assistant","content":[{}]}}"#,
        Value::from(id),
        text_part(text)
    )
}

/// A text, as a part of a message.
fn text_part(text: &str) -> String {
    format!(r#"{{"type":"output_text","text":{},"annotations":[]}}"#, Value::from(text))
}

/// An error within a stream: some clients read the members of the event, others those of its `error`.
pub fn error_event(message: &str) -> Vec<u8> {
    let own = error("door_error", message);
    let inner = own.strip_prefix('{').unwrap_or(&own);
    let said = Value::from(message);
    format!(
        "event: error\ndata: {{\"type\":\"error\",\"code\":\"door_error\",\"message\":{said},\"param\":null,{inner}\n\n"
    )
    .into_bytes()
}
