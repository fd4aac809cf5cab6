//! Calls of tools in Claude's words, and what a command changed in them back in the words of whoever made the call.

use std::path::Path;

use pintle_domain::json::{Object, Value, same_value};
use pintle_domain::matcher::Matcher;
use pintle_domain::tool::ToolCall;

/// What one tool is called, and its arguments.
struct ToolRow {
    canonical: &'static str,
    /// Claude's names for it, the usual one first.
    names: &'static [&'static str],
    /// The names of agents whose hooks have Claude's wire and tools of their own.
    cousins: &'static [&'static str],
    members: &'static [Member],
}

/// One argument by Claude's name, and what others call it.
struct Member {
    name: &'static str,
    others: &'static [&'static str],
    /// Whether it is a path, which Claude gives absolute.
    path: bool,
}

const fn text(name: &'static str, others: &'static [&'static str]) -> Member {
    Member { name, others, path: false }
}

const fn path(name: &'static str, others: &'static [&'static str]) -> Member {
    Member { name, others, path: true }
}

/// The file of a tool, as agents were seen to name it.
const FILE: Member = path("file_path", &["path", "absolute_path", "filePath", "filename", "file"]);

/// The folder that a search begins in.
const DIR: Member = path("path", &["dir_path", "directory", "dir"]);

/// Source: Pintle's own tools, and the payloads of agents under guard.
const ROWS: &[ToolRow] = &[
    ToolRow {
        canonical: "exec",
        names: &["Bash"],
        cousins: &["run_shell_command"],
        members: &[text("command", &["cmd", "script"])],
    },
    ToolRow {
        canonical: "write_file",
        names: &["Write"],
        cousins: &[],
        members: &[FILE, text("content", &["file_text", "contents", "text"])],
    },
    ToolRow {
        canonical: "edit_file",
        names: &["Edit", "MultiEdit"],
        cousins: &["replace", "edit"],
        members: &[
            FILE,
            text("old_string", &["old_text", "old_str", "oldString", "oldText"]),
            text("new_string", &["new_text", "new_str", "newString", "newText"]),
        ],
    },
    ToolRow { canonical: "read_file", names: &["Read"], cousins: &["read_many_files"], members: &[FILE] },
    ToolRow {
        canonical: "search_text",
        names: &["Grep"],
        cousins: &["grep_search", "search_file_content"],
        members: &[text("pattern", &["query", "regex"]), DIR],
    },
    ToolRow {
        canonical: "find_files",
        names: &["Glob"],
        cousins: &["glob"],
        members: &[text("pattern", &["glob"]), DIR],
    },
    ToolRow { canonical: "list_dir", names: &["LS"], cousins: &["list_directory"], members: &[DIR] },
    ToolRow { canonical: "web_fetch", names: &["WebFetch"], cousins: &[], members: &[text("url", &[])] },
    ToolRow {
        canonical: "web_search",
        names: &["WebSearch"],
        cousins: &["google_web_search"],
        members: &[text("query", &[])],
    },
    ToolRow {
        canonical: "delegate",
        names: &["Agent", "Task"],
        cousins: &["agent", "task", "spawn_agent"],
        members: &[
            text("prompt", &["task", "message", "objective"]),
            text("subagent_type", &["agent", "agent_type", "agent_name"]),
        ],
    },
    ToolRow {
        canonical: "spawn",
        names: &["Agent", "Task"],
        cousins: &["agent", "task", "spawn_agent"],
        members: &[text("prompt", &["task"]), text("subagent_type", &["agent"])],
    },
];

/// Names of Claude's that are not the usual one of any tool here.
const FURTHER: [&str; 3] = [NOTEBOOK, "Monitor", "PowerShell"];

/// A tool of Claude's that changes files and has no argument of those that do: only its own name means it.
const NOTEBOOK: &str = "NotebookEdit";

/// Most files of one patch that a command is asked about, each by itself.
pub const MAX_PATCHED_FILES: usize = 32;

/// The heads of a patch that name a file, and whether its whole text follows.
const PATCH_HEADS: [(&str, bool); 3] =
    [("*** Add File: ", true), ("*** Update File: ", false), ("*** Delete File: ", false)];

/// The head behind which the new name of a file stands.
const MOVED: &str = "*** Move to: ";

/// The names by which matchers of Claude's wire may mean a tool: Claude's own, those of agents with the same wire, and those
/// of MCP servers in their spelling.
pub fn spelling(canonical: &str, raw: &str) -> Vec<String> {
    if raw == NOTEBOOK {
        return Vec::new();
    }
    if let Some(row) = row(canonical) {
        return row.names.iter().chain(row.cousins).map(|name| (*name).to_owned()).collect();
    }
    let Some(rest) = canonical.strip_prefix("mcp_").filter(|_| !raw.starts_with("mcp__")) else { return Vec::new() };
    // Where the server's name ends is not known: any place may be meant.
    let ends = rest.match_indices('_').filter(|(at, _)| *at > 0 && at + 1 < rest.len());
    ends.map(|(at, _)| format!("mcp__{}__{}", &rest[..at], &rest[at + 1..])).collect()
}

fn row(canonical: &str) -> Option<&'static ToolRow> {
    ROWS.iter().find(|row| row.canonical == canonical)
}

/// Whether `name` is one that Claude has for a tool.
pub fn is_claudes(name: &str) -> bool {
    name.starts_with("mcp__") || FURTHER.contains(&name) || ROWS.iter().any(|row| row.names.contains(&name))
}

/// A call as a command is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldCall {
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub input: Object,
    /// How changed arguments get back.
    way: Way,
}

