//! The files that are looked at: those of the repository, or a few made up to try a rule.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::paths::is_below;
use crate::rust::{self, Source};

/// All text files by their path from the root, with `/` between the parts.
pub struct Tree {
    files: BTreeMap<String, String>,
    /// The Rust sources among them, read once for all rules.
    sources: OnceLock<Vec<Source>>,
}

/// A place that breaks a rule, and what to do about it.
#[derive(Debug)]
pub struct Finding {
    path: String,
    line: usize,
    mend: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.mend)
    }
}

/// A finding in `path`, at `line` from 1.
pub fn finding(path: &str, line: usize, mend: impl Into<String>) -> Finding {
    Finding { path: path.into(), line, mend: mend.into() }
}

impl Tree {
    /// What git keeps or would keep, as far as it is text.
    pub fn of_the_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands in the root");
        let walk = ignore::WalkBuilder::new(root)
            .hidden(false)
            .parents(false)
            .git_global(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        let mut files = BTreeMap::new();
        for entry in walk {
            let entry = entry.expect("the repository can be read");
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let path = entry.path().strip_prefix(root).expect("the walk began at the root");
                let bytes = fs::read(entry.path()).expect("the repository can be read");
                // Other bytes stay known as a path, so that links to pictures resolve.
                files.insert(
                    path.to_str().expect("paths are text").to_owned(),
                    String::from_utf8(bytes).unwrap_or_default(),
                );
            }
        }
        Self { files, sources: OnceLock::new() }
    }

    /// A made-up one.
    pub fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        Self { files, sources: OnceLock::new() }
    }

    /// Every file: path and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose names end in `.EXTENSION`.
    pub fn ending<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.rsplit_once('.').is_some_and(|(_, end)| end == extension))
    }

    /// The Rust sources, without comments and literals.
    pub fn sources(&self) -> &[Source] {
        self.sources.get_or_init(|| rust::sources(self.ending("rs")))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether there is such a file, or a folder with files; the root is the empty path.
    pub fn has(&self, path: &str) -> bool {
        path.is_empty() || self.files.contains_key(path) || self.files.keys().any(|file| is_below(file, path))
    }
}

/// The number, from 1, of the line in which the byte `at` of `text` stands.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}
