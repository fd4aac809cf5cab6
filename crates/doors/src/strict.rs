//! Members of an answer in the form that its wire has: whatever is there in another form is an error and never read as
//! missing, because a client may read it.

use crate::spans::{JsonDocument, Kind, Node};

/// Most bytes that are held of one round: no model writes as much.
pub(crate) const MAX_HELD_BYTES: usize = 64 << 20;

/// What is said of a round that is larger.
pub(crate) const TOO_MUCH: &str = "the answer holds more than 64 MiB back";

/// The members by which machines and clients find calls and texts.
const KNOWN: [&str; 32] = [
    "arguments",
    "call_id",
    "choices",
    "content",
    "content_block",
    "custom",
    "delta",
    "encrypted_content",
    "finish_reason",
    "function",
    "function_call",
    "id",
    "index",
    "input",
    "item",
    "item_id",
    "message",
    "name",
    "namespace",
    "output",
    "output_index",
    "part",
    "partial_json",
    "reasoning_details",
    "response",
    "role",
    "stop_reason",
    "text",
    "tool_calls",
    "type",
    "usage",
    "signature",
];

/// The member `name` of `node`; nothing where it is absent or null.
pub(crate) fn member<'n>(document: &JsonDocument, node: &'n Node, name: &str) -> Option<&'n Node> {
    node.get(name).filter(|node| document.raw(node) != "null")
}

/// The text at `name`; nothing where it is absent or null.
pub(crate) fn text(document: &JsonDocument, node: &Node, name: &str) -> Result<Option<String>, String> {
    let Some(found) = member(document, node, name) else { return Ok(None) };
    document.string(found).map(Some).ok_or_else(|| other(document, (name, found), "a text"))
}

/// The items of the list at `name`; none where it is absent or null.
pub(crate) fn list<'n>(document: &JsonDocument, node: &'n Node, name: &str) -> Result<&'n [Node], String> {
    match member(document, node, name) {
        None => Ok(&[]),
        Some(found) if found.is_array() => Ok(found.items()),
        Some(found) => Err(other(document, (name, found), "a list")),
    }
}

/// The object at `name`, with members that everybody reads alike; nothing where it is absent or null.
pub(crate) fn object<'n>(document: &JsonDocument, node: &'n Node, name: &str) -> Result<Option<&'n Node>, String> {
    let Some(found) = member(document, node, name) else { return Ok(None) };
    envelope(document, (name, found)).map(Some)
}

/// The number at `name`; nothing where it is absent.
pub(crate) fn index(document: &JsonDocument, node: &Node, name: &str) -> Result<Option<u64>, String> {
    let Some(found) = node.get(name) else { return Ok(None) };
    let wrong = || other(document, (name, found), "a whole number");
    document.number_at(node, name).map(Some).ok_or_else(wrong)
}

/// `node` as an object whose members everybody reads alike: none is one that is known here but for its case, because
/// some readers do not mind that.
pub(crate) fn envelope<'n>(document: &JsonDocument, (name, node): (&str, &'n Node)) -> Result<&'n Node, String> {
    let Kind::Object(members) = &node.kind else { return Err(other(document, (name, node), "an object")) };
    for (own, _) in members {
        let folded = folded(own);
        if folded != *own && KNOWN.contains(&folded.as_str()) {
            return Err(format!("the answer has the member `{own}`, which some read as `{folded}`"));
        }
    }
    Ok(node)
}

/// `name` as readers see it that do not mind its case.
pub(crate) fn folded(name: &str) -> String {
    let fold = |letter: char| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        'İ' | 'ı' => 'i',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

fn other(document: &JsonDocument, (name, node): (&str, &Node), expected: &str) -> String {
    let found = match (&node.kind, document.raw(node)) {
        (Kind::Object(_), _) => "an object",
        (Kind::Array(_), _) => "a list",
        (Kind::Plain, raw) if raw.starts_with('"') => "a text",
        (Kind::Plain, "null") => "null",
        (Kind::Plain, "true" | "false") => "true or false",
        (Kind::Plain, _) => "another number",
    };
    format!("`{name}` in the answer is {found}, expected {expected}")
}
