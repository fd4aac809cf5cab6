//! The shape of tables, part by part: columns with their types and defaults, keys, checks, unique indexes. What the steps
//! of the schema come to is written down beside this file, and a test holds it to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

/// Casts that PostgreSQL writes or leaves out, as a text went through a dump or not.
const CASTS: [&str; 4] = ["::character varying[]", "::character varying", "::text[]", "::text"];

/// The most characters of a part that are shown.
const SHOWN_CHARS: usize = 200;

/// The parts of tables, by the name of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(BTreeMap<String, BTreeSet<String>>);

/// The shape of the tables in SQLite.
pub(super) fn in_sqlite() -> &'static Parts {
    static PARTS: LazyLock<Parts> = LazyLock::new(|| Parts::read(include_str!("sqlite.txt")));
    &PARTS
}

/// The shape of the tables in PostgreSQL.
pub(super) fn in_postgres() -> &'static Parts {
    static PARTS: LazyLock<Parts> = LazyLock::new(|| Parts::read(include_str!("postgres.txt")));
    &PARTS
}

impl Parts {
    /// A line for each part: the table, a tab, and the part.
    fn read(lines: &str) -> Self {
        let mut parts = Self::default();
        lines.lines().filter_map(|line| line.split_once('\t')).for_each(|(table, part)| parts.add(table, part.into()));
        parts
    }

    /// The lines that [`Self::read`] takes.
    #[cfg(test)]
    pub(super) fn lines(&self) -> String {
        let line = |(table, parts): (&String, &BTreeSet<String>)| {
            parts.iter().map(|part| format!("{table}\t{part}\n")).collect::<String>()
        };
        self.0.iter().map(line).collect()
    }

    pub(super) fn add(&mut self, table: &str, part: String) {
        self.0.entry(table.to_owned()).or_default().insert(part);
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    /// The first table of these that is otherwise in `seen`.
    pub(super) fn difference(&self, seen: &Self) -> Option<Difference> {
        let (none, first) = (BTreeSet::new(), |of: &BTreeSet<String>, but: &BTreeSet<String>| {
            of.difference(but).next().map(|part| part.escape_debug().take(SHOWN_CHARS).collect())
        });
        self.0.iter().find_map(|(table, parts)| {
            let found = seen.0.get(table);
            let there = found.unwrap_or(&none);
            (there != parts).then(|| Difference {
                table: table.clone(),
                is_there: found.is_some(),
                lacks: first(parts, there),
                has: first(there, parts),
            })
        })
    }
}

/// How a table differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    table: String,
    is_there: bool,
    /// The first part that it should have.
    lacks: Option<String>,
    /// The first part that it should not have.
    has: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.table;
        match (&self.lacks, &self.has) {
            _ if !self.is_there => write!(f, "there is no table `{table}`, or another thing of its name"),
            (Some(lacks), Some(has)) => write!(f, "the table `{table}` has `{has}` and lacks `{lacks}`"),
            (None, Some(has)) => write!(f, "the table `{table}` has `{has}`"),
            (lacks, None) => write!(f, "the table `{table}` lacks `{}`", lacks.as_deref().unwrap_or_default()),
        }
    }
}

/// A part as the catalogue of PostgreSQL has it: `what` it is, and its `text` as the server writes it, which is another
/// one for the same meaning after a dump.
pub(super) fn catalogued(what: &str, text: Option<&str>) -> String {
    let Some(text) = text else { return what.to_owned() };
    let plain = text.replace('"', "");
    if text.starts_with("CHECK") || what.starts_with("column") {
        let bare = CASTS.iter().fold(plain, |text, cast| text.replace(cast, ""));
        return format!("{what} {}", bare.replace(['(', ')'], ""));
    }
    format!("{what} {plain}")
}

