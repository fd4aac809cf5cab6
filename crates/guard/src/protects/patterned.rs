//! Patterns of paths in a text that another program runs or takes for code: each is what it stands for on the disk.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Look, MAX_PATH_BYTES};
use crate::braces;
use crate::path_pattern::{is_loose, visible};

/// How many patterns of one text are looked up on the disk; further ones count by their names.
const MAX_PATTERNS: usize = 256;

/// How the home folder is called in code and by shells.
const HOMES: [&str; 2] = ["${HOME}", "$HOME"];

/// What code calls the functions that look for files by a pattern.
const LOOKS_FOR_FILES: &str = "glob";

/// How a path begins that no pattern of texts is.
const FOLDERS: [&str; 2] = ["~/", "../"];

/// What stands at the beginning of a path for a folder that code puts there.
const UNKNOWN: [char; 5] = ['$', '{', '}', '%', '#'];

/// How long the letters behind a script of `sed` are at most: `s/x/rm y/e`.
const FLAGS: usize = 3;

impl Look<'_> {
    /// Why `text`, which is not known in all parts, must not run: a pattern in it stands for what guards the agent, which it must
    /// not even name.
    pub(super) fn patterned(&self, text: &str) -> Option<String> {
        let looks = text.contains(LOOKS_FOR_FILES);
        words(text).into_iter().enumerate().find_map(|(at, word)| {
            let forms = braces::of_shell(&word).into_iter().map(Cow::into_owned);
            let mut paths = forms.flat_map(|form| paths(&form, looks));
            paths.find_map(|path| self.stands_for_held(&path, &word, at < MAX_PATTERNS))
        })
    }

    /// Why a text must not say `word`, which stands for `path`; it may be looked up on the disk (`is_found`).
    fn stands_for_held(&self, path: &str, word: &str, is_found: bool) -> Option<String> {
        if !path.contains(['*', '?', '[']) {
            return self.named_or_read(path);
        }
        let names: Vec<String> = path.split('/').map(visible).collect();
        let pattern = self.whole(&names.join("/"));
        let is_held = |found: &str| self.named_or_read(&self.as_said(found)).is_some();
        let found = if is_found { (self.disk.finds)(&pattern, &is_held) } else { None };
        let stands = found.unwrap_or_else(|| self.written(&pattern).is_some()) || self.read(&pattern).is_some();
        stands.then(|| {
            format!("`{word}` stands for what guards this agent, and what would be done with it cannot be known")
        })
    }

    fn named_or_read(&self, path: &str) -> Option<String> {
        self.unreadable(path).or_else(|| self.read(path))
    }

    /// `path` as a whole one, without ways up.
    fn whole(&self, path: &str) -> String {
        let whole = match path.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", self.files.home),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("{}/{path}", self.cwd),
        };
        let mut names: Vec<&str> = Vec::new();
        for name in whole.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                _ => names.push(name),
            }
        }
        format!("/{}", names.join("/"))
    }

    /// `found`, a whole path, as a text would say it: below the folder of work or the home folder by what follows those.
    fn as_said(&self, found: &str) -> String {
        let below = |folder: &str| found.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        match (below(self.cwd), below(self.files.home)) {
            (Some(rest), _) => rest.to_owned(),
            (None, Some(rest)) => format!("~/{rest}"),
            (None, None) => found.to_owned(),
        }
    }
}

/// The words of `text` that are patterns of paths, in whatever language it is: with what quotes and backslashes part, and
/// without those.
fn words(text: &str) -> BTreeSet<String> {
    let text = HOMES.iter().fold(text.to_owned(), |text, home| text.replace(home, "~"));
    let text = text.replace("\\n", " ").replace("\\t", " ").replace('\\', "");
    let joined: String = text.chars().filter(|letter| !matches!(letter, '"' | '\'')).collect();
    let ends = |letter: char| letter.is_whitespace() || "'\"`|;&()<>=".contains(letter);
    let is_pattern = |word: &&str| {
        word.len() <= MAX_PATH_BYTES
            && (word.contains('/') || word.starts_with('.'))
            && (word.contains(['*', '?', '[']) || braces::has_list(word))
            && (word.contains(char::is_alphanumeric) || FOLDERS.iter().any(|folder| word.starts_with(folder)))
    };
    let all = text.split(ends).chain(joined.split(ends));
    all.flat_map(listed).map(closed).filter(is_pattern).map(str::to_owned).collect()
}

/// The words that `word` is where commas part them that stand in no braces.
fn listed(word: &str) -> Vec<&str> {
    if braces::has_list(word) { vec![word] } else { word.split(',').collect() }
}

