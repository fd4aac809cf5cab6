//! Many clients at once on a real server: some thousands that do nothing, some hundreds that talk with a model that
//! answers piece by piece; what that costs, beside a server that only passes the pieces on.
//!
//! `server` is measured against `floor`, a server that only forwards, and `alone`, the loop without a gateway. `client`,
//! `load` and `model` make the traffic; `process`, `clock`, `threads` and `figures` do the measuring.

mod alone;
mod client;
mod clock;
mod figures;
mod floor;
mod load;
mod model;
mod process;
mod server;
mod threads;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

pub use alone::alone;
pub use figures::{Heard, Report, Times};
use load::{People, Talk};
use server::{Floor, Server};
use threads::runtime;

/// How long memory settles before it is looked at.
const SETTLES: Duration = Duration::from_secs(3);

/// How long the server stands still in a pause: longer than anything that waits for milliseconds, and shorter than
/// what cuts a connection.
const PAUSE: Duration = Duration::from_secs(2);

/// Afterwards until what was heard counts again.
const RECOVERS: Duration = Duration::from_secs(3);

/// How often memory is looked at, at most.
const LOOKS: u32 = 12;

/// Idle clients that are there.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// What is to be done to a server.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server: a built `pintle`.
    pub program: PathBuf,
    /// This program, which is the floor with the word `floor`, and the loop without a gateway with the word `alone`;
    /// neither is measured without it.
    pub floor: Option<PathBuf>,
    /// Clients that do nothing.
    pub idle: usize,
    /// Clients that talk.
    pub turns: usize,
    /// Turns of each, at least.
    pub rounds: usize,
    /// How long they talk, at least.
    pub length: Duration,
    /// How often the server is stopped by a signal meanwhile.
    pub pauses: u32,
}

/// Does it. Blocks.
///
/// # Errors
/// The server does not start, or clients are not let in. Turns that fail are in the report.
pub fn run(plan: &Plan) -> Result<Report> {
    process::raise_files()?;
    runtime()?.block_on(soak(plan))
}

/// Is the floor, with the model at `model`; tells `listens` where. Blocks for good.
///
/// # Errors
/// There is no port.
pub fn floor(model: String, listens: impl FnOnce(&str)) -> Result<()> {
    process::raise_files()?;
    runtime()?.block_on(floor::serve(model, listens))
}

async fn soak(plan: &Plan) -> Result<Report> {
    let tasks = TaskTracker::new();
    let model = model::start(&tasks).await?;
    let mut report = Report { floor: floored(plan, &model).await?, ..Report::default() };
    if let Some(own) = &plan.floor {
        report.alone = Some(alone::talked(&plan.program, own, (plan.turns, plan.rounds), &model).await?);
    }
    let mut server = Server::start(&plan.program, &model).await?;
    let people = People::make(&server.address, plan.turns, plan.idle).await?;
    let (address, pid) = (server.address.clone(), server.pid);
    tokio::time::sleep(SETTLES).await;
    let before = process::memory_kib(pid)?;
    let mut sitting = JoinSet::new();
    people.sit(&address, (&mut sitting, &OPEN)).await?;
    tokio::time::sleep(SETTLES).await;
    let grown = process::memory_kib(pid)?.saturating_sub(before);
    report.bytes_per_idle = grown * 1024 / u64::try_from(plan.idle.max(1))?;

    let spent = || Ok::<_, anyhow::Error>([process::processor(pid)?, process::processor(std::process::id())?]);
    let (at_first, began) = (spent()?, clock::now());
    let (say, stands) = watch::channel(false);
    let talk = Talk { rounds: plan.rounds, length: plan.length, stands };
    report.heard = tokio::select! {
        heard = people.talk(&address, talk) => heard?,
        ended = watched(plan, pid, (&mut report.memory_kib, &say)) => {
            ended?;
            anyhow::bail!("whoever watches never ends by itself")
        }
        () = server.warnings(|line| eprintln!("server: {line}")) => anyhow::bail!("the server ended"),
    };
    report.took = clock::now() - began;
    let at_last = spent()?;
    report.cores = [0, 1].map(|of| (at_last[of] - at_first[of]).as_secs_f64() / report.took.as_secs_f64());
    report.memory_kib.push(process::memory_kib(pid)?);
    report.idle = OPEN.swap(0, Ordering::Relaxed);
    report.closed = plan.idle.saturating_sub(report.idle);
    Ok(report)
}

/// The same talk with the floor, for as many rounds as there have to be.
async fn floored(plan: &Plan, model: &str) -> Result<Option<Heard>> {
    let Some(program) = &plan.floor else { return Ok(None) };
    let floor = Floor::start(program, model).await.context("the floor does not start")?;
    let (_say, stands) = watch::channel(false);
    let talk = Talk { rounds: plan.rounds, length: Duration::ZERO, stands };
    People::anybody(plan.turns).talk(&floor.address, talk).await.map(Some)
}

/// Looks at memory now and then, and lets the server stand still; goes on until it is dropped.
async fn watched(plan: &Plan, pid: u32, (memory, say): (&mut Vec<u64>, &watch::Sender<bool>)) -> Result<()> {
    let mut pauses = 0;
    for look in 0_u32.. {
        memory.push(process::memory_kib(pid)?);
        tokio::time::sleep(plan.length / LOOKS).await;
        // In the middle of equal parts.
        let due = (2 * pauses + 1) * LOOKS / (2 * plan.pauses.max(1));
        if pauses < plan.pauses && look + 1 >= due {
            pauses += 1;
            say.send_replace(true);
            server::signal(pid, Signal::SIGSTOP)?;
            tokio::time::sleep(PAUSE).await;
            server::signal(pid, Signal::SIGCONT)?;
            tokio::time::sleep(RECOVERS).await;
            say.send_replace(false);
        }
    }
    Ok(())
}
