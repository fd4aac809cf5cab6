//! A configuration file as a tree in which every key and every value knows where it stands.
//!
//! TOML and JSON become the same tree, so that everything after this point is written once.

mod json;
mod toml;

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Number, Value};

use dialects::process::config::{At, Problem};

use super::diagnostic::{Diagnostic, Place};

/// The largest file that is read. Real ones stay below a hundredth of it.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// The deepest nesting of tables and lists: a bound for recursion, far above what the known keys need.
pub const MAX_DEPTH: usize = 64;

/// A file, parsed.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file.
    pub file: PathBuf,
    /// What is written in it.
    pub root: Node,
    /// Keys that stand twice in one table; paths start at the root.
    pub twice: Vec<Problem>,
    lines: Lines,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it holds.
    pub kind: NodeKind,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// What a value holds.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Nothing: as if the key were not there.
    Null,
    /// True or false.
    Bool(bool),
    /// A number, digits as they were written.
    Number(Number),
    /// A text.
    Text(String),
    /// A value that has no JSON form, such as a date; as it was written.
    Foreign(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the file. A key may stand there twice.
    Table(Vec<Member>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Member {
    /// The key.
    pub key: String,
    /// The key's bytes in the file.
    pub span: Range<usize>,
    /// Its value.
    pub node: Node,
}

/// Why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unparsable {
    /// Byte offset.
    pub(super) at: usize,
    /// What is wrong.
    pub(super) message: String,
}

impl Document {
    /// Parses `bytes`, which is what `file` holds; its extension says in which form.
    ///
    /// # Errors
    /// One diagnostic with the place where the text stops making sense.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let lossy = String::from_utf8_lossy(bytes);
        let lines = Lines::new(&lossy);
        let parsed = match std::str::from_utf8(bytes) {
            Err(why) => Err(Unparsable { at: why.valid_up_to(), message: "not valid UTF-8".into() }),
            Ok(text) if file.extension().is_some_and(|extension| extension == "json") => json::parse(text),
            Ok(text) => toml::parse(text),
        };
        let not_a_table = |root: &Node| Unparsable { at: root.span.start, message: "expected a table of keys".into() };
        match parsed.and_then(|root| if root.is_table() { Ok(root) } else { Err(not_a_table(&root)) }) {
            Ok(root) => {
                let mut twice = Vec::new();
                root.find_twice(&mut Vec::new(), &mut twice);
                Ok(Self { file: file.to_owned(), root, twice, lines })
            }
            Err(why) => Err(Diagnostic {
                place: lines.place(file, why.at),
                path: String::new(),
                message: why.message,
                nearest: None,
                guard: false,
            }),
        }
    }

    /// The place of what `path` leads to, or of the deepest part of it that is there.
    pub fn place(&self, path: &[String], at: At) -> Place {
        let (mut node, mut key) = (&self.root, None);
        let mut found = 0;
        for step in path {
            let Some((next, span)) = node.step(step) else { break };
            (node, key) = (next, span.or(key));
            found += 1;
        }
        let whole = found == path.len();
        // A table is best shown by its key: in TOML its own span may be all over the file.
        let by_key = !whole || at == At::Key || node.is_table();
        let start = key.filter(|_| by_key).map_or(node.span.start, |span| span.start);
        self.lines.place(&self.file, start)
    }
}

impl Node {
    /// The value of `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// What stands at `path`.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Whether this is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.kind, NodeKind::Table(_))
    }

    /// The members of a table; none for anything else.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            NodeKind::Table(members) => members,
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Number(_)
            | NodeKind::Text(_)
            | NodeKind::Foreign(_)
            | NodeKind::List(_) => &[],
        }
    }

    fn step(&self, step: &str) -> Option<(&Self, Option<Range<usize>>)> {
        match &self.kind {
            NodeKind::Table(members) => {
                // The last of two equal keys is the one that is too many.
                let member = members.iter().rfind(|member| member.key == step)?;
                Some((&member.node, Some(member.span.clone())))
            }
            NodeKind::List(items) => {
                let item = items.get(step.parse::<usize>().ok()?)?;
                Some((item, Some(item.span.clone())))
            }
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Foreign(_) => None,
        }
    }

    /// The value as JSON, without those for which `drop` says so of their path.
    pub fn to_value(&self, path: &mut Vec<String>, drop: &dyn Fn(&[String]) -> bool) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::Text(text) | NodeKind::Foreign(text) => Value::String(text.clone()),
            NodeKind::List(items) => {
                let steps = items.iter().enumerate().map(|(i, item)| (i.to_string(), item));
                Value::Array(kept(path, steps, drop).map(|(_, value)| value).collect())
            }
            NodeKind::Table(members) => {
                let steps = members.iter().map(|member| (member.key.clone(), &member.node));
                let mut table = Map::new();
                for (key, value) in kept(path, steps, drop) {
                    // The first of two equal keys stays; the second is a diagnostic.
                    table.entry(key).or_insert(value);
                }
                Value::Object(table)
            }
        }
    }

    /// The whole value as JSON.
    pub fn to_json(&self) -> Value {
        self.to_value(&mut Vec::new(), &|_| false)
    }

    fn find_twice(&self, path: &mut Vec<String>, found: &mut Vec<Problem>) {
        let (members, items): (&[Member], &[Self]) = match &self.kind {
            NodeKind::Table(members) => (members, &[]),
            NodeKind::List(items) => (&[], items),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Foreign(_) => {
                return;
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        for member in members {
            path.push(member.key.clone());
            if !seen.insert(&member.key) {
                let message = format!("duplicate key \"{}\"", member.key);
                found.push(Problem { path: path.clone(), at: At::Key, message, nearest: None });
            }
            member.node.find_twice(path, found);
            path.pop();
        }
        for (i, item) in items.iter().enumerate() {
            path.push(i.to_string());
            item.find_twice(path, found);
            path.pop();
        }
    }
}

fn kept<'a>(
    path: &'a mut Vec<String>,
    steps: impl Iterator<Item = (String, &'a Node)> + 'a,
    drop: &'a dyn Fn(&[String]) -> bool,
) -> impl Iterator<Item = (String, Value)> + 'a {
    steps.filter_map(move |(step, node)| {
        path.push(step);
        let value = (!drop(path)).then(|| node.to_value(path, drop));
        path.pop().zip(value)
    })
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
struct Lines {
    text: String,
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text: text.to_owned(), starts }
    }

    /// The line and the column, in characters, of the byte at `at`; both from 1.
    fn place(&self, file: &Path, at: usize) -> Place {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts[line - 1];
        let column = self.text.as_bytes()[start..at].iter().filter(|byte| !is_continuation(**byte)).count() + 1;
        Place { file: file.to_owned(), line, column }
    }
}

