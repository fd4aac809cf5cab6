//! What is known of programs, as data.

mod places;
mod table;
mod variables;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use places::{is_secret_variable, places};
pub(crate) use table::{
    Archives, Builds, Builtin, Carries, Fetches, Finds, Language, Prints, Program, Role, Streams, Wrap,
};
pub(crate) use variables::{Influence, influence, is_plain_setting};

static BY_NAME: LazyLock<HashMap<&'static str, &'static Program>> = LazyLock::new(|| {
    let mut by_name = HashMap::new();
    for program in table::PROGRAMS {
        for name in program.names.split_whitespace() {
            let before = by_name.insert(name, program);
            debug_assert!(before.is_none(), "`{name}` stands twice in the table");
        }
    }
    by_name
});

/// What is known of the program `name`.
pub(crate) fn find(name: &str) -> Option<&'static Program> {
    if let Some(program) = BY_NAME.get(name) {
        return Some(program);
    }
    // `python3.12`, `perl5.36`, `ruby3.2`: versions do not change what they are.
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    let versioned = BY_NAME.get(bare).filter(|program| matches!(program.role, Role::Language(_) | Role::Shell));
    versioned.copied()
}

/// Programs that end, delete or run something, by names that hardly stand for anything else.
const GRAVE: &[&str] = &[
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "dd",
    "wipefs",
    "blkdiscard",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "eval",
    "pkill",
    "killall",
    "reboot",
    "poweroff",
    "halt",
    "mkfs",
    "fdisk",
    "parted",
    "sudo",
    "busybox",
    "curl",
    "wget",
    "truncate",
    "chmod",
    "chown",
    "mv",
    "tee",
    "env",
    "printenv",
    "xargs",
    "kill",
    "shutdown",
    "cat",
    "git",
];

/// Whether `name` is a program that matters when something unheard-of is to run it.
pub(crate) fn is_grave(name: &str) -> bool {
    GRAVE.contains(&name) || name.starts_with("mkfs.")
}

/// Whether `word` sets variables in its arguments, as assignments do.
pub(crate) fn declares(word: &str) -> bool {
    declares_everywhere(word) || matches!(word, "declare" | "typeset")
}

/// Whether it does so in every shell.
pub(crate) fn declares_everywhere(word: &str) -> bool {
    matches!(word, "export" | "local" | "readonly")
}

/// Commands of the shell itself that only bash has; elsewhere they are programs, which hardly anybody installs.
const OF_BASH: &[&str] = &[
    "bind",
    "builtin",
    "caller",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "dirs",
    "disown",
    "enable",
    "fc",
    "help",
    "history",
    "let",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "readarray",
    "shopt",
    "source",
    "suspend",
    "typeset",
];

/// Whether `name` is a command of bash, and of no other shell.
pub(crate) fn is_of_bash(name: &str) -> bool {
    OF_BASH.contains(&name)
}
