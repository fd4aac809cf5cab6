//! Ways to what guards an agent that name another place: a mount, another process, a text that a shell runs as it starts,
//! and names that a program puts together.

use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::reached::LOOKS;
use super::{Look, path_at};
use crate::path_pattern::mark;
use crate::program_name::pieces;
use crate::taken::join;

/// Programs that lay one folder over another one.
const MOUNTS: [&str; 7] = ["mount", "bindfs", "fuse-overlayfs", "unionfs", "unionfs-fuse", "mergerfs", "sshfs"];

/// Those of which a process stands among the words by itself, or behind an option of another name.
const PLACED: [&str; 6] = ["criu", "eu-stack", "gcore", "nsenter", "pstack", "reptyr"];

/// Programs that reach into another process.
const ATTACHES: [&str; 13] = [
    "gdb",
    "gdbserver",
    "lldb",
    "strace",
    "ltrace",
    "gcore",
    "reptyr",
    "nsenter",
    "perf",
    "pstack",
    "eu-stack",
    "py-spy",
    "criu",
];

/// Where the files of processes are, and which of them are what a process has: its open files, its memory, its variables.
const PROCESSES: &str = "/proc/";
const OF_PROCESS: [&str; 4] = ["fd", "mem", "environ", "map_files"];

/// The processes that a text itself is.
const ITSELF: [&str; 3] = ["self", "thread-self", "$$"];

/// Options of shells that name a file to be run before all else, and the variable that does.
const START_FILES: [&str; 2] = ["--rcfile", "--init-file"];
const START_VARIABLE: &str = "ENV=<(";

/// Programs of awk, and what puts names together there.
const AWK: [&str; 5] = ["awk", "gawk", "mawk", "nawk", "original-awk"];
const PUTS_TOGETHER: [&str; 5] = ["/.", "sprintf", "substr", "sub(", "split("];

/// The way up, and how many words of a text with one are looked at.
const UP: &str = "..";
const MAX_CLIMBING: usize = 256;

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: it comes to what guards this agent by another name.
    pub(super) fn goes_round(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let of_command = |command: &ShellCommand| {
            self.mounts(command).or_else(|| self.attaches(command)).or_else(|| self.starts(command, facts))
        };
        facts
            .commands
            .iter()
            .find_map(of_command)
            .or_else(|| self.takes_from_process(facts))
            .or_else(|| self.climbs(text, facts))
            .or_else(|| start_variable(text).map(before_start))
            .or_else(|| facts.unknown.then(|| facts.commands.iter().find_map(|command| self.awk(command))).flatten())
    }

    /// Why `command` must not lay a folder over what is guarded or all work is done in, or give that a second place.
    fn mounts(&self, command: &ShellCommand) -> Option<String> {
        if !MOUNTS.contains(&command.name.as_str()) {
            return None;
        }
        let words: Vec<&str> = command.argv.iter().skip(1).map(String::as_str).collect();
        // The folders of an overlay stand behind one another.
        let mut places = words.iter().flat_map(|word| {
            let is_list = word.contains('=');
            word.split(move |letter: char| matches!(letter, ',' | '=') || (is_list && letter == ':'))
        });
        let is_guarded = |place: &&str| {
            !place.is_empty() && !place.starts_with('-') && self.deleted(&path_at(place, command)).is_some()
        };
        let guarded = places.find(is_guarded);
        let over = || {
            let target = words.iter().rfind(|word| !word.starts_with('-'))?;
            let is_above = self.names(".").starts_with(&self.names_at(target, command));
            is_above.then_some(*target)
        };
        let place = guarded.or_else(over)?;
        Some(format!("`{}` would lay other files over `{place}`, or what guards this agent elsewhere", command.name))
    }

    /// Why `command` must not reach into a process of the guard.
    fn attaches(&self, command: &ShellCommand) -> Option<String> {
        if !ATTACHES.contains(&command.name.as_str()) {
            return None;
        }
        let words = command.argv.get(1..).unwrap_or_default();
        let numbers = words.iter().flat_map(|word| word.split(|letter: char| !letter.is_ascii_digit()));
        let is_known = numbers.filter(|number| !number.is_empty()).any(|number| self.is_of_guard(number));
        let is_option = |word: &str| word.starts_with("-p") || word.starts_with("--pid");
        let by_place = PLACED.contains(&command.name.as_str());
        let is_asked = |at: usize, word: &str| by_place || is_option(word) || (at > 0 && is_option(&words[at - 1]));
        let is_any = words.iter().enumerate().any(|(at, word)| word.contains(['$', '`', '…']) && is_asked(at, word));
        (is_known || is_any).then(|| {
            format!("`{}` would reach into what guards this agent, or into a process that is not known", command.name)
        })
    }

    /// Whether the process `id` is one of the guard, or may be.
    fn is_of_guard(&self, id: &str) -> bool {
        if !id.bytes().all(|digit| digit.is_ascii_digit()) {
            return !ITSELF.contains(&id);
        }
        let programs = (self.disk.leads)(&format!("{PROCESSES}{id}/exe"));
        programs.iter().any(|program| program.rsplit('/').next().is_some_and(|name| name.starts_with("pintle")))
    }

    /// Why a tool must not be given `path`, which is what a process of the guard has.
    pub(super) fn names_process(&self, path: &str) -> Option<String> {
        let id = process_of(path)?;
        let is_number = id.bytes().all(|digit| digit.is_ascii_digit());
        (is_number && self.is_of_guard(id)).then(|| of_process(path))
    }

    /// Why a text must not take what a process of the guard has.
    fn takes_from_process(&self, facts: &ShellFacts) -> Option<String> {
        let mut takers = facts.commands.iter().filter(|command| !LOOKS.contains(&command.name.as_str())).peekable();
        let told =
            if takers.peek().is_some() { [facts.reads.as_slice(), facts.writes.as_slice()] } else { [&[][..]; 2] };
        let words = takers.flat_map(|command| command.argv.iter().skip(1));
        let mut all = words.chain(told.into_iter().flatten());
        let word = all.find(|word| process_of(word).is_some_and(|id| self.is_of_guard(id)))?;
        Some(of_process(word))
    }

    /// Why `text`, of which `facts` tell, must not change what lies above the folder to which a link leads: `link/../x`.
    fn climbs(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let changes = !facts.writes.is_empty() || !facts.deletes.is_empty();
        if !changes || !text.contains(UP) {
            return None;
        }
        let folders: BTreeSet<&str> = facts.commands.iter().map(|command| command.cwd.as_str()).collect();
        let climbing = || pieces(text).filter(|piece| piece.contains(UP)).take(MAX_CLIMBING);
        let mut paths = folders.into_iter().flat_map(|folder| climbing().map(move |piece| join(folder, piece)));
        paths.find_map(|path| {
            // What it is by its names is looked at elsewhere.
            let plain = format!("/{}", self.names(&path).join("/"));
            self.deleted(&path).filter(|_| self.deleted(&plain).is_none())
        })
    }

    /// Why `command`, a shell, must not run a text of this one before it starts.
    fn starts(&self, command: &ShellCommand, facts: &ShellFacts) -> Option<String> {
        let words = command.argv.get(1..).unwrap_or_default();
        let mut files = words.iter().enumerate().filter_map(|(at, word)| {
            let option = START_FILES.iter().find(|option| word.starts_with(**option))?;
            word[option.len()..].strip_prefix('=').or_else(|| words.get(at + 1).map(String::as_str))
        });
        let is_of_text = |file: &str| {
            let names = self.names_at(file, command);
            file.starts_with("/dev/fd/") || facts.writes.iter().any(|path| self.names(path) == names)
        };
        files.any(is_of_text).then(|| before_start(&command.name))
    }

    /// Why `command` must not run code of awk that puts together where it writes.
    fn awk(&self, command: &ShellCommand) -> Option<String> {
        let code = command.argv.get(1..).unwrap_or_default().join(" ");
        if !AWK.contains(&command.name.as_str()) || !code.contains("print") || !code.contains('>') {
            return None;
        }
        let plain: String =
            code.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, '"' | '\'' | '\\')).collect();
        let plain = plain.to_lowercase();
        let is_named = self.patterns().map(mark).any(|mark| plain.contains(mark));
        let is_put = code.contains("ENVIRON") && PUTS_TOGETHER.iter().any(|sign| plain.contains(sign));
        (is_named || is_put)
            .then(|| format!("`{}` puts together where it writes, which may be what guards this agent", command.name))
    }
}

