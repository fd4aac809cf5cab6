//! What a command is given on its standard input.

use std::path::Path;

use domain::checkpoint::{AfterTool, Notice, ObservedEvent, Subject};
use domain::identity::Identity;
use domain::json::{Object, Value, json};
use domain::matcher::Matcher;
use domain::tool::{ToolCall, ToolOutput};

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
            of_call(event, (&at.call, matcher), around, &|told| done(at, told))?
        }
        (ClaudeEvent::PostToolUseFailure, Subject::AfterTool(at)) if at.result.is_error => {
            of_call(event, (&at.call, matcher), around, &|_| failed(at))?
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
            let members = [
                ("agent_id", session_id.as_str().into()),
                ("agent_type", start.agent.as_str().into()),
                ("stop_hook_active", Value::Bool(false)),
                ("agent_transcript_path", "".into()),
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

/// What every event says. Where there is no file of the conversation, its path is empty.
fn begin(event: ClaudeEvent, Surroundings { who, cwd }: Surroundings<'_>) -> Value {
    let mut document = json!({
        "session_id": who.session_id.as_str(),
        "transcript_path": "",
        "cwd": cwd.to_string_lossy().into_owned(),
        "prompt_id": who.turn_id.as_str(),
        "permission_mode": "default",
        "hook_event_name": event.name(),
    });
    if who.depth > 0 {
        document =
            with(document, [("agent_id", who.turn_id.as_str().into()), ("agent_type", who.agent_id.as_str().into())]);
    }
    document
}

fn with(mut document: Value, members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    for (name, value) in members {
        document[name] = value;
    }
    document
}

fn done(at: &AfterTool, told: &ToldCall) -> Vec<(&'static str, Value)> {
    vec![("tool_response", response(told, &at.result)), ("duration_ms", millis(at))]
}

fn failed(at: &AfterTool) -> Vec<(&'static str, Value)> {
    let error = Value::from(at.result.for_llm.as_str());
    vec![("error", error), ("is_interrupt", Value::Bool(false)), ("duration_ms", millis(at))]
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
