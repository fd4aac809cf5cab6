//! Hooks that a call passes by because their matchers name other tools.

use std::time::Duration;

use pintle_domain::rule::Rule;

use crate::host::{Host, Plan};
use crate::report::{Report, shown};
use crate::rows::unreached;
use crate::stage::Stage;

/// How many hooks are stored.
const HOOKS: usize = 50;
/// Most that a check may take none of whose hooks is about the tool.
const LIMIT: Duration = Duration::from_micros(2);
/// Checks in a round: half of what the writer of the store lets wait.
const TIMES: usize = 500;
/// Clearings in a round, each of which waits for its record.
const CLEARINGS: usize = 100;

/// Patterns as people write them, each with a place for a number so that no two hooks share one. None fits the call.
const PATTERNS: [&str; 5] =
    ["^write_file_#$", "^(read|edit)_#$", "^mcp__server_#__", "(?i)^deploy_#", "delete.*#|remove.*#"];

fn rows() -> Vec<Rule> {
    let patterns = PATTERNS.into_iter().cycle().take(HOOKS).enumerate();
    let row = |(number, pattern): (usize, &str)| Rule {
        matcher: pattern.replace('#', &number.to_string()),
        ..unreached(&format!("guard-{number}"))
    };
    patterns.map(row).collect()
}

pub(crate) fn matchers(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let forgetful = Host::open(&stage.runtime, Plan { rows: rows(), forgets: true, ..Plan::default() })?;
    let keeping = Host::open(&stage.runtime, Plan { rows: rows(), ..Plan::default() })?;
    let mut dispatch = |times| stage.check(&forgetful, times);
    let mut handed_over = |times| stage.check(&keeping, times);
    let [dispatch, handed_over] = report.medians(TIMES, [&mut dispatch, &mut handed_over])?;
    let mut cleared = |times| stage.clear(&keeping, times);
    let [cleared] = report.medians(CLEARINGS, [&mut cleared])?;
    report.limited("50 stored hooks about other tools: check", dispatch, LIMIT, shown);
    report.noted("  the same, its record handed to SQLite's writer", shown(handed_over));
    report.noted("  whole call, record committed: clear", shown(cleared));
    forgetful.close(&stage.runtime);
    keeping.close(&stage.runtime);
    Ok(())
}
