//! What a command is given on its standard input.

use std::path::Path;

use pintle_domain::checkpoint::{AfterTool, Notice, ObservedEvent, Subject};
use pintle_domain::identity::{ForeignEvent, Identity};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::matcher::Matcher;
use pintle_domain::tool::{ToolCall, ToolOutput};

use super::event::ClaudeEvent;
use super::tools::{self, ToldCall};

/// Where an event happens.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Whose turn it is.
    pub who: &'a Identity,
    /// The folder that the agent works in.
    pub cwd: &'a Path,
}

/// The documents of one event, one for each time that a command is run.
#[derive(Clone, Debug, PartialEq)]
pub enum Documents {
    /// The event is another one than the command wants.
    None,
    /// One run.
    One(Value),
    /// One run for each part of a call, which the command sees as a call of its own.
    OfCall(Vec<(Value, ToldCall)>),
}

/// What a command that wants `event`, and whose matcher is `matcher`, is given of `subject`.
///
/// # Errors
/// The call cannot be told.
pub fn of_subject(
    (event, matcher): (ClaudeEvent, Option<&Matcher>),
    subject: Subject<'_>,
    around: Surroundings<'_>,
) -> Result<Documents, String> {
    Ok(match (event, subject) {
        (ClaudeEvent::UserPromptSubmit, Subject::UserPromptSubmit(at)) => {
            Documents::One(with(begin(event, around), [("prompt", at.prompt.as_str().into())]))
        }
        (ClaudeEvent::PreToolUse, Subject::PreToolUse(at)) => {
            of_call(event, (&at.call, matcher), around, &|_| Vec::new())?
        }
        (ClaudeEvent::PostToolUse, Subject::AfterTool(at)) if !at.result.is_error => {
            of_call(event, (&at.call, matcher), around, &|told| done((at, told), around.who))?
        }
        (ClaudeEvent::PostToolUseFailure, Subject::AfterTool(at)) if at.result.is_error => {
            of_call(event, (&at.call, matcher), around, &|_| failed(at, around.who))?
        }
        (ClaudeEvent::SubagentStart, Subject::SubagentStart(at)) => {
            let id = at.call.as_ref().map_or(at.agent.as_str(), |call| call.id.as_str());
            Documents::One(with(
                begin(event, around),
                [("agent_id", id.into()), ("agent_type", at.agent.as_str().into())],
            ))
        }
        _ => Documents::None,
    })
}

/// What a command that wants `event` is given of `notice`, and what its matcher is compared with.
pub fn of_notice(event: ClaudeEvent, notice: &Notice, cwd: &Path) -> Option<(Value, String)> {
    let document = begin(event, Surroundings { who: &notice.who, cwd });
    let nothing = || Value::Array(Vec::new());
    match (event, &notice.what) {
        (ClaudeEvent::SessionStart, ObservedEvent::SessionStart) => {
            Some((with(document, [("source", STARTED.into())]), STARTED.to_owned()))
        }
        (ClaudeEvent::Stop, ObservedEvent::Stop { reply, .. }) => {
            let members = [
                ("stop_hook_active", Value::Bool(false)),
                ("last_assistant_message", reply.as_str().into()),
                ("background_tasks", nothing()),
                ("session_crons", nothing()),
            ];
            Some((with(document, members), String::new()))
        }
        (ClaudeEvent::SubagentStop, ObservedEvent::SubagentStop { start, session_id, outcome, .. }) => {
            let said = of_kin(&notice.who);
            let id = said.and_then(|said| said.place.agent_id.as_deref()).unwrap_or(session_id.as_str());
            let transcript = said.and_then(|said| said.raw.get("agent_transcript_path")?.as_str()).unwrap_or_default();
            let members = [
                ("agent_id", id.into()),
                ("agent_type", start.agent.as_str().into()),
                ("stop_hook_active", Value::Bool(false)),
                ("agent_transcript_path", transcript.into()),
                ("last_assistant_message", outcome.as_str().into()),
                ("background_tasks", nothing()),
                ("session_crons", nothing()),
            ];
            Some((with(document, members), start.agent.to_string()))
        }
        _ => None,
    }
}

/// How a session came to be: here it is always a new one.
const STARTED: &str = "startup";

