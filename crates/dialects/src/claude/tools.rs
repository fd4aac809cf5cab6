//! Calls of tools in Claude's words, and what a command changed in them back in the words of whoever made the call.

use std::path::Path;

use domain::json::{Object, Value, same_value};
use domain::matcher::Matcher;
use domain::tool::ToolCall;

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
const FURTHER: [&str; 3] = ["NotebookEdit", "Monitor", "PowerShell"];

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
/// It has too many parts.
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
    Ok(vec![renamed(call, &wants, cwd)])
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

/// The call with the names that Claude has for its tool and its arguments.
fn renamed(call: &ToolCall, wants: &dyn Fn(&str) -> bool, cwd: &Path) -> ToldCall {
    let mut input = call.arguments.clone();
    let mut changed = Vec::new();
    for member in row(&call.tool).map(|row| row.members).unwrap_or_default() {
        let there = std::iter::once(&member.name).chain(member.others).find(|name| input.contains_key(name));
        let Some(called) = there else { continue };
        let Some(written) = input.get(called).cloned() else { continue };
        let value = match written.as_str().filter(|_| member.path) {
            Some(path) => Value::from(absolute(path, cwd)),
            None => written.clone(),
        };
        let differs = value != written;
        if *called == member.name && !differs {
            continue;
        }
        input.shift_remove(called);
        input.insert(member.name.to_owned(), value.clone());
        let values = differs.then_some((value, written));
        changed.push(Renamed { told: member.name, called: (*called).to_owned(), values });
    }
    // Several commands of one call are one text to whoever reads it.
    if let Some(commands) = joined(call) {
        input.shift_remove(commands.0);
        input.insert("command".to_owned(), Value::from(commands.1));
        return ToldCall { name: name_of(call, wants), input, way: Way::Closed };
    }
    ToldCall { name: name_of(call, wants), input, way: Way::Members(changed) }
}

