//! Tools of clients that run a text of the shell, whatever they and their arguments are called: rules know each of them as
//! `exec` with a `command`.

use pintle_domain::json::{Object, Value};

use crate::shell_text::joined;
use crate::wire::mcp_name;

/// The tool as which rules know a shell.
pub(crate) const EXEC: &str = "exec";

/// The member of arguments in which rules find the text of a shell.
pub(crate) const COMMAND: &str = "command";

/// Tools that are a shell whatever their arguments are. Source: the tools that Codex tells its model of.
const NAMES: [&str; 5] = ["exec_command", "shell", "shell_command", "local_shell", "container.exec"];

/// The words in the name of a tool of which one says that it is a shell, if it has a command, too.
const WORDS: [&str; 13] = [
    "exec",
    "shell",
    "bash",
    "zsh",
    "sh",
    "powershell",
    "pwsh",
    "terminal",
    "console",
    "cmd",
    "command",
    "commands",
    "stdin",
];

/// The members of arguments in which such tools take their text, or what is typed into a shell that is open.
const MEMBERS: [&str; 9] =
    [COMMAND, "cmd", "script", "cmdline", "command_line", "commandLine", "shell_command", "chars", TYPED];

/// The member in which free texts stand. That of the tool [`EXEC`] is a script of another language.
pub(crate) const TYPED: &str = "input";

/// The members of arguments that say in which folder a text runs.
const FOLDERS: [&str; 6] = ["workdir", "cwd", "working_directory", "workingDirectory", "directory", "dir_path"];

/// Programs that take a text to run behind an option.
const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "powershell", "pwsh"];

/// How a member of arguments has its text.
enum Taken {
    /// It is the text.
    Text,
    /// It is a list of words for a shell, and this one is the text.
    Script(usize),
    /// It is a list of words that no shell reads.
    Words,
}

/// A text of the shell, and where it stands.
struct ShellPlace<'a> {
    member: &'a str,
    value: &'a Value,
    taken: Taken,
    text: String,
}

impl ShellPlace<'_> {
    /// What stands there where the text is `text`.
    fn told(&self, text: &str) -> Value {
        match (&self.taken, self.value) {
            (Taken::Script(at), Value::Array(words)) => {
                let mut words = words.clone();
                words[*at] = Value::from(text);
                Value::Array(words)
            }
            (Taken::Words, _) => Value::Array(["sh", "-c", text].map(Value::from).to_vec()),
            (Taken::Text | Taken::Script(_), _) => Value::from(text),
        }
    }
}

/// The call of `native` with `arguments` as rules know it, the tool and its arguments; none where it is no shell.
pub fn known_as(native: &str, arguments: &Object) -> Option<(String, Object)> {
    let places = places(native, arguments);
    if places.is_empty() {
        return None;
    }
    let texts: Vec<&str> = places.iter().map(|place| place.text.as_str()).collect();
    let mut known = Object::new();
    for (name, value) in arguments {
        match places.iter().position(|place| place.member == name) {
            Some(0) => drop(known.insert(COMMAND.to_owned(), Value::from(texts.join("\n")))),
            Some(_) => {}
            // What cannot be read hides no text.
            None if name == COMMAND => {}
            None => drop(known.insert(name.clone(), value.clone())),
        }
    }
    Some((EXEC.to_owned(), known))
}

/// The arguments with which `native`, which was called with `arguments`, runs what hooks made of them; none where that
/// cannot be said.
pub fn told_as(native: &str, arguments: &Object, changed: Object) -> Option<Object> {
    let places = places(native, arguments);
    let place = match places.as_slice() {
        [] => return Some(changed),
        [place] => place,
        _ => return None,
    };
    let told = place.told(changed.get(COMMAND)?.as_str()?);
    let mut arguments = Object::new();
    for (name, value) in changed {
        if name == COMMAND {
            arguments.insert(place.member.to_owned(), told.clone());
        } else {
            arguments.insert(name, value);
        }
    }
    Some(arguments)
}

/// Whether `native` is a shell, whatever its arguments are.
pub(crate) fn is_named(native: &str) -> bool {
    NAMES.contains(&native)
}

/// Whether the name of `native` says that it is a shell, if it has a command.
pub(crate) fn is_like_shell(native: &str) -> bool {
    mcp_name(native).is_none() && words_of(native).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// The folder in which a text runs, as `arguments` say it.
pub(crate) fn folder_in(arguments: &Object) -> Option<&str> {
    FOLDERS.iter().find_map(|name| arguments.get(name)?.as_str()).filter(|folder| !folder.is_empty())
}

/// One text of the shell that does what a program does with these words: behind `bash -lc`, the text itself.
pub(crate) fn script(words: &[&str]) -> String {
    match script_at(words) {
        Some(at) => words[at].to_owned(),
        None => joined(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
    }
}

/// The words of a name, in small letters: `PowerShell` has two.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let (mut words, mut is_small) = (vec![String::new()], false);
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && is_small) {
            words.push(String::new());
        }
        is_small = letter.is_lowercase();
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn places<'a>(native: &str, arguments: &'a Object) -> Vec<ShellPlace<'a>> {
    if !is_like_shell(native) {
        return Vec::new();
    }
    let members = MEMBERS.into_iter().filter(|member| native != EXEC || *member != TYPED);
    members.filter_map(|member| place(member, arguments.get(member)?)).collect()
}

