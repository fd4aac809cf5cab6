//! Rules for types: one name for one thing, and no struct that hides a missing concept.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use xtask::paths::{is_below, is_in};
use xtask::rust::{Source, closing, outside_brackets, parts};
use xtask::tree::{Finding, Tree, finding, line_of};

use crate::sources::RULES;
use crate::standing::BEFORE_THE_RENAMES;

/// Most names that may mean two things: a reader keeps no more exceptions in mind.
const MAX_TWO_MEANINGS: usize = 10;

/// Names that may mean two things, each with the reason.
const TWO_MEANINGS: &[(&str, &str)] = &[
    ("Approvals", "the crate `pintle` shows of the engine's only those of one tenant"),
    ("Stage", "the crate `pintle` has a trait where the domain has what a hook does there"),
    ("Tenant", "the crate `pintle` has the handle of what the domain keeps as a row"),
    ("Turn", "the crate `pintle` drives what the domain has as a machine"),
];

/// The argument structs of commands: each is seen in the file of its command only.
const COMMANDS: &str = "crates/pintle-cli/src/cli";

/// The errands: nobody who reads a crate meets their types.
const ERRANDS: &str = "xtask";

/// Most fields of a struct. Beyond that there is a missing concept.
const MAX_FIELDS: usize = 12;

/// Structs that may have more fields, by file, each with the reason.
const WIDE: &[(&str, &str, &str)] = &[
    ("crates/agent/src/driver/work.rs", "Work", "all that one turn works with, borrowed for its time"),
    ("crates/dialects/src/process/config/raw.rs", "RawProcess", "one field for each key of the section"),
    ("crates/domain/src/account.rs", "Account", "one field for each column of a record"),
    ("crates/domain/src/rule.rs", "Rule", "one field for each column of a stored rule"),
    ("crates/domain/src/approval.rs", "Approval", "one field for each column of a question"),
    ("crates/domain/src/chain.rs", "Chain", "a state machine: its place in the row, and what came of it so far"),
    ("crates/domain/src/execution.rs", "Execution", "one field for each column of a run"),
    ("crates/domain/src/identity.rs", "Identity", "one field for each member on the wire"),
    ("crates/domain/src/store.rs", "StoredEvent", "one field for each column of an event"),
    ("crates/domain/src/store.rs", "StoredRecord", "one field for each column of a record"),
    ("crates/domain/src/turn.rs", "Turn", "a state machine: what the journal folds into"),
    ("crates/host/src/config.rs", "AgentConfig", "one field for each key of the section"),
    ("crates/host/src/config/rules.rs", "RulesConfig", "one field for each key of the section"),
    ("crates/host/src/config.rs", "Config", "one field for each section"),
    ("crates/host/src/config/found.rs", "OwnConfig", "one field for each section, as far as only the user says it"),
    ("crates/host/src/config/raw.rs", "RawConfig", "one field for each section"),
    ("crates/host/src/config/raw.rs", "RawAgent", "one field for each key of the section"),
    ("crates/host/src/config/gateway.rs", "GatewayConfig", "one field for each key of the section"),
    ("crates/host/src/config/raw.rs", "RawGateway", "one field for each key of the section"),
    ("crates/host/src/host.rs", "Host", "what a configuration in force consists of, each part closed by itself"),
    ("crates/pintle-cli/src/cli/chat/input.rs", "Keys", "a terminal: its decoder, its line and its signals"),
    ("crates/pintle-cli/src/cli/hooks/test/answer.rs", "Answer", "one field for each member that is read"),
    (
        "crates/process/src/hook/session.rs",
        "Session",
        "one conversation with a child, shared by its reader and its writer",
    ),
    ("crates/rules/src/admin/testing/result.rs", "TestResult", "one field for each member that is published"),
    ("crates/rules/src/builtin/manifest.rs", "Raw", "one field for each key of a rule that is shipped"),
    ("crates/rules/src/handler/observing.rs", "ObserverPool", "the bounds, queues and counters of one pool of workers"),
    ("crates/rules/src/handler/observing/telling.rs", "KeptTelling", "one field for each member of a stored job"),
    ("crates/rules/src/handler/services.rs", "RuleServices", "what all rules share, one field for each service"),
    ("crates/shell/src/read.rs", "Reading", "what a text has done so far, while it is read"),
];

