//! Answers that are not what they look like: cut, withheld, or with nothing in them.

use serde::{Serialize, Serializer};

use super::LlmReply;
use crate::json::Value;
use crate::message::CallPart;

/// The way in which an answer ended, where that is not the usual one. In JSON it is its [word](Self::word).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddEnd {
    /// It came to the bound of an answer.
    Length,
    /// The provider withheld it, or the rest of it.
    ContentFilter,
    /// The model would not answer.
    Refusal,
    /// The provider paused in the middle of it.
    PauseTurn,
    /// It came to the bound of what the model takes at all.
    ContextExceeded,
    /// There is nothing in it.
    Empty,
    /// There is nothing in it but thoughts.
    ReasoningOnly,
}

impl OddEnd {
    /// The odd end of `reply`, as its provider gave it.
    pub fn of(reply: &LlmReply) -> Option<Self> {
        let said = reply.finish_reason.to_ascii_lowercase();
        match said.as_str() {
            "length" | "max_tokens" | "max_output_tokens" => return Some(Self::Length),
            "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content" | "sensitive" => {
                return Some(Self::ContentFilter);
            }
            "refusal" => return Some(Self::Refusal),
            "pause_turn" => return Some(Self::PauseTurn),
            "model_context_window_exceeded" | "context_length_exceeded" => return Some(Self::ContextExceeded),
            _ if reply.says_something() => return None,
            _ => {}
        }
        let thought = !reply.reasoning_content.is_empty()
            || !reply.reasoning.is_empty()
            || reply.reasoning_details.as_array().is_some_and(|details| !details.is_empty())
            || reply.private.blocks.iter().any(is_thought);
        Some(if thought { Self::ReasoningOnly } else { Self::Empty })
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::PauseTurn => "pause_turn",
            Self::ContextExceeded => "context_exceeded",
            Self::Empty => "empty",
            Self::ReasoningOnly => "reasoning_only",
        }
    }

    /// What that is, for a person.
    pub fn explained(self) -> &'static str {
        match self {
            Self::Length => "the answer was cut at its longest length",
            Self::ContentFilter => "the provider withheld the answer, or the rest of it",
            Self::Refusal => "the model refused to answer",
            Self::PauseTurn => "the provider paused in the middle of the answer",
            Self::ContextExceeded => "the answer was cut where the model's context was full",
            Self::Empty => "the answer is empty",
            Self::ReasoningOnly => "the model thought and gave no answer",
        }
    }

    /// The text of a turn that fails for want of an answer.
    pub fn failure(self, model: &str) -> String {
        let advice = match self {
            Self::Length => "; allow a longer answer with `max_tokens`",
            Self::ContextExceeded => "; shorten the conversation, or set `context_tokens` of the agent",
            Self::ContentFilter | Self::Refusal | Self::PauseTurn | Self::Empty | Self::ReasoningOnly => "",
        };
        format!("`{model}` gave no answer: {} ({}){advice}", self.explained(), self.word())
    }

    /// Whether calls of such an answer are not to be run: it was taken back.
    pub fn voids_calls(self) -> bool {
        match self {
            Self::ContentFilter | Self::Refusal => true,
            Self::Length | Self::PauseTurn | Self::ContextExceeded | Self::Empty | Self::ReasoningOnly => false,
        }
    }

    /// Whether the last call of `reply` may lack a part of its arguments. One that was cut before the first of them looks
    /// like one without any.
    pub fn cuts_last_call(self, reply: &LlmReply) -> bool {
        let cut = match self {
            Self::Length | Self::ContextExceeded => true,
            Self::ContentFilter | Self::Refusal | Self::PauseTurn | Self::Empty | Self::ReasoningOnly => false,
        };
        let whole = |call: &CallPart| call.arguments().is_ok_and(|arguments| !arguments.is_empty());
        cut && reply.tool_calls.last().is_some_and(|last| !whole(last))
    }
}

impl Serialize for OddEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Whether a provider's own block is what the model thought, open or sealed: `thinking`, `redacted_thinking`,
/// `reasoning`.
fn is_thought(block: &Value) -> bool {
    block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking") || kind == "reasoning")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(finish_reason: &str, content: &str, thought: &str) -> &'static str {
        let reply = LlmReply {
            finish_reason: finish_reason.into(),
            reasoning_content: thought.into(),
            ..LlmReply::text(content)
        };
        OddEnd::of(&reply).map_or("-", OddEnd::word)
    }

    #[test]
    fn each_odd_end_has_its_word() {
        for (finish_reason, content, thought, expected) in [
            ("stop", "hi", "", "-"),
            ("stop", " \n", "", "empty"),
            ("stop", "", "hm", "reasoning_only"),
            ("end_turn", "hi", "hm", "-"),
            ("length", "hi", "", "length"),
            ("length", "", "hm", "length"),
            ("content_filter", "", "", "content_filter"),
            ("SAFETY", "hi", "", "content_filter"),
            ("refusal", "no", "", "refusal"),
            ("pause_turn", "hi", "", "pause_turn"),
            ("model_context_window_exceeded", "hi", "", "context_exceeded"),
            ("whatever", "hi", "", "-"),
        ] {
            assert_eq!(word(finish_reason, content, thought), expected, "{finish_reason} {content:?}");
        }
    }

    #[test]
    fn the_last_call_of_a_cut_answer_is_whole_only_if_its_arguments_are() {
        for (arguments, cut) in [(r#"{"a":1}"#, false), ("{}", true), ("", true), (r#"{"a":"#, true), ("[1]", true)] {
            let calls = vec![CallPart::new("1", "x", ""), CallPart::new("2", "x", arguments)];
            let reply = LlmReply { finish_reason: "length".into(), ..LlmReply::calls(calls) };
            assert_eq!(OddEnd::of(&reply).map(|odd| odd.cuts_last_call(&reply)), Some(cut), "{arguments}");
            let whole = LlmReply { finish_reason: "tool_calls".into(), ..reply };
            assert_eq!(OddEnd::of(&whole), None);
        }
    }
}
