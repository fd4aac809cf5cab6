//! Texts that reach a shell by another way than the text of a call: through a pipe, by a file that somebody writes while the
//! shell waits for it, or as keys of a terminal.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::told_text::makes_nothing;
use super::{Look, PathKind, path_at};
use crate::filled::named;
use crate::program_name::pieces;
use crate::runners::letters_of_script;
use crate::typed::{typed, types};

/// What one text that is typed costs of the paths that are looked at.
const COST: usize = 256;

/// Programs that do nothing but wait, beside those that make nothing.
const WAITS: [&str; 11] =
    [":", "[[", "break", "continue", "date", "disown", "exit", "inotifywait", "setsid", "sleep", "wait"];

/// The words of a text that waits.
const AWAITS: [&str; 5] = ["inotifywait", "sleep", "until", "watch", "while"];

/// How a shell is told that a command goes on beside it, with a pipe to and from that.
const COPROCESS: &str = "coproc";

/// Where files are that are no files of anybody.
const OF_SYSTEM: [&str; 2] = ["/dev/", "/proc/"];

/// Where a program takes the code from that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeFrom<'c> {
    /// What is put into it.
    Input,
    /// This file.
    File(&'c str),
}

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: it has a shell run what comes to it by another way.
    pub(super) fn streamed(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        self.piped(text, facts)
            .or_else(|| self.awaited(text, facts))
            .or_else(|| facts.commands.iter().find_map(|command| self.typed(command)))
    }

    /// The same of a pipe.
    fn piped(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let commands = &facts.commands;
        let is_coprocess = |command: &ShellCommand| command.name == COPROCESS;
        let is_said = || facts.unknown && pieces(text).any(|piece| piece == COPROCESS);
        if (commands.iter().any(is_coprocess) || is_said())
            && let Some(shell) = pieces(text).find(|piece| letters_of_script(piece).is_some())
        {
            return Some(unread(shell, COPROCESS));
        }
        let is_pipe = |command: &&ShellCommand| {
            command.name == "mkfifo" || (command.name == "mknod" && command.argv.iter().any(|word| word == "p"))
        };
        let made = commands.iter().filter(is_pipe);
        let made: Vec<Vec<String>> =
            made.flat_map(|pipe| named(pipe).map(|word| self.names_at(word, pipe)).collect::<Vec<_>>()).collect();
        let is_stream = |path: &str| {
            let is_own = OF_SYSTEM.iter().any(|folder| path.starts_with(folder));
            !is_own && (made.contains(&self.names(path)) || (self.disk.kind)(path) == PathKind::Stream)
        };
        let follows = |command: &ShellCommand| {
            let is_row = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains(['f', 'F']);
            let is_told = |word: &String| is_row(word) || word.starts_with("--follow") || word == "--retry";
            command.name == "tail" && command.argv.iter().skip(1).any(is_told)
        };
        commands.iter().find_map(|command| {
            let source = match code_from(command)? {
                CodeFrom::File(file) => Some(path_at(file, command)).filter(|path| is_stream(path)),
                CodeFrom::Input => {
                    let read = || facts.reads.iter().chain(&facts.writes).find(|path| is_stream(path)).cloned();
                    let followed = || commands.iter().any(follows).then(|| "tail -f".to_owned());
                    read().or_else(followed)
                }
            };
            source.map(|source| unread(&command.name, &source))
        })
    }

    /// The same of a file that is not there, for which the text waits and which nothing in it makes.
    fn awaited(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let run = |command: &ShellCommand| {
            let program = command.argv.first().filter(|program| program.contains('/'));
            match code_from(command) {
                Some(CodeFrom::File(file)) => Some(file.to_owned()),
                Some(CodeFrom::Input) => None,
                None => program.cloned(),
            }
        };
        let is_idle = |command: &ShellCommand| {
            let name = command.name.as_str();
            makes_nothing(name) || WAITS.contains(&name) || run(command).is_some() || letters_of_script(name).is_some()
        };
        if !facts.commands.iter().all(is_idle) {
            return None;
        }
        let is_made = |path: &str| facts.writes.iter().any(|written| self.names(written) == self.names(path));
        facts.commands.iter().find_map(|command| {
            let file = run(command)?;
            let name = file.rsplit('/').next().filter(|name| !name.is_empty())?;
            let before = &text[..text.find(name)?];
            let awaits = pieces(before).any(|piece| AWAITS.contains(&piece));
            let path = path_at(&file, command);
            let is_missing = awaits && (self.disk.kind)(&path) == PathKind::Nothing && !is_made(&path);
            is_missing.then(|| unread(&command.name, &file))
        })
    }

    /// Why `command` must not type into a terminal what would be refused as a text of the shell.
    fn typed(&self, command: &ShellCommand) -> Option<String> {
        let text = typed(command)?;
        let left = self.left.get().saturating_sub(COST);
        self.left.set(left);
        if left == 0 {
            return None;
        }
        if types(&text) {
            return Some(format!("`{}` would type what types into a terminal", command.name));
        }
        self.shell("", &text)
    }
}

fn unread(program: &str, source: &str) -> String {
    format!("`{program}` would run what comes to it by `{source}`, which nobody can read before")
}

/// Where `command` takes code from that does not stand among its words; none where it runs none.
fn code_from(command: &ShellCommand) -> Option<CodeFrom<'_>> {
    let words: Vec<&str> = command.argv.iter().skip(1).map(String::as_str).collect();
    let name = command.name.as_str();
    if matches!(name, "." | "source") {
        return words.into_iter().find(|word| !word.starts_with('-')).map(CodeFrom::File);
    }
    // A line that is read and run by itself.
    if name == "eval" {
        return words.iter().any(|word| word.contains(['$', '`', '…'])).then_some(CodeFrom::Input);
    }
    let letters = letters_of_script(name)?;
    let end = words.iter().position(|word| !word.starts_with('-') || *word == "-").unwrap_or(words.len());
    let is_text = |word: &&str| {
        let row = word.strip_prefix('-').filter(|row| !row.starts_with('-'));
        let is_code = |letter: char| letters.contains(letter) || (letter == 'm' && name.starts_with("py"));
        let is_row = row.is_some_and(|row| row.contains(is_code));
        is_row || matches!(*word, "--eval" | "--print" | "--version" | "--help")
    };
    if words[..end].iter().any(is_text) {
        return None;
    }
    match words.get(end).copied() {
        Some(file) if file != "-" && !words[..end].contains(&"-s") => Some(CodeFrom::File(file)),
        _ => Some(CodeFrom::Input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn code_comes_from_a_file_or_from_what_is_put_in() {
        for (text, from) in [
            ("bash", Some(CodeFrom::Input)),
            ("bash -s x", Some(CodeFrom::Input)),
            ("python3 -", Some(CodeFrom::Input)),
            ("bash x.sh", Some(CodeFrom::File("x.sh"))),
            (". ./x", Some(CodeFrom::File("./x"))),
            ("eval $l", Some(CodeFrom::Input)),
            ("eval ls", None),
            ("bash -c x", None),
            ("python3 -m x", None),
            ("perl -ne x", None),
            ("cat x", None),
        ] {
            assert_eq!(code_from(&commands(&[text])[0]), from, "{text}");
        }
    }
}
