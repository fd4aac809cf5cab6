//! What a request brings that is new, put to the hooks before it leaves.

use std::time::Duration;

use pintle_domain::checkpoint::user_prompt_submit::InputKind;
use pintle_domain::checkpoint::{BeforeLlm, CheckpointKind};
use pintle_domain::id::CallId;
use pintle_domain::json::Object;
use pintle_domain::llm::{LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, FunctionPart, Message, Role};
use pintle_domain::tool::ToolOutput;
use pintle_engine::{Dispatcher, Stopped};

use crate::answer::CallRuling;
use crate::door::{Session, ruling_of, stopped_text};
use crate::keeper::{Keeper, KeptText, WITHHELD, prompt_key, put_back, result_key};
use crate::request::{HostedTool, Prompt, SeenCall, SeenMessage, SeenRequest, SeenResult, Speaker};
use crate::spans::Edits;

/// Why a request must not go on from an answer at the vendor: hooks would rule on less than the model reads.
const NOT_SHOWN: &str = "hooks at `before_llm` read the whole conversation, and with `previous_response_id` most of it \
                         stands at the vendor; send all of it in `input`";

/// Why a request does not leave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

/// Passes `request` through the hooks of its session: the bytes that leave.
pub(crate) async fn pass(session: &Session, request: &SeenRequest) -> Result<String, Refused> {
    let mut edits = Edits::default();
    let exchanges = session.kept(|keeper| keeper.exchanges(&session.name));
    put_back(request, &exchanges, session.wire.put_back(), &mut edits);
    for prompt in request.prompts() {
        submit(session, request, &prompt, &mut edits).await?;
    }
    for (place, message) in request.messages.iter().enumerate() {
        for result in &message.results {
            let call = request.call(&result.call, place);
            review(session, result, call, &mut edits).await?;
        }
    }
    for tool in &request.hosted {
        hosted(session, tool).await?;
    }
    let body = if edits.is_empty() { request.document.text.clone() } else { edits.apply(&request.document.text) };
    before_model(session, request, body).await
}

async fn submit(session: &Session, request: &SeenRequest, prompt: &Prompt, edits: &mut Edits) -> Result<(), Refused> {
    let key = prompt_key(prompt.ordinal, &prompt.text);
    let known = session.kept(|keeper| keeper.text(&session.name, &key));
    let became = match known {
        // Who says it again as the newest word asks again.
        Some(KeptText::Refused) if !prompt.is_newest => KeptText::Refused,
        Some(became @ (KeptText::AsItWas | KeptText::Changed(_))) => became,
        Some(KeptText::Refused) | None => {
            let kind = match (prompt.is_newest, prompt.ordinal) {
                (true, 0) => InputKind::First,
                (true, _) => InputKind::Followup,
                (false, _) => InputKind::History,
            };
            let (became, why) = match session.hooks.submit(&prompt.text, kind).await {
                Ok((text, notes)) => {
                    let notes: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
                    let whole = [&[text.as_str()], notes.as_slice()].concat().join("\n\n");
                    (if whole == prompt.text { KeptText::AsItWas } else { KeptText::Changed(whole) }, None)
                }
                Err(stopped) => (KeptText::Refused, Some(stopped_text(&stopped))),
            };
            session.kept(|keeper| keeper.keep_text(&session.name, key, became.clone()));
            match why.filter(|_| prompt.is_newest) {
                Some(why) => return Err(Refused(why)),
                None => became,
            }
        }
    };
    match became {
        KeptText::AsItWas => {}
        KeptText::Changed(text) => request.say(edits, prompt.message, &text),
        KeptText::Refused => request.say(edits, prompt.message, WITHHELD),
    }
    Ok(())
}

async fn review(
    session: &Session,
    result: &SeenResult,
    call: Option<&SeenCall>,
    edits: &mut Edits,
) -> Result<(), Refused> {
    let key = result_key(&result.call, &result.text);
    let known = session.kept(|keeper| keeper.text(&session.name, &key));
    let became = match known {
        Some(became) => became,
        None => {
            // Nothing is kept of an abort: who sends the result again asks again.
            let became = reviewed(session, result, call).await?;
            session.kept(|keeper| keeper.keep_text(&session.name, key, became.clone()));
            became
        }
    };
    match became {
        KeptText::AsItWas => {}
        KeptText::Changed(text) => SeenRequest::result(edits, result, &text),
        KeptText::Refused => SeenRequest::result(edits, result, WITHHELD),
    }
    Ok(())
}

