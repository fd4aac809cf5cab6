//! What a process costs, as Linux says.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Ticks of the processor clock in a second, the same on every Linux.
const TICKS: u64 = 100;

/// The memory that a process has to itself or shares, in KiB.
pub(crate) fn memory_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the server has no memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The processor time that a process had so far.
pub(crate) fn processor(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, behind) = stat.rsplit_once(") ").context("`/proc/PID/stat` has a name in brackets")?;
    // Behind the name: the state, ten others, then user and system time.
    let ticks: Vec<u64> = behind.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS))
}

/// Lets this process and its children have as many open files as they may: each client is one.
pub(crate) fn raise_files() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}
