//! Questions of the door to the person before the client.

use pintle_domain::json::Value;

use super::McpProxy;
use super::step::ProxyStep;
use crate::mcp::message::{McpMessage, RequestKey};
use crate::spans::Kind;

/// How the ids of such questions begin. Answers to them are never the server's.
const OWN_ID: &str = "pintle-ask-";

impl McpProxy {
    /// Puts `question` under `name`, which nobody can guess, to the person before the client, if the client can ask and the
    /// call `about` still waits. The id of the question.
    pub fn ask(&mut self, about: &RequestKey, (name, question): (&str, &str)) -> Option<RequestKey> {
        let waits = self.held.calls.values().any(|held| held.call.key == *about);
        if !waits || !self.questions.can_ask {
            return None;
        }
        let id = Value::from(format!("{OWN_ID}{name}"));
        let (key, message) = (RequestKey::of(&id)?, Value::from(question));
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":{message},"requestedSchema":{{"type":"object","properties":{{}}}}}}}}"#
        );
        self.questions.about.insert(key.clone(), about.clone());
        self.say_to_client(text, Some(about.clone()), false);
        Some(key)
    }

    /// Notes what a client says of itself as it begins.
    pub(super) fn greeted(&mut self, message: &McpMessage) {
        let said = message.params().and_then(|params| params.at(&["capabilities", "elicitation"]));
        self.questions.can_ask = said.is_some_and(|said| match &said.kind {
            Kind::Object(members) => members.is_empty() || said.get("form").is_some(),
            Kind::Array(_) | Kind::Plain => false,
        });
    }

    /// Takes the answer `key` of the client, if it is one to the door; whether it was.
    pub(super) fn said(&mut self, message: &McpMessage, key: &RequestKey) -> bool {
        if !key.to_string().starts_with(OWN_ID) {
            return false;
        }
        let action = message.document.root.at(&["result", "action"]).and_then(|node| message.document.string(node));
        let said = match action.as_deref() {
            Some("accept") => Some(true),
            Some("decline") => Some(false),
            Some(_) | None => None,
        };
        let step = match self.questions.about.remove(key) {
            Some(_) => ProxyStep::Said(key.clone(), said),
            None => ProxyStep::Dropped("it answers a question that nobody waits for".into()),
        };
        self.steps.push_back(step);
        true
    }

    /// Withdraws the questions about the call `about`, which does not wait any more.
    pub(super) fn unask(&mut self, about: &RequestKey) {
        let asked = self.questions.about.iter().filter(|(_, call)| *call == about).map(|(key, _)| key.clone());
        for key in asked.collect::<Vec<_>>() {
            self.questions.about.remove(&key);
            let id = key.written();
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"it needs no answer any more"}}}}"#
            );
            self.say_to_client(text, Some(about.clone()), false);
            self.steps.push_back(ProxyStep::Said(key, None));
        }
    }
}
