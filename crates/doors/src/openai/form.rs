//! What may stand in an answer: whatever a client could read as a call must be one that the machines read.

use std::collections::BTreeSet;

use crate::spans::{JsonDocument, Kind, Node};
use crate::strict::{envelope, index, list, member, object, text};

/// What a call, or a part of one, says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallForm<'n> {
    /// Its own index.
    pub(super) index: Option<u64>,
    /// Its id; none where it is empty.
    pub(super) id: Option<String>,
    /// Whether it is of a tool that takes a text and no object; none where nothing is said.
    pub(super) is_custom: Option<bool>,
    /// The object with its name and arguments.
    pub(super) inner: Option<&'n Node>,
    /// Its name; none where it is empty.
    pub(super) name: Option<String>,
    /// Its arguments.
    pub(super) written: Option<String>,
}

/// The choices of an answer to a request that asked for `asked` ones, where messages stand in the member `own`.
///
/// # Errors
/// Something is not as the wire has it, in words.
pub(super) fn choices<'n>(document: &'n JsonDocument, own: &str, asked: u64) -> Result<&'n [Node], String> {
    let root = envelope(document, ("data", &document.root))?;
    let choices = list(document, root, "choices")?;
    object(document, root, "usage")?;
    let mut seen = BTreeSet::new();
    for (place, choice) in choices.iter().enumerate() {
        envelope(document, ("choices", choice))?;
        // Where messages are whole, many clients go by the place.
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        let index = index(document, choice, "index")?.unwrap_or(if own == "delta" { 0 } else { place });
        if !seen.insert(index) {
            return Err(format!("the choice {index} stands twice in the answer"));
        }
        if index >= asked || place >= asked {
            return Err(format!("the answer has the choice {index}, and the request asked for {asked}"));
        }
        text(document, choice, "finish_reason")?;
        for name in ["delta", "message"] {
            let Some(message) = object(document, choice, name)? else { continue };
            if document.says(message, "function_call") {
                return Err("the answer has a `function_call`, an old form that is not supported".into());
            }
            text(document, message, "content")?;
            let calls = list(document, message, "tool_calls")?;
            if name != own && !calls.is_empty() {
                return Err(format!("the answer has calls in `{name}`, expected in `{own}`"));
            }
        }
    }
    Ok(choices)
}

/// One call, or a part of one.
///
/// # Errors
/// It is not as the wire has it, in words.
pub(super) fn call<'n>(document: &JsonDocument, node: &'n Node) -> Result<CallForm<'n>, String> {
    let node = envelope(document, ("tool_calls", node))?;
    let kind = text(document, node, "type")?.filter(|kind| !kind.is_empty());
    let (function, custom) = (object(document, node, "function")?, object(document, node, "custom")?);
    let is_custom = match (kind.as_deref(), function, custom) {
        (None, None, None) => None,
        (None | Some("function"), Some(_), None) | (Some("function"), None, None) => Some(false),
        (None | Some("custom"), None, Some(_)) | (Some("custom"), None, None) => Some(true),
        (_, Some(_), Some(_)) => return Err("a call has both `function` and `custom`".into()),
        (Some(kind), _, _) => {
            return Err(format!("a call of the type `{kind}` says something else, or is not known here"));
        }
    };
    let inner = function.or(custom);
    let of = |name: &str| inner.map_or(Ok(None), |inner| text(document, inner, name));
    let is_object = inner.and_then(|inner| member(document, inner, "arguments")).is_some_and(|node| !is_plain(node));
    if is_object {
        return Err(
            "the `arguments` of a call are not a text: this server does not write them as the wire has them".into()
        );
    }
    Ok(CallForm {
        index: index(document, node, "index")?,
        id: text(document, node, "id")?.filter(|id| !id.is_empty()),
        is_custom,
        inner,
        name: of("name")?.filter(|name| !name.is_empty()),
        written: match custom.is_some() {
            true => of("input")?,
            false => of("arguments")?,
        },
    })
}

const fn is_plain(node: &Node) -> bool {
    matches!(node.kind, Kind::Plain)
}

/// Whether a choice says nothing but the calls that leave it, if they do.
pub(super) fn is_bare(document: &JsonDocument, choice: &Node, leaves: bool) -> bool {
    let says = |node: &Node, but: &[&str]| match &node.kind {
        Kind::Object(members) => {
            members.iter().any(|(name, _)| !but.contains(&name.as_str()) && document.says(node, name))
        }
        Kind::Array(_) | Kind::Plain => false,
    };
    let calls: &[&str] = if leaves { &["tool_calls"] } else { &[] };
    !says(choice, &["index", "delta"]) && !choice.get("delta").is_some_and(|delta| says(delta, calls))
}