async fn reviewed(session: &Session, result: &SeenResult, call: Option<&SeenCall>) -> Result<KeptText, Refused> {
    let mut hooks = session.hooks.clone();
    hooks.set_call(Some(CallId::new(result.call.as_str())));
    let made = call.and_then(|call| call.made.as_deref());
    let (native, arguments) = call.map_or(("", Object::new()), |call| (call.name.as_str(), call.arguments.clone()));
    let call = session.call(&result.call, native, arguments);
    let output = ToolOutput { is_error: result.is_error, ..ToolOutput::ok(result.text.as_str()) };
    // What it says of how long it took would be a guess: the client ran it.
    let (finished, stopped) = hooks.review(call, output, Duration::ZERO).await;
    let mut left = finished.output.for_llm.clone();
    hooks.tell_finished(finished).await;
    if let Some(stopped @ Stopped::Aborted(_)) = &stopped {
        return Err(Refused(stopped_text(stopped)));
    }
    let noted = |keeper: &Keeper| {
        let own = keeper.note(&session.name, &result.call);
        own.or_else(|| keeper.note(&session.name, made?))
    };
    if let Some(note) = session.kept(|keeper| noted(keeper)) {
        left = format!("{left}\n\n{note}");
    }
    Ok(if left == result.text { KeptText::AsItWas } else { KeptText::Changed(left) })
}

/// Clears a tool that runs at the vendor: once the request has left, nobody here sees its calls before they ran.
async fn hosted(session: &Session, tool: &HostedTool) -> Result<(), Refused> {
    if !session.hosted.contains(&tool.name) {
        let reason = format!(
            "`{}` runs at the vendor, where no hook sees its calls; `hosted` of `[doors.model.{}]` does not allow it",
            tool.name,
            session.wire.vendor().name()
        );
        session.hooks.refused(CheckpointKind::PreToolUse, &reason);
        return Err(Refused(reason));
    }
    let call = session.call("", &tool.name, tool.arguments.clone());
    let cleared = ruling_of(session.hooks.clear(call.clone()).await, &call);
    match cleared.ruling {
        CallRuling::Allowed => Ok(()),
        CallRuling::Rewritten(_) => {
            let reason = format!("a hook changed the hosted tool `{}`, which this door cannot do", tool.name);
            session.degraded(CheckpointKind::PreToolUse, "modify→deny");
            Err(Refused(reason))
        }
        CallRuling::Denied(reason) | CallRuling::Aborted(reason) => Err(Refused(reason)),
    }
}

/// Whether hooks wait at `kind`.
pub(crate) fn waits(hooks: &Dispatcher, kind: CheckpointKind) -> bool {
    hooks.set().roster().waits_at(kind)
}

/// Why hooks that rule on all of `request` cannot be shown it, if they cannot; it is kept in the record.
pub(crate) fn hidden(session: &Session, request: &SeenRequest) -> Option<&'static str> {
    if request.previous.is_none() || !waits(&session.hooks, CheckpointKind::BeforeLlm) {
        return None;
    }
    session.hooks.refused(CheckpointKind::BeforeLlm, NOT_SHOWN);
    Some(NOT_SHOWN)
}

/// Where a message of hooks stands in the request.
#[derive(Clone, Copy)]
enum Origin {
    System(usize),
    Message(usize),
    Result(usize, usize),
}

/// Puts the request to the hooks that may rewrite it. What they change goes on changed as far as the wire can say it:
/// texts, the model, fewer tools. Anything else is refused.
async fn before_model(session: &Session, request: &SeenRequest, body: String) -> Result<String, Refused> {
    if !waits(&session.hooks, CheckpointKind::BeforeLlm) {
        return Ok(body);
    }
    let request = match body == request.document.text {
        true => request.clone(),
        false => session.read(body).map_err(Refused)?,
    };
    let (told, origins) = told(&request);
    let before = told.clone();
    let left = match session.hooks.pass(BeforeLlm::new(told)).await {
        Ok(left) => left,
        Err((_, stopped)) => return Err(Refused(stopped_text(&stopped))),
    };
    let mut edits = Edits::default();
    match say(&mut edits, &request, (&before, &left.request), &origins) {
        Some(()) => Ok(edits.apply(&request.document.text)),
        None => {
            session.degraded(CheckpointKind::BeforeLlm, "modify→deny");
            let reason = "a hook changed the request to the model in a way that this door cannot send";
            Err(Refused(reason.into()))
        }
    }
}

/// Puts a request that the door makes itself to the hooks that may rewrite it: the bytes that leave.
pub(crate) async fn again(session: &Session, body: String) -> Result<String, Refused> {
    let request = session.read(body.clone()).map_err(Refused)?;
    before_model(session, &request, body).await
}

