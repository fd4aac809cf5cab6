//! Rules for functions: parameters that are counted, tests that do not sleep.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use xtask::paths::is_in;
use xtask::rust::{Function, Source, closing, functions, outside_brackets, parts};
use xtask::tree::{Finding, Tree, finding, line_of};

use crate::sources::RULES;
use crate::standing::HIDDEN_PARAMETERS;

/// Most parameters of a function; clippy counts them too, but not those within a tuple.
const MAX_PARAMETERS: usize = 5;

/// Functions of tests that may sleep, by file, each with the reason.
const SLEEPING: &[(&str, &str, &str)] = &[
    ("crates/agent/tests/it/checkpoints.rs", "day", "each test that calls it pauses the time"),
    ("crates/agent/tests/it/faults/cell.rs", "close", "the kernel tells nobody of the end of a group; bounded"),
    ("crates/gateway/src/heads.rs", "connected_among", "each test that calls it pauses the time"),
    ("crates/mcp/tests/it/host.rs", "until", "looks at another process until something is so; bounded"),
    ("crates/mcp/tests/it/served.rs", "call", "the tool `slow`, which has to answer after a faster one"),
    ("crates/pintle-cli/tests/hosts/cells.rs", "person", "looks at another process until something is so; bounded"),
    (
        "crates/pintle-cli/tests/hosts/taken_away.rs",
        "left_out",
        "looks at another process until something is so; bounded",
    ),
    (
        "crates/pintle-cli/tests/it/serve/model_door.rs",
        "an_answer_under_way_ends_before_the_server_does",
        "what it shows is that the server goes on waiting after a time",
    ),
    (
        "crates/pintle-cli/tests/it/serve/deploy.rs",
        "the_image_runs_without_root_on_a_file_system_that_is_only_read",
        "looks at another process until something is so; bounded",
    ),
    (
        "crates/pintle-cli/tests/it/serve/starting.rs",
        "until",
        "looks at another process until something is so; bounded",
    ),
    ("crates/pintle-cli/tests/it/serve/webhooks.rs", "told", "looks at another process until something is so; bounded"),
    (
        "crates/pintle-cli/tests/it/guard_door/door.rs",
        "wait_for",
        "looks at another process until something is so; bounded",
    ),
    ("crates/pintle-cli/tests/it/kill.rs", "live", "kills at a moment from a seed; any moment is a case"),
    (
        "crates/pintle-cli/tests/it/serve/nodes/load.rs",
        "talk",
        "a client that tries again while its server is gone; bounded by the test",
    ),
    (
        "crates/pintle-cli/tests/it/serve/nodes/dying.rs",
        "play",
        "hurts nodes at moments under load; any moment is a case",
    ),
    (
        "crates/pintle-cli/tests/it/serve/nodes/dying.rs",
        "a_node_that_is_killed_leaves_nothing_undone_and_nothing_done_twice",
        "a lease runs out by the clock of a database",
    ),
    (
        "crates/pintle-cli/tests/it/serve/nodes/dying.rs",
        "a_node_that_stands_still_does_nothing_under_a_lease_that_it_lost",
        "a lease runs out by the clock of a database",
    ),
    ("crates/pintle-cli/tests/it/serve/nodes/model.rs", "answer_all", "a model that takes its time"),
    ("crates/pintle-cli/tests/it/serve/nodes/model.rs", "reply", "a model that takes its time"),
    (
        "crates/pintle-cli/tests/it/serve/nodes/pair.rs",
        "until",
        "looks at other processes until something is so; bounded",
    ),
    (
        "crates/pintle-cli/tests/it/serve/nodes/together.rs",
        "a_node_that_differs_takes_no_turns_of_the_agents_that_differ",
        "a node counts as gone by the clock of a database",
    ),
    (
        "crates/pintle-cli/tests/it/serve/nodes/under_load.rs",
        "a_node_that_ends_is_noticed_by_nobody_behind_a_balancer",
        "a balancer that looks now and then",
    ),
    (
        "crates/rules/tests/it/outbox/stage.rs",
        "run",
        "a script that takes its time, within `process`, where time is paused",
    ),
    (
        "crates/sandbox/tests/it/dies.rs",
        "gone",
        "the kernel tells nobody but the parent of the end of a child; bounded",
    ),
    (
        "crates/store/tests/it/postgres_processes.rs",
        "until",
        "the server notices the end of a process by itself; bounded",
    ),
    (
        "crates/store/tests/it/postgres_processes.rs",
        "a_lease_that_nobody_renews_is_lost_before_somebody_else_may_have_it",
        "a lease runs out by two clocks",
    ),
    (
        "crates/store/tests/it/postgres_processes.rs",
        "all_leases_are_renewed_with_one_statement",
        "a lease is renewed by the clock",
    ),
];

