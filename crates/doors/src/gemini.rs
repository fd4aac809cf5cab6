//! The wire of Gemini: `generateContent` and its like.

use std::collections::BTreeSet;

use pintle_domain::json::{Object, Value, canonical};

use crate::request::{
    BadRequest, ClientTool, HostedTool, SeenCall, SeenMessage, SeenRequest, SeenResult, SeenText, Speaker, items_of,
};
use crate::spans::{JsonDocument, Kind, Node};

mod answer;
mod form;
mod round;

pub use answer::GeminiAnswer;

/// The member in which a result stands that was changed.
const RESULT: &str = "result";

/// The vendor reads each name in two ways: as it writes it, and with underscores.
type Names = (&'static str, &'static str);

const CALL: Names = ("functionCall", "function_call");
const RESPONSE: Names = ("functionResponse", "function_response");
const DECLARATIONS: Names = ("functionDeclarations", "function_declarations");
const SYSTEM: Names = ("systemInstruction", "system_instruction");
const CACHED: Names = ("cachedContent", "cached_content");
/// A whole second request, which only `countTokens` takes.
const COUNTED: Names = ("generateContentRequest", "generate_content_request");

/// Reads a request.
///
/// # Errors
/// Something in it is not as the wire has it.
pub fn read(body: String) -> Result<SeenRequest, BadRequest> {
    let document = JsonDocument::read(body)?;
    let root = document.root.clone();
    if either(&document, &root, CACHED)?.is_some() {
        let why = "it names what stands at the vendor, where no hook saw it; send it in `contents`";
        return Err(BadRequest::member(CACHED.0, why));
    }
    for name in [COUNTED.0, COUNTED.1] {
        if root.get(name).is_some() {
            return Err(BadRequest::member(name, "no hook would see what stands in it; send it in `contents`"));
        }
    }
    let list = root.get("contents").filter(|list| list.is_array()).cloned();
    let list = list.ok_or_else(|| BadRequest::member("contents", "expected a list"))?;
    let contents = list.items().iter().enumerate().map(|(place, node)| content(&document, place, node));
    let mut messages = contents.collect::<Result<Vec<_>, _>>()?;
    name_results(&mut messages);
    let system = match either(&document, &root, SYSTEM)? {
        Some(node) => content(&document, 0, node)?.texts,
        None => Vec::new(),
    };
    let (mut tools, mut tool_lists, mut hosted) = (Vec::new(), Vec::new(), Vec::new());
    for node in items_of(&document, "tools", root.get("tools"))? {
        if let Some(list) = either(&document, node, DECLARATIONS)? {
            let items = items_of(&document, DECLARATIONS.0, Some(list))?;
            let tool = |node: &Node| ClientTool {
                name: document.text_at(node, "name").unwrap_or_default(),
                node: node.clone(),
            };
            tools.extend(items.iter().map(tool));
            tool_lists.push(list.clone());
        }
        hosted.extend(hosted_tools(&document, node));
    }
    Ok(SeenRequest {
        model: String::new(),
        streams: false,
        claim: None,
        system,
        messages,
        list,
        tools,
        tool_lists,
        namespaces: Vec::new(),
        hosted,
        previous: None,
        document,
    })
}

/// The member of `node` that has either of the two names, and says something.
fn either<'n>(document: &JsonDocument, node: &'n Node, names: Names) -> Result<Option<&'n Node>, BadRequest> {
    let own = |name: &str| node.get(name).filter(|node| document.raw(node) != "null");
    match (own(names.0), own(names.1)) {
        (Some(_), Some(_)) => Err(BadRequest::member(names.1, "it stands there a second time, in another spelling")),
        (found, other) => Ok(found.or(other)),
    }
}

/// All in a tool that is no function of the agent's runs at the vendor.
fn hosted_tools(document: &JsonDocument, node: &Node) -> Vec<HostedTool> {
    let Kind::Object(members) = &node.kind else { return Vec::new() };
    let is_own = |name: &str| name == DECLARATIONS.0 || name == DECLARATIONS.1;
    let hosted = |(name, node): &(String, Node)| {
        let arguments = document.value(node).as_object().cloned().unwrap_or_default();
        (!is_own(name) && document.raw(node) != "null").then(|| HostedTool { name: underscored(name), arguments })
    };
    members.iter().filter_map(hosted).collect()
}

/// `googleSearch` as `google_search`.
fn underscored(name: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_uppercase() {
        true => vec!['_', letter.to_ascii_lowercase()],
        false => vec![letter],
    };
    name.chars().flat_map(letter).collect()
}

