//! Rules for Rust sources: their shape, their names, what may not be left in them.

use regex::Regex;
use xtask::paths::{is_below, is_in};
use xtask::tree::{Finding, Tree, finding, line_of};

/// Longest source file, in lines. Two screens of reading beyond this, nobody holds it in mind.
const MAX_LINES: usize = 500;

/// Files that may be longer, each with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Names that could mean anything; name the thing instead.
const VAGUE: &str = "utils?|helpers?|common|misc|managers?";

/// The rules themselves, which have to write down what they forbid.
pub(crate) const RULES: &str = "xtask/tests/tidy";

/// Whether `path` is one of the files of the rules.
pub(crate) fn is_a_rule(path: &str) -> bool {
    is_below(path, RULES) || path.strip_suffix(".rs") == Some(RULES)
}

/// A source begins with what it is about.
pub(crate) fn module_docs(tree: &Tree) -> Vec<Finding> {
    let begins = |text: &str| {
        let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
        first.is_some_and(|line| line.starts_with("//!"))
    };
    tree.ending("rs")
        .filter(|(_, text)| !begins(text))
        .map(|(path, _)| finding(path, 1, "say in a first line `//! …` what this file is about"))
        .collect()
}

/// A source can be read at a sitting.
pub(crate) fn file_length(tree: &Tree) -> Vec<Finding> {
    tree.ending("rs")
        .filter(|(path, _)| !["tests", "benches", "examples"].iter().any(|folder| is_in(path, folder)))
        .filter(|(path, _)| !path.ends_with("/tests.rs"))
        .filter(|(path, _)| !LONG_FILES.iter().any(|(long, _)| long == path))
        .filter(|(_, text)| text.lines().count() > MAX_LINES)
        .map(|(path, text)| {
            let lines = text.lines().count();
            finding(
                path,
                MAX_LINES,
                format!("{lines} lines, {MAX_LINES} are allowed: split it into `foo.rs` and `foo/`"),
            )
        })
        .collect()
}

/// What is here is whole.
pub(crate) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let marks = Regex::new(r"\b(TODO|FIXME|XXX)\b|\b(unimplemented|todo|dbg)!").expect("a pattern");
    let is_source = |path: &str| ["rs", "sql", "toml", "sh", "py"].iter().any(|end| path.ends_with(&format!(".{end}")));
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| !is_a_rule(path)) {
        if is_source(path) || path == "pintle" || is_below(path, ".ci") {
            findings.extend(marks.find_iter(text).map(|mark| {
                finding(path, line_of(text, mark.start()), format!("finish it: `{}` may not stay", mark.as_str()))
            }));
        }
    }
    findings
}

/// What is served stands in one table, from which the tests of who may are made: a route beside it would be tried by none.
pub(crate) fn routes_of_a_table(tree: &Tree) -> Vec<Finding> {
    const GATEWAY: &str = "crates/gateway/src";
    let adding = Regex::new(r"\.(route|route_service|nest|nest_service|merge|fallback_service)\(").expect("a pattern");
    let mut findings = Vec::new();
    for (path, text) in tree.ending("rs").filter(|(path, _)| is_below(path, GATEWAY)) {
        findings.extend(adding.find_iter(text).filter_map(|found| {
            let line = line_of(text, found.start());
            let whole = text.lines().nth(line - 1).unwrap_or_default();
            let is_of_table = ROUTED.iter().any(|(known, part)| *known == path && whole.contains(part));
            (!is_of_table).then(|| finding(path, line, "put the route into the table in `served.rs`"))
        }));
    }
    findings
}

/// Where routes are added: all of the table, and the one of `gateway.metrics_listen`.
const ROUTED: &[(&str, &str)] = &[
    ("crates/gateway/src/http.rs", "all.route(route.path, responder(route.by))"),
    ("crates/gateway/src/http.rs", "route(\"/metrics\", get(metrics::show_to_anybody))"),
];

/// A name says what is inside.
pub(crate) fn vague_names(tree: &Tree) -> Vec<Finding> {
    let part = Regex::new(&format!("^({VAGUE})$")).expect("a pattern");
    let inline = Regex::new(&format!(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?mod ({VAGUE})\b")).expect("a pattern");
    let mut findings = Vec::new();
    for (path, text) in tree.ending("rs") {
        let parts = path.trim_end_matches(".rs").split('/');
        findings.extend(
            parts
                .filter(|name| part.is_match(name))
                .map(|name| finding(path, 1, format!("`{name}` could mean anything: name the thing that is inside"))),
        );
        findings.extend(inline.captures_iter(text).map(|found| {
            let name = found.get(1).expect("the pattern has one group");
            let mend = format!("`{}` could mean anything: name the thing that is inside", name.as_str());
            finding(path, line_of(text, name.start()), mend)
        }));
    }
    findings
}

/// Whoever switches a lint off says why.
pub(crate) fn lint_reasons(tree: &Tree) -> Vec<Finding> {
    let attribute = Regex::new(r"#!?\[(expect|allow)\(").expect("a pattern");
    let mut findings = Vec::new();
    for (path, text) in tree.ending("rs").filter(|(path, _)| !is_a_rule(path)) {
        for found in attribute.find_iter(text) {
            let rest = &text[found.end()..];
            let inside = &rest[..rest.find(")]").unwrap_or(rest.len())];
            if !inside.contains("reason = ") {
                let mend = format!("say why: `{}…, reason = \"…\")]`", found.as_str());
                findings.push(finding(path, line_of(text, found.start()), mend));
            }
        }
    }
    findings
}

/// A file that no `mod` names is neither compiled nor tested, and nobody notices.
pub(crate) fn orphans(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending("rs") {
        let Some((folder, name)) = path.rsplit_once('/') else { continue };
        let name = name.trim_end_matches(".rs");
        // A program that must not compile says what the compiler has to refuse in it.
        if is_root(folder, name) || text.contains(" //~ ") {
            continue;
        }
        let inside = ["lib.rs", "main.rs", "mod.rs"].map(|file| format!("{folder}/{file}"));
        let named = inside
            .into_iter()
            .chain([format!("{folder}.rs")])
            .filter_map(|parent| tree.text(&parent))
            .any(|parent| names(parent, name));
        if !named {
            findings.push(finding(path, 1, format!("never compiled: write `mod {name};` in its parent, or delete it")));
        }
    }
    findings
}

/// Whether cargo, or a test that compiles programs, finds the file by itself.
fn is_root(folder: &str, name: &str) -> bool {
    let last = folder.rsplit('/').next().unwrap_or(folder);
    matches!(name, "lib" | "main" | "mod" | "build")
        || matches!(last, "bin" | "benches" | "examples" | "tests" | "fuzz_targets")
        || (is_in(&format!("{folder}/"), "tests") && matches!(last, "ui" | "compile_fail"))
}

fn names(parent: &str, module: &str) -> bool {
    parent.lines().any(|line| {
        line.trim_start()
            .strip_suffix(';')
            .and_then(|line| line.rsplit_once("mod "))
            .is_some_and(|(before, name)| name == module && (before.is_empty() || before.starts_with("pub")))
    })
}
