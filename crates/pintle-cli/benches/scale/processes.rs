//! Many processes that keep their records in one file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pintle_domain::id::TenantId;
use pintle_store::Durability;
use pintle_testkit::conformance::audit::chain;

use crate::report::{Report, shown};
use crate::role::Role;
use crate::size;
use crate::stage::{Load, Stage};

/// Processes at once, with one turn each.
const PROCESSES: usize = 200;
const FEW_PROCESSES: usize = 3;
/// Calls of each turn in one round.
const CALLS: usize = 10;
/// They take at most so many times as long as one process with as many turns.
const MOST_TIMES: f64 = 3.0;
/// The file of all of them.
const URL: &str = "sqlite://shared.db";

pub(crate) fn processes(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    if !report.wants("scale-processes") {
        return Ok(());
    }
    let number = size(PROCESSES, FEW_PROCESSES);
    let home = stage.folder.path().to_str().context("the temporary folder has a name")?;
    // The file and the keys are there before many want to make them.
    drop(stage.open(URL, Durability::Commit)?);
    let mut workers = (0..number).map(|_| Worker::start(home)).collect::<anyhow::Result<Vec<_>>>()?;
    workers.iter_mut().try_for_each(|worker| worker.hear().map(drop))?;
    let (mut asked, mut failed) = (0, 0);
    let mut together = |calls: usize| -> anyhow::Result<Duration> {
        asked += calls * number;
        let start = Instant::now();
        for worker in &mut workers {
            writeln!(worker.input, "{calls}")?;
        }
        for worker in &mut workers {
            failed += worker.hear()?;
        }
        Ok(start.elapsed())
    };
    let one = stage.open("sqlite://alone.db", Durability::Commit)?;
    let mut alone = |calls| Ok(stage.work_well(&one, Load { turns: number, calls })?.took);
    let medians = report.medians(CALLS, [&mut together, &mut alone])?;
    let [together, alone] = medians.map(|all| all / u32::try_from(number).unwrap_or(1));
    let name = format!("{number} processes on one file");
    let ratio = together.div_duration_f64(alone);
    let cells = [shown(together), shown(alone), format!("{ratio:.2}"), format!("<= {MOST_TIMES}")];
    report.row(&format!("{name}, commit: one of their calls"), cells, Some(ratio <= MOST_TIMES));
    report.limited(&format!("{name}: calls of {asked} that failed"), failed, 0, |count| count.to_string());
    workers.into_iter().try_for_each(Worker::end)?;
    // Each call that might run has its entry, whoever wrote beside.
    let kept = chain(&*stage.open(URL, Durability::Commit)?, &TenantId::default_tenant()).len();
    let granted = asked - usize::try_from(failed)?;
    ensure!(kept >= granted, "{granted} calls might run, and {kept} entries are kept");
    Ok(())
}

/// A process with a store of its own on the file of all.
struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(home: &str) -> anyhow::Result<Self> {
        let mut child = Role::spawn(&["worker", home, URL])?;
        let input = child.stdin.take().context("its input is piped")?;
        let output = BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Self { child, input, output })
    }

    /// The number that it says next.
    fn hear(&mut self) -> anyhow::Result<u64> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "process {} ended early", self.child.id());
        line.trim().parse().with_context(|| format!("process {} said `{line}`", self.child.id()))
    }

    fn end(self) -> anyhow::Result<()> {
        let Self { mut child, input, output } = self;
        drop((input, output));
        let status = child.wait()?;
        ensure!(status.success(), "a process failed: {status}");
        Ok(())
    }
}