/// The member with several commands of a call of the shell, and these as one text.
fn joined(call: &ToolCall) -> Option<(&'static str, String)> {
    if call.tool != "exec" || call.arguments.contains_key("command") {
        return None;
    }
    let commands = call.arguments.get("commands")?.as_array()?;
    let texts: Vec<&str> = commands.iter().filter_map(Value::as_str).collect();
    (texts.len() == commands.len()).then(|| ("commands", texts.join("\n")))
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

/// The text of a patch among the arguments of `call`, where it has no file of its own.
fn patch_of(call: &ToolCall) -> Option<&str> {
    if row(&call.tool)?.canonical != "edit_file" {
        return None;
    }
    let has_file = std::iter::once(&FILE.name).chain(FILE.others).any(|name| call.arguments.contains_key(name));
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
mod tests {
    use domain::json::json;

    use super::*;

    const CWD: &str = "/w";

    fn call(tool: &str, raw: &str, arguments: &Value) -> ToolCall {
        let arguments = arguments.as_object().unwrap().clone();
        ToolCall { id: "c1".into(), tool: tool.into(), raw_tool: raw.into(), arguments }
    }

    fn matcher(pattern: &str) -> Matcher {
        Matcher::compile(pattern).unwrap()
    }

    /// What is told of a call: the names and the arguments of each part.
    fn parts(call: &ToolCall, pattern: Option<&str>) -> Vec<(String, Value)> {
        let matcher = pattern.map(matcher);
        let told = told(call, matcher.as_ref(), Path::new(CWD)).unwrap();
        told.into_iter().map(|part| (part.name, Value::Object(part.input))).collect()
    }

    #[test]
    fn calls_of_every_agent_have_claudes_words() {
        let rows: [(&str, &str, Value, &str, Value); 12] = [
            ("exec", "exec", json!({"command": "ls"}), "Bash", json!({"command": "ls"})),
            (
                "exec",
                "Bash",
                json!({"command": "ls", "description": "x"}),
                "Bash",
                json!({"command": "ls", "description": "x"}),
            ),
            ("exec", "run_commands", json!({"commands": ["ls", "pwd"]}), "Bash", json!({"command": "ls\npwd"})),
            (
                "write_file",
                "write_file",
                json!({"path": "a.txt", "content": "x"}),
                "Write",
                json!({"file_path": "/w/a.txt", "content": "x"}),
            ),
            (
                "write_file",
                "create",
                json!({"path": "/b", "file_text": "x"}),
                "Write",
                json!({"file_path": "/b", "content": "x"}),
            ),
            (
                "edit_file",
                "edit_file",
                json!({"path": "a", "old_text": "1", "new_text": "2"}),
                "Edit",
                json!({"file_path": "/w/a", "old_string": "1", "new_string": "2"}),
            ),
            (
                "edit_file",
                "MultiEdit",
                json!({"file_path": "/a", "edits": []}),
                "MultiEdit",
                json!({"file_path": "/a", "edits": []}),
            ),
            ("read_file", "read_file", json!({"absolute_path": "/x"}), "Read", json!({"file_path": "/x"})),
            (
                "search_text",
                "search_text",
                json!({"pattern": "a", "path": "./src"}),
                "Grep",
                json!({"pattern": "a", "path": "/w/src"}),
            ),
            (
                "delegate",
                "delegate",
                json!({"agent": "helper", "task": "look"}),
                "Agent",
                json!({"prompt": "look", "subagent_type": "helper"}),
            ),
            ("mcp_rig_touch", "mcp__rig__touch", json!({"text": "x"}), "mcp__rig__touch", json!({"text": "x"})),
            ("send_file", "send_file", json!({"path": "a"}), "send_file", json!({"path": "a"})),
        ];
        for (tool, raw, arguments, name, input) in rows {
            let told = parts(&call(tool, raw, &arguments), None);
            let [(told_name, told_input)] = told.as_slice() else { panic!("{told:?}") };
            assert_eq!(told_name, name, "{raw}");
            assert!(same_value(told_input, &input), "{raw}: {told_input}");
        }
    }

    #[test]
    fn the_name_that_is_told_is_one_that_the_matcher_means() {
        let delegate = call("delegate", "delegate", &json!({}));
        assert_eq!(parts(&delegate, Some("^Task$"))[0].0, "Task");
        assert_eq!(parts(&delegate, Some("^(Agent|Task)$"))[0].0, "Agent");
        let mcp = call("mcp_git_hub_new_issue", "mcp_git_hub_new_issue", &json!({}));
        assert_eq!(parts(&mcp, Some("^mcp__git_hub__.*"))[0].0, "mcp__git_hub__new_issue");
        assert_eq!(parts(&mcp, Some("^mcp__git__"))[0].0, "mcp__git__hub_new_issue");
        let own = matcher("^(Bash)$").spelled("Bash", spelling);
        let facts = |tool| domain::checkpoint::Facts::of_tool(tool);
        assert!(own.matches(&facts("exec")) && !own.matches(&facts("read_file")));
    }

    #[test]
    fn a_patch_is_told_file_by_file_and_as_it_is() {
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n+y\n*** Update File: src/a.rs\n@@\n one\n-two\n+2\n*** End Patch\n";
        let call = call("edit_file", "apply_patch", &json!({"command": patch}));
        let raw = ("apply_patch".to_owned(), json!({"command": patch}));
        let new = ("Write".to_owned(), json!({"file_path": "/w/new.txt", "content": "x\ny"}));
        let edit =
            ("Edit".to_owned(), json!({"file_path": "/w/src/a.rs", "old_string": "one\ntwo", "new_string": "one\n2"}));
        assert_eq!(parts(&call, None), [raw.clone(), new.clone(), edit.clone()]);
        assert_eq!(parts(&call, Some("^(Edit|Write)$")), [new, edit.clone()]);
        assert_eq!(parts(&call, Some("^apply_patch$")), [raw]);
        let edits = parts(&call, Some("^Edit$"));
        assert_eq!(edits.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["Edit", "Edit"]);
        assert_eq!(edits[1], edit);
        let many: String = (0..=MAX_PATCHED_FILES).map(|n| format!("*** Delete File: {n}\n")).collect();
        let many = super::tests::call("edit_file", "apply_patch", &json!({"command": many}));
        assert!(told(&many, None, Path::new(CWD)).unwrap_err().contains("33 files at once"));
    }

    #[test]
    fn what_a_command_changes_gets_back_under_the_names_of_the_call() {
        let back = |call: &ToolCall, changed: Value| {
            let told = told(call, None, Path::new(CWD)).unwrap().remove(0);
            told.back(call, changed.as_object().unwrap().clone()).map(Value::Object)
        };
        let write = call("write_file", "write_file", &json!({"path": "a.txt", "content": "x"}));
        let same = json!({"file_path": "/w/a.txt", "content": "y"});
        assert_eq!(back(&write, same), Ok(json!({"path": "a.txt", "content": "y"})), "its path as it was written");
        let moved = json!({"file_path": "/w/b.txt", "content": "x"});
        assert_eq!(back(&write, moved), Ok(json!({"path": "/w/b.txt", "content": "x"})));
        let many = call("exec", "run_commands", &json!({"commands": ["ls", "pwd"]}));
        assert_eq!(back(&many, json!({"command": "ls\npwd"})), Ok(json!({"commands": ["ls", "pwd"]})));
        assert!(back(&many, json!({"command": "ls"})).is_err());
        let bash = call("exec", "Bash", &json!({"command": "ls", "timeout": 5}));
        assert_eq!(back(&bash, json!({"command": "ls -a"})), Ok(json!({"command": "ls -a"})));
    }
}
