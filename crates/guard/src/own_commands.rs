//! Commands by which an agent would answer for a person or end what guards it: those of `pintle`, and others about it.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::ended;
use crate::hosts::UNGUARDED;
use crate::path_pattern::pattern_means;
use crate::program_name::{copies, may_be, pieces};
use crate::runners;

/// The program that answers for a person.
const PINTLE: &str = "pintle";

/// The package of it that a project has.
const PACKAGE: &str = "pintle-cli";

/// How files end that are programs of another one, or sources of them.
const ENDINGS: [&str; 9] = [".cjs", ".dll", ".exe", ".git", ".jar", ".js", ".mjs", ".py", ".ts"];

/// Its commands that a guarded agent must not run: with them it could answer for the person.
const COMMANDS: [&str; 13] = [
    "approvals",
    "chat",
    "guard",
    "hooks",
    "import",
    "keys",
    "members",
    "secrets",
    "serve",
    "store",
    "tenants",
    "trust",
    "webhooks",
];

/// Those of which it may run others that begin alike.
const PAIRS: [(&str, &str); 5] =
    [("audit", "export"), ("budget", "set"), ("mcp", "accept"), ("sessions", "delete"), ("sessions", "resume")];

/// Those that are one without another word behind them.
const ALONE: [&str; 3] = ["chat", "serve", "trust"];

/// What stands behind those that are none without it.
const VERBS: [&str; 24] = [
    "accept",
    "add",
    "approve",
    "create",
    "delete",
    "deny",
    "disable",
    "enable",
    "export",
    "goclaw",
    "install",
    "new",
    "picoclaw",
    "refuse",
    "reject",
    "remove",
    "reset",
    "revoke",
    "rotate",
    "serve",
    "set",
    "stop",
    "uninstall",
    "update",
];

/// Those that hardly another program has.
const OWN: [&str; 2] = ["approvals", "guard"];

/// What of them shows something and changes nothing.
const SHOWN: [(&str, &str); 3] = [("approvals", "list"), ("guard", "status"), ("hooks", "list")];

/// How far behind the program its command stands in a text that is not read as that of a shell.
const NEAR: usize = 8;

/// The same in code, where it may stand in a list of its own.
const FAR: usize = 24;

/// Programs that run later, or in a language of their own, what they are told.
const LATER: [&str; 9] = ["at", "autoexpect", "batch", "crontab", "expect", "incrontab", "osascript", "tclsh", "wish"];

/// Those of them of which `-l` lists and `-r` removes what is kept.
const LISTS: [&str; 4] = ["at", "batch", "crontab", "incrontab"];

/// The units of the guard, as systemd calls them.
const UNITS: [&str; 2] = ["pintle-guard.service", "pintle-guard.socket"];

/// What of a service manager ends or changes them, wherever it stands.
const CHANGING: [&str; 18] = [
    "bootout",
    "clean",
    "disable",
    "edit",
    "freeze",
    "isolate",
    "kill",
    "link",
    "mask",
    "reenable",
    "remove",
    "restart",
    "revert",
    "set-property",
    "stop",
    "try-restart",
    "unload",
    "unmask",
];

/// What of a service manager leaves services as they are, or starts them.
const HARMLESS: [&str; 17] = [
    "blame",
    "cat",
    "daemon-reload",
    "enable",
    "help",
    "is-active",
    "is-enabled",
    "is-failed",
    "list",
    "list-dependencies",
    "list-sockets",
    "list-unit-files",
    "list-units",
    "print",
    "show",
    "start",
    "status",
];

/// Why `text`, of which `facts` tell, must not run: by it the agent would answer for a person, or end its guard.
pub(crate) fn refused(text: &str, facts: &ShellFacts) -> Option<String> {
    let commands = &facts.commands;
    commands
        .iter()
        .find_map(|command| of_pintle(command, facts))
        .or_else(|| of_copy(facts))
        .or_else(|| commands.iter().find_map(of_runner))
        .or_else(|| told_later(text, facts))
        .or_else(|| commands.iter().find_map(of_service))
        .or_else(|| ended::refused(text, facts))
}

/// What is said of `command`, one of `pintle`.
fn for_person(command: &str) -> String {
    format!("`{PINTLE} {command}` is for a person, not for the agent that it guards")
}

/// The command that begins `words`, if only a person may run it.
fn persons(words: &[String]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    if COMMANDS.contains(&first.as_str()) {
        let is_shown = rest.first().is_some_and(|second| SHOWN.contains(&(first.as_str(), second.as_str())));
        return (!is_shown).then(|| first.clone());
    }
    let is_pair = |second: &&String| PAIRS.contains(&(first.as_str(), second.as_str()));
    rest.iter().find(is_pair).map(|second| format!("{first} {second}"))
}