/// A tuple is no place to hide parameters in.
pub(crate) fn hidden_parameters(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources() {
        for function in functions(&source.code) {
            let parameters = parts(function.parameters);
            let count = parameters.iter().map(|parameter| width(parameter)).sum::<usize>();
            let hidden = count > parameters.len() && count > MAX_PARAMETERS;
            if hidden && !HIDDEN_PARAMETERS.contains(&(source.path.as_str(), function.name)) {
                let mend = format!(
                    "`{}` has {count} parameters, those in tuples counted, and {MAX_PARAMETERS} are allowed: \
                     name what belongs together",
                    function.name
                );
                findings.push(finding(&source.path, line_of(&source.code, function.at), mend));
            }
        }
    }
    findings
}

/// For how many a parameter counts: by its pattern or by its type, whichever takes more apart.
fn width(parameter: &str) -> usize {
    let mut from = 0;
    while let Some(colon) = outside_brackets(parameter, from, b":") {
        if parameter[colon..].starts_with("::") {
            from = colon + 2;
            continue;
        }
        return elements(&parameter[..colon]).max(elements(&parameter[colon + 1..]));
    }
    1
}

/// The elements of a tuple with those of the tuples in it; one for anything else.
fn elements(text: &str) -> usize {
    static REFERENCE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\s*(?:#\[[^\]]*\]\s*)*(?:&\s*|'\w+\s+|mut\s+)*").expect("a pattern"));
    let text = REFERENCE.replace(text, "");
    let text = text.trim();
    if !text.starts_with('(') || closing(text, 0) + 1 != text.len() {
        return 1;
    }
    parts(&text[1..text.len() - 1]).into_iter().map(elements).sum::<usize>().max(1)
}

/// A test waits for what it waits for, not for a while.
pub(crate) fn sleeps(tree: &Tree) -> Vec<Finding> {
    static SLEEP: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?:^|[^\w.:])((?:\w+::)*sleep(?:_until)?)\s*\(").expect("a pattern"));
    let pausing = pausing(tree);
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for source in tree.sources().iter().filter(|source| !is_in(&source.path, "benches")) {
        let functions = functions(&source.code);
        for found in SLEEP.captures_iter(&source.code) {
            let sleep = found.get(1).expect("the pattern has one group");
            let is_shipped = !source.is_test && source.shipped[sleep.range()] == source.code[sleep.range()];
            let is_name = source.code[..sleep.start()].trim_end().ends_with("fn");
            let around = innermost(&functions, sleep.start());
            if is_shipped || is_name || around.is_some_and(|it| it.head.contains("start_paused = true")) {
                continue;
            }
            let mut pausing = pausing.iter().filter(|(path, _)| crate_of(path) == crate_of(&source.path));
            if pausing.any(|(_, name)| is_within_call(source, name, sleep.start())) {
                continue;
            }
            let name = around.map_or("", |function| function.name);
            if SLEEPING.iter().any(|(path, known, _)| *path == source.path && *known == name) {
                needed.insert((source.path.as_str(), name));
                continue;
            }
            let mend = format!(
                "`{name}` sleeps: wait for what it waits for, pause the time (`start_paused = true`), \
                 or list it with a reason"
            );
            findings.push(finding(&source.path, line_of(&source.code, sleep.start()), mend));
        }
    }
    let is_repository = tree.has(RULES);
    let stale = SLEEPING.iter().filter(|(path, name, _)| is_repository && !needed.contains(&(*path, *name)));
    findings.extend(stale.map(|(path, name, _)| finding(path, 1, format!("take `{name}` out of SLEEPING"))));
    findings
}

/// The functions that run what they are given in a time that stands still, by file.
fn pausing(tree: &Tree) -> BTreeSet<(&str, &str)> {
    let mut names = BTreeSet::new();
    for source in tree.sources().iter().filter(|source| source.code.contains("start_paused(true)")) {
        let pauses = functions(&source.code)
            .into_iter()
            .filter(|function| source.code[function.body.clone()].contains("start_paused(true)"));
        names.extend(pauses.map(|function| (source.path.as_str(), function.name)));
    }
    names
}

/// The smallest function around the place.
fn innermost<'a, 'b>(functions: &'a [Function<'b>], at: usize) -> Option<&'a Function<'b>> {
    functions.iter().filter(|function| function.body.contains(&at)).min_by_key(|function| function.body.len())
}

/// The folder of the crate in which the file stands.
fn crate_of(path: &str) -> &str {
    let ends = ["/src/", "/tests/"].into_iter().filter_map(|inside| path.find(inside));
    ends.min().map_or("", |end| &path[..end])
}

/// Whether the place stands between the parentheses of a call of `name`.
fn is_within_call(source: &Source, name: &str, at: usize) -> bool {
    let call = Regex::new(&format!(r"\b{name}\(")).expect("a pattern");
    call.find_iter(&source.code[..at]).any(|call| closing(&source.code, call.end() - 1) > at)
}
