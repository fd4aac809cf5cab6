//! A conversation as a person reads it.

use anstyle::{AnsiColor, Style};
use domain::approval::Approval;
use domain::message::{CallPart, Message, Role};
use domain::session::Session;
use domain::store::SessionRow;

use super::{BOLD, DIM, NOTE, state};
use crate::clean::{clean, prose};
use crate::moment::moment_of;

const PERSON: Style = AnsiColor::Green.on_default().bold();
const MODEL: Style = AnsiColor::Cyan.on_default().bold();

/// The session `row`, with everything that stands in it, and the calls that wait for a person. `flags` lead a command
/// to the same state.
pub(super) fn plain(row: &SessionRow, session: &Session, (waiting, flags): (&[Approval], &str)) -> String {
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
        text.push_str(&format!("  {tool}: pintle approvals approve {id}{flags}, or refuse\n"));
    }
    let mut tools = Vec::new();
    for message in session.said() {
        tools.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.function.name.clone())));
        text.push('\n');
        text.push_str(&one(message, &tools));
    }
    for waiting in session.queue() {
        text.push_str(&format!("\n{NOTE}waits for the next turn{NOTE:#}\n{}", indented(waiting.text())));
    }
    text
}

/// One message; `tools` are the calls so far with the tools that they name.
fn one(message: &Message, tools: &[(String, String)]) -> String {
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
