//! What is known of a shell text as a whole. Pure.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::filled::is_harmless;
use crate::runners::is_shell_with_text;

/// Programs that change, show or take away what is there, under the name that it has, and make nothing: no file, no folder,
/// no link.
const MAKES_NOTHING: [&str; 48] = [
    "shopt",
    "read",
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "sed",
    "gsed",
    "chmod",
    "chown",
    "chgrp",
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "find",
    "fd",
    "fdfind",
    "xargs",
    "echo",
    "printf",
    "cd",
    "pwd",
    "test",
    "[",
    "true",
    "false",
    "prettier",
    "eslint",
    "stylelint",
    "black",
    "isort",
    "ruff",
    "rustfmt",
    "gofmt",
    "clang-format",
    "npx",
    "time",
    "timeout",
    "nice",
    "nohup",
    "dos2unix",
    "unix2dos",
];

/// Programs that make plain files, or what a project says.
const MAKES_NO_LINKS: [&str; 9] = ["tee", "truncate", "npm", "pnpm", "yarn", "make", "cargo", "go", "pytest"];

/// Letters of options with which `cp` and `install` copy files alone, and no links.
const OF_PLAIN_COPIES: &str = "fimnoptuv";

/// How the options begin that let patterns stand for hidden names, too, or for other ones.
const OF_PATTERNS: &str = "glob";

/// Whether the program `name` makes nothing.
pub(super) fn makes_nothing(name: &str) -> bool {
    MAKES_NOTHING.contains(&name)
}

/// What stands before the ending of what a search finds below a folder.
const FOUND: &str = "/**/*";

/// Programs that change what they are told and say no names of files, beside those that say names.
const SAYS_NO_NAMES: [&str; 21] = [
    "xargs",
    "cd",
    "sed",
    "gsed",
    "rm",
    "chmod",
    "chown",
    "prettier",
    "eslint",
    "stylelint",
    "black",
    "isort",
    "ruff",
    "rustfmt",
    "gofmt",
    "clang-format",
    "npx",
    "time",
    "timeout",
    "dos2unix",
    "unix2dos",
];

/// The variable in which a text gives `rg` options.
const OPTIONS_OF_RG: &str = "RIPGREP_CONFIG";

/// Redirections that make no file.
const TO_NOTHING: [&str; 6] = ["2>/dev/null", "2> /dev/null", "&>/dev/null", ">/dev/null", "> /dev/null", "2>&1"];

/// A shell text, by what is known of it.
pub(super) struct ToldText<'t> {
    text: &'t str,
    pub(super) facts: &'t ShellFacts,
    /// Whether the text makes nothing, so that its patterns stand for what was there before.
    pub(super) makes_nothing: bool,
    /// Whether the text does no more than move or pack what it finds, so that what it finds is what was there before.
    pub(super) moves_found: bool,
    /// Whether the text makes no link, so that its patterns lead where they led before.
    pub(super) makes_no_links: bool,
    /// Whether all names that the text finds are those of a search which passes by hidden files and folders.
    pub(super) skips_hidden: bool,
}

impl<'t> ToldText<'t> {
    /// `text`, of which `facts` tell.
    pub(super) fn of(text: &'t str, facts: &'t ShellFacts) -> Self {
        let is_safe = |command: &ShellCommand| {
            let is_known = match command.name.as_str() {
                "git" => is_harmless(command, facts) && is_by_ending(command),
                name => makes_nothing(name) || is_shell_with_text(command),
            };
            is_known && !makes_file(command)
        };
        let plain = TO_NOTHING.iter().fold(text.to_owned(), |plain, sign| plain.replace(*sign, " "));
        let makes_nothing = !facts.unknown && !plain.contains('>') && facts.commands.iter().all(is_safe);
        let moves_found = !facts.unknown && !plain.contains('>') && facts.commands.iter().all(moves_found);
        let makes_no_links = !facts.unknown
            && !text.contains(OF_PATTERNS)
            && facts.commands.iter().all(|command| makes_no_links(command, facts));
        let skips_hidden = !text.contains("**")
            && !text.contains(OPTIONS_OF_RG)
            && facts.commands.iter().any(skips_hidden)
            && facts.commands.iter().all(|one| skips_hidden(one) || SAYS_NO_NAMES.contains(&one.name.as_str()));
        Self { text, facts, makes_nothing, moves_found, makes_no_links, skips_hidden }
    }

    /// Whether the text is a search that takes away empty folders and nothing else.
    pub(super) fn takes_empty_folders(&self) -> bool {
        self.takes_empty() == Some(true)
    }

    /// Whether the text is a search that takes away empty files, maybe with empty folders, and nothing else.
    pub(super) fn takes_empty_files(&self) -> bool {
        self.takes_empty() == Some(false)
    }

    /// Whether the text takes away empty folders alone; none where it takes something else.
    fn takes_empty(&self) -> Option<bool> {
        match self.facts.commands.as_slice() {
            [find] if find.name == "find" => takes_empty(find),
            _ => None,
        }
    }

