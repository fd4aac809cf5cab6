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

/// An agent whose models are those of the providers `a` and `b`.
struct Served;

impl AgentInfo for Served {
    fn tool(&self, _name: &str) -> Option<String> {
        None
    }

    fn model(&self, model: &str) -> bool {
        model.starts_with("a/") || model.starts_with("b/")
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }
}

/// What becomes of a request to `a/m` whose hook wants `model`, and a text in the place of the conversation.
fn asked_for(model: &str) -> (String, usize, Result<Vec<String>, String>) {
    let mut event = BeforeLlm::new(LlmRequest::new("a/m", [Message::text(Role::User, "U1"), Message::note("n", "x")]));
    let messages = Some(vec![Message::text(Role::User, "only this").into()]);
    let patch = LlmPatch { model: Some(model.into()), messages, ..LlmPatch::default() };
    let outcome = event.modify(patch, &HookName::from("h"), &Served);
    (event.request.model, event.request.messages.len(), outcome)
}

#[test]
fn a_bare_model_is_one_of_the_provider_that_is_to_be_asked() {
    for (model, expected) in [("x", "a/x"), ("b/x", "b/x"), ("a/m", "a/m"), ("m", "a/m"), ("", "a/m")] {
        let (meant, messages, outcome) = asked_for(model);
        assert_eq!((meant.as_str(), messages, outcome.is_ok()), (expected, 1, true), "{model}");
    }
}

#[test]
fn an_unknown_model_is_a_fault_and_takes_nothing_else_along() {
    let (model, messages, outcome) = asked_for("c/x");
    assert_eq!((model.as_str(), messages), ("a/m", 1));
    let why = "result.request.model names \"c/x\", which is not configured; a model is written PROVIDER/MODEL, or by its \
               bare name if the agent's provider has it";
    assert_eq!(outcome, Err(why.to_owned()));
}
