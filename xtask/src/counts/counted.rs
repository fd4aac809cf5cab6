//! What the benchmarks print: a line of JSON for each case, from the harness that counts instructions and allocations or
//! from a program that counts for itself.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;

/// A unit and a case of it.
pub(crate) type Key = (String, String);

/// The counts by unit and case.
pub(crate) type Counts = BTreeMap<Key, u64>;

/// The tools of the harness: the name, what it counts, and the metric with that number.
const TOOLS: [(&str, &str, &str); 2] = [("Callgrind", "instructions", "Ir"), ("DHAT", "allocations", "TotalBlocks")];

/// A case of the harness.
#[derive(Deserialize)]
struct Summary {
    group: String,
    function_name: String,
    id: String,
    profiles: Vec<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    tool: String,
    data: Value,
}

/// A number that a program counted for itself.
#[derive(Deserialize)]
struct Own {
    unit: String,
    case: String,
    count: u64,
}

/// Reads everything that was printed. Lines that are no JSON are for people.
pub(crate) fn read(printed: &str) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for line in printed.lines().filter(|line| line.starts_with('{')) {
        for (key, count) in of_line(line).with_context(|| format!("a benchmark printed `{line}`"))? {
            let before = counts.insert(key.clone(), count);
            ensure!(before.is_none(), "two cases are called `{}` and count {}", key.1, key.0);
        }
    }
    ensure!(!counts.is_empty(), "the benchmarks counted nothing");
    Ok(counts)
}

fn of_line(line: &str) -> anyhow::Result<Vec<(Key, u64)>> {
    if let Ok(Own { unit, case, count }) = serde_json::from_str(line) {
        return Ok(vec![((unit, case), count)]);
    }
    let Summary { group, function_name, id, profiles } = serde_json::from_str(line)?;
    let case = format!("{group}/{function_name}/{id}");
    let mut counts = Vec::new();
    for Profile { tool, data } in profiles {
        let (_, unit, metric) =
            TOOLS.iter().find(|(name, ..)| *name == tool).with_context(|| format!("`{tool}` is no tool known here"))?;
        let count = data.pointer(&format!("/total/metrics/{metric}/values/new")).and_then(Value::as_u64);
        counts.push((((*unit).to_owned(), case.clone()), count.with_context(|| format!("no `{metric}` of {tool}"))?));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, &str, u64)]) -> Counts {
        rows.iter().map(|(unit, case, count)| (((*unit).to_owned(), (*case).to_owned()), *count)).collect()
    }

    fn summary(id: &str) -> String {
        let metric = |name: &str, now: u64| format!(r#"{{"{name}":{{"values":{{"new":{now},"old":7}}}}}}"#);
        let profile = |tool: &str, metrics: String| {
            format!(r#"{{"tool":"{tool}","data":{{"parts":[],"total":{{"metrics":{metrics}}}}}}}"#)
        };
        let profiles = [profile("Callgrind", metric("Ir", 100)), profile("DHAT", metric("TotalBlocks", 0))].join(",");
        format!(r#"{{"group":"a","function_name":"b","id":"{id}","profiles":[{profiles}]}}"#)
    }

    #[test]
    fn lines_of_both_kinds_are_read_and_others_passed_over() {
        let own = r#"{"unit":"syncs","case":"kept","count":2}"#;
        let printed = format!("running\n{}\n{own}\n\n", summary("c"));
        let expected = counts(&[("instructions", "a/b/c", 100), ("allocations", "a/b/c", 0), ("syncs", "kept", 2)]);
        assert_eq!(read(&printed).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_counted_on_is_an_error() {
        let twice = format!("{0}\n{0}\n", summary("c"));
        let without = summary("c").replace("TotalBlocks", "Blocks");
        let unknown = summary("c").replace("DHAT", "Massif");
        for (printed, expected) in [
            (twice.as_str(), "two cases are called `a/b/c` and count"),
            (without.as_str(), "no `TotalBlocks` of DHAT"),
            (unknown.as_str(), "`Massif` is no tool known here"),
            ("{}", "missing field"),
            ("nothing", "counted nothing"),
        ] {
            let error = format!("{:#}", read(printed).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