/// How changed arguments get back to whoever made the call.
#[derive(Clone, Debug, PartialEq)]
enum Way {
    /// Member by member: Claude's name, the name in the call, and the value that was told and written.
    Members(Vec<Renamed>),
    /// They do not: what was told is one part of the call.
    Closed,
}

/// One argument that has another name or value in the call than the command was told.
#[derive(Clone, Debug, PartialEq)]
struct Renamed {
    told: &'static str,
    called: String,
    /// What was told, and what stands in the call, where these differ.
    values: Option<(Value, Value)>,
}

/// What a command is told of `call`, which works in `cwd`, once for each part of it that stands for a call of Claude's.
///
/// # Errors
/// It has too many parts, or says twice what it is about.
pub fn told(call: &ToolCall, matcher: Option<&Matcher>, cwd: &Path) -> Result<Vec<ToldCall>, String> {
    let wants = |name: &str| matcher.is_none_or(|matcher| matcher.is_match(name));
    if let Some(patch) = patch_of(call) {
        let files = patched(patch);
        if files.len() > MAX_PATCHED_FILES {
            return Err(format!("it changes {} files at once, more than {MAX_PATCHED_FILES}", files.len()));
        }
        let mut parts = Vec::new();
        if wants(&call.raw_tool) {
            parts.push(plain(&call.raw_tool, &call.arguments));
        }
        // A matcher that means one way of changing a file means this one.
        let name = |whole: bool| {
            let names = if whole { ["Write", "Edit", "MultiEdit"] } else { ["Edit", "MultiEdit", "Write"] };
            names.into_iter().find(|name| wants(name))
        };
        for file in files {
            parts.extend(name(file.whole).map(|name| file.told(name, cwd)));
        }
        if parts.is_empty() {
            parts.push(plain(&call.raw_tool, &call.arguments));
        }
        return Ok(parts);
    }
    Ok(vec![renamed(call, &wants, cwd)?])
}

fn plain(name: &str, arguments: &Object) -> ToldCall {
    ToldCall { name: name.to_owned(), input: arguments.clone(), way: Way::Members(Vec::new()) }
}

