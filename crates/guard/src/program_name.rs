//! What programs are called in texts that are not read as those of a shell are, or by a pattern.

use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::path_pattern::{is_loose, pattern_means};

/// Programs that give a file another name.
const COPIES: [&str; 8] = ["cat", "cp", "dd", "install", "link", "ln", "mv", "rsync"];

/// Programs that start another one, which stands among their words: terminals, sessions that go on without one, and what
/// stands in for the first process.
pub(crate) const STARTERS: &[&str] = &[
    "abduco",
    "alacritty",
    "asciinema",
    "catatonit",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "dtach",
    "dumb-init",
    "foot",
    "footclient",
    "ghostty",
    "gnome-terminal",
    "gotty",
    "guake",
    "kgx",
    "kitty",
    "konsole",
    "lxterminal",
    "mate-terminal",
    "open",
    "openvt",
    "ptyxis",
    "reptyr",
    "rxvt",
    "screen",
    "script",
    "socat",
    "start-stop-daemon",
    "st",
    "terminator",
    "tilix",
    "tini",
    "tmux",
    "ttyd",
    "unbuffer",
    "urxvt",
    "wezterm",
    "x-terminal-emulator",
    "xfce4-terminal",
    "xterm",
    "xvfb-run",
    "zellij",
];

/// What stands in a word of which something is not known.
pub(crate) const UNKNOWN: [char; 3] = ['$', '`', '…'];

/// Programs that look for texts, in many folders as a rule.
pub(crate) const SEARCHES: [&str; 8] = ["grep", "egrep", "fgrep", "ggrep", "rg", "ag", "ack", "ugrep"];

/// What stands in a word for the output of a command that is not known.
const OUTPUT: &str = "$(";

/// Whether the file `name`, which may be a pattern of the shell, may be the program `program`. A pattern that stands for any
/// name does not count.
pub(crate) fn may_be(name: &str, program: &str) -> bool {
    let is_pattern = || name.contains(['*', '?', '[']) && !name.contains(['$', '`']) && !is_loose(name);
    name == program || (is_pattern() && pattern_means(name, program))
}

/// What in `text` may be a word of a command, whatever language that is of.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let ends = |letter: char| letter.is_whitespace() || "'\"`\\;|&(){}[],<>".contains(letter);
    text.split(ends).filter(|piece| !piece.is_empty())
}

/// The names under which a text, of which `facts` tell, may put copies of a program, or links to it: one of which `is_it`
/// says so.
pub(crate) fn copies(facts: &ShellFacts, is_it: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let says = |command: &ShellCommand| command.argv.iter().any(|word| is_it(word));
    // What a command printed that names it may be where it lies.
    let may_be_it = |word: &String| is_it(word) || (word.contains(OUTPUT) && facts.commands.iter().any(says));
    let copies =
        |command: &&ShellCommand| COPIES.contains(&command.name.as_str()) && command.argv.iter().skip(1).any(may_be_it);
    let mut copying = facts.commands.iter().filter(copies).peekable();
    if copying.peek().is_none() {
        return BTreeSet::new();
    }
    let paths = copying.flat_map(|command| command.argv.iter().skip(1)).chain(&facts.writes);
    let names = paths.filter(|path| !path.starts_with('-')).filter_map(|path| path.rsplit('/').next());
    names.filter(|name| !matches!(*name, "" | "." | "..")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn what_is_copied_or_linked_has_another_name() {
        for (texts, expected) in [
            (&["ln -s /usr/bin/claude /tmp/x"][..], "claude x"),
            (&["which claude", "cp $(…) /tmp/x"], "$(…) x"),
            (&["which y", "cp $(…) /tmp/x"], ""),
            (&["cp -r claude ."], "claude"),
            (&["cp a b", "claude"], ""),
            (&["claude a b"], ""),
        ] {
            let facts = ShellFacts { commands: commands(texts), ..ShellFacts::default() };
            let found = copies(&facts, |word| word.rsplit('/').next() == Some("claude"));
            assert_eq!(Vec::from_iter(found).join(" "), expected, "{texts:?}");
        }
    }

    #[test]
    fn a_pattern_is_each_program_that_it_may_stand_for() {
        for (name, is_it) in [
            ("pintle", true),
            ("pintl[e]", true),
            ("p*e", true),
            ("?intle", true),
            ("*", false),
            ("[", false),
            ("*.sh", false),
            ("$PROGRAM", false),
            ("pintle-hook", false),
        ] {
            assert_eq!(may_be(name, "pintle"), is_it, "{name}");
        }
    }

    #[test]
    fn words_are_found_in_any_language() {
        for text in ["spawn pintle guard", "run([\"pintle\", 'guard'])", "(pintle\\guard);"] {
            let found: Vec<&str> = pieces(text).filter(|piece| !["spawn", "run"].contains(piece)).collect();
            assert_eq!(found, ["pintle", "guard"], "{text}");
        }
    }
}
