//! The shape of a script. Unknown members and wrong types are refused with their place.

use std::fmt;

use pintle_domain::json::{Rendered, Value};
use pintle_domain::llm::{LlmRequest, Usage};
use pintle_domain::message::{Message, Role};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

/// Longest wait before a piece, in milliseconds: longer than any deadline it may be meant to miss.
const MAX_DELAY_MS: u64 = 600_000;

/// A whole script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) replies: Vec<Reply>,
}

/// One reply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    #[serde(default)]
    pub(super) when: Option<When>,
    #[serde(default)]
    pub(super) text: Pieces,
    #[serde(default)]
    pub(super) reasoning: Pieces,
    #[serde(default)]
    pub(super) tool_calls: Vec<Call>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
    #[serde(default, deserialize_with = "delay")]
    pub(super) delay_ms: u64,
    #[serde(default)]
    pub(super) error: Option<Failure>,
    #[serde(default)]
    pub(super) cut: bool,
    #[serde(default)]
    pub(super) repeat: bool,
}

/// The conditions that a request must meet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct When {
    #[serde(default)]
    contains: Option<String>,
    #[serde(default)]
    anywhere: Option<String>,
    #[serde(default)]
    tool_result: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    no_tools: Option<bool>,
    #[serde(default)]
    model: Option<String>,
}

impl When {
    /// Whether all that is named holds.
    pub(super) fn holds(&self, model: &str, request: &LlmRequest) -> bool {
        let last = request.messages.last().map(Rendered::get);
        let last_has = |text: &String| last.is_some_and(|last| last.content.contains(text));
        let any_has = |text: &String| request.messages.iter().any(|message| message.get().content.contains(text));
        let result_has = |text: &String| {
            let is_result = |last: &Message| last.role == Role::Tool && last.content.contains(text);
            last.is_some_and(is_result)
        };
        let offers = |name: &String| request.tools.iter().any(|tool| tool.get().function.name == *name);
        self.contains.as_ref().is_none_or(last_has)
            && self.anywhere.as_ref().is_none_or(any_has)
            && self.tool_result.as_ref().is_none_or(result_has)
            && self.tool.as_ref().is_none_or(offers)
            && self.no_tools.is_none_or(|none| request.tools.is_empty() == none)
            && self.model.as_ref().is_none_or(|name| name == model)
    }
}

/// A call that the reply asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Arguments,
}

/// Counted tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tokens {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: Option<u64>,
}

impl Tokens {
    /// As an answer tells them.
    pub(super) fn to_usage(&self) -> Usage {
        Usage::told(self.prompt_tokens, self.completion_tokens, self.total_tokens)
    }
}

/// How a call fails.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) retry_after_ms: Option<u64>,
}

/// The kinds of failures.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorKind {
    RateLimit,
    ServerError,
    Timeout,
    Network,
    ContextLimit,
    Final,
}

/// A text in one piece or in several.
#[derive(Default)]
pub(super) struct Pieces(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pieces;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pieces, E> {
                Ok(Pieces(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Pieces, A::Error> {
                let mut pieces = Vec::new();
                while let Some(piece) = items.next_element()? {
                    pieces.push(piece);
                }
                Ok(Pieces(pieces))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Arguments as JSON text. A text is taken as it is, so a script can also play a model that writes broken JSON.
pub(super) struct Arguments(pub(super) String);

impl Default for Arguments {
    fn default() -> Self {
        Self("{}".into())
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            value @ Value::Object(_) => Ok(Self(value.to_string())),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                Err(de::Error::custom(format!("`arguments` is `{other}`, expected an object or JSON text")))
            }
        }
    }
}

fn delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let millis = u64::deserialize(deserializer)?;
    if millis > MAX_DELAY_MS {
        return Err(de::Error::custom(format!("`delay_ms` is {millis}, expected at most {MAX_DELAY_MS}")));
    }
    Ok(millis)
}
