//! Names that a text puts together of what it says and what a file or a list of names says, and files in which other programs
//! are told names.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::by_name::{behind, changed_by};
use super::list_files::{Listed, TAKES_LINES, changes_files};
use super::reached::LOOKS;
use super::{Look, MAX_LIST_BYTES, path_at};
use crate::filled::named;
use crate::made_names::{urls_of_files, values};
use crate::path_pattern::visible;
use crate::program_name::UNKNOWN;
use crate::taken::{is_tar, join, tar};

/// How many unknown parts of one word are looked at.
const MAX_PARTS: usize = 8;

/// How many folders are looked at in which the names of a list may be meant.
const MAX_FOLDERS: usize = 8;

/// What one file costs of the paths that are looked at.
const COST: usize = 32;

/// Programs of which a word is a script, and no file.
const WITH_SCRIPT: [&str; 3] = ["gsed", "perl", "sed"];

/// A word of a text of which something is not known.
struct PartlyKnown<'t> {
    word: &'t str,
    /// Where it is meant.
    cwd: &'t str,
    /// Whether the text changes what it names, and does not only read it.
    changes: bool,
    /// Whether it may be a script.
    is_script: bool,
}

impl PartlyKnown<'_> {
    /// The path that it is with `name` in the place of what is not known.
    fn with(&self, name: &str) -> String {
        meant(self.cwd, &put(self.word, name).unwrap_or_default())
    }
}

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: what it names is told in a file, or in part.
    pub(super) fn told_in_files(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let words = partly_known(text, facts);
        self.put_together(&words, (text, facts))
            .or_else(|| facts.commands.iter().find_map(|command| self.told_by_file(command, facts)))
            .or_else(|| self.completed(&words, facts))
            .or_else(|| self.hidden_in_part(&words))
    }

    /// The same of names of which a part stands in a file.
    fn put_together(&self, words: &[PartlyKnown<'_>], (text, facts): (&str, &ShellFacts)) -> Option<String> {
        let listed = Listed::of(text, facts);
        let words: Vec<&PartlyKnown<'_>> = words.iter().filter(|one| listed.has(one.word)).collect();
        let lists = if words.is_empty() { Vec::new() } else { self.lists(text, facts) };
        lists.iter().find_map(|list| {
            let said = self.said_in(list)?;
            let is_named = |entry: &&str| words.iter().any(|one| self.is_kept(&one.with(entry), one.changes));
            entries(&said).find(is_named).map(|entry| names_kept(list, entry))
        })
    }

    /// Whether `path`, which a file says, must not be changed, or not be read.
    fn is_kept(&self, path: &str, changes: bool) -> bool {
        if self.left.get() == 0 {
            return false;
        }
        if !changes {
            return self.read(path).or_else(|| self.searched(path)).is_some();
        }
        let path: Vec<String> = path.split('/').map(visible).collect();
        self.deleted(&path.join("/")).is_some()
    }

    /// What `file` says, as long as there is still something to be looked at. What is longer than is read names more than is
    /// looked at: the rest of it must not pass unread.
    pub(super) fn said_in(&self, file: &str) -> Option<String> {
        let left = self.left.get().saturating_sub(COST);
        self.left.set(left);
        let said = if left == 0 { None } else { (self.disk.says)(file) }?;
        if said.len() >= MAX_LIST_BYTES {
            self.left.set(0);
        }
        Some(said)
    }

    /// Why `command` must not take names, or what it is to do, from a file.
    fn told_by_file(&self, command: &ShellCommand, facts: &ShellFacts) -> Option<String> {
        let words = command.argv.get(1..).unwrap_or_default();
        let has = |begin: &str| words.iter().any(|word| word.starts_with(begin));
        let row = |letter: char| {
            words.iter().any(|word| !word.starts_with("--") && word.starts_with('-') && word.contains(letter))
        };
        let (lists, changes) = match command.name.as_str() {
            "curl" => return self.configured(&values(words, Some('K'), "config"), command),
            "aria2c" => return self.configured(&values(words, Some('i'), "input-file"), command),
            _ if is_tar(command) => {
                let is_row = words.first().is_some_and(|first| !first.starts_with('-') && first.contains('T'));
                let told = if is_row { words.to_vec() } else { values(words, Some('T'), "files-from") };
                (told, has("--remove") || tar(command).takes)
            }
            "rsync" => (values(words, None, "files-from"), true),
            "zip" if has("-@") => (facts.reads.clone(), row('m') || has("--move")),
            "cpio" => (facts.reads.clone(), row('p') || row('i') || has("--pass") || has("--extract")),
            "pax" => (facts.reads.clone(), row('r')),
            _ => return None,
        };
        let own = [String::new(), tar(command).folder];
        let folders = own.into_iter().chain(named(command).map(str::to_owned)).take(MAX_FOLDERS);
        let folders: Vec<String> = folders.collect();
        lists.iter().find_map(|list| {
            let said = self.said_in(&path_at(list, command))?;
            let is_named = |entry: &&str| {
                folders.iter().any(|folder| self.is_kept(&path_at(&join(folder, entry), command), changes))
            };
            entries(&said).find(is_named).map(|entry| names_kept(list, entry))
        })
    }

    /// Why `command` must not be told what it does by one of `files`.
    fn configured(&self, files: &[String], command: &ShellCommand) -> Option<String> {
        files.iter().find_map(|file| {
            let said = self.said_in(&path_at(file, command))?;
            let by_url = urls_of_files(&said).into_iter().find(|path| self.is_kept(path, false));
            let ends = |letter: char| letter.is_whitespace() || matches!(letter, '=' | '"' | '\'' | ',');
            let mut told = said.split(ends).filter(|word| word.contains(['/', '.']) && !word.contains("://"));
            let by_name = || told.find(|word| self.is_kept(&path_at(word, command), true)).map(str::to_owned);
            by_url.or_else(by_name).map(|path| names_kept(file, &path))
        })
    }

    /// Why a text must not change what `compgen` lists, hidden files among it.
    fn completed(&self, words: &[PartlyKnown<'_>], facts: &ShellFacts) -> Option<String> {
        let mut lists = facts.commands.iter().filter(|command| command.name == "compgen").filter_map(|command| {
            let has = |letter: char| command.argv.iter().any(|word| word.starts_with('-') && word.contains(letter));
            let last = command.argv.last().filter(|word| !word.starts_with('-')).map_or("", String::as_str);
            let names = if has('G') { last.to_owned() } else { format!("{last}*") };
            (has('f') || has('d') || has('G') || has('A')).then(|| path_at(&names, command))
        });
        let changes = words.iter().any(|one| one.changes);
        lists.find_map(|pattern| {
            let is_held = |found: &str| self.unbounded(|look| look.deleted(found).is_some());
            let is_found = || (self.disk.finds)(&pattern, &is_held).unwrap_or(true);
            self.deleted(&pattern).filter(|_| changes && is_found())
        })
    }

    /// Why a text must not change a hidden file or folder of whose name nothing but the dot is known: `.$x`.
    fn hidden_in_part(&self, words: &[PartlyKnown<'_>]) -> Option<String> {
        let mut words = words.iter().filter(|one| one.changes && !one.is_script);
        let one = words.find(|one| {
            let starred = (0..MAX_PARTS).fold(one.word.to_owned(), |word, _| put(&word, "*").unwrap_or(word));
            let is_hidden = starred.split('/').any(|name| name.starts_with('.') && name.contains('*'));
            is_hidden && self.deleted(&meant(one.cwd, &starred)).is_some()
        })?;
        Some(format!("`{}` may be where settings of agents lie: what it is called cannot be known", one.word))
    }
}

/// The words of `text`, of which `facts` tell, that are names of which something is not known.
fn partly_known<'t>(text: &'t str, facts: &'t ShellFacts) -> Vec<PartlyKnown<'t>> {
    let is_unknown = |word: &str| word.contains(UNKNOWN);
    let of_command = |command: &'t ShellCommand| {
        let changed = if changes_files(command) { changed_by(command) } else { Vec::new() };
        let name = command.name.as_str();
        let reads = !LOOKS.contains(&name) && !TAKES_LINES.contains(&name);
        let words = command.argv.iter().skip(1).map(String::as_str).filter(move |word| is_unknown(word));
        let of_word = move |word: &'t str| PartlyKnown {
            word,
            cwd: command.cwd.as_str(),
            changes: changed.contains(&word),
            is_script: WITH_SCRIPT.contains(&name),
        };
        words.map(of_word).filter(move |one| one.changes || reads)
    };
    let cwd = facts.commands.last().map_or("", |command| command.cwd.as_str());
    let of_sign = |sign: char| {
        let words = behind(text, sign).into_iter().filter(move |word| is_unknown(word));
        words.map(move |word| PartlyKnown { word, cwd, changes: sign == '>', is_script: false })
    };
    facts.commands.iter().flat_map(of_command).chain(of_sign('>')).chain(of_sign('<')).collect()
}

