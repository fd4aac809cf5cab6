//! What the arguments of a tool may mean that no host has: any text of them may be a path, or what is run.

use pintle_domain::json::{Object, Value, parse};

use crate::braces;
use crate::foreign_texts::{objects, plain, variables};
use crate::no_paths;
use crate::shell_tools::{script, words_of};
use crate::tools::{Holds, all_strings, paths_in, strings};

/// The members of arguments whose texts are paths, whatever stands in them.
const PATH_MEMBERS: [Holds; 11] = [
    Holds::Path("path"),
    Holds::Path("paths"),
    Holds::Path("file"),
    Holds::Path("files"),
    Holds::Path("file_path"),
    Holds::Path("filePath"),
    Holds::Path("filename"),
    Holds::Path("destination"),
    Holds::Path("target"),
    Holds::Path("target_file"),
    Holds::Path("uri"),
];

/// The members which hold what is run, in small letters without `_` and `-`.
const RUN_MEMBERS: [&str; 10] =
    ["command", "commands", "cmd", "cmdline", "commandline", "script", "code", "shell", "bash", "argv"];

/// The members which hold a program alone, where its words stand in another one.
const PROGRAMS: [&str; 7] = ["command", "cmd", "program", "executable", "binary", "bin", "exe"];

/// The members which hold the words of a program.
const WORDS: [&str; 5] = ["args", "argv", "arguments", "params", "parameters"];

/// Members that say what to read, and how much of it.
const ASKED: [&str; 25] = [
    "path",
    "paths",
    "file",
    "files",
    "filepath",
    "filepaths",
    "filename",
    "uri",
    "query",
    "q",
    "key",
    "keys",
    "head",
    "tail",
    "offset",
    "limit",
    "encoding",
    "startline",
    "endline",
    "lines",
    "owner",
    "repo",
    "ref",
    "branch",
    "length",
];

/// The members that say what a tool does which does many things.
const ACTIONS: [&str; 8] = ["action", "operation", "op", "method", "mode", "command", "cmd", "type"];

/// The members whose texts are read by people, or name what is no file, in small letters without `_` and `-`.
const SAID: [&str; 34] = [
    "text",
    "texts",
    "body",
    "content",
    "contents",
    "message",
    "messages",
    "title",
    "description",
    "comment",
    "note",
    "notes",
    "summary",
    "subject",
    "query",
    "q",
    "sql",
    "statement",
    "key",
    "keys",
    "label",
    "labels",
    "slug",
    "route",
    "channel",
    "channelid",
    "entityname",
    "entitynames",
    "observation",
    "observations",
    "oldtext",
    "newtext",
    "oldstring",
    "newstring",
];

/// The word of a tool that may fill a folder with what is not said.
const FILLING: [&str; 1] = ["write"];

/// The words of a tool that takes away whole folders, or puts whole ones elsewhere.
const TAKING: [&str; 26] = [
    "delete",
    "remove",
    "rm",
    "rmdir",
    "rmtree",
    "unlink",
    "trash",
    "purge",
    "wipe",
    "erase",
    "shred",
    "clean",
    "destroy",
    "move",
    "mv",
    "rename",
    "extract",
    "unzip",
    "untar",
    "unpack",
    "decompress",
    "restore",
    "sync",
    "clone",
    "copy",
    "cp",
];

/// How the texts begin that are paths although a blank stands in them.
const ROOTS: [&str; 5] = ["/", "~/", "./", "../", "file:"];

/// How a path begins that stands below no other one.
const WHOLE: [char; 3] = ['/', '~', '$'];

/// How many members are taken for paths: a call with so many is refused for them.
const MOST_MEMBERS: usize = 20_000;

/// The words of tools that read and do nothing else: what the name begins with, and what it may go on with.
const READING: [&str; 9] = ["read", "get", "view", "show", "list", "cat", "stat", "search", "find"];
const WHAT_IS_READ: [&str; 24] = [
    "text",
    "file",
    "files",
    "media",
    "multiple",
    "many",
    "info",
    "metadata",
    "content",
    "contents",
    "directory",
    "directories",
    "dir",
    "folder",
    "folders",
    "tree",
    "with",
    "sizes",
    "allowed",
    "lines",
    "range",
    "image",
    "binary",
    "path",
];

/// How the home folder is called where a shell reads it.
const HOMES: [&str; 2] = ["$HOME", "${HOME}"];

