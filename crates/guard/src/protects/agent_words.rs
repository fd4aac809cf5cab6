//! Agents that a text starts without their hooks: by its own words, under the name of a link, or by words and variables that
//! stand in a file or that nobody knows.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::by_name::is_computed;
use super::{Look, path_at};
use crate::hosts::UNGUARDED;
use crate::runners::runs_file;
use crate::unguarded::UnguardedStart;

/// How many commands are looked at for links: a text that has more is not known in all parts.
const MAX_LINKS: usize = 1000;

/// Programs by which what stands in a file becomes variables of what is started.
const TAKES_VARIABLES: [&str; 8] = [".", "declare", "env", "eval", "export", "set", "source", "typeset"];

/// Those that read it themselves.
const READS_SCRIPT: [&str; 2] = [".", "source"];

/// Programs that print no option, whatever files say.
const PRINTS_NONE: [&str; 14] = [
    "basename", "command", "date", "dirname", "hostname", "id", "mktemp", "nproc", "pwd", "seq", "type", "uuid",
    "uuidgen", "which",
];

/// The words that come by `xargs`, of which nobody knows how many they are.
const LISTED: &str = "…";

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not start an agent.
    pub(super) fn starts_unguarded(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let links = self.links_run(facts);
        UNGUARDED.iter().find_map(|agent| {
            let by_text = agent.found_in(text, facts, self.files.lifted, &links);
            by_text.or_else(|| self.started_by_files(agent, text, facts))
        })
    }

    /// The names of the files that the commands of `facts` run, where they are links to others, each with what it leads to, by
    /// all names that this has.
    fn links_run(&self, facts: &ShellFacts) -> Vec<(String, String)> {
        let file = |command: &ShellCommand| {
            let own = command.argv.first().filter(|file| file.contains('/'));
            let script = || command.argv.get(1).filter(|_| runs_file(&command.name));
            own.or_else(script).map(|word| path_at(word, command))
        };
        let files = facts.commands.iter().filter_map(file).take(MAX_LINKS);
        let named = |path: String| {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let targets = (self.disk.leads)(&path);
            // The program of an agent that is in use may be a link itself, to a file of another name.
            let leads_there = |own: &&String| (self.disk.leads)(own).iter().any(|led| targets.contains(led));
            let own: Vec<String> = if targets.is_empty() {
                Vec::new()
            } else {
                self.files.own.iter().filter(leads_there).cloned().collect()
            };
            targets.into_iter().chain(own).map(move |target| (name.clone(), target))
        };
        files.flat_map(named).collect()
    }

    /// Why `agent` must not be started with what stands in files that the text reads, or with words that nobody knows.
    fn started_by_files(&self, agent: &UnguardedStart, text: &str, facts: &ShellFacts) -> Option<String> {
        let words = agent.started_in(facts)?;
        let takes = |command: &ShellCommand| TAKES_VARIABLES.contains(&command.name.as_str());
        let takes_variables = facts.commands.iter().any(takes);
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let is_told = |word: &String| word == LISTED || word.contains(['$', '`']);
        let takes_words = words[..end].iter().any(is_told);
        if !takes_variables && !takes_words {
            return None;
        }
        let is_bare = words[..end].iter().any(|word| word == LISTED) || (takes_words && has_bare_words(text, agent));
        let is_env_open = facts.commands.iter().any(takes_unknown);
        let files = files_read(facts);
        let all: Vec<Option<String>> = files.iter().map(|file| self.said_in(file)).collect();
        let by_file = all.iter().flatten().find_map(|said| {
            let told: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
            let by_word = || if takes_words && (is_bare || told.len() == 1) { agent.told_by(&told) } else { None };
            let by_variable = || if takes_variables { agent.set_by(said) } else { None };
            by_word().or_else(by_variable)
        });
        let prints = |command: &ShellCommand| command.depth > 0 && !PRINTS_NONE.contains(&command.name.as_str());
        let is_known = !all.is_empty() && all.iter().all(Option::is_some);
        let is_harmless = || !words[..end].iter().any(|word| word == LISTED) && !facts.commands.iter().any(prints);
        let is_open = is_bare || is_env_open;
        by_file.or_else(|| (is_open && !is_known && !is_harmless()).then(|| agent.told_unknown()))
    }
}

