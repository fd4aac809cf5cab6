//! An answer of the Messages API, from its events or in one piece.

use std::collections::BTreeMap;

use pintle_domain::json::{Value, json};
use pintle_domain::llm::{LlmReply, Usage};
use pintle_domain::message::{CallPart, ProviderData};

use crate::{Delta, OnDelta, ProviderError, failure};

/// Most blocks in one answer; a handful is usual, a server that sends thousands is broken.
const MAX_BLOCKS: usize = 1024;

/// A block of the answer.
enum Block {
    Text(String),
    Call {
        id: String,
        name: String,
        /// Whole input of servers that send it at the start of the block.
        input: Value,
        /// Its JSON text, digits as they came.
        arguments: String,
    },
    Thinking {
        text: String,
        signature: String,
    },
    /// A thought that only the provider can read, as it came.
    Redacted(Value),
    /// A kind of block that does not concern a conversation.
    Other,
}

/// The part of an answer that has arrived so far.
#[derive(Default)]
pub(super) struct Assembly {
    blocks: BTreeMap<u64, Block>,
    stop_reason: String,
    read_tokens: u64,
    written_tokens: u64,
    heard: bool,
}

impl Assembly {
    /// Reads an answer in one piece.
    pub(super) fn whole(message: &Value, on_delta: OnDelta<'_>) -> Result<Self, ProviderError> {
        if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
            return Err(failure::in_answer(error));
        }
        let Some(content) = message.get("content").and_then(Value::as_array) else {
            return Err(ProviderError::fatal("the answer holds no `content`; check `base_url`"));
        };
        let mut assembly = Self { heard: true, ..Self::default() };
        for (index, block) in (0..).zip(content) {
            assembly.start(index, block, on_delta)?;
        }
        assembly.stop_reason = text(message, "stop_reason").into();
        assembly.count(message);
        Ok(assembly)
    }

    /// Takes one event. True means that the answer is complete; whatever follows is not read.
    pub(super) fn feed(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<bool, ProviderError> {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        let part = |member| event.get(member).unwrap_or(&Value::Null);
        match text(event, "type") {
            "message_start" => {
                self.heard = true;
                self.count(part("message"));
            }
            "content_block_start" => self.start(index, part("content_block"), on_delta)?,
            "content_block_delta" => self.delta(index, part("delta"), on_delta),
            "message_delta" => {
                if let Some(reason) = part("delta").get("stop_reason").and_then(Value::as_str) {
                    self.stop_reason = reason.into();
                }
                self.count(event);
            }
            "message_stop" => return Ok(true),
            "error" => return Err(failure::in_answer(part("error"))),
            // `ping`, `content_block_stop` and whatever comes with later versions.
            _ => {}
        }
        Ok(false)
    }

    fn start(&mut self, index: u64, block: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderError> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(ProviderError::fatal(format!("the answer has more than {MAX_BLOCKS} blocks")));
        }
        let started = match text(block, "type") {
            "text" => {
                tell(Delta::Text(text(block, "text")), on_delta);
                Block::Text(text(block, "text").into())
            }
            "tool_use" => Block::Call {
                id: text(block, "id").into(),
                name: text(block, "name").into(),
                input: block.get("input").cloned().unwrap_or_default(),
                arguments: String::new(),
            },
            "thinking" => {
                tell(Delta::Reasoning(text(block, "thinking")), on_delta);
                Block::Thinking { text: text(block, "thinking").into(), signature: text(block, "signature").into() }
            }
            "redacted_thinking" => Block::Redacted(block.clone()),
            _ => Block::Other,
        };
        self.blocks.insert(index, started);
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value, on_delta: OnDelta<'_>) {
        match (self.blocks.get_mut(&index), text(delta, "type")) {
            (Some(Block::Text(all)), "text_delta") => {
                let piece = text(delta, "text");
                all.push_str(piece);
                tell(Delta::Text(piece), on_delta);
            }
            (Some(Block::Call { arguments, .. }), "input_json_delta") => {
                arguments.push_str(text(delta, "partial_json"));
            }
            (Some(Block::Thinking { text: all, .. }), "thinking_delta") => {
                let piece = text(delta, "thinking");
                all.push_str(piece);
                tell(Delta::Reasoning(piece), on_delta);
            }
            (Some(Block::Thinking { signature, .. }), "signature_delta") => {
                signature.push_str(text(delta, "signature"));
            }
            // Citations and whatever comes with later versions.
            _ => {}
        }
    }

    /// Reads the `usage` of `holder`. Later counts replace earlier ones; a 0 is a count that is not told.
    fn count(&mut self, holder: &Value) {
        let Some(usage) = holder.get("usage") else { return };
        let tokens = |member| usage.get(member).and_then(Value::as_u64).unwrap_or(0);
        let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let read = read.into_iter().map(tokens).fold(0, u64::saturating_add);
        self.read_tokens = if read == 0 { self.read_tokens } else { read };
        let written = tokens("output_tokens");
        self.written_tokens = if written == 0 { self.written_tokens } else { written };
    }

    /// The answer.
    pub(super) fn finish(self) -> Result<LlmReply, ProviderError> {
        if !self.heard {
            return Err(ProviderError::fatal("the answer never began; check `base_url`"));
        }
        let mut reply = LlmReply::text("");
        let mut kept = Vec::new();
        let mut thought = false;
        for block in self.blocks.into_values() {
            thought |= matches!(block, Block::Thinking { .. } | Block::Redacted(_));
            kept.extend(block.settle(&mut reply));
        }
        // Without thoughts there is nothing that the message itself does not say.
        reply.private = ProviderData::of(if thought { kept } else { Vec::new() });
        reply.finish_reason = match self.stop_reason.as_str() {
            "end_turn" => "stop".into(),
            "tool_use" => "tool_calls".into(),
            "max_tokens" => "length".into(),
            "" if reply.tool_calls.is_empty() => "stop".into(),
            "" => "tool_calls".into(),
            word => word.into(),
        };
        let usage = Usage::told(self.read_tokens, self.written_tokens, None);
        reply.usage = (usage.total_tokens > 0).then_some(usage);
        Ok(reply)
    }
}