/// The texts among `arguments` that may be paths of up to `longest` bytes, in all forms in which their braces may be meant.
pub(crate) fn paths(arguments: &Object, longest: usize) -> Vec<String> {
    let texts = kept_texts(arguments).into_iter().filter(|text| is_path(text, longest));
    let said = paths_in(&PATH_MEMBERS, arguments).into_iter().chain(texts);
    let said = said.filter(|text| !no_paths::is_url(text)).flat_map(|text| told(text, longest));
    said.chain(members(arguments, longest).iter().flat_map(|path| forms(path))).collect()
}

/// All texts of `arguments`, but for those that are put in the place of others in a file which they name.
fn kept_texts(arguments: &Object) -> Vec<&str> {
    let is_placed = arguments.iter().any(|(member, value)| value.is_string() && no_paths::names_edited(&plain(member)));
    let (mut found, mut open) = (Vec::new(), vec![arguments]);
    while let Some(object) = open.pop() {
        for (member, value) in object {
            open.extend(objects(value));
            if !is_placed || !no_paths::is_replaced(&plain(member)) {
                found.extend(texts(value));
            }
        }
    }
    found
}

/// The members of `arguments`, however deep, that are called as paths are, and what stands in them below those: a tool may
/// take them for names of files.
fn members(arguments: &Object, longest: usize) -> Vec<String> {
    let (mut paths, mut open) = (Vec::new(), vec![(String::new(), arguments)]);
    while let Some((above, object)) = open.pop() {
        for (member, value) in object {
            if paths.len() >= MOST_MEMBERS {
                return paths;
            }
            let is_short = above.len() + member.len() < longest;
            let is_below = is_short && !above.is_empty() && !member.starts_with(WHOLE);
            let path = if is_below {
                format!("{above}/{member}")
            } else if is_name_of_file(member) {
                member.clone()
            } else {
                String::new()
            };
            if !path.is_empty() && path.len() <= longest && !path.contains(char::is_control) {
                paths.push(path.clone());
            }
            open.extend(objects(value).into_iter().map(|object| (path.clone(), object)));
        }
    }
    paths
}

fn is_name_of_file(member: &str) -> bool {
    member.starts_with(['.', '~']) || HOMES.contains(&member) || member.contains('/')
}

fn is_path(text: &str, longest: usize) -> bool {
    let is_plain = !text.contains(char::is_whitespace) || ROOTS.iter().any(|root| text.starts_with(root));
    is_plain && text.len() <= longest && !text.contains(char::is_control)
}

/// The paths that `text` may be; a list or an object of JSON is none, but has some in it.
fn told(text: &str, longest: usize) -> Vec<String> {
    match parse(text).ok().filter(|_| text.starts_with(['{', '['])) {
        Some(json) => all_strings(&json).into_iter().filter(|text| is_path(text, longest)).flat_map(forms).collect(),
        None if text.len() > longest => vec![text.to_owned()],
        None => forms(text),
    }
}

/// What `text` stands for, as a path.
fn forms(text: &str) -> Vec<String> {
    let home =
        HOMES.iter().find_map(|home| text.strip_prefix(home)).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let text = home.map_or_else(|| text.to_owned(), |rest| format!("~{rest}"));
    // Braces without a comma stand for themselves.
    let is_whole = |one: &str| braces::has_list(one) || one.contains("${");
    let plain = |one: String| if is_whole(&one) { one } else { one.replace('{', "_") };
    braces::listed(&text).into_iter().map(plain).collect()
}

/// The paths among `arguments` that stand where a tool may say a place, each in all its forms.
pub(crate) fn placed(arguments: &Object, longest: usize) -> Vec<String> {
    let (mut paths, mut open) = (Vec::new(), vec![arguments]);
    while let Some(object) = open.pop() {
        for (member, value) in object {
            open.extend(objects(value));
            if !SAID.contains(&plain(member).as_str()) {
                paths.extend(texts(value).into_iter().flat_map(|text| told(text, longest)));
            }
        }
    }
    paths
}

/// Whether a member of `arguments`, however deep, is called as a file may be: a tool may take its name for one.
pub(crate) fn has_files_as_members(arguments: &Object) -> bool {
    let mut open = vec![arguments];
    while let Some(object) = open.pop() {
        if object.iter().any(|(member, _)| is_name_of_file(member)) {
            return true;
        }
        open.extend(object.iter().flat_map(|(_, value)| objects(value)));
    }
    false
}

