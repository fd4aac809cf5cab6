//! Commands that only a person may run, and agents without their hooks: in code of other languages, behind programs that
//! start others, and in texts that are known in part.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::documents::without_documents;
use crate::ended;
use crate::hosts::UNGUARDED;
use crate::own_commands;
use crate::program_name::{SEARCHES, STARTERS};
use crate::runners;
use crate::set_variables;

/// Commands of git whose words are messages or what is looked for.
const OF_GIT: [&str; 5] = ["commit", "grep", "log", "notes", "tag"];

/// Commands of `gh` and `glab` whose words are messages.
const OF_FORGES: [&str; 4] = ["issue", "mr", "pr", "release"];

/// Programs that keep variables for others which begin later.
const KEEPERS: [&str; 10] = [
    "dbus-update-activation-environment",
    "fish",
    "launchctl",
    "npm",
    "pnpm",
    "screen",
    "set",
    "systemctl",
    "tmux",
    "yarn",
];

/// Why `text`, of which `facts` tell, must not run: by something in it that is not read as a text of a shell, the agent would
/// answer for a person, end its guard, or start an agent without one.
pub(crate) fn refused(text: &str, facts: &ShellFacts) -> Option<String> {
    let commands = &facts.commands;
    let is_named = commands.iter().any(own_commands::is_unknown) && own_commands::names(text);
    commands
        .iter()
        .find_map(|command| in_words(command).or_else(|| kept_by(command)))
        .or_else(|| commands.iter().find_map(|command| own_commands::of_unknown(command, is_named)))
        .or_else(|| facts.unknown.then(|| in_part(text, facts)).flatten())
        .or_else(|| facts.unknown.then(|| ended_by(text, facts)).flatten())
}

/// Why a program must not run what `text` tells it, by which the agent would end its guard.
fn ended_by(text: &str, facts: &ShellFacts) -> Option<String> {
    facts.commands.iter().find(|command| runners::takes_text(&command.name))?;
    ended::coded(&without_messages(&without_documents(text, facts), facts))
}

/// Why `command` must not run what its words say.
fn in_words(command: &ShellCommand) -> Option<String> {
    let is_code = runners::takes_code(&command.name);
    if !is_code && !STARTERS.contains(&command.name.as_str()) {
        return None;
    }
    let words = command.argv.get(1..).unwrap_or_default().join(" ");
    [joined(&words), words].iter().find_map(|words| {
        let mut agents = UNGUARDED.iter();
        let by_agent = || agents.find_map(|agent| if is_code { agent.coded_in(words) } else { agent.told_in(words) });
        own_commands::told_in(words).or_else(by_agent)
    })
}

/// Why `command` must not keep a variable that later takes the guard from an agent.
fn kept_by(command: &ShellCommand) -> Option<String> {
    if !KEEPERS.contains(&command.name.as_str()) {
        return None;
    }
    let words = command.argv.join(" ");
    // What has blanks is one value.
    let quoted = |word: &String| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() };
    let values = || command.argv.iter().map(quoted).collect::<Vec<String>>().join(" ");
    UNGUARDED.iter().find_map(|agent| agent.said_in(&words)).or_else(|| set_variables::kept_in(&values()))
}

/// Why `text`, which is known in part, must not run, whatever the rest of it is.
pub(crate) fn in_part(text: &str, facts: &ShellFacts) -> Option<String> {
    let told = |text: &str| told_in(text).or_else(|| told_in(&joined(text)));
    told(text)?;
    told(&without_messages(&without_documents(text, facts), facts))
}

/// `text` without the quotes and backslashes that may stand within a word of a text in it.
fn joined(text: &str) -> String {
    let plain = text.replace("\\n", " ").replace("\\t", " ");
    plain.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect()
}

/// What is told in `text`, of whatever language, and must not run.
pub(crate) fn told_in(text: &str) -> Option<String> {
    own_commands::told_in(text).or_else(|| UNGUARDED.iter().find_map(|agent| agent.told_in(text)))
}

/// `text` without the words that are messages, or what is looked for. Each is left out once: what stands there again may be
/// run.
fn without_messages(text: &str, facts: &ShellFacts) -> String {
    let says = |command: &&ShellCommand| {
        let verb = command.argv.get(1).map(String::as_str).unwrap_or_default();
        match command.name.as_str() {
            "git" => OF_GIT.contains(&verb),
            "gh" | "glab" => OF_FORGES.contains(&verb),
            name => SEARCHES.contains(&name),
        }
    };
    let words = facts.commands.iter().filter(says).flat_map(|command| command.argv.iter().skip(1));
    let messages = words.filter(|word| word.contains(char::is_whitespace));
    messages.fold(text.to_owned(), |text, message| text.replacen(message.as_str(), " ", 1))
}
