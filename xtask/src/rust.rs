//! Rust sources as far as the rules read them: code without comments and literals, what is test code, functions.
//!
//! Nothing here parses Rust. It reads brackets, commas and a few words, which is enough for sources that rustfmt wrote
//! and the compiler took.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::paths::{is_below, is_in};

/// A source file. All its texts are of equal length, so a place in one is the same place in the others.
pub struct Source {
    /// From the root of the repository.
    pub path: String,
    /// The text with blanks in the place of comments and literals.
    pub code: String,
    /// The code with blanks in the place of what only tests compile as well.
    pub shipped: String,
    /// Whether only tests compile any of it.
    pub is_test: bool,
}

/// A function with what stands around its name.
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its name stands.
    pub at: usize,
    /// Attributes and visibility.
    pub head: &'a str,
    /// What stands between the parentheses.
    pub parameters: &'a str,
    /// The body with its braces; empty if there is none.
    pub body: Range<usize>,
}

/// The sources among `files`.
pub fn sources<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Source> {
    let mut gated = BTreeSet::new();
    let mut sources: Vec<Source> = files
        .map(|(path, text)| {
            let code = without_literals(text);
            let mut shipped = code.clone().into_bytes();
            for (range, child) in only_for_tests(&code) {
                blank(&mut shipped[range]);
                gated.extend(child.map(|name| format!("{}/{name}", folder_of_children(path))));
            }
            let shipped = String::from_utf8(shipped).expect("whole items are blanked");
            Source { path: path.to_owned(), code, shipped, is_test: false }
        })
        .collect();
    for source in &mut sources {
        let module = source.path.trim_end_matches(".rs");
        source.is_test = ["tests", "benches"].iter().any(|folder| is_in(&source.path, folder))
            || gated.iter().any(|gate| module == gate || is_below(module, gate));
    }
    sources
}

/// The folder in which the modules stand that the file at `path` declares.
pub fn folder_of_children(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if matches!(name, "lib.rs" | "main.rs" | "mod.rs") { folder } else { path.trim_end_matches(".rs") }
}

/// The text with blanks in the place of comments, strings and characters.
fn without_literals(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match literal_end(text, at) {
            Some(end) => {
                blank(&mut bytes[at..end]);
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8(bytes).expect("whole literals are blanked")
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// Where the comment or literal ends that begins at `at`.
fn literal_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => {
            Some(rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n))
        }
        b'/' if rest.starts_with(b"/*") => Some(block_end(bytes, at)),
        b'"' => Some(string_end(bytes, at)),
        b'r' if at == 0 || !is_word(bytes[at - 1]) || matches!(bytes[at - 1], b'b' | b'c') => raw_end(text, at),
        b'\'' if rest.get(1) == Some(&b'\\') => {
            // The character behind the backslash may be a quote itself.
            let close = bytes.get(at + 3..)?.iter().position(|byte| *byte == b'\'')?;
            Some(at + 3 + close + 1)
        }
        b'\'' => {
            let inside = text[at + 1..].chars().next()?;
            let close = at + 1 + inside.len_utf8();
            (bytes.get(close) == Some(&b'\'')).then_some(close + 1)
        }
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

fn block_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_end(text: &str, at: usize) -> Option<usize> {
    let hashes = text[at + 1..].bytes().take_while(|byte| *byte == b'#').count();
    let inside = text[at + 1 + hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(text.len() - inside.len() + inside.find(&close)? + close.len())
}

/// Items under `#[cfg(test)]`, with the names of the modules that they declare.
fn only_for_tests(code: &str) -> Vec<(Range<usize>, Option<&str>)> {
    static GATE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*(?:[\w\s()]*\bmod\s+(\w+)\s*;)?")
            .expect("a pattern")
    });
    let found = GATE.captures_iter(code).map(|found| {
        let whole = found.get(0).expect("the whole pattern matched");
        let child = found.get(1).map(|name| name.as_str());
        let end = if child.is_some() { whole.end() } else { item_end(code, whole.end()) };
        (whole.start()..end, child)
    });
    found.collect()
}

/// Where the item ends that begins at `at`: behind its braces or its semicolon.
fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0;
    for (place, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return place + 1,
            b'{' if depth == 0 => return closing(code, place) + 1,
            _ => {}
        }
    }
    code.len()
}

/// The place of the bracket that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (place, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place;
        }
    }
    code.len().saturating_sub(1)
}

/// The place of the first of `wanted` from `at` on that stands in no bracket, angle brackets included.
pub fn outside_brackets(code: &str, at: usize, wanted: &[u8]) -> Option<usize> {
    let bytes = code.as_bytes();
    let mut depth = 0_usize;
    for (place, byte) in code.bytes().enumerate().skip(at) {
        if depth == 0 && wanted.contains(&byte) {
            return Some(place);
        }
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            // An arrow closes nothing.
            b'>' if place > 0 && matches!(bytes[place - 1], b'-' | b'=') => {}
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The parts between the commas of `list` that stand in no bracket.
pub fn parts(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(comma) = outside_brackets(list, from, b",") {
        parts.push(list[from..comma].trim());
        from = comma + 1;
    }
    parts.push(list[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The functions in `code`, those within others too.
pub fn functions(code: &str) -> Vec<Function<'_>> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bfn\s+(\w+)").expect("a pattern"));
    let found = NAME.captures_iter(code).filter_map(|found| {
        let (word, name) = (found.get(0)?, found.get(1)?);
        let open = outside_brackets(code, name.end(), b"(")?;
        let close = closing(code, open);
        let body = match outside_brackets(code, close + 1, b"{;")? {
            begin if code.as_bytes()[begin] == b'{' => begin..closing(code, begin) + 1,
            end => end..end,
        };
        let head = code[..word.start()].rfind(['{', '}', ';']).map_or(0, |before| before + 1);
        Some(Function {
            name: name.as_str(),
            at: name.start(),
            head: &code[head..word.start()],
            parameters: &code[open + 1..close],
            body,
        })
    });
    found.collect()
}
