//! A configuration file as a tree in which every key and every value knows where it stands.
//!
//! TOML and JSON become the same tree, so that everything after this point is written once.

mod toml;

use std::path::{Path, PathBuf};

use pintle_dialects::process::config::{EntryProblem, MemberPart};
use pintle_dialects::tree::{LineIndex, ParseError, json};
pub use pintle_dialects::tree::{MAX_DEPTH, NodeKind, TreeMember, TreeNode};

use super::diagnostic::{Diagnostic, Location};

/// The largest file that is read. Real ones stay below a hundredth of it.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// A file, parsed.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file.
    pub file: PathBuf,
    /// The tree that is written in it.
    pub root: TreeNode,
    /// Keys that stand twice in one table; paths start at the root.
    pub twice: Vec<EntryProblem>,
    lines: LineIndex,
}

impl Document {
    /// Parses `bytes`, which is what `file` holds; its extension says in which form.
    ///
    /// # Errors
    /// One diagnostic with the place where the text stops making sense.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let lossy = String::from_utf8_lossy(bytes);
        let lines = LineIndex::new(&lossy);
        let parsed = match std::str::from_utf8(bytes) {
            Err(why) => Err(ParseError { at: why.valid_up_to(), message: "not valid UTF-8".into() }),
            Ok(text) if file.extension().is_some_and(|extension| extension == "json") => json::parse(text),
            Ok(text) => toml::parse(text),
        };
        let not_a_table =
            |root: &TreeNode| ParseError { at: root.span.start, message: "expected a table of keys".into() };
        match parsed.and_then(|root| if root.is_table() { Ok(root) } else { Err(not_a_table(&root)) }) {
            Ok(root) => {
                let mut twice = Vec::new();
                find_twice(&root, &mut Vec::new(), &mut twice);
                Ok(Self { file: file.to_owned(), root, twice, lines })
            }
            Err(why) => Err(Diagnostic {
                place: place(&lines, file, why.at),
                path: String::new(),
                message: why.message,
                nearest: None,
                guard: false,
            }),
        }
    }

    /// The place of what `path` leads to, or of the deepest part of it that is there.
    pub fn place(&self, path: &[String], at: MemberPart) -> Location {
        let (mut node, mut key) = (&self.root, None);
        let mut found = 0;
        for step in path {
            let Some((next, span)) = node.step(step) else { break };
            (node, key) = (next, span.or(key));
            found += 1;
        }
        let whole = found == path.len();
        // A table is best shown by its key: in TOML its own span may be all over the file.
        let by_key = !whole || at == MemberPart::Key || node.is_table();
        let start = key.filter(|_| by_key).map_or(node.span.start, |span| span.start);
        place(&self.lines, &self.file, start)
    }
}

/// The place of the byte at `at`.
fn place(lines: &LineIndex, file: &Path, at: usize) -> Location {
    let (line, column) = lines.place(at);
    Location { file: file.to_owned(), line, column }
}

/// Adds the keys that stand twice in one table of `node`, which `path` leads to.
fn find_twice(node: &TreeNode, path: &mut Vec<String>, found: &mut Vec<EntryProblem>) {
    let (members, items): (&[TreeMember], &[TreeNode]) = match &node.kind {
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
            found.push(EntryProblem { path: path.clone(), at: MemberPart::Key, message, nearest: None });
        }
        find_twice(&member.node, path, found);
        path.pop();
    }
    for (i, item) in items.iter().enumerate() {
        path.push(i.to_string());
        find_twice(item, path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, text: &str, path: &[&str], at: MemberPart) -> String {
        let document = Document::parse(Path::new(file), text.as_bytes()).unwrap();
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        document.place(&path, at).to_string()
    }

    #[test]
    fn keys_and_values_know_their_place_in_both_forms() {
        let toml = "# ü\n[a.\"b c\"]\nd = [1, { e = 'ü' , f = 2 }]\n";
        assert_eq!(place("x.toml", toml, &["a", "b c"], MemberPart::Key), "x.toml:2:4");
        assert_eq!(place("x.toml", toml, &["a", "b c", "d"], MemberPart::Key), "x.toml:3:1");
        assert_eq!(place("x.toml", toml, &["a", "b c", "d", "0"], MemberPart::Value), "x.toml:3:6");
        assert_eq!(place("x.toml", toml, &["a", "b c", "d", "1", "f"], MemberPart::Value), "x.toml:3:25");
        assert_eq!(place("x.toml", toml, &["a", "b c", "gone"], MemberPart::Value), "x.toml:2:4");
        let json = "{\"a\": {\n  \"b c\" : {\"d\": [1, {\"e\": \"ü\", \"f\": 2}]}}}";
        assert_eq!(place("x.json", json, &["a", "b c"], MemberPart::Value), "x.json:2:3");
        assert_eq!(place("x.json", json, &["a", "b c", "d", "1", "f"], MemberPart::Value), "x.json:2:37");
        assert_eq!(place("x.json", json, &["gone"], MemberPart::Value), "x.json:1:1");
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
        assert_eq!(document.place(&document.twice[0].path, MemberPart::Key).to_string(), "x.json:1:17");
        assert_eq!(document.root.to_json().to_string(), r#"{"a":[{"b":1}]}"#);
    }
}
