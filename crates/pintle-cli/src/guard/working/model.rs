//! What hooks make of a call of the model, where a host tells its hooks of those (Gemini CLI).

use pintle_domain::checkpoint::{AfterLlm, BeforeLlm, CheckpointKind};
use pintle_domain::json::{Object, Rendered, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest, Usage};
use pintle_domain::message::{Message, Role};
use pintle_engine::Dispatcher;
use pintle_guard::GuardRuling;

use super::WorkedEvent;
use crate::guard::rulings::of_stopped;

/// The words for who speaks, as the host has them.
const ROLES: [(&str, Role); 3] = [("user", Role::User), ("model", Role::Assistant), ("system", Role::System)];

/// The refusal of a request that is not in the form that was observed: hooks would see less than the model.
const UNREAD: &str = "what the model is asked is not in a form that the guard can read";

/// The refusal of a request in which hooks changed what the host does not let be changed.
const UNTOLD: &str =
    "a hook changed the request to the model in more than its messages, which this agent does not let hooks do";

impl WorkedEvent<'_> {
    /// What hooks make of a request before it leaves. Where none waits for it, this costs nothing.
    pub(super) async fn before_model(&self, hooks: &Dispatcher, told: &Value) -> GuardRuling {
        self.desk.open.asks_model(self.event.session_id().as_str());
        if !hooks.set().roster().waits_at(CheckpointKind::BeforeLlm) {
            return GuardRuling::NoObjection;
        }
        let Some(request) = request_of(told) else { return GuardRuling::Deny { reason: UNREAD.into() } };
        let before = request.clone();
        match hooks.pass(BeforeLlm::new(request)).await {
            Err((_, stopped)) => of_stopped(&stopped),
            Ok(left) => match changed(told, &before, &left.request) {
                Ok(None) => GuardRuling::NoObjection,
                Ok(Some(request)) => GuardRuling::ModifyRequest { request },
                Err(Untold) => {
                    hooks.noted(CheckpointKind::BeforeLlm, &format!("degraded: modify→deny, because {UNTOLD}"));
                    GuardRuling::Deny { reason: UNTOLD.into() }
                }
            },
        }
    }

    /// What hooks make of an answer, once all of it is there: the host tells it part by part, and shows each one.
    pub(super) async fn after_model(&self, hooks: &Dispatcher, request: &Value, response: &Value) -> GuardRuling {
        if !hooks.set().roster().waits_at(CheckpointKind::AfterLlm) {
            return GuardRuling::NoObjection;
        }
        let session = self.event.session_id();
        let whole = self.desk.open.answered(session.as_str(), &text_of(response), is_last(response));
        let Some(text) = whole else { return GuardRuling::NoObjection };
        let response = LlmReply { usage: usage_of(response), ..LlmReply::text(text) };
        let before = response.clone();
        let model = request.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        match hooks.pass(AfterLlm { model, response }).await {
            Err((_, stopped)) => of_stopped(&stopped),
            Ok(left) if left.response == before => GuardRuling::NoObjection,
            // The host takes no other answer: its turn ends.
            Ok(left) => GuardRuling::ModifyResult { text: left.response.content, shaped: None, added: None },
        }
    }
}

/// The request as hooks see it, if each part of it is of a known form.
fn request_of(told: &Value) -> Option<LlmRequest> {
    let message = |told: &Value| {
        let role = told.get("role").and_then(Value::as_str)?;
        let (_, role) = ROLES.iter().find(|(word, _)| *word == role)?;
        Some(Message::text(*role, told.get("content")?.as_str()?))
    };
    let messages = told.get("messages")?.as_array()?.iter().map(message).collect::<Option<Vec<_>>>()?;
    let options = match told.get("config") {
        None | Some(Value::Null) => Object::new(),
        Some(config) => config.as_object()?.clone(),
    };
    Some(LlmRequest { options, ..LlmRequest::new(told.get("model")?.as_str()?, messages) })
}

/// What hooks changed and the host cannot be told.
struct Untold;