fn told(request: &SeenRequest) -> (LlmRequest, Vec<Origin>) {
    let (mut messages, mut origins) = (Vec::new(), Vec::new());
    for (place, text) in request.system.iter().enumerate() {
        messages.push(Message::text(Role::System, text.text.as_str()));
        origins.push(Origin::System(place));
    }
    for (place, message) in request.messages.iter().enumerate() {
        for (own, result) in message.results.iter().enumerate() {
            messages.push(Message::tool(&result.call, result.text.as_str()));
            origins.push(Origin::Result(place, own));
        }
        if !message.texts.is_empty() || !message.calls.is_empty() || message.results.is_empty() {
            messages.push(message_of(message));
            origins.push(Origin::Message(place));
        }
    }
    let tools = request.tools.iter().map(|tool| ToolDef::new(&tool.name, "", pintle_domain::json::json!({})).into());
    (LlmRequest { tools: tools.collect(), ..LlmRequest::new(&request.model, messages) }, origins)
}

fn message_of(message: &SeenMessage) -> Message {
    let role = match message.speaker {
        Speaker::System => Role::System,
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
        Speaker::Tool => Role::Tool,
    };
    let texts: Vec<&str> = message.texts.iter().map(|text| text.text.as_str()).collect();
    let call = |call: &SeenCall| CallPart {
        id: call.id.clone(),
        kind: "function".into(),
        function: FunctionPart {
            name: call.name.clone(),
            arguments: pintle_domain::json::Value::Object(call.arguments.clone()).to_string(),
            thought_signature: String::new(),
        },
        extra_content: None,
    };
    Message { tool_calls: message.calls.iter().map(call).collect(), ..Message::text(role, texts.join("\n")) }
}

fn say(
    edits: &mut Edits,
    request: &SeenRequest,
    (before, left): (&LlmRequest, &LlmRequest),
    origins: &[Origin],
) -> Option<()> {
    let is_ended = before.graceful_terminal != left.graceful_terminal;
    if before.messages.len() != left.messages.len() || before.options != left.options || is_ended {
        return None;
    }
    if before.model != left.model {
        edits.text(request.document.root.get("model")?, &left.model);
    }
    let is_kept = |place: usize| left.tools.iter().any(|tool| tool.get() == before.tools[place].get());
    let gone: Vec<usize> = (0..before.tools.len()).filter(|place| !is_kept(*place)).collect();
    if before.tools.len() - gone.len() != left.tools.len() {
        return None;
    }
    if !gone.is_empty() {
        let nodes: Vec<_> = gone.iter().map(|place| &request.tools[*place].node).collect();
        let mut removed = 0;
        for list in &request.tool_lists {
            let own = list.items().iter().enumerate().filter(|(_, item)| nodes.contains(item));
            let places: Vec<usize> = own.map(|(place, _)| place).collect();
            removed += places.len();
            edits.remove_items(list, &places);
        }
        if removed != gone.len() {
            return None;
        }
    }
    for ((was, is), origin) in before.messages.iter().zip(&left.messages).zip(origins) {
        let (was, is) = (was.get(), is.get());
        if was == is {
            continue;
        }
        // Of a message its text can be said, and nothing else.
        if *was != (Message { content: was.content.clone(), ..is.clone() }) {
            return None;
        }
        match *origin {
            Origin::System(place) => edits.text(&request.system[place].node, &is.content),
            Origin::Message(place) if request.messages[place].texts.is_empty() => return None,
            Origin::Message(place) => request.say(edits, place, &is.content),
            Origin::Result(place, own) => {
                SeenRequest::result(edits, &request.messages[place].results[own], &is.content);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;

    #[test]
    fn of_a_message_its_text_can_be_said_and_nothing_else() {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
        let request = Wire::OpenAi.read(body.into()).unwrap();
        let (before, origins) = told(&request);
        let changed = |change: fn(&mut Message)| {
            let mut message = before.messages[0].get().clone();
            change(&mut message);
            let left = LlmRequest { messages: vec![message.into()], ..before.clone() };
            let mut edits = Edits::default();
            say(&mut edits, &request, (&before, &left), &origins).map(|()| edits.apply(body))
        };
        assert_eq!(changed(|_| {}).as_deref(), Some(body));
        assert_eq!(changed(|message| message.content = "ho".into()), Some(body.replace("hi", "ho")));
        let refused: [fn(&mut Message); 5] = [
            |message| message.role = Role::System,
            |message| message.reasoning_content = "x".into(),
            |message| message.media.push("media://x".into()),
            |message| message.tool_call_id = "x".into(),
            |message| message.origin = "hook".into(),
        ];
        for (place, change) in refused.into_iter().enumerate() {
            assert_eq!(changed(change), None, "{place}");
        }
    }
}
