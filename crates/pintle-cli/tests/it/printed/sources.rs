//! Commands that the program prints: with as many words as they need, so that they run as they stand there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::root;

/// What a command cannot do without, word by word, as the reference of the command line has it.
fn needs() -> BTreeMap<String, Vec<String>> {
    let reference = fs::read_to_string(root().join("docs/reference/cli.md")).unwrap();
    let usages = reference.lines().filter_map(|line| line.strip_prefix("Usage: pintle "));
    let read = |usage: &str| {
        let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        let names: Vec<&str> = usage.split(' ').take_while(is_name).collect();
        let rest = usage.split(' ').skip(names.len());
        let needed = rest.filter(|word| !word.starts_with('[') && !word.ends_with(']') && *word != "<COMMAND>");
        (names.join(" "), needed.map(str::to_owned).collect())
    };
    usages.map(read).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The strings of a source in one line each, without its comments and its tests.
fn plain(source: &str) -> String {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    Regex::new(r"\\\n\s*").unwrap().replace_all(&code.join("\n"), "").into_owned()
}

#[test]
fn a_command_that_is_printed_has_all_that_it_needs() {
    let (needs, printed) = (needs(), Regex::new(r"`pintle ([^`…\n]+)`").unwrap());
    assert_eq!(needs["keys create"], ["--scope", "<SCOPE>...", "--owner", "<USER>", "<NAME>"]);
    let (mut files, mut wrong, mut looked_at) = (Vec::new(), Vec::new(), 0);
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = folder.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    for file in &files {
        let source = plain(&fs::read_to_string(file).unwrap());
        for found in printed.captures_iter(&source) {
            let words: Vec<&str> = found[1].split_whitespace().collect();
            let command = |length: usize| needs.get(&words.get(..length)?.join(" "));
            let Some((length, needed)) = (1..=words.len()).rev().find_map(|it| Some((it, command(it)?))) else {
                continue;
            };
            looked_at += 1;
            if words.len() - length < needed.len() {
                wrong.push(format!("{}: `pintle {}` needs {needed:?}", file.display(), &found[1]));
            }
        }
    }
    assert!(wrong.is_empty() && looked_at > 50, "{looked_at}: {}", wrong.join("\n"));
}