/// The request that the host is told in the place of `told`; nothing where hooks left it.
fn changed(told: &Value, before: &LlmRequest, after: &LlmRequest) -> Result<Option<Value>, Untold> {
    if before == after {
        return Ok(None);
    }
    let is_told = before.model == after.model && before.options == after.options && after.tools.is_empty();
    if !is_told || after.messages.is_empty() {
        return Err(Untold);
    }
    let message = |message: &Rendered<Message>| {
        let Message { role, content, media, attachments, tool_calls, .. } = message.get();
        let (word, _) = ROLES.iter().find(|(_, known)| known == role)?;
        let is_text = media.is_empty() && attachments.is_empty() && tool_calls.is_empty();
        is_text.then(|| json!({"role": word, "content": content}))
    };
    let messages = after.messages.iter().map(message).collect::<Option<Vec<_>>>().ok_or(Untold)?;
    let mut request = told.clone();
    request["messages"] = Value::from(messages);
    Ok(Some(request))
}

/// The text that a part of an answer has.
fn text_of(response: &Value) -> String {
    if let Some(text) = response.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        return text.to_owned();
    }
    let parts = candidates(response).filter_map(|it| it.get("content")?.get("parts")?.as_array());
    parts.flatten().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
}

fn is_last(response: &Value) -> bool {
    candidates(response).any(|it| it.get("finishReason").is_some_and(|why| !why.is_null()))
}

fn candidates(response: &Value) -> impl Iterator<Item = &Value> {
    response.get("candidates").and_then(Value::as_array).into_iter().flatten()
}

fn usage_of(response: &Value) -> Option<Usage> {
    let told = response.get("usageMetadata")?;
    let count = |name: &str| told.get(name).and_then(Value::as_u64);
    Some(Usage::told(count("promptTokenCount")?, count("candidatesTokenCount").unwrap_or(0), count("totalTokenCount")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::llm::ToolDef;

    fn told() -> Value {
        json!({"model": "m", "config": {"topK": 64}, "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "key"}, {"role": "model", "content": "m"},
        ]})
    }

    #[test]
    fn other_messages_can_be_told_and_nothing_else() {
        let before = request_of(&told()).unwrap();
        assert!(matches!(changed(&told(), &before, &before), Ok(None)));
        let mut after = before.clone();
        after.messages[1] = Message::text(Role::User, "-").into();
        let mut expected = told();
        expected["messages"][1]["content"] = json!("-");
        assert_eq!(changed(&told(), &before, &after).ok().flatten(), Some(expected));
        for after in [
            LlmRequest { model: "n".into(), ..before.clone() },
            LlmRequest { options: Object::new(), ..before.clone() },
            LlmRequest { messages: Vec::new(), ..before.clone() },
            LlmRequest { tools: vec![ToolDef::new("t", "", json!({})).into()], ..before.clone() },
            LlmRequest { messages: vec![Message::tool("c", "x").into()], ..before.clone() },
        ] {
            assert!(changed(&told(), &before, &after).is_err(), "{after:?}");
        }
    }

    #[test]
    fn a_request_that_hooks_would_not_see_whole_is_none() {
        for (at, value) in [
            ("model", json!(null)),
            ("messages", json!("x")),
            ("messages", json!([{"role": "user", "content": [{"text": "x"}]}])),
            ("messages", json!([{"role": "tool", "content": "x"}])),
            ("config", json!([1])),
        ] {
            let mut told = told();
            told[at] = value;
            assert!(request_of(&told).is_none(), "{told}");
        }
    }

    #[test]
    fn an_answer_is_read_part_by_part() {
        let part = |parts: Value, end: Value| json!({"text": "", "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": end}]});
        for (response, text, last) in [
            (json!({"text": "a"}), "a", false),
            (part(json!(["a", "b"]), json!(null)), "ab", false),
            (part(json!([{"text": "a"}]), json!("STOP")), "a", true),
            (part(json!([]), json!("STOP")), "", true),
            (json!({}), "", false),
        ] {
            assert_eq!((text_of(&response).as_str(), is_last(&response)), (text, last), "{response}");
        }
        let usage =
            json!({"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}});
        assert_eq!(usage_of(&usage), Some(Usage::told(10, 5, Some(15))));
    }
}