fn of_call(
    event: ClaudeEvent,
    (call, matcher): (&ToolCall, Option<&Matcher>),
    around: Surroundings<'_>,
    more: &dyn Fn(&ToldCall) -> Vec<(&'static str, Value)>,
) -> Result<Documents, String> {
    let told = tools::told(call, matcher, around.cwd)?.into_iter().map(|told| {
        let members = [
            ("tool_name", Value::from(told.name.as_str())),
            ("tool_input", Value::Object(told.input.clone())),
            ("tool_use_id", call.id.as_str().into()),
        ];
        let document = with(with(begin(event, around), members), more(&told));
        (document, told)
    });
    Ok(Documents::OfCall(told.collect()))
}

/// The agents whose own hooks have this wire: what they say of an event, a command is told as they say it.
const KIN: [&str; 3] = ["claude", "codex", "qwen"];

/// What an agent of [`KIN`] said of the event, where one acts under guard.
fn of_kin(who: &Identity) -> Option<&ForeignEvent> {
    who.foreign.as_deref().filter(|said| KIN.contains(&said.host.as_str()))
}

/// What every event says. Where there is no file of the conversation, its path is empty.
fn begin(event: ClaudeEvent, Surroundings { who, cwd }: Surroundings<'_>) -> Value {
    let kin = of_kin(who);
    let place = kin.map(|said| &said.place);
    let session = place.map_or(who.session_id.as_str(), |place| place.session.as_str());
    let transcript = place.and_then(|place| place.transcript.as_deref()).unwrap_or_default();
    let mode = kin.and_then(|said| said.raw.get("permission_mode")?.as_str()).unwrap_or("default");
    let document = json!({
        "session_id": session,
        "transcript_path": transcript,
        "cwd": cwd.to_string_lossy().into_owned(),
        "prompt_id": who.turn_id.as_str(),
        "permission_mode": mode,
        "hook_event_name": event.name(),
    });
    let (id, kind) = match place {
        Some(place) => (place.agent_id.as_deref(), place.agent_kind.as_deref()),
        None if who.depth > 0 => (Some(who.turn_id.as_str()), Some(who.agent_id.as_str())),
        None => (None, None),
    };
    let members = [("agent_id", id), ("agent_type", kind)];
    with(document, members.into_iter().filter_map(|(name, said)| Some((name, Value::from(said?)))))
}

fn with(mut document: Value, members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    for (name, value) in members {
        document[name] = value;
    }
    document
}

fn done((at, told): (&AfterTool, &ToldCall), who: &Identity) -> Vec<(&'static str, Value)> {
    let response = own_result(at, told, who).cloned().unwrap_or_else(|| response(told, &at.result));
    vec![("tool_response", response), ("duration_ms", millis(at))]
}

/// The result as the agent under guard has it, where the command is told of the call by the agent's own name for it, and
/// no hook has changed what came of it. Claude's names promise Claude's shapes.
fn own_result<'a>(at: &AfterTool, told: &ToldCall, who: &'a Identity) -> Option<&'a Value> {
    let said = of_kin(who)?;
    let result = said.result.as_ref()?;
    let is_own = told.name == at.call.raw_tool && (said.host == "claude" || !tools::is_claudes(&told.name));
    (is_own && result.text == at.result.for_llm).then_some(&result.value)
}

fn failed(at: &AfterTool, who: &Identity) -> Vec<(&'static str, Value)> {
    let error = Value::from(at.result.for_llm.as_str());
    let interrupted = of_kin(who).and_then(|said| said.raw.get("is_interrupt")?.as_bool()).unwrap_or(false);
    vec![("error", error), ("is_interrupt", Value::Bool(interrupted)), ("duration_ms", millis(at))]
}

fn millis(at: &AfterTool) -> Value {
    Value::from(u64::try_from(at.duration.as_millis()).unwrap_or(u64::MAX))
}

/// A result in the shape that Claude's tool of that name has.
fn response(told: &ToldCall, result: &ToolOutput) -> Value {
    let text = result.for_llm.as_str();
    match told.name.as_str() {
        "Bash" => json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false}),
        name if name.starts_with("mcp__") => json!([{"type": "text", "text": text}]),
        _ => {
            let mut response = Object::new();
            if let Some(file) = tools::file_of(&told.input) {
                response.insert("filePath".to_owned(), file.into());
            }
            response.insert("content".to_owned(), text.into());
            Value::Object(response)
        }
    }
}
