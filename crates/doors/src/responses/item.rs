//! The items of an answer: whatever a client could read as a call must be one that the machines read.

use pintle_domain::json::{Object, Value};

use super::tool_name;
use crate::answer::{AnswerTo, ItemMark, WantedCall, arguments};
use crate::openai::free_text;
use crate::spans::{JsonDocument, Node};
use crate::strict::{envelope, list, text};

/// The items that come of each kind of tool of the vendor's; kinds may go on, as `web_search_preview` does.
const OF_VENDOR: [(&str, &[&str]); 10] = [
    ("apply_patch", &["apply_patch_call", "apply_patch_call_output"]),
    ("code_interpreter", &["code_interpreter_call"]),
    ("computer", &["computer_call"]),
    ("file_search", &["file_search_call"]),
    ("image_generation", &["image_generation_call"]),
    ("local_shell", &["local_shell_call"]),
    ("mcp", &["mcp_call", "mcp_list_tools", "mcp_approval_request"]),
    ("shell", &["shell_call", "shell_call_output"]),
    ("tool_search", &["tool_search_call", "tool_search_output"]),
    ("web_search", &["web_search_call"]),
];

/// What an item is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OutputItem {
    /// A call of the client's.
    Call(WrittenCall),
    /// A message of the model's, with its id.
    Message(Option<String>, String),
    /// A thought.
    Thought {
        /// How it is known again.
        mark: String,
        /// Whether it can be sent to the model again.
        is_sendable: bool,
    },
    /// What tools of the vendor made, and anything else that nobody runs.
    Other,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WrittenCall {
    /// The id that its result names.
    pub(super) id: String,
    /// The id of the item.
    pub(super) item: Option<String>,
    /// The tool, as hooks call it.
    pub(super) name: String,
    /// The tool, as the wire has it beside its namespace.
    pub(super) own_name: String,
    /// Its arguments as text.
    pub(super) written: String,
    /// Whether it is of a tool that takes a text and no object.
    pub(super) is_custom: bool,
}

impl WrittenCall {
    /// The member with its arguments.
    pub(super) const fn member(&self) -> &'static str {
        if self.is_custom { "input" } else { "arguments" }
    }

    /// The call, if its arguments can be read.
    pub(super) fn wanted(&self) -> Option<WantedCall> {
        let arguments = match self.is_custom {
            true => free_text(&self.written),
            false => arguments(&self.written)?,
        };
        Some(WantedCall { id: self.id.clone(), name: self.name.clone(), arguments })
    }

    /// The text that says the arguments `with`; none where such a call cannot say them.
    pub(super) fn rewritten(&self, with: &Object) -> Option<String> {
        match self.is_custom {
            true => with.get("input").and_then(Value::as_str).filter(|_| with.len() == 1).map(str::to_owned),
            false => Some(Value::Object(with.clone()).to_string()),
        }
    }

    /// Whether `other` is the same call, whatever of its arguments came.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let own = |call: &Self| {
            (call.id.clone(), call.item.clone(), (call.name.clone(), call.own_name.clone()), call.is_custom)
        };
        own(self) == own(other)
    }
}

/// Reads one item of an answer to `to`.
///
/// # Errors
/// It is not as the wire has it, in words.
pub(super) fn item(document: &JsonDocument, node: &Node, to: &AnswerTo) -> Result<OutputItem, String> {
    let node = envelope(document, ("output", node))?;
    let kind = text(document, node, "type")?.ok_or("an item of the answer has no `type`")?;
    let id = text(document, node, "id")?;
    match kind.as_str() {
        "function_call" => call(document, node, (to, false)).map(OutputItem::Call),
        "custom_tool_call" => call(document, node, (to, true)).map(OutputItem::Call),
        "message" => Ok(OutputItem::Message(id.filter(|id| !id.is_empty()), said(document, node)?)),
        "reasoning" => {
            let sealed = text(document, node, "encrypted_content")?.filter(|sealed| !sealed.is_empty());
            let is_sendable = to.is_stored || sealed.is_some();
            Ok(OutputItem::Thought { mark: sealed.or(id).unwrap_or_default(), is_sendable })
        }
        "compaction" => Ok(OutputItem::Other),
        kind if is_of_vendor(kind, &to.hosted) => Ok(OutputItem::Other),
        kind => Err(format!("an item of the kind `{kind}` is not known here, or no tool of the request makes it")),
    }
}

fn is_of_vendor(kind: &str, hosted: &[String]) -> bool {
    let makes = |(tool, kinds): &(&str, &[&str])| {
        kinds.contains(&kind)
            && hosted.iter().any(|own| own == tool || own.strip_prefix(tool).is_some_and(|rest| rest.starts_with('_')))
    };
    OF_VENDOR.iter().any(makes)
}

fn call(document: &JsonDocument, node: &Node, (to, is_custom): (&AnswerTo, bool)) -> Result<WrittenCall, String> {
    let (own, other) = if is_custom { ("input", "arguments") } else { ("arguments", "input") };
    if document.says(node, other) {
        return Err(format!("a call of the answer has `{other}`, which is not known here"));
    }
    let namespace = text(document, node, "namespace")?.filter(|namespace| !namespace.is_empty());
    // Its name stays out of what is said: clients read that, and it is the vendor's.
    if namespace.as_ref().is_some_and(|namespace| !to.namespaces.contains(namespace)) {
        return Err("a call of the answer has a `namespace` in which the request offered no tool".into());
    }
    let some = |name: &str| match text(document, node, name)?.filter(|text| !text.is_empty()) {
        Some(text) => Ok::<_, String>(text),
        None => Err(format!("a call of the answer has no `{name}`")),
    };
    let own_name = some("name")?;
    Ok(WrittenCall {
        id: some("call_id")?,
        item: text(document, node, "id")?.filter(|id| !id.is_empty()),
        name: tool_name(namespace.as_deref(), &own_name),
        own_name,
        written: text(document, node, own)?.unwrap_or_default(),
        is_custom,
    })
}

/// The text of a message.
fn said(document: &JsonDocument, node: &Node) -> Result<String, String> {
    if let Some(role) = text(document, node, "role")?.filter(|role| role != "assistant") {
        return Err(format!("a message of the answer is of `{role}`, expected `assistant`"));
    }
    let mut said = String::new();
    for part in list(document, node, "content")? {
        let part = envelope(document, ("content", part))?;
        let kind = text(document, part, "type")?.ok_or("a part of a message has no `type`")?;
        let own = text(document, part, "text")?;
        if kind == "output_text" {
            said.push_str(&own.unwrap_or_default());
        }
    }
    Ok(said)
}

impl OutputItem {
    /// How the client's item is known again, if it can be.
    pub(super) fn mark(&self) -> Option<ItemMark> {
        match self {
            Self::Call(call) => Some(ItemMark::Call(call.id.clone())),
            Self::Message(id, text) => {
                (!text.is_empty()).then(|| ItemMark::Text { text: text.clone(), id: id.clone() })
            }
            Self::Thought { mark, .. } => Some(ItemMark::Thought(mark.clone())),
            Self::Other => None,
        }
    }

    /// The call that it is.
    pub(super) const fn call(&self) -> Option<&WrittenCall> {
        match self {
            Self::Call(call) => Some(call),
            Self::Message(..) | Self::Thought { .. } | Self::Other => None,
        }
    }
}
