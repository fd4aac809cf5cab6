//! Starter guards: records that somebody may add, change and delete like any other.

use pintle_domain::json::{Value, json};
use pintle_domain::rule::HookScope;
use serde::Deserialize;

/// The code that all of them share; each guard is this, then its own file.
const SHARED: &str = include_str!("starter/shared.js");

const TABLE: &str = include_str!("starter.toml");

const FILES: [(&str, &str); 7] = [
    ("destroy.js", include_str!("starter/destroy.js")),
    ("disks.js", include_str!("starter/disks.js")),
    ("processes.js", include_str!("starter/processes.js")),
    ("history.js", include_str!("starter/history.js")),
    ("downloads.js", include_str!("starter/downloads.js")),
    ("outside.js", include_str!("starter/outside.js")),
    ("secrets.js", include_str!("starter/secrets.js")),
];

/// The edition of all of them: what a host with older ones compares.
const VERSION: u32 = 1;

/// The first of them runs before hooks of the usual priority 0; the others follow it, one less each.
const FIRST_PRIORITY: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    guard: Vec<Guard>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Guard {
    name: String,
    file: String,
    matcher: String,
    description: String,
}

/// The starter guards for `scope`, as records that can be created. Each has a name of its own, so that whoever adds them
/// can tell which are there already. Of scope `agent` they lack `agent_ids`, which only the caller knows.
pub fn starter(scope: HookScope) -> Vec<Value> {
    let table: Table = toml::from_str(TABLE).expect("a test below reads the embedded table");
    table.guard.iter().enumerate().map(|(place, guard)| record(guard, place, scope)).collect()
}

fn record(guard: &Guard, place: usize, scope: HookScope) -> Value {
    let (_, own) =
        FILES.iter().find(|(name, _)| *name == guard.file).expect("a test below finds the file of every guard");
    json!({
        "event": "pre_tool_use",
        "handler_type": "script",
        "scope": scope,
        "name": guard.name,
        "config": {"source": format!("{own}\n{SHARED}")},
        "matcher": guard.matcher,
        "timeout_ms": 2000,
        "on_timeout": "block",
        "priority": FIRST_PRIORITY - place,
        "breaker": "faults",
        "on_trip": "block",
        "metadata": {"starter": true, "version": VERSION, "description": guard.description},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longest script that a record may have, in bytes. Source: the published format of rules.
    const MAX_SOURCE_BYTES: usize = 32_768;

    #[test]
    fn every_guard_is_a_record_that_can_be_created() {
        let records = starter(HookScope::Tenant);
        assert_eq!(records.len(), FILES.len());
        for record in &records {
            let name = record["name"].as_str().unwrap();
            assert!(name.starts_with("starter-"), "{name}");
            assert_eq!((&record["scope"], &record["breaker"]), (&json!("tenant"), &json!("faults")), "{name}");
            regex::Regex::new(record["matcher"].as_str().unwrap()).unwrap();
            let source = record["config"]["source"].as_str().unwrap();
            assert_eq!(source.matches("function handle(event)").count(), 1, "{name}");
            // Whoever changes one needs room for more names.
            assert!(source.len() <= MAX_SOURCE_BYTES / 64 * 63, "{name} has {} bytes", source.len());
        }
        let mut names: Vec<&str> = records.iter().map(|record| record["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FILES.len());
    }

    #[test]
    fn they_are_the_same_each_time_but_for_the_scope() {
        assert_eq!(starter(HookScope::Tenant), starter(HookScope::Tenant));
        let mut global = starter(HookScope::Global);
        for record in &mut global {
            assert_eq!(record["scope"], "global");
            record["scope"] = json!("tenant");
        }
        assert_eq!(global, starter(HookScope::Tenant));
    }
}
