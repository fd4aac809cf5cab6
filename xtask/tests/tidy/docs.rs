//! Rules for what people read first.

use regex::Regex;

use crate::tree::{Finding, Tree, finding};

/// Files that a reader expects in the root.
const REQUIRED: &[&str] =
    &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "STYLE.md", "CHANGELOG.md", "LICENSE"];

/// Longest map, in lines: beyond it, it is a territory.
const MAX_MAP_LINES: usize = 300;

/// What everybody looks for is there, and the map is a map.
pub(crate) fn required_files(tree: &Tree) -> Vec<Finding> {
    let missing = REQUIRED.iter().filter(|path| tree.text(path).is_none_or(str::is_empty));
    let mut findings: Vec<Finding> = missing.map(|path| finding(path, 1, "write this file")).collect();
    let lines = tree.text("ARCHITECTURE.md").map_or(0, |text| text.lines().count());
    if lines > MAX_MAP_LINES {
        let mend = format!("{lines} lines, {MAX_MAP_LINES} are allowed: move what is no map to docs/design/");
        findings.push(finding("ARCHITECTURE.md", MAX_MAP_LINES, mend));
    }
    findings
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
