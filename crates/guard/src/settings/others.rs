//! What else stands in the files of hosts, and what makes it impossible to edit them.

use pintle_domain::json::{self, Value};

use crate::shell_text::{self, CLIENT};
use crate::wrapping;

/// A hook of somebody else on an event of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHook {
    /// The event.
    pub event: String,
    /// What it runs, as far as it says.
    pub runs: String,
}

/// A hook of somebody else, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundHook {
    /// Its event.
    pub event: String,
    /// The number of its entry in the list of the event, and its own number there.
    pub place: (usize, usize),
    /// The whole entry.
    pub group: Value,
    /// The hook.
    pub hook: Value,
}

/// Why a file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEdited {
    /// It cannot be read.
    #[error("line {line}: {why}; mend the file first, since the agent cannot read it either")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The mistake there.
        why: String,
    },
    /// Something stands where a list or an object has to be.
    #[error("`{0}` does not have the expected form; mend it first")]
    Shape(String),
    /// A file for MCP clients without a list of servers.
    #[error("the file names no servers (`mcpServers`, `servers`, `context_servers`)")]
    NoServers,
    /// A name that stands there twice.
    #[error("`{0}` stands there twice, and agents differ in which one they take; leave one")]
    Twice(String),
    /// One entry with a hook of ours and one of somebody else.
    #[error("an entry of `{0}` has a hook of Pintle and another one; put them into entries of their own")]
    Mixed(String),
    /// A file of somebody else, where the host takes one only.
    #[error("there is another hook in this place, and the agent takes one only; move it away first")]
    Taken,
    /// An entry with which the host drops all hooks.
    #[error("{0}, and with it the agent runs no hook at all; mend it first")]
    Dropped(String),
    /// Our entry without its marks.
    #[error("the entry of Pintle was moved or its marks were taken away; remove the tables with `{CLIENT}` by hand")]
    Unmarked,
    /// A table in which hooks can be switched off.
    #[error(
        "its `[features]` do not say `hooks = true`, without which a user may switch hooks off; add that line first"
    )]
    Unpinned,
    /// The host wants a file for each event.
    #[error("this agent has one file for each event")]
    PerEvent,
}

/// The first words of a plugin of ours.
const PLUGIN: &str = "// Written by `pintle guard install`.";

/// Whether `hook` runs our client: in the exec form it is the program, else all of a text for `sh`. What merely names the
/// client, such as a wrapper around it, is somebody else's.
pub(super) fn is_ours(hook: &Value) -> bool {
    let text = |name: &str| hook.get(name).and_then(Value::as_str);
    let Some(runs) = text("command").or_else(|| text("exec")).or_else(|| text("bash")) else { return false };
    match hook.get("args").and_then(Value::as_array) {
        Some(args) => shell_text::is_client(runs) && args.first().and_then(Value::as_str) == Some("--host"),
        None => shell_text::is_ours(runs),
    }
}

/// What `hook` runs, as far as it says.
pub(super) fn runs(hook: &Value) -> String {
    let said = ["command", "exec", "url", "bash"].iter().find_map(|name| hook.get(*name)?.as_str());
    said.unwrap_or("something that is no command").to_owned()
}

/// The events of a whole file of ours that lists them.
pub(super) fn own_file_events(text: &str) -> Option<Vec<String>> {
    let read = json::parse(text.trim_start_matches('\u{feff}')).ok()?;
    Some(read.get("hooks")?.as_object()?.keys().cloned().collect())
}

/// Whether `text` is a whole file of ours: a plugin, a script, or settings with nothing but hooks of ours.
pub(super) fn is_own_file(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    if text.starts_with(PLUGIN) || shell_text::is_our_script(text) || wrapping::wrapped(text).is_some() {
        return true;
    }
    let Ok(Value::Object(members)) = json::parse(text) else { return false };
    let Some(Value::Object(events)) = members.get("hooks") else { return false };
    let mut hooks = events.values().flat_map(|list| list.as_array().map(Vec::as_slice).unwrap_or_default()).peekable();
    hooks.peek().is_some() && hooks.all(is_ours)
}