/// `word` without brackets that only begin or only end in it.
fn closed(word: &str) -> &str {
    let mut word = word.trim_matches([',', ':']);
    for (open, close) in [('[', ']'), ('{', '}')] {
        let (opened, ended) = (word.matches(open).count(), word.matches(close).count());
        if ended > opened {
            word = word.strip_suffix(close).unwrap_or(word);
        } else if opened > ended {
            word = word.strip_prefix(open).unwrap_or(word);
        }
    }
    word
}

/// The paths that `word` may be, a pattern; where code `looks` for files, also those that begin with one that stands for any
/// hidden name.
fn paths(word: &str, looks: bool) -> Vec<String> {
    let names: Vec<&str> = word.split('/').collect();
    let is_pattern = |name: &&str| name.contains(['*', '?', '[']);
    let mut found = Vec::new();
    // A pattern of texts begins so, too.
    let is_text = |name: &&str| is_pattern(name) && (is_loose(name) || name.starts_with(".*"));
    let is_any = names.first().is_some_and(is_text);
    if !word.contains(UNKNOWN) && (looks || !is_any) {
        found.push(word.to_owned());
        let last = names.last().copied().unwrap_or_default();
        let is_flags = last.len() <= FLAGS && last.bytes().all(|letter| letter.is_ascii_lowercase());
        let above = names.get(..names.len().saturating_sub(1)).unwrap_or_default();
        if is_flags && above.iter().any(is_pattern) {
            found.push(above.join("/"));
        }
    }
    let hidden = names.iter().position(|name| name.starts_with('.') && is_pattern(name) && !is_text(name));
    // Which folder stands before it is not known.
    let behind_unknown = hidden.filter(|at| names[..*at].iter().all(|name| name.is_empty()) || word.contains(UNKNOWN));
    if let Some(at) = behind_unknown {
        let tail = names[at..].join("/");
        found.extend(["~", ".", ".."].map(|folder| format!("{folder}/{tail}")));
    }
    found.retain(|path| !path.contains(['$', '{', '}']));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_paths_are_found_in_any_language() {
        for (text, found) in [
            (r#"awk 'BEGIN{system("rm ../.cla*/s*")}'"#, "../.cla*/s*"),
            (r"sed 's/.*/rm ..\/.cla*\/s*/e' x", "../.cla*/s*/e s/.*/rm"),
            (r#"make --eval='x:;rm ../.c""la*/s*' x"#, "../.cla*/s* la*/s*"),
            (r#"perl -e 'unlink glob("~/.c*/*.json")'"#, "~/.c*/*.json"),
            ("tclsh <<< 'file delete {*}[glob ~/.c*/s*]'", "~/.c*/s*"),
            ("glob.glob(['../.c*/s*','a/*'])", "../.c*/s* a/*"),
            ("rm $HOME/.c*/s*", "~/.c*/s*"),
            ("rm ../{.cl,x}aude/s", "../{.cl,x}aude/s"),
            ("os.chdir('..'); os.system('rm -rf .cla*')", ".cla*"),
            ("rm -rf ~/.*", "~/.*"),
            ("a[i]*b", ""),
            ("re.sub('.*/', '', x)", ""),
            ("x = a * b", ""),
        ] {
            let found: BTreeSet<&str> = found.split(' ').filter(|word| !word.is_empty()).collect();
            let words = words(text);
            assert_eq!(words.iter().map(String::as_str).collect::<BTreeSet<&str>>(), found, "{text}");
        }
    }

    #[test]
    fn a_pattern_is_the_paths_that_it_may_be() {
        for (word, looks, found) in [
            ("../.cla*/s*", false, "../.cla*/s*"),
            ("../.cla*/s*/e", false, "../.cla*/s*/e ../.cla*/s*"),
            ("/.cla*/s*", false, "/.cla*/s* ~/.cla*/s* ./.cla*/s* ../.cla*/s*"),
            ("{home}/.cla*/s*", false, "~/.cla*/s* ./.cla*/s* ../.cla*/s*"),
            ("%s/.cla*", false, "~/.cla* ./.cla* ../.cla*"),
            (".cla*", false, ".cla* ~/.cla* ./.cla* ../.cla*"),
            ("src/.cla*", false, "src/.cla*"),
            (".*/s*", false, ""),
            (".*.json", false, ""),
            ("/x/.*json", false, "/x/.*json"),
            (".*/s*", true, ".*/s*"),
            ("s/.[^.]*//", false, "s/.[^.]*// s/.[^.]*/"),
            ("$x/src/*", false, ""),
        ] {
            assert_eq!(paths(word, looks).join(" "), found, "{word}");
        }
    }
}
