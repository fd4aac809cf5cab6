//! What may stand in an answer: whatever a client could read as a call must be one that the machine reads.

use std::collections::BTreeSet;

use pintle_domain::json::Object;

use crate::spans::{JsonDocument, Kind, Node};
use crate::strict::{folded, index, list, text};

/// The members by which machines and clients find calls and texts.
const KNOWN: [&str; 22] = [
    "args",
    "candidates",
    "codeExecutionResult",
    "content",
    "error",
    "executableCode",
    "fileData",
    "finishReason",
    "functionCall",
    "functionResponse",
    "id",
    "index",
    "inlineData",
    "name",
    "partialArgs",
    "parts",
    "response",
    "responseId",
    "role",
    "text",
    "usageMetadata",
    "willContinue",
];

/// The members of a part that say what is in it, and not how to take it.
const KINDS: [&str; 7] =
    ["codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData", "text"];

/// What may stand beside it.
const BESIDE: [&str; 5] = ["mediaResolution", "partMetadata", "thought", "thoughtSignature", "videoMetadata"];

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartForm {
    /// A text.
    Text(String),
    /// A thought.
    Thought,
    /// A call of the agent's, with its id if it has one.
    Call {
        /// Its id.
        id: Option<String>,
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Object,
    },
    /// Anything else.
    Other,
}

/// A candidate: its index, its parts, and why it ends.
#[derive(Debug)]
pub(super) struct CandidateForm<'n> {
    /// Its index.
    pub(super) index: u64,
    /// Its parts and what they are.
    pub(super) parts: Vec<(&'n Node, PartForm)>,
    /// The list that they stand in.
    pub(super) list: Option<&'n Node>,
    /// Why it ends, if it does.
    pub(super) finish: Option<String>,
}

/// The candidates of an answer to a request that asked for `asked` ones.
///
/// # Errors
/// Something is not as the wire has it, in words.
pub(super) fn candidates(document: &JsonDocument, asked: u64) -> Result<Vec<CandidateForm<'_>>, String> {
    let root = envelope(("data", &document.root))?;
    if let Some(usage) = own(document, root, "usageMetadata") {
        envelope(("usageMetadata", usage))?;
    }
    text(document, root, "responseId")?;
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for node in list(document, root, "candidates")? {
        let node = envelope(("candidates", node))?;
        // The first one has no index on this wire.
        let index = index(document, node, "index")?.unwrap_or_default();
        if !seen.insert(index) {
            return Err(format!("the candidate {index} stands twice in the answer"));
        }
        if index >= asked {
            return Err(format!("the answer has the candidate {index}, and the request asked for {asked}"));
        }
        let finish = text(document, node, "finishReason")?;
        let mut candidate = CandidateForm { index, parts: Vec::new(), list: None, finish };
        if let Some(content) = own(document, node, "content") {
            let content = envelope(("content", content))?;
            if let Some(role) = text(document, content, "role")?.filter(|role| role != "model") {
                return Err(format!("the answer is of `{role}`, expected `model`"));
            }
            candidate.list = own(document, content, "parts");
            for node in list(document, content, "parts")? {
                candidate.parts.push((node, part(document, node)?));
            }
        }
        found.push(candidate);
    }
    Ok(found)
}

fn part(document: &JsonDocument, node: &Node) -> Result<PartForm, String> {
    let node = envelope(("parts", node))?;
    let Kind::Object(members) = &node.kind else { return Ok(PartForm::Other) };
    let said: Vec<&str> =
        members.iter().map(|(name, _)| name.as_str()).filter(|name| own(document, node, name).is_some()).collect();
    if let Some(name) = said.iter().find(|name| !KINDS.contains(name) && !BESIDE.contains(name)) {
        return Err(format!("a part of the answer has `{name}`, which is not known here"));
    }
    let kinds: Vec<&&str> = said.iter().filter(|name| KINDS.contains(name)).collect();
    let written = text(document, node, "text")?;
    match kinds.as_slice() {
        [] => Ok(PartForm::Other),
        [kind] if **kind == "functionCall" => call(document, node),
        [kind] if **kind == "text" && document.says(node, "thought") => Ok(PartForm::Thought),
        [kind] if **kind == "text" => Ok(PartForm::Text(written.unwrap_or_default())),
        [kind] if **kind == "functionResponse" => Err("the answer has the result of a call".into()),
        [_] => Ok(PartForm::Other),
        [..] => Err("a part of the answer is two things at once".into()),
    }
}

fn call(document: &JsonDocument, node: &Node) -> Result<PartForm, String> {
    let Some(call) = node.get("functionCall") else { return Ok(PartForm::Other) };
    let call = envelope(("functionCall", call))?;
    for name in ["partialArgs", "willContinue"] {
        if document.says(call, name) {
            return Err("a call of the answer comes in parts, which is not supported".into());
        }
    }
    let name = text(document, call, "name")?.filter(|name| !name.is_empty());
    let arguments = match own(document, call, "args") {
        None => Object::new(),
        Some(node) => document.value(node).as_object().cloned().ok_or("the `args` of a call are not an object")?,
    };
    Ok(PartForm::Call {
        id: text(document, call, "id")?.filter(|id| !id.is_empty()),
        name: name.ok_or("a call of the answer has no name")?,
        arguments,
    })
}

fn own<'n>(document: &JsonDocument, node: &'n Node, name: &str) -> Option<&'n Node> {
    node.get(name).filter(|node| document.raw(node) != "null")
}

/// `node` as an object whose members everybody reads alike: none is one that is known here but for its case or its
/// underscores, because some readers do not mind these.
fn envelope<'n>((name, node): (&str, &'n Node)) -> Result<&'n Node, String> {
    let Kind::Object(members) = &node.kind else {
        return Err(format!("`{name}` in the answer is not an object"));
    };
    let bare = |name: &str| folded(name).replace('_', "");
    for (own, _) in members {
        if let Some(known) = KNOWN.iter().chain(&BESIDE).find(|known| **known != own && bare(known) == bare(own)) {
            return Err(format!("the answer has the member `{own}`, which some read as `{known}`"));
        }
    }
    Ok(node)
}