/// The name that the command is told: the first that its matcher means, of those that the call has.
fn name_of(call: &ToolCall, wants: &dyn Fn(&str) -> bool) -> String {
    let own = is_claudes(&call.raw_tool).then(|| call.raw_tool.clone());
    let spelled = spelling(&call.tool, &call.raw_tool);
    let mut names: Vec<String> =
        own.into_iter().chain(spelled).chain([call.raw_tool.clone(), call.tool.clone()]).collect();
    let at = names.iter().position(|name| wants(name)).unwrap_or(0);
    names.swap_remove(at)
}

/// The name by which `arguments` have `member`. One that stands there twice is never told: which of them its tool takes
/// is not known, and the other one could be written to please whoever looks.
fn name_in(arguments: &Object, member: &Member) -> Result<Option<&'static str>, String> {
    let names = std::iter::once(member.name).chain(member.others.iter().copied());
    let mut there = names.filter(|name| arguments.get(name).is_some_and(|value| !value.is_null()));
    let Some(first) = there.next() else { return Ok(None) };
    match there.find(|other| arguments.get(other) != arguments.get(first)) {
        Some(other) => Err(format!("it says `{first}` and `{other}`, and only one of them can be meant")),
        None => Ok(Some(first)),
    }
}

/// The call with the names that Claude has for its tool and its arguments.
fn renamed(call: &ToolCall, wants: &dyn Fn(&str) -> bool, cwd: &Path) -> Result<ToldCall, String> {
    let mut input = call.arguments.clone();
    let mut changed = Vec::new();
    for member in row(&call.tool).map(|row| row.members).unwrap_or_default() {
        let Some(called) = name_in(&input, member)? else { continue };
        let Some(written) = input.get(called).cloned() else { continue };
        let value = match written.as_str().filter(|_| member.path) {
            Some(path) => Value::from(absolute(path, cwd)),
            None => written.clone(),
        };
        let differs = value != written;
        if called == member.name && !differs {
            continue;
        }
        input.shift_remove(called);
        input.insert(member.name.to_owned(), value.clone());
        let values = differs.then_some((value, written));
        changed.push(Renamed { told: member.name, called: called.to_owned(), values });
    }
    // Several commands of one call are one text to whoever reads it.
    if let Some(commands) = joined(call)? {
        input.shift_remove(commands.0);
        input.insert("command".to_owned(), Value::from(commands.1));
        return Ok(ToldCall { name: name_of(call, wants), input, way: Way::Closed });
    }
    Ok(ToldCall { name: name_of(call, wants), input, way: Way::Members(changed) })
}

/// The member with several commands of a call of the shell, and these as one text.
fn joined(call: &ToolCall) -> Result<Option<(&'static str, String)>, String> {
    const SEVERAL: &str = "commands";
    let commands = call.arguments.get(SEVERAL).and_then(Value::as_array).filter(|_| call.tool == "exec");
    let Some(commands) = commands else { return Ok(None) };
    if ["command", "cmd", "script"].iter().any(|name| call.arguments.contains_key(name)) {
        return Err(format!("it says one command and `{SEVERAL}`, and only one of them can be meant"));
    }
    let texts: Vec<&str> = commands.iter().filter_map(Value::as_str).collect();
    Ok((texts.len() == commands.len()).then(|| (SEVERAL, texts.join("\n"))))
}

/// `path` from `cwd`. What is no path of a file, such as a URL, stays as it is.
fn absolute(path: &str, cwd: &Path) -> String {
    if path.is_empty() || path.starts_with('/') || path.starts_with('~') || path.contains("://") {
        return path.to_owned();
    }
    let relative = path.trim_start_matches("./");
    let relative = if relative == "." { "" } else { relative };
    cwd.join(relative).to_string_lossy().trim_end_matches('/').to_owned()
}