/// The texts in `value` that stand in no object of it.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// The texts among `arguments` that may be run, however deep; a program and the words that it is given are one text.
pub(crate) fn run(arguments: &Object) -> Vec<String> {
    let (mut texts, mut open) = (Vec::new(), vec![arguments]);
    while let Some(object) = open.pop() {
        let mut program = None;
        let (mut words, begin): (Vec<&Value>, usize) = (Vec::new(), texts.len());
        let settings = variables(object);
        for (member, value) in object {
            open.extend(objects(value));
            let member = plain(member);
            if RUN_MEMBERS.contains(&member.as_str()) || member == "args" {
                texts.extend(all_strings(value).into_iter().map(str::to_owned));
                let list = strings(value);
                if value.is_array() && !list.is_empty() {
                    texts.extend([script(&list), list.join(" ")]);
                }
            }
            if WORDS.contains(&member.as_str()) {
                words.push(value);
            }
            if PROGRAMS.contains(&member.as_str()) {
                program = program.or(value.as_str());
            }
        }
        if let Some(program) = program {
            // Some tools hand the words to a shell without quotes.
            for words in words {
                let list = strings(words);
                texts
                    .extend([script(&[&[program], list.as_slice()].concat()), format!("{program} {}", list.join(" "))]);
            }
        }
        if !settings.is_empty() {
            let set: Vec<String> = texts[begin..].iter().map(|text| format!("{settings}{text}")).collect();
            texts.extend(set);
        }
    }
    texts
}

/// Whether the tool `native` says of itself, or its `arguments` say, that it takes away whole folders or fills them.
pub(crate) fn takes_folders(native: &str, arguments: &Object) -> bool {
    takes_away(native, arguments) || says(&FILLING, native, arguments)
}

/// The same, where it does not only write.
pub(crate) fn takes_away(native: &str, arguments: &Object) -> bool {
    says(&TAKING, native, arguments)
}

/// Whether the tool `native` says of itself that it reads, and its `arguments` say nothing else.
pub(crate) fn reads_only(native: &str, arguments: &Object) -> bool {
    let words = words_of(native.rsplit("__").next().unwrap_or(native));
    let Some((verb, what)) = words.split_first() else { return false };
    let is_reading = READING.contains(&verb.as_str()) && what.iter().all(|word| WHAT_IS_READ.contains(&word.as_str()));
    is_reading && asks_only(arguments) && run(arguments).is_empty()
}

/// Whether all that `arguments` say, however deep, is what to read: what is not known may say where to write.
fn asks_only(arguments: &Object) -> bool {
    let is_known = arguments.keys().all(|member| ASKED.contains(&plain(member).as_str()));
    is_known && arguments.values().flat_map(objects).all(asks_only)
}

/// Whether the tool `native` or its `arguments` say one of `verbs`.
fn says(verbs: &[&str], native: &str, arguments: &Object) -> bool {
    let is_taking = |name: &str| words_of(name).iter().any(|word| verbs.contains(&word.as_str()));
    // The name of the server says nothing of the tool.
    let tool = native.rsplit("__").next().unwrap_or(native);
    // What a text of the shell does is known by reading it.
    let is_word = |said: &str| !said.contains(char::is_whitespace) && is_taking(said);
    let says = |(member, value): (&String, &Value)| {
        let is_off = value.is_null() || value.as_bool() == Some(false);
        let is_action = ACTIONS.contains(&plain(member).as_str());
        (is_taking(member) && !is_off) || (is_action && value.as_str().is_some_and(is_word))
    };
    is_taking(tool) || arguments.iter().any(says)
}

