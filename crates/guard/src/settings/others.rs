//! What else stands in the files of hosts, and what makes it impossible to edit them.

/// The name of the client's program: by it our entries are known.
pub const CLIENT: &str = "pintle-hook";

/// A hook of somebody else on an event of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHook {
    /// The event.
    pub event: String,
    /// What it runs, as far as it says.
    pub runs: String,
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
    #[error("`{0}` is not what hooks are written in there; mend it first")]
    Shape(String),
    /// A name that stands there twice.
    #[error("`{0}` stands there twice, and agents differ in which one they take; leave one")]
    Twice(String),
    /// One entry with a hook of ours and one of somebody else.
    #[error("an entry of `{0}` has a hook of Pintle and another one; put them into entries of their own")]
    Mixed(String),
    /// A file of somebody else, where the host takes one only.
    #[error("there is another hook in this place, and the agent takes one only; move it away first")]
    Taken,
    /// Our entry without its marks.
    #[error("the entry of Pintle was moved or its marks were taken away; remove the tables with `{CLIENT}` by hand")]
    Unmarked,
    /// The host wants a file for each event.
    #[error("this agent has one file for each event")]
    PerEvent,
}

/// Whether `command` starts our client: in the exec form it is the program, else a text for `sh`.
pub(super) fn is_ours(command: &str) -> bool {
    let program = command.split(" --host ").next().unwrap_or(command).trim();
    let program = program.trim_matches(['\'', '"']);
    program.rsplit('/').next() == Some(CLIENT)
}
