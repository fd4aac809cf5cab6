//! Commands that hints print: whole, so that each does what it says as it is pasted in the same folder.

use std::path::PathBuf;
use std::sync::OnceLock;

pub(super) use pintle_domain::shell_word::shell_word as word;

use super::Global;

/// The flags that lead another command to the same configuration and state, and those to the state alone.
static FLAGS: OnceLock<(String, String)> = OnceLock::new();

/// Commands that take no configuration: they write one, accept one or print what is always the same.
const WITHOUT_CONFIGURATION: [&str; 5] = ["init", "trust", "schema", "completions", "version"];

/// Longest word that is repeated, in characters: a message of many lines would hide what the hint says.
const MAX_WORD: usize = 300;

/// Keeps the flags that this program was called with.
pub(super) fn keep(global: &Global) {
    let state = flags(&Global { config: None, ..global.clone() });
    // A test that runs several commands in one process keeps those of the first.
    FLAGS.get_or_init(|| (flags(global), state));
}

/// `text`, whose commands in backquotes lead to the configuration and the state that this command was called with.
pub(super) fn complete(text: &str) -> String {
    match FLAGS.get() {
        Some((all, state)) if !all.is_empty() => with_flags(text, all, state),
        Some(_) | None => text.to_owned(),
    }
}

fn with_flags(text: &str, all: &str, state: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut parts = text.split('`').peekable();
    let mut number = 0;
    while let Some(part) = parts.next() {
        let is_quoted = number % 2 == 1 && parts.peek().is_some();
        shown.push_str(part);
        if let Some(command) = part.strip_prefix("pintle ").filter(|_| is_quoted) {
            let first = command.split(' ').next().unwrap_or_default();
            let flags = match first {
                // It has a configuration and a state of its own.
                "demo" => "",
                first if WITHOUT_CONFIGURATION.contains(&first) => state,
                _ => all,
            };
            let is_there = |flag: &str| command.split(' ').any(|word| word == flag);
            if !is_there("-c") && !is_there("--config") && !is_there("--home") {
                shown.push_str(flags);
            }
        }
        if parts.peek().is_some() {
            shown.push('`');
        }
        number += 1;
    }
    shown
}

/// A flag of a command, with its value if it takes one.
type Flag<'a> = (&'a str, Option<&'a str>);

/// This very command once more with `flags`, each in the place of the one that it has.
pub(super) fn again(flags: &[Flag<'_>]) -> String {
    let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    with(given, flags)
}

fn with(mut given: impl Iterator<Item = String>, flags: &[Flag<'_>]) -> String {
    let mut words = vec!["pintle".to_owned()];
    while let Some(one) = given.next() {
        let name = one.split('=').next().unwrap_or_default();
        match flags.iter().find(|(flag, _)| name == *flag || (*flag == "-c" && name == "--config")) {
            Some((_, Some(_))) if name == one => drop(given.next()),
            Some(_) => {}
            None if one.chars().count() > MAX_WORD => words.push("…".to_owned()),
            None => words.push(word(&one)),
        }
    }
    for (flag, value) in flags {
        words.push((*flag).to_owned());
        words.extend(value.map(word));
    }
    words.join(" ")
}

/// The flags that lead another command to the same configuration and state.
pub(super) fn flags(global: &Global) -> String {
    let flag = |name: &str, path: &Option<PathBuf>| {
        path.as_ref().map(|path| format!(" {name} {}", word(&path.display().to_string()))).unwrap_or_default()
    };
    flag("-c", &global.config) + &flag("--home", &global.home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_hints_have_the_flags_that_were_given() {
        for (text, expected) in [
            ("see `pintle doctor`, not `x`", "see `pintle doctor -c p --home h`, not `x`"),
            ("`pintle trust` shows it", "`pintle trust --home h` shows it"),
            ("`pintle demo` needs none of these", "`pintle demo` needs none of these"),
            ("go on with `pintle why x -c q`", "go on with `pintle why x -c q`"),
            ("`pintle", "`pintle"),
            ("pintle why", "pintle why"),
        ] {
            assert_eq!(with_flags(text, " -c p --home h", " --home h"), expected, "{text}");
        }
    }

    #[test]
    fn a_command_is_repeated_with_another_value() {
        let given = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
        for (line, flag, value, expected) in [
            ("hooks history x --limit 2", "--cursor", Some("c"), "pintle hooks history x --limit 2 --cursor c"),
            ("sessions list --after a", "--after", Some("b c"), "pintle sessions list --after 'b c'"),
            ("-c old run hi", "-c", Some("new"), "pintle run hi -c new"),
            ("--config=old run hi", "-c", Some("new"), "pintle run hi -c new"),
            ("run hi", "--agent-changed", None, "pintle run hi --agent-changed"),
        ] {
            assert_eq!(with(given(line), &[(flag, value)]), expected);
        }
        let both = with(given("hooks history --since 1h"), &[("--since", Some("2026-11-22")), ("--cursor", Some("c"))]);
        assert_eq!(both, "pintle hooks history --since 2026-11-22 --cursor c");
    }
}
