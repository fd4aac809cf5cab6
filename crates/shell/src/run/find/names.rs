//! Which names a file may have that a search of `find` does something with.

use crate::state::{Certainty, Field};

/// Tests and options that take the next word.
const VALUED: &[&str] = &[
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-anewer",
    "-cnewer",
    "-mnewer",
    "-Bnewer",
    "-Bmin",
    "-Btime",
    "-flags",
    "-xattrname",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-samefile",
    "-fstype",
    "-maxdepth",
    "-mindepth",
    "-lname",
    "-ilname",
    "-used",
    "-context",
    "-files0-from",
];

/// Tests, options and actions that take no word and do nothing with a file that counts here.
const BARE: &[&str] = &[
    "-acl",
    "-d",
    "-daystart",
    "-empty",
    "-executable",
    "-false",
    "-follow",
    "-ignore_readdir_race",
    "-mount",
    "-nogroup",
    "-noignore_readdir_race",
    "-noleaf",
    "-nouser",
    "-nowarn",
    "-prune",
    "-quit",
    "-readable",
    "-sparse",
    "-true",
    "-warn",
    "-writable",
    "-x",
    "-xattr",
    "-xdev",
];

/// Deepest nesting of brackets and negations; people write two or three.
const NESTING: u32 = 32;

/// Patterns, one of which a name fits; none where it may be any.
type Names = Option<Vec<String>>;

/// Where the command of `-exec` ends that begins `words`: a plus ends it only behind what stands for the files.
pub(super) fn end_of_command(words: &[Field]) -> Option<usize> {
    let ends = |at: usize| words[at].text == ";" || (words[at].text == "+" && at > 0 && words[at - 1].text == "{}");
    (0..words.len()).find(|at| ends(*at))
}

/// The patterns of `-name` and `-iname`, one of which each file fits with which `tests` do something, such as to print it;
/// none where that may be any file, or the tests are not understood.
pub(super) fn names(tests: &[Field]) -> Names {
    let mut expression = Expression { words: tests, at: 0, depth: 0, reached: Vec::new(), is_clear: true };
    let passed = expression.list(&None);
    if !expression.is_clear || expression.at < tests.len() {
        return None;
    }
    // Without an action, what passes is printed.
    let reached = if expression.reached.is_empty() { vec![passed] } else { expression.reached };
    any_of(reached)
}

/// What one of `all` lets through.
fn any_of(all: Vec<Names>) -> Names {
    let mut joined: Vec<String> = Vec::new();
    for name in all.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten() {
        if !joined.contains(&name) {
            joined.push(name);
        }
    }
    Some(joined)
}

/// The tests of a search while they are read.
struct Expression<'t> {
    words: &'t [Field],
    at: usize,
    depth: u32,
    /// Which names each action may get to see.
    reached: Vec<Names>,
    is_clear: bool,
}

impl Expression<'_> {
    /// Reads a list up to its end, for files that fit `outer`; the result is what it lets through, or more.
    fn list(&mut self, outer: &Names) -> Names {
        let (mut branches, mut branch) = (Vec::new(), outer.clone());
        while let Some(word) = self.words.get(self.at) {
            match word.text.as_str() {
                ")" => break,
                "-o" | "-or" | "," => {
                    self.at += 1;
                    branches.push(std::mem::replace(&mut branch, outer.clone()));
                }
                "-a" | "-and" => self.at += 1,
                _ => branch = self.test(branch),
            }
        }
        branches.push(branch);
        any_of(branches)
    }

    /// Reads one test or action, for files that fit `before`.
    fn test(&mut self, before: Names) -> Names {
        let Some(word) = self.words.get(self.at) else { return before };
        self.at += 1;
        // What a shell puts there may be another word.
        self.is_clear &= word.is_exact();
        match word.text.as_str() {
            "!" | "-not" => {
                if self.goes_deeper() {
                    self.test(before.clone());
                    self.depth -= 1;
                }
                before
            }
            "(" => {
                if !self.goes_deeper() {
                    return before;
                }
                let inside = self.list(&before);
                self.depth -= 1;
                self.is_clear &= self.words.get(self.at).is_some_and(|word| word.text == ")");
                self.at += 1;
                inside
            }
            "-name" | "-iname" => {
                let is_any_case = word.text == "-iname";
                let pattern = self.words.get(self.at);
                self.at += 1;
                before.or_else(|| named(pattern?, is_any_case))
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                self.reached.push(before.clone());
                let rest = self.words.get(self.at..).unwrap_or_default();
                let end = end_of_command(rest);
                self.at += end.map_or(rest.len(), |end| end + 1);
                before
            }
            "-delete" | "-print" | "-print0" | "-ls" => {
                self.reached.push(before.clone());
                before
            }
            "-printf" | "-fprint" | "-fprint0" | "-fls" => {
                self.reached.push(before.clone());
                self.at += 1;
                before
            }
            "-fprintf" => {
                self.reached.push(before.clone());
                self.at += 2;
                before
            }
            "-depth" => {
                // Some take a number.
                self.at += usize::from(self.words.get(self.at).is_some_and(is_number));
                before
            }
            other => {
                let is_valued = VALUED.contains(&other) || other.starts_with("-newer");
                self.at += usize::from(is_valued);
                // Nobody knows whether the next word is its own.
                self.is_clear &= is_valued || BARE.contains(&other);
                before
            }
        }
    }

    /// Goes into a bracket or a negation, if that is not too deep.
    fn goes_deeper(&mut self) -> bool {
        self.is_clear &= self.depth < NESTING;
        self.depth += u32::from(self.is_clear);
        self.is_clear
    }
}

