//! A guard whose child is killed beside 64 callers.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::callers::Callers;
use crate::home::Home;
use crate::report::{Report, shown};
use crate::stage::{Stage, sized};

/// How long callers go on before the child is killed.
const BEFORE: Duration = Duration::from_millis(100);
/// How long they go on after it: several times what a first restart waits for.
const AFTER: Duration = Duration::from_secs(1);

/// What was seen of all kills.
#[derive(Default)]
struct Seen {
    ungated: u64,
    shut: u64,
    calls: usize,
}

pub(crate) fn killed_child(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let mut seen = Seen::default();
    let mut pause = |_times| one_kill(stage, &mut seen);
    let [pause] = report.medians(1, [&mut pause])?;
    report.noted("64 callers, the child of their guard is killed: longest time without a permit", shown(pause));
    report.noted("  calls that were refused for it, of all", format!("{} of {}", seen.shut, seen.calls));
    report.limited("  calls that ran ungated", seen.ungated, 0, |count| count.to_string());
    ensure!(seen.ungated == 0, "{} calls ran that the guard refuses", seen.ungated);
    Ok(())
}

/// A host of its own for each, so that each is the first fall of its child.
fn one_kill(stage: &Stage, seen: &mut Seen) -> anyhow::Result<Duration> {
    let home = Home::new(0)?;
    home.guard(0)?;
    let host = home.ready(stage)?;
    let pid = fs::read_to_string(home.pid_file())?.parse::<i32>().context("the guard wrote its process id")?;
    let callers = Callers::start(stage, &host.engine);
    sleep(BEFORE);
    kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    sleep(sized(AFTER, BEFORE));
    let mut outcome = callers.end(stage)?;
    stage.runtime.block_on(host.close());
    seen.ungated += outcome.ungated;
    seen.shut += outcome.shut;
    seen.calls += outcome.took.len();
    let pause = outcome.longest_pause();
    ensure!(pause < AFTER, "the guard did not come back");
    Ok(pause)
}
