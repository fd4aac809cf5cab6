//! Variables that a text sets, and which of them load other code into agents or into what runs their hooks. Pure.

/// What sets the variable that is named behind it, with options between.
const SETS: [&str; 5] = ["import-environment", "set", "set-environment", "setenv", "setx"];

/// Variables by which code is loaded into every program, or into every shell that runs a hook.
const LOADING: [&str; 4] = ["LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV"];

/// Variables, and a setting of npm, that hold options for the programs which run agents.
const WITH_OPTIONS: [&str; 3] = ["NODE_OPTIONS", "BUN_OPTIONS", "node-options"];

/// Those of the options that load code.
const LOADS: [&str; 8] = [
    "--experimental-config-file",
    "--experimental-default-config-file",
    "--experimental-loader",
    "--import",
    "--loader",
    "--preload",
    "--require",
    "-r",
];

/// Whether `text` sets the variable `name`.
pub(crate) fn sets(text: &str, name: &str) -> bool {
    if !text.contains(name) {
        return false;
    }
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches(['"', '\'', ';', '('])).collect();
    let is_set = |at: usize| {
        let before = words[..at].iter().rfind(|word| !word.starts_with('-'));
        words[at] == name && before.is_some_and(|word| SETS.contains(word))
    };
    (0..words.len()).any(is_set)
        || words.windows(2).any(|pair| matches!(pair[0], "for" | "select") && pair[1] == name)
        || text.match_indices(name).any(|(at, _)| {
            let is_whole = !text[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
            let behind = &text[at + name.len()..];
            is_whole && behind.strip_prefix('+').unwrap_or(behind).starts_with('=')
        })
}

/// The variable that `text` sets to options with which code is loaded into agents.
pub(crate) fn loaded_in(text: &str) -> Option<&'static str> {
    let is_loading = |name: &str| {
        sets(text, name) && text.match_indices(name).any(|(at, _)| loads(&value(&text[..at], &text[at + name.len()..])))
    };
    WITH_OPTIONS.into_iter().find(|name| is_loading(name))
}

/// Why `text` must not be kept for programs that begin later: it sets what loads code into agents or the shells of their hooks.
pub(crate) fn kept_in(text: &str) -> Option<String> {
    let name = LOADING.into_iter().find(|name| sets(text, name)).or_else(|| loaded_in(text))?;
    Some(format!("`{name}` would load other code into the agents that begin later, or into the shells of their hooks"))
}

/// The value of a variable whose name `before` ends before and `rest` follows, without quotes.
fn value(before: &str, rest: &str) -> String {
    let rest = rest.trim_start_matches('+').replace("\\\"", "\"").replace("\\'", "'");
    let rest = rest.strip_prefix('=').unwrap_or_else(|| rest.trim_start());
    let mut quote = before.chars().last().filter(|letter| matches!(letter, '"' | '\''));
    let (mut value, mut letters) = (String::new(), rest.chars());
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => value.extend(letters.next()),
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            (letter, None) if letter.is_whitespace() || matches!(letter, ';' | '&' | '|') => break,
            (letter, _) => value.push(letter),
        }
    }
    value
}

/// Whether the options `value` load code.
fn loads(value: &str) -> bool {
    let mut words = value.split(|letter: char| letter.is_whitespace() || letter == '=');
    words.any(|word| LOADS.contains(&word) || word.starts_with("-r"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_under_its_whole_name() {
        for (text, set) in [
            ("HOME=/x claude", true),
            ("export HOME=/x; claude", true),
            ("env 'HOME=/x' claude", true),
            ("for HOME in /x; do claude; done", true),
            ("for  HOME in /x; do claude; done", true),
            ("HOME+=/x claude", true),
            ("MY_HOME=/x claude", false),
            ("set -gx HOME /x; claude", true),
            ("fish -c 'set -Ux HOME /x'", true),
            ("tmux setenv -g HOME /x", true),
            ("unset HOME", false),
            ("echo $HOME && claude", false),
        ] {
            assert_eq!(sets(text, "HOME"), set, "{text}");
        }
    }

    #[test]
    fn options_load_code_by_their_names_alone() {
        for (text, name) in [
            ("NODE_OPTIONS=--require=x y", Some("NODE_OPTIONS")),
            ("export NODE_OPTIONS=\"--max-old-space-size=1 --import x\"", Some("NODE_OPTIONS")),
            ("export NODE_OPTIONS=\"--a\"' --require x'", Some("NODE_OPTIONS")),
            ("export NODE_OPTIONS=--a\\ --require\\ x", Some("NODE_OPTIONS")),
            ("echo \"export NODE_OPTIONS=\\\"--a --require x\\\"\" >> y", Some("NODE_OPTIONS")),
            ("env \"NODE_OPTIONS=--a --require x\" y", Some("NODE_OPTIONS")),
            ("NODE_OPTIONS=-r./x y", Some("NODE_OPTIONS")),
            ("set -Ux BUN_OPTIONS --preload=x", Some("BUN_OPTIONS")),
            ("node-options=--require=x", Some("node-options")),
            ("NODE_OPTIONS=--max-old-space-size=4096 y -r z", None),
            ("export NODE_OPTIONS=\"$NODE_OPTIONS --no-warnings\"", None),
            ("echo $NODE_OPTIONS --require", None),
        ] {
            assert_eq!(loaded_in(text), name, "{text}");
        }
    }

    #[test]
    fn what_loads_code_is_not_kept() {
        for (text, is_kept) in [
            ("export LD_PRELOAD=x", false),
            ("export BASH_ENV=x", false),
            ("Environment=LD_AUDIT=x", false),
            ("export NODE_OPTIONS=--require=x", false),
            ("export NODE_OPTIONS=--max-old-space-size=1", true),
            ("export PYTHONSTARTUP=x", true),
            ("unset LD_PRELOAD", true),
        ] {
            assert_eq!(kept_in(text).is_none(), is_kept, "{text}");
        }
    }
}
