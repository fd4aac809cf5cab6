//! The examples of the reference are what they say.

use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::Event;

const PAGE: &str = include_str!("../../../../../docs/reference/conditions.md");

/// The blocks of the page in this language, without their fences.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while lines.by_ref().any(|line| line == fence) {
        blocks.push(lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n"));
    }
    blocks
}

/// The call of the page; the facts are those that its shell text has.
fn event() -> Event {
    let command = |name: &str, argv: &[&str]| ShellCommand {
        name: name.to_owned(),
        argv: argv.iter().map(ToString::to_string).collect(),
        cwd: "/w".to_owned(),
        depth: 0,
    };
    let facts = ShellFacts {
        commands: vec![command("curl", &["curl", "-s", "https://example.org/x"]), command("sh", &["sh"])],
        urls: vec!["https://example.org/x".to_owned()],
        pipes_to_interpreter: true,
        unknown: true,
        unknown_why: "it runs what it downloads".to_owned(),
        ..ShellFacts::default()
    };
    Event { facts, ..Event::tool("exec", &blocks("json").concat()) }
}

#[test]
fn every_example_says_what_stands_beside_it() {
    let event = event();
    let mut kinds = BTreeSet::new();
    let blocks = blocks("cel");
    for line in blocks.iter().flat_map(|block| block.lines()) {
        let (expression, expected) = line.rsplit_once(" // ").expect("an example and what it says");
        let said = event.say(expression.trim());
        let kind = said.split_once(": ").map_or(said.as_str(), |(kind, _)| kind);
        assert_eq!(kind, expected, "{expression}: {said}");
        kinds.insert(expected);
    }
    assert_eq!(kinds, BTreeSet::from(["false", "fault", "refused", "true"]));
}

#[test]
fn every_variable_is_on_the_page() {
    let why = event().say("x == 1");
    let (_, names) = why.split_once("known are ").unwrap();
    for name in names.split(", ") {
        assert!(PAGE.contains(&format!("| `{name}` | ")), "{name}");
    }
}

#[test]
fn every_function_is_on_the_page() {
    let why = event().say("abcdefghij(1)");
    let (_, names) = why.split_once("known are ").unwrap();
    for name in names.split(", ") {
        let called = [format!("`{name}("), format!(".{name}(")];
        assert!(called.iter().any(|called| PAGE.contains(called.as_str())), "{name}");
    }
}
