//! What the arguments of a tool that no host has say beside paths: variables, patches, texts for databases.

use pintle_domain::json::{Object, Value};

use crate::shell_tools::{script, words_of};
use crate::tools::{Holds, all_strings, strings};

/// The members which hold the variables of a program, in small letters without `_` and `-`.
const VARIABLES: [&str; 4] = ["env", "environment", "envs", "envvars"];

/// The members which hold a patch, and the words of a tool that takes one.
const PATCHES: [&str; 7] = ["patch", "patches", "diff", "diffs", "unifieddiff", "input", "changes"];

/// The members which hold a text for a database.
const STATEMENTS: [&str; 5] = ["sql", "query", "statement", "statements", "q"];

/// The words of a tool that looks for texts in files, and those of one that looks for files alone.
const SEARCHING: [&str; 4] = ["search", "grep", "rg", "ripgrep"];
const FOR_FILES: [&str; 6] = ["file", "files", "directory", "directories", "folder", "folders"];

/// The members which hold what a setting is to be.
const VALUES: [&str; 5] = ["value", "newvalue", "settingvalue", "to", "enabled"];

/// The words of a tool that gives texts to a terminal, and how many texts of one call are read.
const TERMINALS: [&str; 9] = ["term", "terminal", "tty", "pty", "shell", "console", "tmux", "bash", "zsh"];
const MAX_TYPED: usize = 64;

/// The member of a tool in which each element of a list is a text.
const TEXTS: &str = "commands";

/// The objects in `value` that stand in no other one.
pub(crate) fn objects(value: &Value) -> Vec<&Object> {
    match value {
        Value::Object(object) => vec![object],
        Value::Array(items) => items.iter().flat_map(objects).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// `member` in small letters, without what parts its words.
pub(crate) fn plain(member: &str) -> String {
    member.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// A text of the shell that sets the variables which `object` says for a program.
pub(crate) fn variables(object: &Object) -> String {
    let told = object.iter().filter(|(member, _)| VARIABLES.contains(&plain(member).as_str()));
    let pairs = told.flat_map(|(_, value)| {
        let listed = strings(value).into_iter().filter_map(|text| text.split_once('='));
        let named = objects(value).into_iter().flat_map(|object| object.iter());
        let named = named.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        listed.chain(named).collect::<Vec<(&str, &str)>>()
    });
    let is_name = |name: &str| name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric());
    let pairs = pairs.filter(|(name, _)| !name.is_empty() && is_name(name));
    pairs.map(|(name, value)| format!("export {name}='{}'; ", value.replace('\'', r"'\''"))).collect()
}

/// The texts among `arguments` of the tool `native` that may be patches.
pub(crate) fn patches<'a>(native: &str, arguments: &'a Object) -> Vec<&'a str> {
    let takes = words_of(native).iter().any(|word| PATCHES[..4].contains(&word.as_str()));
    let held = arguments.iter().filter(|(member, _)| takes || PATCHES.contains(&plain(member).as_str()));
    let texts = held.flat_map(|(_, value)| all_strings(value));
    texts.filter(|text| ["--- ", "+++ ", "*** ", "diff --git "].iter().any(|head| text.contains(head))).collect()
}

/// The texts among `arguments` that a database may be told.
pub(crate) fn statements(arguments: &Object) -> Vec<&str> {
    let held = arguments.iter().filter(|(member, _)| STATEMENTS.contains(&plain(member).as_str()));
    held.flat_map(|(_, value)| all_strings(value)).collect()
}

/// The texts that lists of words among `arguments` are together, as `holds` says where they stand; each is looked at by itself,
/// too, since it may be a text.
pub(crate) fn joined(holds: &[Holds], arguments: &Object) -> Vec<String> {
    let members = holds.iter().filter_map(|holds| match holds {
        Holds::Shell(member) => Some(*member),
        Holds::Path(_) | Holds::Patch(_) => None,
    });
    let lists = members.filter(|member| *member != TEXTS).filter_map(|member| arguments.get(member)).map(strings);
    lists.filter(|words| words.len() > 1).flat_map(|words| [script(&words), words.join(" ")]).collect()
}

/// Which of `names` `arguments` set, as a member or by its name beside a value.
pub(crate) fn set_in<'n>(arguments: &Object, names: &[&'n str]) -> Option<&'n str> {
    let is_on = |value: &Value| value.as_bool() != Some(false) && value.as_str() != Some("false");
    let is_named = |text: &str, name: &str| text.rsplit(['.', '/']).next().is_some_and(|last| last == name);
    let mut open = vec![arguments];
    while let Some(object) = open.pop() {
        open.extend(object.iter().flat_map(|(_, value)| objects(value)));
        let has_value = object.iter().any(|(member, value)| VALUES.contains(&plain(member).as_str()) && is_on(value));
        let sets = |name: &str, (member, value): (&String, &Value)| {
            let is_told = || strings(value).into_iter().any(|text| is_named(text, name));
            (is_named(member, name) && is_on(value)) || (has_value && is_told())
        };
        let found = names.iter().copied().find(|name| object.iter().any(|entry| sets(name, entry)));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The texts among `arguments` that the tool `native` may give to a shell in a terminal.
pub(crate) fn typed<'a>(native: &str, arguments: &'a Object) -> Vec<&'a str> {
    let is_terminal = words_of(native).iter().any(|word| TERMINALS.contains(&word.as_str()));
    let texts = arguments.iter().filter(|_| is_terminal).flat_map(|(_, value)| all_strings(value));
    texts.filter(|text| text.contains(char::is_whitespace)).take(MAX_TYPED).collect()
}

/// Whether the tool `native` says of itself that it looks for texts in files.
pub(crate) fn searches(native: &str) -> bool {
    let words = words_of(native.rsplit("__").next().unwrap_or(native));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    has(&SEARCHING) && !has(&FOR_FILES)
}