/// Whether `byte` is not the first of a character in UTF-8.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, text: &str, path: &[&str], at: At) -> String {
        let document = Document::parse(Path::new(file), text.as_bytes()).unwrap();
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        document.place(&path, at).to_string()
    }

    #[test]
    fn keys_and_values_know_their_place_in_both_forms() {
        let toml = "# ü\n[a.\"b c\"]\nd = [1, { e = 'ü' , f = 2 }]\n";
        assert_eq!(place("x.toml", toml, &["a", "b c"], At::Key), "x.toml:2:4");
        assert_eq!(place("x.toml", toml, &["a", "b c", "d"], At::Key), "x.toml:3:1");
        assert_eq!(place("x.toml", toml, &["a", "b c", "d", "0"], At::Value), "x.toml:3:6");
        assert_eq!(place("x.toml", toml, &["a", "b c", "d", "1", "f"], At::Value), "x.toml:3:25");
        assert_eq!(place("x.toml", toml, &["a", "b c", "gone"], At::Value), "x.toml:2:4");
        let json = "{\"a\": {\n  \"b c\" : {\"d\": [1, {\"e\": \"ü\", \"f\": 2}]}}}";
        assert_eq!(place("x.json", json, &["a", "b c"], At::Value), "x.json:2:3");
        assert_eq!(place("x.json", json, &["a", "b c", "d", "1", "f"], At::Value), "x.json:2:37");
        assert_eq!(place("x.json", json, &["gone"], At::Value), "x.json:1:1");
    }

    #[test]
    fn both_forms_make_the_same_tree() {
        let toml = "a = 1\nb = [true, \"x\\n\", 0.5]\n[c]\nd = {}\n";
        let json = r#"{"a": 1, "b": [true, "x\u000a", 0.5], "c": {"d": {}}}"#;
        let value = |file: &str, text: &str| Document::parse(Path::new(file), text.as_bytes()).unwrap().root.to_json();
        assert_eq!(value("x.toml", toml), value("x.json", json));
    }

    #[test]
    fn what_does_not_parse_says_where() {
        let check = |file: &str, bytes: &[u8], expected: &str| {
            let said = Document::parse(Path::new(file), bytes).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        };
        check("x.toml", b"a = 1\nb = = 2\n", "x.toml:2:5: ");
        check("x.toml", b"a = 1\na = 2\n", "x.toml:2:1: ");
        check("x.toml", b"a = \"\xff\"\n", "x.toml:1:6: not valid UTF-8");
        check("x.json", b"{\n \"a\": 01}", "x.json:2:8: ");
        check("x.json", b"", "x.json:1:1: ");
        check("x.json", b"{\"a\": \"\\ud800\"}", "x.json:1:7: ");
        check("x.json", b"{} {}", "x.json:1:4: ");
        check("x.json", b" []", "x.json:1:2: expected a table of keys");
        check("x.json", "[".repeat(100_000).as_bytes(), "x.json:1:");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        check("x.json", deep.as_bytes(), "x.json:1:65: nested deeper than 64 levels");
        check("x.toml", format!("a = {deep}").as_bytes(), "x.toml:1:");
        check("x.toml", format!("{} = 1", vec!["a"; 50_000].join(".")).as_bytes(), "x.toml:1:");
    }

    #[test]
    fn a_key_that_stands_twice_is_found() {
        let document = Document::parse(Path::new("x.json"), br#"{"a": [{"b": 1, "b": 2}]}"#).unwrap();
        assert_eq!(document.twice.len(), 1);
        assert_eq!(document.twice[0].path, ["a", "0", "b"]);
        assert_eq!(document.place(&document.twice[0].path, At::Key).to_string(), "x.json:1:17");
        assert_eq!(document.root.to_json().to_string(), r#"{"a":[{"b":1}]}"#);
    }
}
