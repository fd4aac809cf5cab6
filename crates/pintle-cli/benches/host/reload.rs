//! A configuration that changes every ten milliseconds beside 64 callers.

use std::cell::RefCell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_host::host::Host;

use crate::against::Target;
use crate::callers::{Callers, Outcome};
use crate::home::Home;
use crate::proc;
use crate::report::Report;
use crate::stage::Stage;

/// How often the configuration changes.
const EVERY: Duration = Duration::from_millis(10);
/// Reloads in a round.
const TIMES: usize = 50;
/// A call in a hundred may take so many times as long as without reloads.
const LIMIT: f64 = 3.0;
/// How long children that were replaced may take to leave.
const LEAVING: Duration = Duration::from_secs(20);

/// A host whose guard is another one after each reload.
struct Changing {
    home: Home,
    host: Host,
    edition: u64,
    reloads: u64,
    reloading: Duration,
    ungated: u64,
    shut: u64,
}

impl Changing {
    fn new(stage: &Stage) -> anyhow::Result<Self> {
        let home = Home::new(0)?;
        home.guard(0)?;
        let host = home.ready(stage)?;
        Ok(Self { home, host, edition: 0, reloads: 0, reloading: Duration::ZERO, ungated: 0, shut: 0 })
    }

    /// Callers alone, for as long as so many reloads would take.
    fn quiet(&mut self, stage: &Stage, times: usize) -> anyhow::Result<Duration> {
        let callers = Callers::start(stage, &self.host.engine);
        sleep(EVERY * u32::try_from(times)?);
        self.noted(callers.end(stage)?, times)
    }

    /// Callers beside so many reloads. One that takes longer than its time is followed by the next at once.
    fn busy(&mut self, stage: &Stage, times: usize) -> anyhow::Result<Duration> {
        let callers = Callers::start(stage, &self.host.engine);
        for _ in 0..times {
            let start = Instant::now();
            self.edition += 1;
            self.home.guard(self.edition)?;
            stage.runtime.block_on(self.home.reload(&mut self.host))?;
            let took = start.elapsed();
            (self.reloads, self.reloading) = (self.reloads + 1, self.reloading + took);
            sleep(EVERY.saturating_sub(took));
        }
        self.noted(callers.end(stage)?, times)
    }

    /// The time that one call in a hundred takes longer than, as if it were what each of `times` takes.
    fn noted(&mut self, mut outcome: Outcome, times: usize) -> anyhow::Result<Duration> {
        self.ungated += outcome.ungated;
        self.shut += outcome.shut;
        Ok(outcome.p99()?.mul_f64(times as f64))
    }
}

pub(crate) fn reload_beside_callers(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let others = proc::children(std::process::id())?.len();
    let changing = RefCell::new(Changing::new(stage)?);
    let mut quiet = |times| changing.borrow_mut().quiet(stage, times);
    let mut busy = |times| changing.borrow_mut().busy(stage, times);
    let [alone, beside] = report.medians(TIMES, [&mut quiet, &mut busy])?;
    let Changing { home: _home, host, reloads, reloading, ungated, shut, .. } = changing.into_inner();
    old_children_leave(&host, others)?;
    stage.runtime.block_on(host.close());
    let what = "64 callers, a reload with another guard every 10 ms: one call in a hundred";
    report.against(what, [beside, alone], Target::RatioAtMost(LIMIT));
    report.noted("  one reload, beside them", crate::report::shown(reloading.div_f64(reloads.max(1) as f64)));
    report.limited("  calls that ran ungated", ungated, 0, |count| count.to_string());
    report.limited("  calls that a reload refused", shut, 0, |count| count.to_string());
    ensure!(ungated == 0, "{ungated} calls ran that the guard refuses");
    Ok(())
}

/// Waits until the child of the newest guard is the only one beside the `others`.
fn old_children_leave(host: &Host, others: usize) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        // Each stands below an adopter, which is our child.
        let left = proc::children(std::process::id())?.len();
        if left <= others + host.running().len() {
            return Ok(());
        }
        ensure!(start.elapsed() < LEAVING, "{left} children are left of replaced hooks");
        sleep(EVERY);
    }
}
