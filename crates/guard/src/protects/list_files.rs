//! Files with lists of paths that lie there already: a text takes what they say for the words of a program or of a loop.

use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::by_name::{TAKES_LIST, changed_by, is_computed, targets};
use super::{Look, path_at};
use crate::path_pattern::visible;
use crate::program_name::SEARCHES;

/// Programs of a shell that take the lines of a file for the values of variables.
pub(super) const TAKES_LINES: [&str; 3] = ["mapfile", "read", "readarray"];

/// What stands where the words of a list come.
const LISTED: [&str; 2] = ["…", "{}"];

/// Behind which words `parallel` is told of files with lists.
const OF_FILES: &str = "::::";

/// How git is told of one, and its commands that take away or bring what it names.
const OF_GIT: &str = "--pathspec-from-file";
const GIT_CHANGES: [&str; 5] = ["checkout", "reset", "restore", "rm", "stash"];

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: it changes what files name that it takes for lists.
    pub(super) fn listed_in_files(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let listed = Listed::of(text, facts);
        let is_listed = |word: &str| listed.has(word);
        let changes =
            |command: &&ShellCommand| changes_files(command) && changed_by(command).into_iter().any(is_listed);
        let changer = facts.commands.iter().find(changes);
        let by_sign = || targets(text).into_iter().any(is_listed);
        let lists = if changer.is_some() || by_sign() { self.lists(text, facts) } else { Vec::new() };
        let folder = changer.map(|command| command.cwd.as_str()).filter(|cwd| !cwd.is_empty()).unwrap_or(self.cwd);
        let named = || lists.iter().find_map(|list| self.named_in(list, folder));
        let of_git = |command: &ShellCommand| {
            let list = list_of_git(command)?;
            self.named_in(&path_at(list, command), &command.cwd)
        };
        named().or_else(|| facts.commands.iter().find_map(of_git))
    }

    /// The files whose words `text` may take.
    pub(super) fn lists(&self, text: &str, facts: &ShellFacts) -> Vec<String> {
        let has = |names: &[&str]| facts.commands.iter().any(|command| names.contains(&command.name.as_str()));
        let is_any = has(&TAKES_LIST) || has(&TAKES_LINES);
        let named = |is_meant: fn(&ShellCommand) -> bool| {
            let commands = facts.commands.iter().filter(move |command| is_meant(command));
            let words = commands.flat_map(|command| command.argv.iter().skip(1).map(move |word| (word, command)));
            words.map(|(word, command)| self.names_at(word, command)).collect::<BTreeSet<Vec<String>>>()
        };
        let (shown, inner) = (named(shows_names), named(|command| command.depth > 0));
        let is_put = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            text.split("$(<").skip(1).any(|rest| rest.split(')').next().is_some_and(|file| file.contains(name)))
        };
        let is_list = |path: &&String| {
            let names = self.names(path);
            if is_any { !shown.contains(&names) } else { inner.contains(&names) || is_put(path) }
        };
        let told = facts.commands.iter().filter(|command| TAKES_LIST.contains(&command.name.as_str()));
        let told = told.flat_map(|command| {
            let words = command.argv.iter().skip_while(|word| *word != OF_FILES).skip(1);
            words.take_while(|word| !word.starts_with(":::")).map(move |word| path_at(word, command))
        });
        facts.reads.iter().filter(is_list).cloned().chain(told).collect()
    }

    /// Why nothing must be changed that the file `list` names, from `folder`.
    fn named_in(&self, list: &str, folder: &str) -> Option<String> {
        let said = self.said_in(list)?;
        let words = said.split(|letter: char| letter.is_whitespace() || letter == '\0');
        let lines = said.lines().filter(|line| line.contains(' ')).map(str::trim);
        let mut paths = words.chain(lines).filter(|word| word.contains(char::is_alphanumeric));
        let path = paths.find(|word| {
            let word = word.trim_matches(['"', '\'']);
            let is_whole = folder.is_empty() || word.starts_with(['/', '~']);
            let path = if is_whole { word.to_owned() } else { format!("{folder}/{word}") };
            let path: Vec<String> = path.split('/').map(visible).collect();
            self.left.get() > 0 && self.deleted(&path.join("/")).is_some()
        })?;
        Some(format!(
            "`{list}` names `{path}`, which guards this agent or decides over it: only a person may change it"
        ))
    }
}

/// What in a text may be a word of a list.
pub(super) struct Listed<'t> {
    text: &'t str,
    /// The variables that have one.
    taken: Vec<&'t str>,
}