/// The places in `words` at which a command of `pintle` may begin, and whether it does so at the last one.
fn begins(words: &[String]) -> (Vec<usize>, bool) {
    let (mut places, mut after_option) = (Vec::new(), false);
    for (at, word) in words.iter().enumerate() {
        if word.starts_with('-') {
            after_option = !word.contains('=');
            continue;
        }
        places.push(at);
        // It may be the value of the option before it.
        if !after_option {
            return (places, true);
        }
        after_option = false;
    }
    (places, false)
}

/// Whether `command` is one of `pintle` that only a person may run.
fn of_pintle(command: &ShellCommand, facts: &ShellFacts) -> Option<String> {
    if !may_be(&command.name, PINTLE) {
        return None;
    }
    let words = command.argv.get(1..).unwrap_or_default();
    let (places, is_sure) = begins(words);
    let by_word = places.iter().find_map(|at| persons(&words[*at..]));
    if let Some(command) = by_word {
        return Some(for_person(&command));
    }
    let is_unread = |word: &String| word.is_empty() || word.contains(['$', '`', '*', '?', '{']);
    let cannot_be_known = places.iter().any(|at| is_unread(&words[*at])) || (facts.unknown && !is_sure);
    cannot_be_known.then(|| format!("which command of `{PINTLE}` it would run cannot be known"))
}

/// Whether a file that gets a name of its own from `pintle` is run as only a person may.
fn of_copy(facts: &ShellFacts) -> Option<String> {
    let is_own = |word: &str| word.rsplit('/').next().is_some_and(|file| may_be(file, PINTLE));
    let copies = copies(facts, is_own);
    if copies.is_empty() {
        return None;
    }
    let is_file = |command: &&ShellCommand| {
        copies.contains(command.name.as_str()) || command.argv.first().is_some_and(|file| file.contains('/'))
    };
    let mut files = facts.commands.iter().filter(is_file);
    files.find_map(|command| {
        let words = command.argv.get(1..).unwrap_or_default();
        begins(words).0.iter().find_map(|at| persons(&words[*at..])).map(|command| for_person(&command))
    })
}

/// Whether `command`, a program that runs another one or the file that it is told, runs `pintle` as only a person may.
fn of_runner(command: &ShellCommand) -> Option<String> {
    let is_runner = runners::starts_others(command);
    if !is_runner && !runners::runs_file(&command.name) {
        return None;
    }
    let words = command.argv.get(1..).unwrap_or_default();
    let first = words.iter().position(|word| !word.starts_with('-'));
    let run_by = |at: usize| {
        let is_sure = is_package(&words[at]) && (is_runner || first == Some(at));
        let behind = &words[at + 1..];
        let commands = begins(behind).0.into_iter().map(|place| &behind[place..]);
        let mut meant = commands.filter(|words| is_sure || is_whole(words));
        meant.find_map(persons)
    };
    let mut named = (0..words.len()).filter(|at| is_of_package(&words[*at]));
    // Where no name tells the program of a project, the command does.
    let is_built = runners::starts_of_project(command);
    let unnamed = || {
        let mark = words.iter().position(|word| word == "--").map_or(0, |at| at + 1);
        let mut rest = (mark..words.len()).map(|at| &words[at..]).filter(|_| is_built);
        rest.find(|words| OWN.contains(&words[0].as_str()) && is_whole(words)).and_then(persons)
    };
    named.find_map(run_by).or_else(unnamed).map(|command| for_person(&command))
}

/// Whether `word` means the program to one that runs others: `x/pintle.js`, `npm:pintle@1`, `-ppintle`.
fn is_package(word: &str) -> bool {
    let file = word.rsplit(['/', '=', ':', '#']).next().unwrap_or(word);
    let name = file.strip_prefix("-p").unwrap_or(file).split('@').next().unwrap_or_default();
    let name = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    name == PACKAGE || may_be(name, PINTLE)
}

/// Whether `word` means the program to one that runs others, or something in its folder.
fn is_of_package(word: &str) -> bool {
    word.split(['/', '=', ':', '#']).any(is_package)
}

/// Whether `text` has a program run such a command later, or start an agent without its hooks.
fn told_later(text: &str, facts: &ShellFacts) -> Option<String> {
    let is_told = |command: &&ShellCommand| {
        let lists = |word: &String| LISTS.contains(&command.name.as_str()) && (word == "-l" || word == "-r");
        LATER.contains(&command.name.as_str()) && !command.argv.iter().any(lists)
    };
    facts.commands.iter().find(is_told)?;
    said_in(text)
}