fn of_process(path: &str) -> String {
    format!("`{path}` is what a process has that guards this agent, or one that is not known")
}

fn before_start(name: &str) -> String {
    format!("`{name}` would have a shell run a text before it starts, and what that does cannot be known")
}

/// The variable that `text` sets to a text of its own which a shell runs before it starts.
fn start_variable(text: &str) -> Option<&str> {
    let (before, _) = text.split_once(START_VARIABLE)?;
    let name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let begin = before.trim_end_matches(name).len();
    let end = before.len() + START_VARIABLE.trim_end_matches("=<(").len();
    Some(&text[begin..end])
}

/// The process whose file `word` names, where that is something that the process has.
fn process_of(word: &str) -> Option<&str> {
    let at = word.find(PROCESSES)?;
    let mut names = word[at + PROCESSES.len()..].split('/').filter(|name| !name.is_empty());
    let id = names.next()?;
    let mut what = names.next()?;
    if what == "task" {
        what = names.nth(1)?;
    }
    // The folder of open files alone tells no more than names.
    let is_whole = !matches!(what, "fd" | "map_files") || names.next().is_some();
    (OF_PROCESS.contains(&what) && is_whole).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_that_a_shell_runs_is_said_by_its_name() {
        for (text, name) in [
            ("BASH_ENV=<(echo x) bash -c :", Some("BASH_ENV")),
            ("true;ENV=<(x) sh", Some("ENV")),
            ("export ENV=x", None),
        ] {
            assert_eq!(start_variable(text), name, "{text}");
        }
    }

    #[test]
    fn what_a_process_has_is_known_by_its_place() {
        for (word, id) in [
            ("/proc/12/fd/3", Some("12")),
            ("if=/proc/12/mem", Some("12")),
            ("/proc/12/task/13/environ", Some("12")),
            ("/proc/$p/environ", Some("$p")),
            ("/proc/12/fd", None),
            ("/proc/12/status", None),
            ("/proc/cpuinfo", None),
            ("/tmp/12/mem", None),
        ] {
            assert_eq!(process_of(word), id, "{word}");
        }
    }
}