/// Whether an event brings a part of the answer; a `ping` does not, and neither does a delta of nothing.
pub(super) fn has_content(event: &Value) -> bool {
    match text(event, "type") {
        "content_block_delta" => event.get("delta").and_then(Value::as_object).is_some_and(|delta| {
            delta.iter().any(|(name, value)| name != "type" && value.as_str().is_none_or(|text| !text.is_empty()))
        }),
        "message_start" | "content_block_start" | "content_block_stop" | "message_delta" => true,
        _ => false,
    }
}

impl Block {
    /// Adds itself to `reply`; what remains is the block to keep for the way back.
    fn settle(self, reply: &mut LlmReply) -> Option<Value> {
        match self {
            Self::Text(text) => {
                reply.content.push_str(&text);
                Some(json!({"type": "text", "text": text}))
            }
            Self::Call { id, name, input, arguments } => {
                let arguments = match (arguments.is_empty(), input.is_object()) {
                    (false, _) => arguments,
                    (true, true) => input.to_string(),
                    (true, false) => "{}".into(),
                };
                let id = if id.is_empty() { crate::call_id::fresh_id() } else { id };
                reply.tool_calls.push(CallPart::new(&id, &name, &arguments));
                Some(json!({"type": "tool_use", "id": id}))
            }
            Self::Thinking { text, signature } => {
                reply.reasoning_content.push_str(&text);
                Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
            }
            Self::Redacted(block) => Some(block),
            Self::Other => None,
        }
    }
}

/// Passes a piece on, unless it is empty.
fn tell(delta: Delta<'_>, on_delta: OnDelta<'_>) {
    match delta {
        Delta::Text("") | Delta::Reasoning("") => {}
        Delta::Sent | Delta::Text(_) | Delta::Reasoning(_) => on_delta(delta),
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}