fn content(document: &JsonDocument, place: usize, node: &Node) -> Result<SeenMessage, BadRequest> {
    let at = |name: &str| format!("contents[{place}].{name}");
    let speaker = match document.text_at(node, "role").as_deref() {
        Some("model") => Speaker::Assistant,
        Some("user" | "function" | "system") | None => Speaker::User,
        Some(_) => return Err(BadRequest::member(at("role"), "expected `user` or `model`")),
    };
    let mut seen =
        SeenMessage { speaker, node: node.clone(), texts: Vec::new(), calls: Vec::new(), results: Vec::new() };
    let parts = node.get("parts").filter(|parts| parts.is_array());
    let parts = parts.ok_or_else(|| BadRequest::member(at("parts"), "expected a list"))?;
    for (own, part) in parts.items().iter().enumerate() {
        let is_thought = speaker == Speaker::Assistant && document.says(part, "thought");
        if let Some(node) = part.get("text").filter(|_| !is_thought)
            && let Some(text) = document.string(node)
        {
            seen.texts.push(SeenText { text, node: node.clone(), part: Some(own) });
        }
        if let Some(call) = either(document, part, CALL)? {
            seen.calls.push(made_call(document, call));
        }
        if let Some(response) = either(document, part, RESPONSE)? {
            let why = || BadRequest::member(at("parts"), "a result without `response`");
            seen.results.push(result_of(document, response).ok_or_else(why)?);
        }
    }
    Ok(seen)
}

fn made_call(document: &JsonDocument, node: &Node) -> SeenCall {
    let name = document.text_at(node, "name").unwrap_or_default();
    let arguments = node.get("args").and_then(|node| document.value(node).as_object().cloned()).unwrap_or_default();
    let made = id_of(None, &name, &arguments);
    let id = document.text_at(node, "id").filter(|id| !id.is_empty());
    SeenCall { id: id.unwrap_or_else(|| made.clone()), made: Some(made), name, arguments }
}

/// The id of a call: many have none, and are known by what they are.
fn id_of(id: Option<String>, name: &str, arguments: &Object) -> String {
    let made = || format!("{name} {}", canonical(&Value::Object(arguments.clone())));
    id.filter(|id| !id.is_empty()).unwrap_or_else(made)
}

/// What a tool answered: one text, however it is called, or all of it.
fn result_of(document: &JsonDocument, node: &Node) -> Option<SeenResult> {
    let response = node.get("response")?;
    let Kind::Object(members) = &response.kind else { return None };
    let only = match members.as_slice() {
        [(name, own)] => document.string(own).map(|text| (name == "error", text, own)),
        _ => None,
    };
    let call = document.text_at(node, "id").unwrap_or_default();
    // Whatever it is of, it is found by its name, until it is known.
    let call = if call.is_empty() { unnamed(&document.text_at(node, "name").unwrap_or_default()) } else { call };
    let whole = node.clone();
    Some(match only {
        Some((is_error, text, own)) => {
            SeenResult { call, text, is_error, whole, content: Some(own.clone()), member: None }
        }
        None => SeenResult {
            call,
            text: document.raw(response).to_owned(),
            is_error: false,
            whole,
            content: Some(response.clone()),
            member: Some(RESULT),
        },
    })
}

/// Marks a result that names a tool and no call.
fn unnamed(tool: &str) -> String {
    format!("\0{tool}")
}

/// Gives results without ids the calls that they are of: of those of the same tool, the first one without a result.
fn name_results(messages: &mut [SeenMessage]) {
    let mut answered: BTreeSet<(usize, usize)> = BTreeSet::new();
    for place in 0..messages.len() {
        for own in 0..messages[place].results.len() {
            let named = messages[place].results[own].call.clone();
            let is_of = |call: &SeenCall| match named.strip_prefix('\0') {
                Some(tool) => call.name == tool,
                None => call.id == named,
            };
            let calls = messages[..place]
                .iter()
                .enumerate()
                .flat_map(|(at, message)| message.calls.iter().enumerate().map(move |(own, call)| ((at, own), call)));
            let found = calls
                .filter(|(at, call)| is_of(call) && !answered.contains(at))
                .map(|(at, call)| (at, call.id.clone()))
                .next();
            if let Some((at, id)) = found {
                answered.insert(at);
                messages[place].results[own].call = id;
            }
        }
    }
}

/// The result of the refused call `id` of the tool `name`.
fn result(id: Option<&str>, name: &str, text: &str) -> String {
    let id = id.map(|id| format!(r#""id":{},"#, Value::from(id))).unwrap_or_default();
    let (name, text) = (Value::from(name), Value::from(text));
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"error":{text}}}}}}}"#)
}

/// A text, as a part.
fn text_part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, Value::from(text))
}

/// A message of `role`.
fn content_of(role: &str, parts: &[String]) -> String {
    format!(r#"{{"role":"{role}","parts":[{}]}}"#, parts.join(","))
}

/// The words of the vendor for statuses.
const WORDS: [(u16, &str); 8] = [
    (401, "UNAUTHENTICATED"),
    (403, "PERMISSION_DENIED"),
    (404, "NOT_FOUND"),
    (408, "DEADLINE_EXCEEDED"),
    (429, "RESOURCE_EXHAUSTED"),
    (502, "UNAVAILABLE"),
    (503, "UNAVAILABLE"),
    (504, "DEADLINE_EXCEEDED"),
];

/// The body of an error answer.
pub fn error(status: u16, message: &str) -> String {
    let own = WORDS.iter().find(|(code, _)| *code == status);
    let usual = if status < 500 { "INVALID_ARGUMENT" } else { "INTERNAL" };
    let word = own.map_or(usual, |(_, word)| word);
    format!(r#"{{"error":{{"code":{status},"message":{},"status":"{word}"}}}}"#, Value::from(message))
}

/// An error within a stream.
pub fn error_event(message: &str) -> Vec<u8> {
    format!("data: {}\n\n", error(502, message)).into_bytes()
}
