//! What the kernel says of a process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// The number behind `name` in the status of a process or a thread.
pub(crate) fn status(folder: &Path, name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(folder.join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{name} is not a number"))
}

/// The names of what is in `folder`, as far as they are numbers.
fn numbers(folder: &Path) -> anyhow::Result<Vec<u32>> {
    let entries = fs::read_dir(folder).with_context(|| format!("`{}` cannot be read", folder.display()))?;
    let mut numbers = Vec::new();
    for entry in entries {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// The open descriptors of a process.
pub(crate) fn descriptors(pid: u32) -> anyhow::Result<u64> {
    Ok(numbers(Path::new(&format!("/proc/{pid}/fd")))?.len() as u64)
}

/// The processes that a process has started and that are there still.
pub(crate) fn children(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut children = Vec::new();
    for thread in numbers(Path::new(&format!("/proc/{pid}/task")))? {
        // A thread may end meanwhile.
        let Ok(list) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) else { continue };
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(children)
}

/// How often each thread went to sleep so far, of a process and of those that it has started.
pub(crate) fn sleeps(pid: u32) -> anyhow::Result<BTreeMap<u32, u64>> {
    let mut sleeps = BTreeMap::new();
    for process in std::iter::once(pid).chain(children(pid)?) {
        for thread in numbers(Path::new(&format!("/proc/{process}/task")))? {
            let folder = format!("/proc/{process}/task/{thread}");
            if let Ok(slept) = status(Path::new(&folder), "voluntary_ctxt_switches:") {
                sleeps.insert(thread, slept);
            }
        }
    }
    Ok(sleeps)
}

/// How often any thread was woken between two looks: each goes to sleep once more then.
pub(crate) fn wakes(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> u64 {
    let since = |(thread, slept): (&u32, &u64)| slept - before.get(thread).copied().unwrap_or(0).min(*slept);
    after.iter().map(since).sum()
}