fn place<'a>(member: &'a str, value: &'a Value) -> Option<ShellPlace<'a>> {
    match value {
        // A key that is pressed, or nothing, is no text.
        Value::String(text) if text.chars().all(|letter| letter.is_whitespace() || letter.is_control()) => None,
        Value::String(text) => Some(ShellPlace { member, value, taken: Taken::Text, text: text.clone() }),
        Value::Array(items) => {
            let words: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
            let taken = script_at(&words).map_or(Taken::Words, Taken::Script);
            (!words.is_empty()).then(|| ShellPlace { member, value, taken, text: script(&words) })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Which of `words` is the text that the shell runs which they start; none where they start something else.
fn script_at(words: &[&str]) -> Option<usize> {
    let (program, rest) = words.split_first()?;
    let (_, options) = rest.split_last()?;
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let is_option = |word: &&str| word.starts_with('-') && !word.starts_with("--");
    let takes_text = |word: &&str| word.eq_ignore_ascii_case("-command") || (word.len() <= 4 && word.ends_with('c'));
    let is_shell = SHELLS.contains(&program.strip_suffix(".exe").unwrap_or(&program));
    let is_text = options.last().is_some_and(takes_text) && options.iter().all(is_option);
    (is_shell && is_text).then(|| words.len() - 1)
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(members) = value else { panic!("expected an object, got {value}") };
        members
    }

    #[test]
    fn every_shell_is_exec_with_a_command() {
        for (native, arguments, command) in [
            ("exec_command", json!({"cmd": "git push --force"}), Some("git push --force")),
            ("shell", json!({"command": "git push --force"}), Some("git push --force")),
            ("shell_command", json!({"command": "ls", "workdir": "/w"}), Some("ls")),
            ("shell", json!({"command": ["bash", "-lc", "git push --force"]}), Some("git push --force")),
            ("local_shell", json!({"command": ["/bin/sh", "-c", "a b"]}), Some("a b")),
            ("shell", json!({"command": ["powershell.exe", "-Command", "dir"]}), Some("dir")),
            ("Bash", json!({"command": ["git", "push", "--force"]}), Some("git push --force")),
            ("Bash", json!({"command": ["echo", "a b"]}), Some("echo 'a b'")),
            ("shell", json!({"command": ["bash", "-lc", "a", "b"]}), Some("bash -lc a b")),
            ("write_stdin", json!({"session_id": 1, "chars": "git push --force\n"}), Some("git push --force\n")),
            ("write_stdin", json!({"session_id": 1, "chars": "\u{3}"}), None),
            ("exec_command", json!({"command": "ls", "cmd": "rm -r x"}), Some("ls\nrm -r x")),
            ("exec_command", json!({"command": 7, "cmd": "rm -r x"}), Some("rm -r x")),
            ("shell", json!({"input": "git push"}), Some("git push")),
            ("exec", json!({"input": "await tools.x()"}), None),
            ("runShellCommand", json!({"command": "ls"}), Some("ls")),
            ("shell", json!({"command": ["ls", 7]}), None),
            ("lookup_order", json!({"command": "x"}), None),
            ("mcp__box__exec", json!({"command": "x"}), None),
            ("str_replace_based_edit_tool", json!({"command": "create", "path": "x"}), None),
        ] {
            let known = known_as(native, &object(arguments.clone()));
            let said = known.as_ref().and_then(|(_, known)| known.get(COMMAND)?.as_str());
            assert_eq!(said, command, "{native} {arguments}");
            assert!(known.is_none_or(|(tool, _)| tool == EXEC));
        }
    }

    #[test]
    fn what_a_hook_changed_is_told_as_the_tool_takes_it() {
        for (native, arguments, told) in [
            ("exec_command", json!({"cmd": "a", "yield": 1}), Some(json!({"cmd": "new one", "yield": 1}))),
            ("shell", json!({"command": ["bash", "-lc", "a"]}), Some(json!({"command": ["bash", "-lc", "new one"]}))),
            ("shell", json!({"command": ["a", "b"]}), Some(json!({"command": ["sh", "-c", "new one"]}))),
            ("Bash", json!({"command": "a"}), Some(json!({"command": "new one"}))),
            ("exec_command", json!({"cmd": "a", "command": "b"}), None),
        ] {
            let arguments = object(arguments);
            let (_, mut changed) = known_as(native, &arguments).unwrap();
            changed.insert(COMMAND.to_owned(), Value::from("new one"));
            assert_eq!(told_as(native, &arguments, changed), told.map(object), "{native}");
        }
        let same = object(json!({"order": 1}));
        assert_eq!(told_as("lookup", &same, same.clone()), Some(same.clone()));
        let shell = object(json!({"cmd": "a"}));
        assert_eq!(told_as("exec_command", &shell, same), None, "no text is left");
    }
}
