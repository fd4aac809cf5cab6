//! What is known of a shell text before it runs: who would be run, on what, and what cannot be known.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::json::Object;

/// A text that a shell would run, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellText<'a> {
    /// The text.
    pub text: &'a str,
    /// The folder in which it would run, absolute.
    pub cwd: &'a Path,
    /// The folder that the agent works in, absolute; what lies elsewhere is outside.
    pub workspace: &'a Path,
    /// The shell that would run it.
    pub shell: ShellKind,
}

/// Which shell runs a text, as far as shells read texts differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellKind {
    /// bash.
    Bash,
    /// dash, which many systems have as `sh`.
    Dash,
    /// Any other, or one that is not known: a text may do whatever one of the others would make of it.
    #[default]
    Unknown,
}

/// The facts about what a shell text would do, as far as reading it can tell. Its JSON is what conditions and scripts
/// see as `shell`.
///
/// Lists are in the order of the text, each entry once. Empty, with `unknown` false, where there is no shell text; of a
/// tool of a coding agent that writes files, `writes` and `outside` have those files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellFacts {
    /// The commands that would run, those inside of others included.
    pub commands: Vec<ShellCommand>,
    /// Paths that would be read, absolute.
    pub reads: Vec<String>,
    /// Paths that would be written, absolute.
    pub writes: Vec<String>,
    /// Paths that would be deleted, absolute.
    pub deletes: Vec<String>,
    /// URLs that would be asked.
    pub urls: Vec<String>,
    /// Of all paths those that lie outside the workspace.
    pub outside: Vec<String>,
    /// Whether something that is not written in the text would be run as code, such as a download.
    pub pipes_to_interpreter: bool,
    /// Whether something of it cannot be known by reading it.
    pub unknown: bool,
    /// The unknown part, in words; empty if all is known.
    pub unknown_why: String,
    /// Whether something that would run was not read at all, because the text is longer, deeper or more than is read. No
    /// rule sees it; guards refuse such a text.
    #[serde(skip)]
    pub is_cut: bool,
}

/// One command that a shell text would run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCommand {
    /// The program, without its folder.
    pub name: String,
    /// The program as it is written, then its arguments, as far as they are known.
    pub argv: Vec<String>,
    /// Where it would run, absolute; empty if that cannot be known. A command that may run in several folders stands
    /// in the list once for each.
    pub cwd: String,
    /// The number of shells, wrappers and substitutions that the command stands in; 0 at the top.
    pub depth: u32,
}

/// The facts about the call that was read last: the hooks of one event all want those of the same one, and to compare a
/// call takes far less than to read it.
#[derive(Debug, Default)]
pub struct LastRead(Mutex<Option<ReadCall>>);

/// A call that was read.
#[derive(Debug)]
struct ReadCall {
    name: String,
    arguments: Object,
    facts: Arc<ShellFacts>,
}

impl LastRead {
    /// The facts about a call of the tool `name`: those of the last time if it is the same one, else what `read` says.
    pub fn facts(&self, name: &str, arguments: &Object, read: impl FnOnce() -> Arc<ShellFacts>) -> Arc<ShellFacts> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.name == name
            && last.arguments == *arguments
        {
            return last.facts.clone();
        }
        let facts = read();
        *last = Some(ReadCall { name: name.to_owned(), arguments: arguments.clone(), facts: facts.clone() });
        facts
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::json::json;

    #[test]
    fn a_call_is_read_once_for_all_who_ask_about_it_and_anew_when_it_changes() {
        let (last, times) = (LastRead::default(), Cell::new(0));
        let asked = |name: &str, command: &str| {
            let read = || {
                times.set(times.get() + 1);
                Arc::new(ShellFacts { unknown_why: format!("{name} {command}"), ..ShellFacts::default() })
            };
            last.facts(name, json!({ "command": command }).as_object().unwrap(), read).unknown_why.clone()
        };
        let calls =
            [("exec", "ls", 1), ("exec", "ls", 1), ("exec", "rm x", 2), ("other", "rm x", 3), ("exec", "ls", 4)];
        for (name, command, so_far) in calls {
            assert_eq!(asked(name, command), format!("{name} {command}"));
            assert_eq!(times.get(), so_far, "{name} {command}");
        }
    }
}
