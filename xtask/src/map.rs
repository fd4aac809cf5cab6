//! The picture of crates in `ARCHITECTURE.md`: an arrow for each dependency that a manifest declares and a source
//! imports. An arrow that follows from others is left out, so that people can read what remains.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::manifests::{FOR_TESTS, dependencies, line_with, manifests, own_crates};
use crate::paths::is_below;
use crate::rust::Source;
use crate::tree::{Finding, Tree, finding, line_of};

/// The page with the picture.
pub const PAGE: &str = "ARCHITECTURE.md";

const BEGIN: &str = "<!-- crates: drawn by `cargo xtask map` -->\n";
const END: &str = "<!-- crates: end -->\n";

/// Where the crates of the picture are. Examples and errands are no part of it.
const CRATES: &str = "crates";

/// What each crate depends on, by the names of their folders.
type Arrows<'a> = BTreeMap<&'a str, BTreeSet<String>>;

/// What is wrong with the picture: a dependency that nothing imports, or arrows other than those of the sources.
pub fn findings(tree: &Tree) -> Vec<Finding> {
    let (_, mut findings) = arrows(tree);
    match redrawn(tree) {
        Ok(page) if tree.text(PAGE) == Some(&page) => {}
        Ok(page) => {
            let line = page.find(BEGIN).map_or(1, |at| line_of(&page, at));
            findings.push(finding(PAGE, line, "the sources import something else: run `cargo xtask map`"));
        }
        Err(finding) => findings.push(finding),
    }
    findings
}

/// The page with the picture as the sources have it now.
pub fn redrawn(tree: &Tree) -> Result<String, Finding> {
    let missing = || finding(PAGE, 1, format!("write `{}` and `{}` around the picture", BEGIN.trim(), END.trim()));
    let page = tree.text(PAGE).unwrap_or_default();
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", picture(&arrows(tree).0)))
}

/// The arrows that are declared and imported, and a finding for each that is only declared.
fn arrows(tree: &Tree) -> (Arrows<'_>, Vec<Finding>) {
    let own = own_crates(tree);
    let mut arrows = Arrows::new();
    let mut findings = Vec::new();
    for (folder, path, text) in manifests(tree).filter(|(folder, ..)| is_below(folder, CRATES)) {
        let imported = imported(tree, folder);
        let drawn = arrows.entry(name_of(folder)).or_default();
        for (section, name) in dependencies(text) {
            let Some(target) = own.get(&name).filter(|_| section != FOR_TESTS) else { continue };
            if imported.contains(name.replace('-', "_").as_str()) {
                drawn.insert(name_of(target).to_owned());
            } else {
                let mend = format!("nothing in `{folder}/src` imports `{name}`: take it out, or leave it to the tests");
                findings.push(finding(path, line_with(text, &name), mend));
            }
        }
    }
    (arrows, findings)
}

/// The names at which the paths of a crate begin, in all that is compiled beside its tests.
fn imported<'a>(tree: &'a Tree, folder: &str) -> BTreeSet<&'a str> {
    // A path from the crate's own root names no other crate.
    static FIRST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"\buse\s+(?:crate|self|super)\b[^;]*;|(?:^|[^\w:>])(?:::)?(\w+)::|\buse\s+(?:::)?(\w+)\s*(?:;|as\b)",
        )
        .expect("a pattern")
    });
    let (inside, build) = (format!("{folder}/src"), format!("{folder}/build.rs"));
    let is_compiled = |source: &&Source| !source.is_test && (is_below(&source.path, &inside) || source.path == build);
    let sources = tree.sources().iter().filter(is_compiled);
    let found = sources.flat_map(|source| FIRST.captures_iter(&source.shipped));
    found.filter_map(|found| found.get(1).or(found.get(2))).map(|name| name.as_str()).collect()
}

fn name_of(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

/// A graph in Mermaid, a line for each crate: whatever depends on a crate stands above it.
fn picture(arrows: &Arrows<'_>) -> String {
    let reach: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|name| (*name, reached(arrows, name))).collect();
    let follows = |others: &BTreeSet<String>, target: &str| {
        others.iter().filter_map(|other| reach.get(other.as_str())).any(|reached| reached.contains(target))
    };
    let mut names: Vec<&str> = arrows.keys().copied().collect();
    // A crate reaches all that the crates below it reach, and those crates too.
    names.sort_by_key(|name| Reverse(reach[name].len()));
    let mut picture = "```mermaid\nflowchart TD\n".to_owned();
    for name in names {
        let targets = &arrows[name];
        let direct: Vec<&str> = targets.iter().map(String::as_str).filter(|it| !follows(targets, it)).collect();
        let arrow = if direct.is_empty() { "" } else { " --> " };
        picture.push_str(&format!("    {name}{arrow}{}\n", direct.join(" & ")));
    }
    picture + "```\n"
}

/// All crates that `name` depends on, by way of others too.
fn reached<'a>(arrows: &'a Arrows<'_>, name: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![name];
    while let Some(name) = next.pop() {
        for target in arrows.get(name).into_iter().flatten() {
            if reached.insert(target.as_str()) {
                next.push(target);
            }
        }
    }
    reached
}