/// `path` as it is meant in `cwd`, if that is known.
fn meant(cwd: &str, path: &str) -> String {
    if path.is_empty() { String::new() } else { join(cwd, path) }
}

/// The words of a file, as far as they may be names.
fn entries(said: &str) -> impl Iterator<Item = &str> {
    let words = said.split(|letter: char| letter.is_whitespace() || letter == '\0');
    words.map(|word| word.trim_matches(['"', '\''])).filter(|word| word.contains(char::is_alphanumeric))
}

/// `word` with `name` in the place of the first part of it that is not known; none where all is known.
fn put(word: &str, name: &str) -> Option<String> {
    let at = word.find(UNKNOWN)?;
    let begin: String = word[..at].chars().filter(|sign| !matches!(sign, '"' | '\'')).collect();
    Some(format!("{begin}{name}{}", behind_unknown(&word[at..])))
}

/// What follows the part that is not known with which `text` begins.
fn behind_unknown(text: &str) -> &str {
    let rest = text.strip_prefix('$').unwrap_or(text);
    let mut signs = rest.chars();
    let after = |close: char| rest[1..].find(close).map_or("", |end| &rest[end + 2..]);
    match signs.next() {
        Some('(') => after(')'),
        Some('{') => after('}'),
        Some('`') => after('`'),
        Some(first) if first == '_' || first.is_ascii_alphanumeric() => {
            rest.trim_start_matches(|letter: char| letter == '_' || letter.is_ascii_alphanumeric())
        }
        Some(_) => signs.as_str(),
        None => "",
    }
}

fn names_kept(file: &str, name: &str) -> String {
    format!("`{file}` says `{name}`, which guards this agent or decides over it: only a person may change it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_a_word_is_put_in_once() {
        for (word, expected) in [
            ("~/.$(…)/x", Some("~/.N/x")),
            ("~/.\"$(cat n)\"/x", Some("~/.N\"/x")),
            (".${0}", Some(".N")),
            ("a/$f.json", Some("a/N.json")),
            ("`cat n`/x", Some("N/x")),
            ("…", Some("N")),
            ("$1/$2", Some("N/$2")),
            ("$", Some("N")),
            ("a/b", None),
        ] {
            assert_eq!(put(word, "N").as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn a_list_has_words_that_may_be_names() {
        let found: Vec<&str> = entries("# a\n'b c'\n\0d/e\0 -- ").collect();
        assert_eq!(found, ["a", "b", "c", "d/e"]);
    }
}
