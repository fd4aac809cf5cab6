//! Rules for what people read first.

use regex::Regex;
use xtask::map;
use xtask::tree::{Finding, Tree, finding};

/// Files that a reader expects in the root.
const REQUIRED: &[&str] =
    &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "STYLE.md", "CHANGELOG.md", "LICENSE"];

/// Longest map, in lines: what does not fit belongs into the documentation of a crate.
const MAX_MAP_LINES: usize = 150;

/// Longest paragraph, list item or table row of the map, in words: three sentences that people read before they skip.
const MAX_MAP_WORDS: usize = 80;

/// What everybody looks for is there.
pub(crate) fn required_files(tree: &Tree) -> Vec<Finding> {
    let missing = REQUIRED.iter().filter(|path| tree.text(path).is_none_or(str::is_empty));
    missing.map(|path| finding(path, 1, "write this file")).collect()
}

/// The map stays a map: one page, in short paragraphs.
pub(crate) fn short_map(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(map::PAGE).unwrap_or_default();
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_MAP_LINES {
        let mend = format!("{lines} lines, {MAX_MAP_LINES} are allowed: move details into the docs of their crate");
        findings.push(finding(map::PAGE, MAX_MAP_LINES, mend));
    }
    for (line, words) in paragraphs(text).into_iter().filter(|(_, words)| *words > MAX_MAP_WORDS) {
        let mend = format!("{words} words in one paragraph, {MAX_MAP_WORDS} are allowed: say it shorter");
        findings.push(finding(map::PAGE, line, mend));
    }
    findings
}

/// The first line of every paragraph, list item and table row, with the number of its words; code is left out.
fn paragraphs(text: &str) -> Vec<(usize, usize)> {
    let item = Regex::new(r"^\s*(?:[-*|#]|\d+\.)").expect("a pattern");
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut in_code, mut goes_on) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if fence || in_code || line.trim().is_empty() {
            goes_on = false;
            continue;
        }
        let words = line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        match found.last_mut().filter(|_| goes_on && !item.is_match(line)) {
            Some((_, so_far)) => *so_far += words,
            None => found.push((at + 1, words)),
        }
        goes_on = true;
    }
    found
}

/// A link into the repository leads somewhere.
pub(crate) fn links(tree: &Tree) -> Vec<Finding> {
    let link = Regex::new(r#"\]\(<?([^)<>\s]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+<?([^<>\s]+)>?"#).expect("a pattern");
    let mut findings = Vec::new();
    for (path, text) in tree.ending("md") {
        let mut in_code = false;
        for (at, line) in text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            in_code ^= fence;
            if fence || in_code {
                continue;
            }
            for found in link.captures_iter(&without_code(line)) {
                let target = found.get(1).or(found.get(2)).expect("one of the two groups matched").as_str();
                if let Some(place) = place(path, target).filter(|place| !tree.has(place)) {
                    findings.push(finding(path, at + 1, format!("`{target}` leads nowhere: there is no `{place}`")));
                }
            }
        }
    }
    findings
}

/// The line with its inline code blanked out.
fn without_code(line: &str) -> String {
    let code = |(at, part): (usize, &str)| if at % 2 == 1 { String::new() } else { part.to_owned() };
    line.split('`').enumerate().map(code).collect()
}

/// The path that `target` means in the file at `path`; none for one outside of the repository or within the page.
fn place(path: &str, target: &str) -> Option<String> {
    let file = target.split(['#', '?']).next().filter(|file| !file.is_empty())?;
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            // Above the root there is nothing, and the `..` that stays says so.
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
