//! Who a message belongs to once hooks rewrote a request.

use super::*;
use crate::ledger::MsgId;
use crate::message::{ProviderData, Role};

struct Nobody;

impl AgentInfo for Nobody {
    fn tool(&self, _name: &str) -> Option<String> {
        None
    }

    fn model(&self, _model: &str) -> bool {
        false
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }
}

/// A conversation with a text of a skill and an answer with thoughts.
fn conversation() -> Vec<Rendered<Message>> {
    let from = Provenance { msg_id: Some(MsgId::default()), ..Provenance::new(MessageSource::Hook, 1) };
    let text = ProviderData { lifetime: Lifetime::Passing, from: Some(Arc::new(from)), blocks: Vec::new() };
    let thoughts = ProviderData::of(vec![crate::json::json!({"type": "thinking"})]);
    let messages = [
        Message::text(Role::System, "S0"),
        Message::text(Role::User, "U1"),
        Message { private: thoughts, ..Message::text(Role::Assistant, "A1") },
        Message::tool("c1", "T1"),
        Message { private: text, ..Message::text(Role::System, "tip") },
    ];
    messages.map(Rendered::new).to_vec()
}

/// What a hook makes of a list.
type Rewrite = dyn Fn(Vec<Rendered<Message>>) -> Vec<Rendered<Message>>;

/// Each message with whose it is, how long it stays, and how many thoughts it has.
fn after(hooks: &[(&str, &Rewrite)]) -> Vec<String> {
    let (tools, options) = (Vec::new(), Object::new());
    let mut event = BeforeLlm::new(LlmRequest {
        model: "m".into(),
        messages: conversation(),
        tools,
        options,
        graceful_terminal: false,
    });
    for (name, rewrite) in hooks {
        let messages = Some(rewrite(event.request.messages.clone()));
        let patch = LlmPatch { messages, ..LlmPatch::default() };
        event.modify(patch, &HookName::from(*name), &Nobody).unwrap();
    }
    let said = |message: &Rendered<Message>| {
        let Message { content, private, .. } = message.get();
        let from = private.from.as_ref();
        let whose =
            from.map_or("-".to_owned(), |it| format!("{:?} {}", it.origin, it.hook.clone().unwrap_or_default()));
        let call = from.and_then(|it| it.tool_call_id.clone()).unwrap_or_default();
        format!("{content}: {} {call} {:?} {}", whose.trim(), private.lifetime, private.blocks.len())
    };
    event.request.messages.iter().map(said).collect()
}

const AS_IT_WAS: [&str; 5] =
    ["S0: -  Stays 0", "U1: -  Stays 0", "A1: -  Stays 1", "T1: -  Stays 0", "tip: Hook  Passing 0"];

#[test]
fn what_comes_back_unchanged_stays_what_it_was() {
    assert_eq!(after(&[]), AS_IT_WAS);
    assert_eq!(after(&[("h", &|messages| messages)]), AS_IT_WAS);
    // Also when a hook built it anew, or turned the order round.
    let rebuilt = |messages: Vec<Rendered<Message>>| {
        let bare =
            |message: &Rendered<Message>| Message { private: ProviderData::default(), ..message.get().clone() }.into();
        messages.iter().map(bare).collect()
    };
    assert_eq!(after(&[("h", &rebuilt)]), AS_IT_WAS);
    let turned = |mut messages: Vec<Rendered<Message>>| {
        messages.reverse();
        messages
    };
    assert_eq!(after(&[("h", &turned)]).into_iter().rev().collect::<Vec<_>>(), AS_IT_WAS);
}

#[test]
fn anything_else_belongs_to_the_rewriter_for_one_call() {
    let edits = |messages: Vec<Rendered<Message>>| {
        let edit = |message: &Rendered<Message>| {
            let message = message.get().clone();
            Message { content: format!("{}!", message.content), ..message }.into()
        };
        messages.iter().map(edit).collect()
    };
    let all: Vec<String> = ["S0!: Rewriter a  Passing 0", "U1!: Rewriter a  Passing 0", "A1!: Rewriter a  Passing 1"]
        .into_iter()
        .chain(["T1!: Rewriter a c1 Passing 0", "tip!: Rewriter a  Passing 0"])
        .map(str::to_owned)
        .collect();
    assert_eq!(after(&[("a", &edits)]), all);
    // Whoever leaves it as it is does not become its owner.
    assert_eq!(after(&[("a", &edits), ("b", &|messages| messages)]), all);
    // A second copy of one message is a text of the hook's.
    let twice = |messages: Vec<Rendered<Message>>| {
        let again = messages[1].clone();
        messages.into_iter().chain([again]).collect()
    };
    let more = AS_IT_WAS.iter().copied().chain(["U1: Rewriter b  Passing 0"]).collect::<Vec<_>>();
    assert_eq!(after(&[("b", &twice)]), more);
}
