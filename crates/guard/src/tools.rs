//! The tools of hosts: what they are called here, and where their arguments hold commands and paths.

use pintle_domain::json::{Object, Value};

/// What a tool can do, as far as coverage is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolClass {
    /// Runs a shell text.
    Shell,
    /// Writes, edits or deletes files.
    FileWrite,
    /// Reads or searches files.
    FileRead,
    /// Asks the web.
    Web,
    /// Belongs to an MCP server.
    Mcp,
    /// Starts or steers a sub-agent.
    Subagent,
    /// Any other.
    Other,
}

impl ToolClass {
    /// All of them, in the order in which tables show them.
    pub const ALL: [Self; 7] =
        [Self::Shell, Self::FileWrite, Self::FileRead, Self::Web, Self::Mcp, Self::Subagent, Self::Other];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::FileWrite => "file_write",
            Self::FileRead => "file_read",
            Self::Web => "web",
            Self::Mcp => "mcp",
            Self::Subagent => "subagent",
            Self::Other => "other",
        }
    }
}

/// What a member of the arguments holds, by the member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A shell text, or a list of them.
    Shell(&'static str),
    /// The path of a file or folder, or a list of them.
    Path(&'static str),
    /// A text in the form of `apply_patch`, which names its files.
    Patch(&'static str),
}

/// One tool of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// The host's name for it.
    pub native: &'static str,
    /// Pintle's name for it.
    pub canonical: &'static str,
    /// What it can do.
    pub class: ToolClass,
    /// Where its arguments hold commands and paths.
    pub holds: &'static [Holds],
}

/// The strings that `place` holds: itself, or its elements.
pub(crate) fn strings(place: &Value) -> Vec<&str> {
    match place {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// The shell texts among `arguments`, as `row` says where they stand.
pub fn shell_texts<'a>(row: &ToolRow, arguments: &'a Object) -> Vec<&'a str> {
    texts_in(row.holds, arguments)
}

/// Whether `arguments` have what `row` runs: a text, or a list of nothing but texts. True of tools that run no text.
pub(crate) fn has_command(row: &ToolRow, arguments: &Object) -> bool {
    let mut places = row.holds.iter().filter_map(|holds| match holds {
        Holds::Shell(member) => Some(*member),
        Holds::Path(_) | Holds::Patch(_) => None,
    });
    let is_text = |value: &Value| match value {
        Value::String(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    let mut found = places.clone().filter_map(|member| arguments.get(member)).peekable();
    if places.next().is_none() { true } else { found.peek().is_some() && found.all(is_text) }
}

/// The shell texts among `arguments`, as `holds` says where they stand.
pub fn texts_in<'a>(holds: &[Holds], arguments: &'a Object) -> Vec<&'a str> {
    let texts = holds.iter().flat_map(|holds| match holds {
        Holds::Shell(member) => arguments.get(member).map(strings).unwrap_or_default(),
        Holds::Path(_) | Holds::Patch(_) => Vec::new(),
    });
    texts.collect()
}

/// The paths among `arguments`, as `holds` says where they stand.
pub fn paths_in<'a>(holds: &[Holds], arguments: &'a Object) -> Vec<&'a str> {
    let paths = holds.iter().flat_map(|holds| match holds {
        Holds::Path(member) => arguments.get(member).map(strings).unwrap_or_default(),
        Holds::Patch(member) => arguments.get(member).and_then(Value::as_str).map(patched).unwrap_or_default(),
        Holds::Shell(_) => Vec::new(),
    });
    paths.collect()
}

/// The heads of `apply_patch` that name a file.
const PATCH_HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The files that a patch in the form of `apply_patch` names.
pub fn patched(patch: &str) -> Vec<&str> {
    patch
        .lines()
        .filter_map(|line| PATCH_HEADS.iter().find_map(|head| line.trim_start().strip_prefix(head)))
        .map(str::trim)
        .collect()
}

/// The files that a patch names which stands somewhere in a text of the shell: in quotes, or as a text with `\n`.
pub(crate) fn patched_in_text(text: &str) -> Vec<&str> {
    let lines = text.lines().flat_map(|line| line.split("\\n"));
    let named = lines.filter_map(|line| {
        PATCH_HEADS.iter().find_map(|head| Some(&line[line.find(head)? + head.len()..])).map(str::trim)
    });
    named.map(|path| path.split(['\'', '"']).next().unwrap_or(path)).filter(|path| !path.is_empty()).collect()
}

/// All texts in `value`, however deep.
pub(crate) fn all_strings(value: &Value) -> Vec<&str> {
    let (mut texts, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(items) => open.extend(items.iter()),
            Value::Object(members) => open.extend(members.iter().map(|(_, member)| member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    texts
}
