//! Rules for every text: no paths of one machine, clean lines.

use regex::Regex;
use xtask::paths::is_in;
use xtask::tree::{Finding, Tree, finding, line_of};

use crate::sources::is_a_rule;

/// Folders of one person on one machine: they mean nothing to a reader. The folder of this checkout does not either.
const FOREIGN: &str = r"/(?:root|home|Users)/";

/// Files that need one of these words, each with the reason.
const FOREIGN_FILES: &[(&str, &str)] = &[
    ("crates/pintle-cli/tests/it/guards/tools.rs", "guards know the homes of people by where these usually are"),
    (
        "crates/pintle-cli/tests/it/pictures.rs",
        "a made-up person's folder stands in pictures in the place of the test's",
    ),
];

/// What a text says holds on any machine.
pub(crate) fn foreign_words(tree: &Tree) -> Vec<Finding> {
    let here = regex::escape(env!("CARGO_MANIFEST_DIR").trim_end_matches("xtask"));
    let foreign = Regex::new(&format!(r"(?m)(?:^|[^\w.~-])({FOREIGN}|{here})")).expect("a pattern");
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        if is_a_rule(path) || path == "Cargo.lock" || FOREIGN_FILES.iter().any(|(file, _)| *file == path) {
            continue;
        }
        findings.extend(foreign.captures_iter(text).map(|found| {
            let word = found.get(1).expect("the group is part of every match");
            let mend =
                format!("`{}` means nothing elsewhere: take it out, or list the file with a reason", word.as_str());
            finding(path, line_of(text, word.start()), mend)
        }));
    }
    findings
}

/// Phrases that no English reader would write, each with the word of the field.
const ODD_PHRASES: [(&str, &str); 8] = [
    (r"\blets? (?:it |them )?pass\b", "allow"),
    (r"\bwho wants through\b", "what asks"),
    (r"\bends the row\b", "stops the chain"),
    (r"\b(?:was|were|is|being) worked\b", "run"),
    (r"\btaken over: ", "imported"),
    (r"\bsomething else than\b", "something other than"),
    (r"\bjust so\b", "unchanged"),
    (r"\bbroken off\b", "interrupted"),
];

/// What people read says things as they would: in messages, guides and references. Comments are for those who know the
/// code.
pub(crate) fn odd_phrases(tree: &Tree) -> Vec<Finding> {
    let odd = ODD_PHRASES.map(|(pattern, word)| (Regex::new(pattern).expect("a pattern"), word));
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let is_page = path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"));
        let is_code = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        if (!is_page && !is_code) || path.starts_with("docs/design/") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            // Help texts are comments of the command line's types.
            let is_help = path.starts_with("crates/pintle-cli/src/cli") && line.trim_start().starts_with("/// ");
            if is_code && line.trim_start().starts_with("//") && !is_help {
                continue;
            }
            let found = odd.iter().find(|(pattern, _)| pattern.is_match(line));
            findings.extend(found.map(|(_, word)| finding(path, at + 1, format!("write `{word}`, as people say it"))));
        }
    }
    findings
}

/// Lines end where their text ends, and the last one ends too.
pub(crate) fn blanks(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        // Recorded bytes stay as they came.
        if ["fixtures", "data", "snapshots"].iter().any(|folder| is_in(path, folder)) || path.ends_with(".snap") {
            continue;
        }
        let trailing = text.split('\n').enumerate().filter(|(_, line)| line.ends_with([' ', '\t', '\r']));
        findings.extend(trailing.map(|(at, _)| finding(path, at + 1, "take the blanks off the end of this line")));
        if !text.is_empty() && !text.ends_with('\n') {
            findings.push(finding(path, text.lines().count(), "end the last line with a newline"));
        }
    }
    findings
}