/// The parts that the statement `sql` gives a table of SQLite: what stands before its columns, each of them, each
/// constraint, and what stands behind. Comments, blanks and quotes around names do not count.
pub(super) fn declared(sql: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for word in Words(sql) {
        let begins = match word {
            "(" => depth == 0,
            ")" => depth == 1,
            "," => depth == 1,
            _ => false,
        };
        match word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if begins {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            let (last, next) = (part.chars().next_back(), word.chars().next());
            let is_named = next.is_some_and(is_word);
            let stands_apart =
                last.is_some_and(|c| is_word(c) && (is_named || next == Some('\'')) || c == '\'' && is_named);
            if stands_apart {
                part.push(' ');
            }
            part.push_str(word);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The same of an index that keeps rows unique; nothing of another one.
pub(super) fn unique(sql: &str) -> Option<String> {
    let mut words = Words(sql);
    let is_unique =
        ["CREATE", "UNIQUE"].iter().all(|word| words.next().is_some_and(|it| it.eq_ignore_ascii_case(word)));
    is_unique.then(|| declared(sql).join(" "))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The words of a statement, without comments and blanks.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            // What else is blank is part of a name there.
            let text = self.0.trim_start_matches([' ', '\t', '\n', '\u{c}', '\r']);
            let first = text.chars().next()?;
            let (len, counts) = match first {
                '-' if text.starts_with("--") => (text.find('\n').unwrap_or(text.len()), false),
                '/' if text.starts_with("/*") => (text[2..].find("*/").map_or(text.len(), |at| at + 4), false),
                // A doubled one within begins another word, which stands right behind: the same for everybody.
                '\'' => (text[1..].find('\'').map_or(text.len(), |at| at + 2), true),
                '"' => {
                    let len = text[1..].find('"').map_or(text.len(), |at| at + 2);
                    let name = text[1..len].trim_end_matches('"');
                    if !name.is_empty() && name.chars().all(is_word) {
                        self.0 = &text[len..];
                        return Some(name);
                    }
                    // Somebody else's name: what looks like a comment in it is none.
                    (len, true)
                }
                c if is_word(c) => (text.find(|c| !is_word(c)).unwrap_or(text.len()), true),
                c => (c.len_utf8(), true),
            };
            let (word, rest) = text.split_at(len);
            self.0 = rest;
            if counts {
                return Some(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_what_it_says_however_it_is_written() {
        let plain =
            declared("CREATE TABLE a (b INTEGER PRIMARY KEY, c TEXT DEFAULT 'x, (y' CHECK (c IN ('p', 'q'))) STRICT");
        let parts =
            ["CREATE TABLE a", "b INTEGER PRIMARY KEY", "c TEXT DEFAULT 'x, (y' CHECK(c IN('p','q'))", "STRICT"];
        assert_eq!(plain, parts);
        let other = "CREATE TABLE \"a\"(b INTEGER -- the key, (really)\n PRIMARY  KEY,\n  c /* , */ TEXT DEFAULT 'x, (y' \
                     CHECK(c IN('p','q')))STRICT";
        assert_eq!(declared(other), parts);
        assert_ne!(declared("CREATE TABLE a (b INTEGER, c)"), declared("CREATE TABLE a (b INTEGER, c UNIQUE)"));
        assert_eq!(
            unique("create unique index i on a (b) where b is not null").as_deref(),
            Some("create unique index i on a b where b is not null")
        );
        assert_eq!(unique("CREATE INDEX unique_or_not ON a (b)"), None);
        // Broken text ends.
        for broken in ["'", "\"", "/*", "--", ")))", "(,(", "é'"] {
            let _ = declared(broken);
        }
    }

    #[test]
    fn a_check_is_the_same_after_a_dump() {
        let before = "CHECK (((kind)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])))";
        let after =
            "CHECK (((kind)::text = ANY (ARRAY[('a'::character varying)::text, ('b'::character varying)::text])))";
        assert_eq!(catalogued("constraint", Some(before)), "constraint CHECK kind = ANY ARRAY['a', 'b']");
        assert_eq!(catalogued("constraint", Some(after)), catalogued("constraint", Some(before)));
        let key = "FOREIGN KEY (turn) REFERENCES turns(number) ON DELETE CASCADE";
        assert_eq!(catalogued("constraint", Some(key)), format!("constraint {key}"));
    }

    #[test]
    fn the_first_difference_is_told() {
        let known = Parts::read("a\tx INT\na\ty INT\nb\tz INT\n");
        assert_eq!(known.difference(&known), None);
        let said = |lines: &str| known.difference(&Parts::read(lines)).unwrap().to_string();
        assert_eq!(said("a\tx INT\na\ty TEXT\nb\tz INT"), "the table `a` has `y TEXT` and lacks `y INT`");
        assert_eq!(said("a\tx INT\nb\tz INT"), "the table `a` lacks `y INT`");
        assert_eq!(said("a\tx INT\na\ty INT\nb\tz INT\nb\tUNIQUE (z)"), "the table `b` has `UNIQUE (z)`");
        assert_eq!(said("a\tx INT\na\ty INT\nc\tz INT"), "there is no table `b`, or another thing of its name");
    }
}
