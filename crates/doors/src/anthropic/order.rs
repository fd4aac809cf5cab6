//! What may stand in an answer and in which order: whatever a client could read as a call must be one that was held.

use std::collections::{BTreeMap, BTreeSet};

use crate::spans::{JsonDocument, Kind, Node};
use crate::strict::{MAX_HELD_BYTES, envelope, index, list, member, object, text};
use pintle_egress::sse::Event;

/// What a block is, as far as its parts are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    /// A call of the client's.
    Call {
        /// Its beginning has arguments.
        has_input: bool,
    },
    /// A call that runs at the vendor.
    Hosted,
    /// Any other.
    Other,
}

/// How far the events of one round have come.
#[derive(Debug, Default)]
pub(super) struct Order {
    began: bool,
    ending: bool,
    open: BTreeMap<u64, BlockKind>,
    seen: BTreeSet<u64>,
    /// How many bytes are held of them.
    held: usize,
}

impl Order {
    /// Looks at the next event.
    ///
    /// # Errors
    /// It is not as the wire has it, in words.
    pub(super) fn take(&mut self, event: &Event, document: &JsonDocument) -> Result<(), String> {
        let root = envelope(document, ("data", &document.root))?;
        let kind = text(document, root, "type")?.ok_or("an event of the answer has no `type`")?;
        if let Some(name) = event.name().filter(|name| *name != kind) {
            return Err(format!("an event of the answer is called `{name}`, and its `type` is `{kind}`"));
        }
        match kind.as_str() {
            "message_start" => self.begin(document, root),
            "content_block_start" => self.start(document, root),
            "content_block_delta" => self.grow(document, root),
            "content_block_stop" => {
                let place = self.place(document, root)?;
                self.open.remove(&place);
                Ok(())
            }
            "message_delta" => {
                self.ending = true;
                if let Some(delta) = object(document, root, "delta")? {
                    text(document, delta, "stop_reason")?;
                }
                object(document, root, "usage").map(drop)
            }
            "message_stop" => {
                self.ending = true;
                Ok(())
            }
            _ => match ["content_block", "delta", "message"].iter().find(|name| root.get(name).is_some()) {
                Some(name) => Err(format!("an event of the kind `{kind}` with `{name}` is not known here")),
                None => Ok(()),
            },
        }
    }

    /// Counts bytes that are held. Says whether they are too many.
    pub(super) const fn holds(&mut self, bytes: usize) -> bool {
        self.held = self.held.saturating_add(bytes);
        self.held > MAX_HELD_BYTES
    }

    fn begin(&mut self, document: &JsonDocument, root: &Node) -> Result<(), String> {
        if std::mem::replace(&mut self.began, true) || !self.seen.is_empty() || self.ending {
            return Err("the answer begins a second time".into());
        }
        let Some(message) = object(document, root, "message")? else { return Ok(()) };
        match list(document, message, "content")?.is_empty() {
            true => Ok(()),
            false => Err("the answer has blocks in its beginning, where none stand".into()),
        }
    }

    fn start(&mut self, document: &JsonDocument, root: &Node) -> Result<(), String> {
        let place = self.index(document, root)?;
        if !self.seen.insert(place) {
            return Err(format!("the block {place} of the answer begins a second time"));
        }
        let block = object(document, root, "content_block")?.ok_or("a block of the answer has no `content_block`")?;
        let kind = block_kind(document, block)?;
        self.open.insert(place, kind);
        Ok(())
    }

    fn grow(&mut self, document: &JsonDocument, root: &Node) -> Result<(), String> {
        let place = self.place(document, root)?;
        let delta = object(document, root, "delta")?.ok_or("a part of a block has no `delta`")?;
        let kind = text(document, delta, "type")?.ok_or("a part of a block has no `type`")?;
        text(document, delta, "text")?;
        let json = text(document, delta, "partial_json")?;
        let is_json = kind == "input_json_delta";
        match self.open.get(&place) {
            Some(BlockKind::Call { .. }) if !is_json => Err(format!("a call has a part of the kind `{kind}`")),
            Some(BlockKind::Call { has_input: true }) if json.is_some_and(|json| !json.trim().is_empty()) => {
                Err("a call has arguments in its beginning and in parts".into())
            }
            Some(BlockKind::Call { .. } | BlockKind::Hosted) => Ok(()),
            Some(BlockKind::Other) | None if is_json || member(document, delta, "partial_json").is_some() => {
                Err("a part of arguments stands outside of a call".into())
            }
            Some(BlockKind::Other) | None => Ok(()),
        }
    }

    /// The index of a block that is open.
    fn place(&self, document: &JsonDocument, root: &Node) -> Result<u64, String> {
        let place = self.index(document, root)?;
        match self.open.contains_key(&place) {
            true => Ok(place),
            false => Err(format!("an event of the answer is of the block {place}, which is not open")),
        }
    }

    fn index(&self, document: &JsonDocument, root: &Node) -> Result<u64, String> {
        if self.ending {
            return Err("the answer has a block behind its end".into());
        }
        Ok(index(document, root, "index")?.ok_or("an event of a block has no `index`")?)
    }
}

fn block_kind(document: &JsonDocument, block: &Node) -> Result<BlockKind, String> {
    match block_type(document, block)?.as_str() {
        "tool_use" => match member(document, block, "input").map(|input| &input.kind) {
            None => Ok(BlockKind::Call { has_input: false }),
            // Its members are the tool's own.
            Some(Kind::Object(members)) => Ok(BlockKind::Call { has_input: !members.is_empty() }),
            Some(Kind::Array(_) | Kind::Plain) => Err("the `input` of a call is not an object".into()),
        },
        "server_tool_use" | "mcp_tool_use" => Ok(BlockKind::Hosted),
        _ => Ok(BlockKind::Other),
    }
}

/// Whether a block of `kind`, which is not known here, may be a call: of a later version of a kind that is known, too.
pub(super) fn is_like_call(kind: &str) -> bool {
    let kind = kind.to_lowercase();
    ["_use", "_call"].iter().any(|end| kind.ends_with(end) || kind.contains(&format!("{end}_")))
}

/// The kind of a block whose members are all in the form that the wire has.
pub(super) fn block_type(document: &JsonDocument, block: &Node) -> Result<String, String> {
    let kind = text(document, block, "type")?.ok_or("a block of the answer has no `type`")?;
    let (_, name) = (text(document, block, "id")?, text(document, block, "name")?);
    match kind.as_str() {
        "text" => drop(text(document, block, "text")?),
        "tool_use" if name.is_none_or(|name| name.is_empty()) => return Err("a call of the answer has no name".into()),
        _ => {}
    }
    Ok(kind)
}