/// Whether `command` gives variables to another one that are not known by their names.
fn takes_unknown(command: &ShellCommand) -> bool {
    command.name == "env" && command.argv.iter().skip(1).any(|word| word.starts_with(['$', '`']))
}

/// The files that the commands of `facts` read, also as scripts of their own.
fn files_read(facts: &ShellFacts) -> Vec<String> {
    let scripts = facts.commands.iter().filter(|command| READS_SCRIPT.contains(&command.name.as_str()));
    let scripts = scripts.filter_map(|command| {
        let word = command.argv.get(1)?;
        Some(path_at(word.trim_start_matches("./"), command))
    });
    let mut files: Vec<String> = facts.reads.iter().cloned().chain(scripts).collect();
    files.sort();
    files.dedup();
    files
}

/// Whether `text` gives `agent` words that a shell parts where blanks stand in them: what a command prints, or a variable that
/// has that.
fn has_bare_words(text: &str, agent: &UnguardedStart) -> bool {
    let begins =
        |at: usize| at == 0 || text[..at].ends_with(|sign: char| sign.is_whitespace() || ";&|(`\"'".contains(sign));
    let starts = text.char_indices().map(|(at, _)| at).filter(|at| begins(*at));
    let mut behind = starts.filter_map(|at| {
        let word = text[at..].split(char::is_whitespace).next()?;
        let is_it = !word.contains('=') && agent.is_program(word);
        is_it.then(|| &text[at + word.len()..])
    });
    behind.any(|rest| is_parted(rest, text))
}

/// Whether a shell parts a word of the command that goes on with `rest`.
fn is_parted(rest: &str, text: &str) -> bool {
    let mut quote = None;
    let mut at = 0;
    while let Some(letter) = rest[at..].chars().next() {
        let behind = &rest[at + letter.len_utf8()..];
        match (letter, quote) {
            ('\\', None | Some('"')) => at += behind.chars().next().map_or(0, char::len_utf8),
            ('\'' | '"', Some(open)) if open == letter => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            ('$', Some('"')) if behind.starts_with('(') => at += closing(behind),
            ('`', Some('"')) => at += behind.find('`').map_or(0, |end| end + 1),
            ('`', None) => return true,
            ('$', None) if behind.starts_with("((") => at += closing(behind),
            ('$', None) if is_computed(&rest[at..rest.len().min(at + word_end(&rest[at..]))], text) => return true,
            (';' | '|' | '&' | '\n' | ')', None) => return false,
            _ => {}
        }
        at += letter.len_utf8();
    }
    false
}

/// Where the word ends with which `text` begins.
fn word_end(text: &str) -> usize {
    text.find(|sign: char| sign.is_whitespace() || ";|&)\"'".contains(sign)).unwrap_or(text.len())
}

/// How long the brackets are with which `text` begins.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in text.match_indices(['(', ')']) {
        depth = if sign == "(" { depth + 1 } else { depth.saturating_sub(1) };
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_quotes_is_one_word() {
        let claude = UNGUARDED.first().unwrap();
        for (text, is_bare) in [
            ("claude $(cat opt)", true),
            ("claude -p `cat opt`", true),
            ("cd x && claude -p hi $(cat opt)", true),
            ("x=$(cat opt); claude $x", true),
            ("claude -p \"$(cat opt)\"", false),
            ("claude -p \"$(cat \"$f\")\" --model x", false),
            ("claude -p \"a `cat opt` b\"", false),
            ("claude -p '$(cat opt)'", false),
            ("x=$(cat opt); claude -p hi", false),
            ("claude -p x; echo $(cat opt)", false),
            ("claude --model $MODEL", false),
            ("claude -p x$((1 + 2))", false),
            ("claude \\$(cat", false),
        ] {
            assert_eq!(has_bare_words(text, claude), is_bare, "{text}");
        }
    }
}