impl<'t> Listed<'t> {
    /// Of `text`, of which `facts` tell.
    pub(super) fn of(text: &'t str, facts: &'t ShellFacts) -> Self {
        Self { text, taken: taken_names(text, facts) }
    }

    /// Whether `word` may be one, or a part of it.
    pub(super) fn has(&self, word: &str) -> bool {
        let names = || word.split('$').skip(1).map(|rest| rest.trim_start_matches('{'));
        LISTED.iter().any(|sign| word.contains(*sign))
            || is_computed(word, self.text)
            || names().any(|rest| self.taken.iter().any(|name| begins_with_name(rest, name)))
    }
}

/// The variables that the commands which `facts` tell of, or loops of `text`, give what they take from a file.
fn taken_names<'t>(text: &'t str, facts: &'t ShellFacts) -> Vec<&'t str> {
    let takes = |command: &&ShellCommand| TAKES_LINES.contains(&command.name.as_str());
    let words = facts.commands.iter().filter(takes).flat_map(|command| command.argv.iter().skip(1));
    let words = words.map(String::as_str).filter(|word| !word.starts_with('-'));
    let loops = text.split("for ").skip(1).filter_map(|rest| rest.split_whitespace().next());
    // `read` without a name gives `REPLY` what it reads, and `mapfile` `MAPFILE`.
    words.chain(loops).chain(["REPLY", "MAPFILE"]).filter(|name| !name.is_empty()).collect()
}

/// Whether `rest`, behind the sign of a variable, begins with the whole `name`.
fn begins_with_name(rest: &str, name: &str) -> bool {
    let goes_on = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    rest.strip_prefix(name).is_some_and(|behind| !behind.starts_with(goes_on))
}

/// Whether `command` changes files that it is told, as `sed` does where an option says so.
pub(super) fn changes_files(command: &ShellCommand) -> bool {
    let is_in_place = |word: &String| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        word.starts_with("--in-place") || letters.is_some_and(|letters| letters.contains('i'))
    };
    !matches!(command.name.as_str(), "sed" | "gsed") || command.argv.iter().skip(1).any(is_in_place)
}

/// Whether `command` is a search that says names of files, and nothing of what stands in them.
fn shows_names(command: &ShellCommand) -> bool {
    let is_said = |word: &String| match word.strip_prefix("--") {
        Some(long) => long.starts_with("files"),
        None => word.starts_with('-') && word.contains(['l', 'L']),
    };
    SEARCHES.contains(&command.name.as_str()) && command.argv.iter().skip(1).any(is_said)
}

/// The list of what `command` of git takes away or brings.
fn list_of_git(command: &ShellCommand) -> Option<&str> {
    let changes = command.argv.iter().any(|word| GIT_CHANGES.contains(&word.as_str()));
    if command.name != "git" || !changes {
        return None;
    }
    command.argv.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix(OF_GIT)?;
        rest.strip_prefix('=').or_else(|| command.argv.get(at + 1).map(String::as_str))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn a_variable_has_a_list_where_a_loop_or_a_program_fills_it() {
        let facts = ShellFacts { commands: commands(&["read -r f", "rm $f"]), ..ShellFacts::default() };
        assert_eq!(taken_names("for x in $(cat l); do y; done", &facts), ["f", "x", "REPLY", "MAPFILE"]);
        for (rest, begins) in [("f", true), ("f}", true), ("f[@]}", true), ("file", false), ("f_2", false)] {
            assert_eq!(begins_with_name(rest, "f"), begins, "{rest}");
        }
    }

    #[test]
    fn git_and_searches_say_what_they_take() {
        for (text, list) in [
            ("git rm --pathspec-from-file=l", Some("l")),
            ("git checkout main --pathspec-from-file l", Some("l")),
            ("git add --pathspec-from-file=l", None),
            ("rm --pathspec-from-file=l", None),
        ] {
            assert_eq!(list_of_git(&commands(&[text])[0]), list, "{text}");
        }
        for (text, shows) in [("grep -rl x l", true), ("rg --files-with-matches x", true), ("grep x l", false)] {
            assert_eq!(shows_names(&commands(&[text])[0]), shows, "{text}");
        }
        for (text, changes) in [("sed -i s/a/b/ l", true), ("sed -n p l", false), ("rm l", true)] {
            assert_eq!(changes_files(&commands(&[text])[0]), changes, "{text}");
        }
    }
}
