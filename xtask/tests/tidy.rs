//! The rules of this repository that neither the compiler nor clippy sees.
//!
//! To add one: write a function from the [`Tree`] to its [`Finding`]s in one of the modules, give it a line in
//! [`CHECKS`], and show in `samples.rs` what it catches.

#![cfg(test)]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/docs.rs"]
mod docs;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/plan.rs"]
mod plan;
#[path = "tidy/samples.rs"]
mod samples;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/standing.rs"]
mod standing;
#[path = "tidy/texts.rs"]
mod texts;
#[path = "tidy/types.rs"]
mod types;

use xtask::map;
use xtask::tree::{Finding, Tree};

/// A rule: its name, and what finds the places that break it.
type Check = (&'static str, fn(&Tree) -> Vec<Finding>);

const CHECKS: &[Check] = &[
    ("module docs", sources::module_docs),
    ("file length", sources::file_length),
    ("unfinished work", sources::unfinished),
    ("routes of a table", sources::routes_of_a_table),
    ("names that say nothing", sources::vague_names),
    ("lints with a reason", sources::lint_reasons),
    ("modules that nobody names", sources::orphans),
    ("circles", circles::circles),
    ("names with two meanings", types::two_meanings),
    ("fields of a struct", types::wide_structs),
    ("parameters in tuples", functions::hidden_parameters),
    ("tests that sleep", functions::sleeps),
    ("layers", layers::layers),
    ("crates under other names", layers::aliases),
    ("layers that nobody needs", layers::stale_layers),
    ("the picture of crates", map::findings),
    ("what is published", layers::published),
    ("workspace lints", layers::workspace_lints),
    ("paths of one machine", texts::foreign_words),
    ("phrases that nobody writes", texts::odd_phrases),
    ("blanks and last lines", texts::blanks),
    ("files that have to be", docs::required_files),
    ("a map of one page", docs::short_map),
    ("tests that nobody runs", plan::forgotten_tests),
    ("links", docs::links),
];

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::of_the_repository();
    let mut report = String::new();
    for (name, check) in CHECKS {
        for finding in check(&tree) {
            report.push_str(&format!("{finding} [{name}]\n"));
        }
    }
    assert!(report.is_empty(), "\n{report}\n{} to mend; the rules are in xtask/tests/tidy.rs", report.lines().count());
}