impl ToldCall {
    /// The arguments of `call` with what a command put into the place of [`ToldCall::input`].
    ///
    /// # Errors
    /// They cannot be put back into this call.
    pub fn back(&self, call: &ToolCall, changed: Object) -> Result<Object, String> {
        let same = changed.len() == self.input.len()
            && changed.iter().all(|(name, value)| self.input.get(name).is_some_and(|old| same_value(old, value)));
        if same {
            return Ok(call.arguments.clone());
        }
        let Way::Members(renamed) = &self.way else {
            return Err("it changed a part of a call that cannot be changed in parts".to_owned());
        };
        let mut back = Object::new();
        for (name, value) in changed {
            match renamed.iter().find(|renamed| renamed.told == name) {
                None => drop(back.insert(name, value)),
                Some(Renamed { called, values, .. }) => {
                    let kept = values.as_ref().filter(|(told, _)| same_value(told, &value));
                    let value = kept.map_or(value, |(_, written)| written.clone());
                    back.insert(called.clone(), value);
                }
            }
        }
        Ok(back)
    }
}

/// The text of a patch among the arguments of `call`, where it has no file of its own: those of a tool that is named
/// after patches never have one.
fn patch_of(call: &ToolCall) -> Option<&str> {
    if row(&call.tool)?.canonical != "edit_file" {
        return None;
    }
    let names_file = std::iter::once(&FILE.name).chain(FILE.others).any(|name| call.arguments.contains_key(name));
    let has_file = names_file && !call.raw_tool.contains("patch");
    let mut texts = call.arguments.values().filter_map(Value::as_str);
    texts.find(|text| {
        !has_file && text.lines().any(|line| PATCH_HEADS.iter().any(|(head, _)| line.trim_start().starts_with(head)))
    })
}

/// One file of a patch.
#[derive(Debug, Default, PartialEq)]
struct Patched<'a> {
    path: &'a str,
    /// Whether the patch has its whole text.
    whole: bool,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

/// The files that `patch` changes, each with what it takes away and what it puts there.
fn patched(patch: &str) -> Vec<Patched<'_>> {
    let mut files: Vec<Patched<'_>> = Vec::new();
    for line in patch.lines() {
        let head = line.trim_start();
        if let Some((path, whole)) =
            PATCH_HEADS.iter().find_map(|(mark, whole)| Some((head.strip_prefix(mark)?, *whole)))
        {
            files.push(Patched { path: path.trim(), whole, ..Patched::default() });
        } else if let Some(path) = head.strip_prefix(MOVED) {
            files.push(Patched { path: path.trim(), ..Patched::default() });
        } else if let (Some(file), false) = (files.last_mut(), head.starts_with("*** ") || line.starts_with("@@")) {
            match (line.strip_prefix('+'), line.strip_prefix('-')) {
                (Some(new), _) => file.new.push(new),
                (None, Some(old)) => file.old.push(old),
                (None, None) => {
                    let both = line.strip_prefix(' ').unwrap_or(line);
                    file.old.push(both);
                    file.new.push(both);
                }
            }
        }
    }
    files
}

impl Patched<'_> {
    fn told(&self, name: &str, cwd: &Path) -> ToldCall {
        let (old, new) = (self.old.join("\n"), self.new.join("\n"));
        let mut input = Object::new();
        input.insert(FILE.name.to_owned(), Value::from(absolute(self.path, cwd)));
        if name == "Write" {
            input.insert("content".to_owned(), Value::from(new));
        } else {
            input.insert("old_string".to_owned(), Value::from(old));
            input.insert("new_string".to_owned(), Value::from(new));
        }
        ToldCall { name: name.to_owned(), input, way: Way::Closed }
    }
}

/// The file that `input`, in Claude's words, is about.
pub fn file_of(input: &Object) -> Option<&str> {
    [FILE.name, "notebook_path", DIR.name].iter().find_map(|name| input.get(name)?.as_str())
}

#[cfg(test)]
mod tests;