fn is_number(word: &Field) -> bool {
    let digits = word.text.trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The names that fit `pattern`, in small letters too where case does not count; none where it may be any.
fn named(pattern: &Field, is_any_case: bool) -> Names {
    // What the shell finds for a pattern may be another test, but no test has a dot in it.
    let may_be_test = pattern.certainty == Certainty::Glob && !pattern.text.contains('.');
    // A bracket with a slash in it would be told as two names.
    if !pattern.is_known() || pattern.text == "*" || pattern.text.contains('/') || may_be_test {
        return None;
    }
    let lower = pattern.text.to_ascii_lowercase();
    let is_other = is_any_case && lower != pattern.text;
    Some(std::iter::once(pattern.text.clone()).chain(is_other.then_some(lower)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_reach_an_action_count() {
        for (text, expected) in [
            ("-name a", Some("a")),
            ("-name a -delete", Some("a")),
            ("-name a -o -name b", Some("a b")),
            ("( -name a -o -name b ) -delete", Some("a b")),
            ("-name a -o -delete", None),
            ("-name a , -delete", None),
            ("-delete -name a", None),
            ("-name a -o -name b -delete", Some("b")),
            ("-name a -prune -o -name b -print -delete", Some("b")),
            ("-name a -prune -o -type f -print", None),
            ("-not -name a -name b", Some("b")),
            ("! -name a -delete", None),
            ("! ( -name a -delete )", Some("a")),
            ("-type f -name a -mtime +7 -delete", Some("a")),
            ("-iname A -delete", Some("A a")),
            ("-name * -delete", None),
            ("-name a[b/] -delete", None),
            ("-exec x -name a ; -delete", None),
            ("-name a -exec x {} + -delete", Some("a")),
            ("-fprintf -name a -delete", None),
            ("-newer -o -name a -delete", Some("a")),
            ("-path -name -o -delete", None),
            ("-mnewer -name -o -delete", None),
            ("-mnewer x -name a -delete", Some("a")),
            ("-unheard-of -name a -delete", None),
            ("-depth 1 -name a -empty -delete", Some("a")),
            ("-depth -name a -delete", Some("a")),
            ("( -name a -delete", None),
            ("-name a ) -delete", None),
            ("", None),
        ] {
            let tests: Vec<Field> = text.split_whitespace().map(Field::known).collect();
            let found = names(&tests).map(|names| names.join(" "));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        let deep: Vec<Field> = "( ".repeat(1000).split_whitespace().map(Field::known).collect();
        assert_eq!(names(&deep), None);
        let glob = |text: &str| Field { text: text.to_owned(), certainty: Certainty::Glob };
        assert_eq!(names(&[Field::known("-name"), glob("-*")]), None);
        assert_eq!(names(&[Field::known("-name"), glob("*.c")]), Some(vec!["*.c".to_owned()]));
        assert_eq!(names(&[Field::known("-name"), Field::known("a"), Field::unknown("$x")]), None);
    }
}