/// Whether `path` is written as one, and not as a word that may mean anything.
pub(crate) fn is_written_as_path(path: &str) -> bool {
    path.contains('/') || path.starts_with('.') || path == "~"
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    fn of<T>(arguments: &Value, read: impl Fn(&Object) -> T) -> T {
        read(arguments.as_object().unwrap())
    }

    #[test]
    fn braces_are_all_that_they_stand_for_and_json_is_no_path() {
        for (text, forms) in [
            ("a", "a"),
            ("{a,b}", "b a"),
            (".{claude,x}/s.json", ".x/s.json .claude/s.json"),
            ("{a,{b,c}}/d", "a/d a/d b/d c/d"),
            ("{{name}}", "__name}}"),
            ("{a},b}", "a} b"),
            ("a,b}", "a,b}"),
            ("$HOME/.local", "~/.local"),
            ("${HOME}", "~"),
            (r#"{"a":1,"b":[2]}"#, ""),
            ("[1,2]", ""),
            (r#"["/u/a","x"]"#, "/u/a x"),
        ] {
            let mut found = of(&json!({"x": text}), |arguments| paths(arguments, 4096));
            found.sort();
            let mut wanted: Vec<&str> = forms.split(' ').filter(|form| !form.is_empty()).collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn a_program_and_its_words_are_one_text() {
        for (arguments, text) in [
            (json!({"cmd": "pintle", "args": ["guard", "uninstall"]}), "pintle guard uninstall"),
            (json!({"program": "rm", "arguments": "-r x"}), "rm -r x"),
            (json!({"command": ["rm", "-r", "a b"]}), "rm -r 'a b'"),
            (json!({"argv": ["bash", "-c", "rm -r x"]}), "rm -r x"),
            (json!({"steps": [{"executable": "rm", "params": ["x"]}]}), "rm x"),
        ] {
            assert!(of(&arguments, run).contains(&text.to_owned()), "{arguments}");
        }
        assert_eq!(of(&json!({"name": "rm", "query": "args"}), run), [""; 0]);
    }

    #[test]
    fn a_text_is_run_with_the_variables_that_stand_beside_it() {
        for arguments in
            [json!({"command": "x", "env": {"A": "b c"}}), json!({"command": "x", "environment": ["A=b c"]})]
        {
            assert!(of(&arguments, run).contains(&"export A='b c'; x".to_owned()), "{arguments}");
        }
        assert_eq!(of(&json!({"command": "x", "env": {"a b": "c"}}), run), ["x"]);
    }

    #[test]
    fn what_is_said_is_no_place() {
        for (arguments, expected) in [
            (json!({"path": "/", "body": "~"}), "/"),
            (json!({"old_text": "~", "edits": [{"newText": "/", "to": ["~", ["/u"]]}]}), "~ /u"),
            (json!({"content": {"dir": "~"}, "entityNames": ["/"]}), "~"),
        ] {
            assert_eq!(of(&arguments, |arguments| placed(arguments, 4096)).join(" "), expected, "{arguments}");
        }
        assert!(of(&json!({"tree": [{".x": {}}]}), has_files_as_members));
        assert!(!of(&json!({"path": "/", "x": {"body": ".x"}}), has_files_as_members));
    }

    #[test]
    fn members_that_are_called_as_paths_are_paths() {
        for (arguments, expected) in [
            (json!({"files": {".x/s.json": "{}"}}), ".x/s.json"),
            (json!({"tree": [{".x": {"s.json": ""}}]}), ".x/s.json"),
            (json!({"a": {"/u/b": ""}, "~/c": ""}), "/u/b ~/c"),
            (json!({"$HOME/c": ""}), "~/c"),
            (json!({"a": {"b": 1}}), ""),
        ] {
            let mut found = of(&arguments, |arguments| paths(arguments, 4096));
            found.retain(|path| path.contains('/'));
            found.sort();
            assert_eq!(found.join(" "), expected, "{arguments}");
        }
    }

    #[test]
    fn a_tool_says_that_it_only_reads() {
        for (native, arguments, reads) in [
            ("mcp__fs__read_text_file", json!({"path": "x"}), true),
            ("mcp__fs__readMultipleFiles", json!({"paths": ["x"]}), true),
            ("mcp__github__get_file_contents", json!({"path": "x"}), true),
            ("mcp__fs__read_or_write_file", json!({"path": "x"}), false),
            ("mcp__fs__read_file", json!({"path": "x", "content": ""}), false),
            ("mcp__fs__read_file", json!({"path": "x", "mode": "w"}), false),
            ("mcp__fs__get_file", json!({"path": "x", "script": "y"}), false),
            ("mcp__read__write_file", json!({"path": "x"}), false),
            ("mcp__notes__add", json!({}), false),
        ] {
            assert_eq!(of(&arguments, |arguments| reads_only(native, arguments)), reads, "{native} {arguments}");
        }
    }

    #[test]
    fn a_tool_says_that_it_takes_folders() {
        for (native, arguments, takes) in [
            ("mcp__fs__delete", json!({}), true),
            ("mcp__fs__moveFile", json!({}), true),
            ("fs", json!({"action": "delete"}), true),
            ("mcp__delete__list", json!({"path": "x"}), false),
            ("mcp__fs__list_directory", json!({"write": false}), false),
            ("mcp__fs__read", json!({"text": "delete"}), false),
        ] {
            assert_eq!(of(&arguments, |arguments| takes_folders(native, arguments)), takes, "{native} {arguments}");
        }
    }
}
