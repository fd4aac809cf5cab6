//! No test is forgotten: what the runner leaves out stands in the plan of the tests.

use regex::Regex;
use xtask::test_plan::{PLAN, TestPlan};
use xtask::tree::{Finding, Tree, finding};

/// The script that has to pass before a change lands.
const CI: &str = ".ci/run";

/// What it has to run so that every test is run once.
const CI_RUNS: [&str; 2] = ["./pintle test\n", "./pintle test --rest\n"];

/// A test that `.ci/run` never runs is a mistake, unless the plan names the command that does.
pub(crate) fn forgotten_tests(tree: &Tree) -> Vec<Finding> {
    let plan = match TestPlan::parse(tree.text(PLAN).unwrap_or_default()) {
        Ok(plan) => plan,
        Err(error) => return vec![finding(PLAN, 1, format!("{error:#}"))],
    };
    let ci = tree.text(CI).unwrap_or_default();
    let mut findings: Vec<Finding> = CI_RUNS
        .iter()
        .filter(|command| !ci.contains(*command))
        .map(|command| finding(CI, 1, format!("run `{}` here, so that each test is run", command.trim())))
        .collect();
    let left_out = left_out(tree);
    for (place, line, why) in &left_out {
        if !plan.elsewhere.iter().any(|tests| tests.place == *place) {
            let mend = format!("{why}: let it run, or name the command that runs it in `{PLAN}`");
            findings.push(finding(place, *line, mend));
        }
    }
    for tests in &plan.elsewhere {
        if !left_out.iter().any(|(place, ..)| *place == tests.place) {
            findings.push(finding(PLAN, 1, format!("`{}` is run by everybody: take it off the list", tests.place)));
        }
    }
    findings
}

/// The files in which tests are left out, with the line and the reason.
fn left_out(tree: &Tree) -> Vec<(String, usize, &'static str)> {
    let ignored = Regex::new(r"(?m)^\s*#\[(?:ignore\b|cfg_attr\(.*\bignore\b)").expect("a pattern");
    let skipped = Regex::new(r"\b(?:test|it|describe)\.(?:skip|skipIf|runIf|todo|only)\b").expect("a pattern");
    let target = Regex::new(r#"(?m)^\[\[test\]\]\n(?:.*\n)*?path = "([^"]+)"\n(?:[^\[\n]+\n)*?test = false$"#)
        .expect("a pattern");
    let mut found = Vec::new();
    for (path, text) in tree.files() {
        let at = |start: usize| text[..start].matches('\n').count() + 1;
        if path.ends_with(".rs") && !path.starts_with("xtask/tests/tidy") {
            found.extend(ignored.find(text).map(|m| (path.to_owned(), at(m.start()), "an ignored test")));
        } else if path.ends_with(".test.ts") || path.ends_with(".test.tsx") {
            found.extend(skipped.find(text).map(|m| (path.to_owned(), at(m.start()), "a test that is left out")));
        } else if let Some(folder) = path.strip_suffix("Cargo.toml") {
            let targets = target.captures_iter(text);
            found.extend(targets.map(|target| (format!("{folder}{}", &target[1]), 1, "a target that is left out")));
        }
    }
    found
}