/// A public type's name means one thing in the whole workspace.
pub(crate) fn two_meanings(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if TWO_MEANINGS.len() > MAX_TWO_MEANINGS {
        let mend = format!("TWO_MEANINGS has {}, {MAX_TWO_MEANINGS} are allowed", TWO_MEANINGS.len());
        findings.push(finding("xtask/tests/tidy/types.rs", 1, mend));
    }
    for (name, places) in public_types(tree) {
        let excused = TWO_MEANINGS.iter().any(|(known, _)| *known == name);
        if places.len() < 2 {
            if excused {
                findings.push(finding(&places[0].0, places[0].1, format!("take `{name}` out of TWO_MEANINGS")));
            }
        } else if !excused && !BEFORE_THE_RENAMES.contains(&name.as_str()) {
            let all: Vec<String> = places.iter().map(|(path, line)| format!("{path}:{line}")).collect();
            let mend = format!("`{name}` means {} things ({}): rename all but one", all.len(), all.join(", "));
            findings.push(finding(&places[0].0, places[0].1, mend));
        }
    }
    findings
}

/// The places in which each public type is defined, by its name.
fn public_types(tree: &Tree) -> BTreeMap<String, Vec<(String, usize)>> {
    static TYPE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^\s*pub\s+(?:unsafe\s+)?(?:struct|enum|trait|type|union)\s+(\w+)").expect("a pattern")
    });
    let mut places: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    let is_shipped =
        |source: &&Source| !source.is_test && is_in(&source.path, "src") && !is_below(&source.path, ERRANDS);
    for source in tree.sources().iter().filter(is_shipped) {
        let private = private_modules(&source.shipped);
        for found in TYPE.captures_iter(&source.shipped) {
            let name = found.get(1).expect("the pattern has one group");
            let of_a_command = name.as_str().ends_with("Args") && source.path.starts_with(COMMANDS);
            if !of_a_command && !private.iter().any(|module| module.contains(&name.start())) {
                let place = (source.path.clone(), line_of(&source.shipped, name.start()));
                places.entry(name.as_str().to_owned()).or_default().push(place);
            }
        }
    }
    places
}

/// Modules within the file into which nobody else sees.
fn private_modules(code: &str) -> Vec<Range<usize>> {
    static MODULE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^\s*mod\s+\w+\s*\{").expect("a pattern"));
    MODULE.find_iter(code).map(|found| found.start()..closing(code, found.end() - 1)).collect()
}

/// A struct has few enough fields to be one thing.
pub(crate) fn wide_structs(tree: &Tree) -> Vec<Finding> {
    static STRUCT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bstruct\s+(\w+)").expect("a pattern"));
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for source in tree.sources() {
        for found in STRUCT.captures_iter(&source.code) {
            let name = found.get(1).expect("the pattern has one group");
            let Some(open) = outside_brackets(&source.code, name.end(), b"({;") else { continue };
            let fields = match source.code.as_bytes()[open] {
                b';' => 0,
                _ => parts(&source.code[open + 1..closing(&source.code, open)]).len(),
            };
            if fields <= MAX_FIELDS {
                continue;
            }
            let place = (source.path.as_str(), name.as_str());
            if WIDE.iter().any(|(path, known, _)| (*path, *known) == place) {
                needed.insert(place);
                continue;
            }
            let mend = format!(
                "`{}` has {fields} fields, {MAX_FIELDS} are allowed: name the concept that some of them share",
                name.as_str()
            );
            findings.push(finding(&source.path, line_of(&source.code, name.start()), mend));
        }
    }
    let is_repository = tree.has(RULES);
    let stale = WIDE.iter().filter(|(path, name, _)| is_repository && !needed.contains(&(*path, *name)));
    findings.extend(stale.map(|(path, name, _)| finding(path, 1, format!("take `{name}` out of WIDE"))));
    findings
}
