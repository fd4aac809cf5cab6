//! The messages of a request in the words of the Messages API.

use pintle_domain::json::{Value, json};
use pintle_domain::message::{CallPart, Message, Role};

use crate::lower::{WireIds, WireMessage, WireNames, object};
use crate::media::{Medium, unsent};

/// `text` as a block, unless it is blank.
pub(super) fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Everything behind the system prompt, neighbours of one role merged.
pub(super) struct Conversation<'a> {
    vision: bool,
    names: &'a WireNames,
    ids: WireIds,
    merged: Vec<(&'static str, Vec<Value>)>,
    /// The last block that the next call of the turn begins with: its message, and its place there.
    pub(super) boundary: Option<(usize, usize)>,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(vision: bool, names: &'a WireNames) -> Self {
        Self { vision, names, ids: WireIds::wordy(), merged: Vec::new(), boundary: None }
    }

    pub(super) fn push(&mut self, one: &WireMessage<'_>, marker: &str) {
        let (message, vision) = (&one.message, self.vision);
        let (role, mut blocks) = match message.role {
            Role::System => ("system", text_block(&message.content).into_iter().collect()),
            Role::User => ("user", content_blocks(message, vision)),
            Role::Assistant => ("assistant", self.assistant_blocks(message)),
            Role::Tool => ("user", vec![self.tool_result(message)]),
        };
        if one.marked {
            blocks.iter_mut().for_each(|block| block[marker] = true.into());
        }
        match self.merged.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => self.merged.push((role, blocks)),
        }
    }

    pub(super) fn assistant_blocks(&mut self, message: &Message) -> Vec<Value> {
        let kept = &message.private.blocks;
        let mut blocks: Vec<Value> = if still_apply(kept, message) {
            kept.iter().filter_map(|block| self.replayed(block, message)).collect()
        } else {
            let thoughts: Vec<Value> = kept.iter().filter_map(signed_thought).collect();
            let calls = message.tool_calls.iter().map(|call| self.tool_use(call));
            thoughts.into_iter().chain(text_block(&message.content)).chain(calls).collect()
        };
        // An answer that was cut may end in a thought, and no message may.
        while blocks.last().is_some_and(is_thought) {
            blocks.pop();
        }
        blocks
    }

    /// A kept block as it is sent again. Calls are taken from the message: hooks may have changed their arguments.
    fn replayed(&mut self, block: &Value, message: &Message) -> Option<Value> {
        match block["type"].as_str() {
            Some("text") => text_block(block["text"].as_str().unwrap_or_default()),
            Some("tool_use") => {
                let call = message.tool_calls.iter().find(|call| block["id"] == *call.id)?;
                Some(self.tool_use(call))
            }
            Some(_) | None => signed_thought(block),
        }
    }

    fn tool_use(&mut self, call: &CallPart) -> Value {
        let name = self.names.form(&call.function.name);
        json!({"type": "tool_use", "id": self.ids.of_call(&call.id), "name": name, "input": object(call)})
    }

    fn tool_result(&self, message: &Message) -> Value {
        let mut result = json!({"type": "tool_result", "tool_use_id": self.ids.of_result(&message.tool_call_id)});
        let mut media = media_blocks(message, self.vision).peekable();
        if media.peek().is_some() {
            result["content"] = text_block(&message.content).into_iter().chain(media).collect();
        } else if !message.content.is_empty() {
            result["content"] = message.content.as_str().into();
        }
        result
    }

    /// The block at `place`.
    pub(super) fn block(&mut self, (message, block): (usize, usize)) -> Option<&mut Value> {
        self.merged.get_mut(message)?.1.get_mut(block)
    }

    /// The last block that may carry a mark; thoughts are not touched.
    pub(super) fn last(&self) -> Option<(usize, usize)> {
        self.last_of(self.merged.len())
    }

    /// The same in the first `count` messages.
    fn last_of(&self, count: usize) -> Option<(usize, usize)> {
        let messages = self.merged[..count].iter().enumerate().rev();
        let mut places =
            messages.filter_map(|(at, (_, blocks))| Some((at, blocks.iter().rposition(|b| !is_thought(b))?)));
        places.next()
    }

    /// The end of what stands before the last answer in front of the boundary.
    pub(super) fn boundary_before(&self, (message, _): (usize, usize)) -> Option<(usize, usize)> {
        let answer = self.merged[..message].iter().rposition(|(role, _)| *role == "assistant")?;
        self.last_of(answer)
    }

    pub(super) fn finish(self) -> Vec<Value> {
        let filled = self.merged.into_iter().filter(|(_, blocks)| !blocks.is_empty());
        filled.map(|(role, blocks)| json!({"role": role, "content": results_first(blocks)})).collect()
    }
}

/// The wire wants the results of calls before any other block of their message.
fn results_first(blocks: Vec<Value>) -> Vec<Value> {
    let (mut results, others): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| block["type"] == "tool_result");
    results.extend(others);
    results
}

fn content_blocks(message: &Message, vision: bool) -> Vec<Value> {
    text_block(&message.content).into_iter().chain(media_blocks(message, vision)).collect()
}

/// The media of a message as blocks: what it takes, and a note for each other one.
fn media_blocks(message: &Message, vision: bool) -> impl Iterator<Item = Value> {
    let base64 = |block: &str, content_type: &str, data: &str| json!({"type": block, "source": {"type": "base64", "media_type": content_type, "data": data}});
    message.media.iter().filter_map(move |entry| match Medium::of(entry, vision) {
        Medium::Image { content_type, data, .. } => Some(base64("image", content_type, data)),
        Medium::Pdf(data) => Some(base64("document", "application/pdf", data)),
        Medium::Remote(url) if url.starts_with("https://") => {
            Some(json!({"type": "image", "source": {"type": "url", "url": url}}))
        }
        Medium::Remote(_) | Medium::Other(_) => {
            unsent(entry, message).map(|note| json!({"type": "text", "text": note}))
        }
    })
}

/// Whether the blocks of an answer are still those of the message that came from it.
fn still_apply(kept: &[Value], message: &Message) -> bool {
    let of = |kind: &'static str| kept.iter().filter(move |block| block["type"] == kind);
    let text: String = of("text").filter_map(|block| block["text"].as_str()).collect();
    let mut ids = of("tool_use").map(|block| block["id"].as_str().unwrap_or_default());
    kept.iter().any(is_thought)
        && text == message.content
        && message.tool_calls.iter().all(|call| ids.next() == Some(&call.id))
        && ids.next().is_none()
}

fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

/// `block` as it is sent again, if it is a thought that its provider can read again: one that it signed or sealed.
fn signed_thought(block: &Value) -> Option<Value> {
    let text = |member: &str| block[member].as_str().filter(|text| !text.is_empty());
    match block["type"].as_str()? {
        "thinking" => {
            let thinking = block["thinking"].as_str()?;
            Some(json!({"type": "thinking", "thinking": thinking, "signature": text("signature")?}))
        }
        "redacted_thinking" => Some(json!({"type": "redacted_thinking", "data": text("data")?})),
        _ => None,
    }
}
