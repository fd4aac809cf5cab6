//! A conversation as a person reads it.

use anstyle::{AnsiColor, Style};
use pintle_domain::approval::Approval;
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::session::Session;
use pintle_domain::store::SessionRow;

use super::{BOLD, DIM, NOTE, state};
use crate::clean::{clean, prose};
use crate::cli::live::{folded, unfolded};
use crate::moment::moment_of;

const PERSON: Style = AnsiColor::Green.on_default().bold();
const MODEL: Style = AnsiColor::Cyan.on_default().bold();

/// What is shown of a session.
pub(super) struct Shown<'a> {
    pub(super) row: &'a SessionRow,
    pub(super) session: &'a Session,
    /// The calls that wait for a person.
    pub(super) waiting: &'a [Approval],
    /// Whether thoughts are shown whole.
    pub(super) thinking: bool,
}

/// The session with everything that stands in it. `flags` lead a command to the same state, and `resume` is the one
/// that goes on with it.
pub(super) fn plain(shown: &Shown<'_>, flags: &str, resume: &str) -> String {
    let Shown { row, session, waiting, thinking } = *shown;
    let parent = row.parent.as_ref().map(|parent| format!(", for session {}", clean(parent))).unwrap_or_default();
    let mut text = format!(
        "{BOLD}{}{BOLD:#}  {DIM}agent {}{parent}, begun {}, used {}{DIM:#}\n",
        clean(&row.session_id),
        clean(&row.agent_id),
        clean(&moment_of(&row.created_at)),
        clean(&moment_of(&row.updated_at)),
    );
    if let Some(state) = state(row) {
        text.push_str(&format!("{NOTE}{state}{NOTE:#}\n"));
    }
    for approval in waiting {
        let (id, tool) = (clean(&approval.id), clean(&approval.tool));
        text.push_str(&format!("  {tool} waits for a person:\n"));
        for answer in ["approve", "refuse"] {
            text.push_str(&format!("    pintle approvals {answer} {id}{flags}\n"));
        }
    }
    if row.open_turn.is_some() && row.held_by.is_none() {
        text.push_str(&format!("  to go on:\n    {resume}\n"));
    }
    let mut tools = Vec::new();
    for message in session.said() {
        tools.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.function.name.clone())));
        text.push('\n');
        text.push_str(&one(message, &tools, thinking));
    }
    if session.can_take_back() {
        text.push_str(&format!("\n{NOTE}the last turn was stopped before its end{NOTE:#}\n"));
    }
    for waiting in session.queue() {
        text.push_str(&format!("\n{NOTE}waits for the next turn{NOTE:#}\n{}", indented(waiting.text())));
    }
    text
}

/// One message; `tools` are the calls so far with the tools that they name.
fn one(message: &Message, tools: &[(String, String)], thinking: bool) -> String {
    let (style, who) = match message.role {
        Role::User => (PERSON, "user".to_owned()),
        Role::Assistant => (MODEL, "assistant".to_owned()),
        Role::System => (DIM, "system".to_owned()),
        Role::Tool => {
            let tool = tools.iter().rev().find(|(id, _)| *id == message.tool_call_id).map(|(_, tool)| tool.as_str());
            (BOLD, format!("result of {}", clean(tool.unwrap_or("a call"))))
        }
    };
    let at =
        message.created_at.as_deref().map(|at| format!("  {DIM}{}{DIM:#}", clean(&moment_of(at)))).unwrap_or_default();
    let mut text = format!("{style}{who}{style:#}{at}\n");
    let thought = message.reasoning_content.as_str();
    if !thought.trim().is_empty() {
        text.push_str(&if thinking { unfolded(thought) } else { format!("  {}\n", folded(thought)) });
    }
    if !message.content.is_empty() {
        text.push_str(&indented(&message.content));
    }
    message.media.iter().for_each(|media| text.push_str(&format!("  {DIM}{}{DIM:#}\n", clean(media))));
    message.tool_calls.iter().for_each(|call| text.push_str(&asked(call)));
    text
}

fn asked(call: &CallPart) -> String {
    format!("  ▸ {} {}\n", clean(&call.function.name), clean(call.function.arguments.trim()))
}

/// A text that somebody wrote, whole, two columns in.
fn indented(text: &str) -> String {
    prose(text).trim_end().lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}