/// Why `text`, of whatever language, must not be kept to be run later: it says a command that only a person may run, or how
/// an agent is started without its hooks.
pub(crate) fn said_in(text: &str) -> Option<String> {
    let text = unescaped(text);
    let words: Vec<&str> = pieces(&text).collect();
    let mut programs = (0..words.len()).filter(|at| is_own(words[*at]));
    let command = programs.find_map(|at| {
        let behind = words[at + 1..].iter().filter(|word| !word.starts_with('-'));
        let behind: Vec<String> = behind.take(NEAR).map(|word| (*word).to_owned()).collect();
        (0..behind.len()).find_map(|at| persons(&behind[at..]))
    });
    let by_agent = || UNGUARDED.iter().find_map(|agent| agent.said_in(&text));
    command.map(|command| for_person(&command)).or_else(by_agent)
}

/// Why `text`, code of whatever language or a text that is known in part, must not run: it says a whole command that only a
/// person may run. What merely names one passes.
pub(crate) fn told_in(text: &str) -> Option<String> {
    let text = unescaped(text);
    let words: Vec<&str> = pieces(&text).filter(|piece| piece.contains(char::is_alphanumeric)).collect();
    let mut programs = (0..words.len()).filter(|at| is_own(words[*at]));
    let command = programs.find_map(|at| {
        let behind: Vec<String> = words[at + 1..].iter().take(FAR).map(|word| (*word).to_owned()).collect();
        let (places, _) = begins(&behind);
        let alone = places.into_iter().find(|at| ALONE.contains(&behind[*at].as_str()));
        let at = alone.or_else(|| (0..behind.len()).find(|at| is_whole(&behind[*at..])))?;
        behind.get(at).cloned()
    })?;
    Some(for_person(&command))
}

/// Whether `command` is of a program that is not known.
pub(crate) fn is_unknown(command: &ShellCommand) -> bool {
    command.name.contains(['$', '`', '…'])
}

/// Whether `text` names the program.
pub(crate) fn names(text: &str) -> bool {
    pieces(text).any(is_own)
}

/// Why `command` must not run, whose program is not known: its words are those of one of `pintle`, which the text names
/// (`is_named`), or of one that hardly another program has.
pub(crate) fn of_unknown(command: &ShellCommand, is_named: bool) -> Option<String> {
    let words = command.argv.get(1..).unwrap_or_default();
    let (places, _) = begins(words);
    places.iter().filter(|_| is_unknown(command)).find_map(|at| {
        let words = &words[*at..];
        let is_meant = is_named || (OWN.contains(&words[0].as_str()) && is_whole(words));
        persons(words).filter(|_| is_meant).map(|command| for_person(&command))
    })
}

/// Whether `words` begin with a command that only a person may run, and say what it does.
fn is_whole(words: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let (places, _) = begins(rest);
    let mut verbs = places.iter().map(|at| rest[*at].as_str());
    let is_group = COMMANDS.contains(&first.as_str());
    verbs.any(|verb| PAIRS.contains(&(first.as_str(), verb)) || (is_group && VERBS.contains(&verb)))
}

/// Whether `word` of a text in any language is the program itself.
fn is_own(word: &str) -> bool {
    let file = word.trim_start_matches('-').rsplit(['/', '=', '!', '@', ':']).next();
    file.is_some_and(|file| may_be(file, PINTLE))
}

/// `text` with blanks where it says ends of lines as letters.
fn unescaped(text: &str) -> String {
    text.replace("\\n", " ").replace("\\t", " ")
}

/// Whether `command` has a service manager end or change the guard.
fn of_service(command: &ShellCommand) -> Option<String> {
    let name = command.name.as_str();
    let words = || command.argv.iter().skip(1).filter(|word| !word.starts_with('-')).map(String::as_str);
    let is_unit = |word: &str| {
        let is_pattern = word.contains(['*', '?', '[']);
        word.contains(PINTLE) || (is_pattern && UNITS.iter().any(|unit| pattern_means(word, unit)))
    };
    let is_manager = matches!(name, "systemctl" | "launchctl");
    // The first word may be the value of an option.
    let verb = words().find(|word| CHANGING.contains(word));
    let verb = verb.or_else(|| words().next().filter(|verb| !HARMLESS.contains(verb)));
    let (verb, unit) = (verb?, words().find(|word| is_unit(word))?);
    is_manager.then(|| format!("`{name} {verb} {unit}` would end or change what guards this agent"))
}
