//! The wires of the tests: what models take, and the bodies that go to them.

use pintle_domain::json::{Object, Rendered, Value};
use pintle_domain::llm::LlmRequest;
use pintle_domain::message::Message;

use super::super::{CallKind, LoweringOptions, TurnPosition, TurnWire, WireShape};
use super::linters;
use crate::capabilities::{Capabilities, CapabilityTable, MessageAfter, MessageBefore, MidSystem, Placement};

/// A server.
#[derive(Clone, Debug)]
pub(super) enum Wire {
    Anthropic(Capabilities),
    OpenAi(Capabilities),
    BySchema(Capabilities),
}

/// What was sent: the system prompt where it stands apart, and the messages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) system: Vec<Value>,
    pub(super) messages: Vec<Value>,
}

/// All servers that the tests know.
pub(super) fn wires() -> Vec<Wire> {
    let table = CapabilityTable::shipped();
    let bound = |of: &Capabilities| Capabilities { prefix_bound_reasoning: true, ..of.clone() };
    let marked = |of: &Capabilities| Capabilities { turn_scoped: "fades".into(), ..bound(of) };
    let placed = table.of("anthropic", "claude-opus-5");
    let none = table.of("anthropic", "claude-haiku-4-5");
    let (free, local) = (table.of("openai", "gpt-5"), table.of("local", "m"));
    let strictest = Capabilities::default();
    let anywhere = Placement {
        after: vec![MessageBefore::User, MessageBefore::Assistant, MessageBefore::Tool],
        before: vec![MessageAfter::User, MessageAfter::Assistant, MessageAfter::End],
        consecutive: true,
    };
    let loose = Capabilities { mid_system: MidSystem::Placed, placement: anywhere, ..strictest.clone() };
    let placed_strictly = Capabilities { mid_system: MidSystem::Placed, ..strictest.clone() };
    let free_anthropic = Capabilities { mid_system: MidSystem::Free, ..none.clone() };
    vec![
        Wire::Anthropic(placed.clone()),
        Wire::Anthropic(bound(&placed)),
        Wire::Anthropic(marked(&placed)),
        Wire::Anthropic(none.clone()),
        Wire::Anthropic(bound(&none)),
        Wire::Anthropic(bound(&free_anthropic)),
        Wire::OpenAi(free.clone()),
        Wire::OpenAi(bound(&free)),
        Wire::OpenAi(marked(&local)),
        Wire::OpenAi(local),
        Wire::OpenAi(bound(&strictest)),
        Wire::OpenAi(strictest.clone()),
        Wire::OpenAi(loose),
        Wire::OpenAi(placed_strictly.clone()),
        Wire::BySchema(strictest),
        Wire::BySchema(placed_strictly),
    ]
}

impl Wire {
    pub(super) fn capabilities(&self) -> &Capabilities {
        match self {
            Self::Anthropic(it) | Self::OpenAi(it) | Self::BySchema(it) => it,
        }
    }

    pub(super) fn how<'a>(&self, call: CallKind, wire: &'a TurnWire) -> LoweringOptions<'a> {
        let shape = match self {
            Self::Anthropic(_) => WireShape::Blocks,
            Self::OpenAi(_) => WireShape::Messages,
            Self::BySchema(_) => WireShape::Texts,
        };
        let turn = Some(TurnPosition { wire, call });
        LoweringOptions { model: "p/m".into(), capabilities: self.capabilities().clone(), shape, turn, goes_on: true }
    }

    /// Whether the server would take `messages`; why not, if it would not.
    pub(super) fn lint(&self, messages: &[Value]) -> Result<(), String> {
        match self {
            Self::Anthropic(capabilities) => linters::blocks(messages, capabilities),
            Self::OpenAi(capabilities) => linters::completions(messages, capabilities),
            Self::BySchema(capabilities) => {
                linters::nothing_is_empty(messages)?;
                linters::placed(messages, capabilities, false)?;
                linters::alternate(messages)
            }
        }
    }

    /// What is sent of `list`.
    pub(super) fn send(&self, list: &[Rendered<Message>], how: &LoweringOptions<'_>) -> Sent {
        let messages = list.to_vec();
        let (model, tools) = ("p/m".to_owned(), Vec::new());
        let request = LlmRequest { model, messages, tools, options: Object::new(), graceful_terminal: false };
        let bytes = match self {
            Self::Anthropic(_) => crate::anthropic::request::body("m", &request, true, how).0,
            Self::OpenAi(_) => crate::openai::request::native("m", &request, true, how).body(false),
            Self::BySchema(_) => crate::json_schema::render("m", &request, true, how).0.body(false),
        };
        let mut body: Value = serde_json::from_slice(&bytes).expect("a body is JSON");
        let array = |value: Value| match value {
            Value::Array(all) => all,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Vec::new(),
        };
        Sent { system: array(body["system"].take()), messages: array(body["messages"].take()) }
    }
}