    /// The endings that what a search finds has, and gets where the text moves it and does nothing else.
    pub(super) fn endings(&self) -> Option<(&'t str, &'t str)> {
        // Stars of the text itself stand for other files.
        if !self.moves_found || self.text.contains("**") {
            return None;
        }
        let facts = self.facts;
        let called = move |name: &'static str| facts.commands.iter().filter(move |command| command.name == name);
        let (mut finds, mut moves) = (called("find"), called("mv"));
        let (_, moved) = (finds.next()?, moves.next()?);
        let words: Vec<&str> =
            moved.argv.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-')).collect();
        let [from, to] = words.as_slice() else { return None };
        let ((folder, old), (other, new)) = (from.rsplit_once(FOUND)?, to.rsplit_once(FOUND)?);
        let is_ending = |end: &str| !end.is_empty() && !end.contains(['*', '?', '[', '/']);
        let is_one = finds.next().is_none() && moves.next().is_none() && folder == other;
        (is_one && is_ending(old) && is_ending(new)).then_some((old, new))
    }

    /// Whether `path` is what the text gives another ending, or would be in a folder that has that name.
    pub(super) fn names_anew(&self, path: &str) -> bool {
        self.endings().is_some_and(|(old, new)| {
            let plain = path.strip_suffix(&format!("/*{old}")).unwrap_or(path);
            plain.ends_with(&format!("{FOUND}{new}"))
        })
    }

    /// What may be a path in the text as it is written.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &'t str> {
        let ends = |letter: char| letter.is_whitespace() || "'\"|;&()<>=".contains(letter);
        self.text.split(ends).filter(|piece| !piece.is_empty())
    }
}

/// Whether `command` looks for files, or moves or packs what was found: that stands in words as `folder/**/name`.
fn moves_found(command: &ShellCommand) -> bool {
    let words = command.argv.get(1..).unwrap_or_default();
    match command.name.as_str() {
        "find" | "read" | "xargs" => !makes_file(command),
        _ if is_shell_with_text(command) => true,
        "mv" | "gzip" | "bzip2" | "xz" | "zstd" => {
            let is_plain = |word: &String| match word.strip_prefix('-') {
                Some(letters) => letters.chars().all(|letter| "fknqtv123456789".contains(letter)),
                None => word.contains("/**/") || !word.contains(['*', '?', '[', '{', '$', '`']),
            };
            words.iter().all(is_plain) && words.iter().any(|word| word.contains("/**/"))
        }
        _ => false,
    }
}

/// Whether `find` takes away empty folders alone, or empty files, too; none where it looks at something else.
fn takes_empty(find: &ShellCommand) -> Option<bool> {
    let begin = find.argv.iter().position(|word| word.starts_with('-')).unwrap_or(find.argv.len());
    let mut tests = find.argv[begin..].iter().map(String::as_str);
    let (mut is_empty, mut is_folder) = (false, false);
    while let Some(test) = tests.next() {
        match test {
            "-empty" => is_empty = true,
            "-type" => match tests.next() {
                Some("d") => is_folder = true,
                Some("f") => {}
                _ => return None,
            },
            "-mindepth" | "-maxdepth" => {
                tests.next();
            }
            "-print" | "-depth" => {}
            "-delete" => return (is_empty && tests.next().is_none()).then_some(is_folder),
            _ => return None,
        }
    }
    None
}

/// Whether `command` is a search that passes by hidden files and folders.
fn skips_hidden(command: &ShellCommand) -> bool {
    let is_wide = |word: &String| {
        let row = word.strip_prefix('-').filter(|row| !row.starts_with('-'));
        let is_row = row.is_some_and(|row| row.contains(['.', 'H', 'u']));
        let is_long = ["--hid", "--unr", "--pre"].iter().any(|begin| word.starts_with(begin));
        let is_hidden = word.split('/').any(|name| name.starts_with('.') && !matches!(name, "." | ".."));
        // What a pattern of paths names counts, hidden or not; an ending names no folder.
        let is_ending = word.strip_prefix("*.").is_some_and(|end| end.bytes().all(|sign| sign.is_ascii_alphanumeric()));
        is_row || is_long || is_hidden || (word.contains(['*', '?', '[', '{', '$', '…']) && !is_ending)
    };
    matches!(command.name.as_str(), "rg" | "fd" | "fdfind") && !command.argv.iter().skip(1).any(is_wide)
}

/// Whether `command`, of whose text `facts` tell, makes no link.
fn makes_no_links(command: &ShellCommand, facts: &ShellFacts) -> bool {
    let is_plain = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.chars().all(|letter| OF_PLAIN_COPIES.contains(letter))
    };
    match command.name.as_str() {
        "cp" | "install" => command.argv.iter().skip(1).all(is_plain),
        name => makes_nothing(name) || MAKES_NO_LINKS.contains(&name) || is_harmless(command, facts),
    }
}

/// Whether a word of `command` says a file that it makes besides.
fn makes_file(command: &ShellCommand) -> bool {
    let begins: &[&str] = match command.name.as_str() {
        "find" => &["-fprint", "-fls"],
        // In a script `w` stands before the name of a file.
        "sed" | "gsed" => &["-f", "--file"],
        _ => &["-o", "--output", "--cache-"],
    };
    command.argv.iter().skip(1).any(|word| begins.iter().any(|begin| word.starts_with(begin)))
}

/// Whether `command` of git lists files by their endings alone: a star of its patterns stands for folders, too, and `:` for
/// more.
fn is_by_ending(command: &ShellCommand) -> bool {
    let is_ending = |word: &str| {
        word.strip_prefix("*.").is_some_and(|ending| ending.bytes().all(|letter| letter.is_ascii_alphanumeric()))
    };
    command.argv.iter().all(|word| !word.contains(['*', '?', '[', ':', '\\']) || is_ending(word))
}
