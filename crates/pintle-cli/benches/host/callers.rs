//! Callers that clear calls beside something else, every second of which the guard must refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use pintle_engine::{Clearance, Engine};
use tokio::task::JoinHandle;

use crate::child::UNWANTED;
use crate::stage::{Stage, call, who};

/// Callers that ask at the same time.
pub(crate) const CALLERS: usize = 64;

/// What became of the calls.
#[derive(Default)]
pub(crate) struct Outcome {
    /// How long each call took.
    pub(crate) took: Vec<Duration>,
    /// When those that may run were permitted.
    pub(crate) permitted: Vec<Instant>,
    /// How many that may run were refused: the guard was not there to be asked.
    pub(crate) shut: u64,
    /// How many ran that the guard refuses.
    pub(crate) ungated: u64,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        self.permitted.extend(other.permitted);
        self.shut += other.shut;
        self.ungated += other.ungated;
    }

    /// The time that one call in a hundred takes longer than.
    pub(crate) fn p99(&mut self) -> anyhow::Result<Duration> {
        ensure!(!self.took.is_empty(), "nobody called");
        self.took.sort();
        Ok(self.took[(self.took.len() - 1) * 99 / 100])
    }

    /// The longest time in which nothing was permitted.
    pub(crate) fn longest_pause(&mut self) -> Duration {
        self.permitted.sort();
        self.permitted.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }
}

/// Callers that go on until they are asked to stop.
pub(crate) struct Callers {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<anyhow::Result<Outcome>>>,
}

impl Callers {
    pub(crate) fn start(stage: &Stage, engine: &Arc<Engine>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |_| stage.tracker.spawn_on(one(engine.clone(), stop.clone()), stage.runtime.handle());
        Self { tasks: (0..CALLERS).map(caller).collect(), stop }
    }

    pub(crate) fn end(self, stage: &Stage) -> anyhow::Result<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Outcome::default();
        for task in self.tasks {
            all.add(stage.runtime.block_on(task)??);
        }
        Ok(all)
    }
}

/// One caller. Each call is a turn of its own, so it has the hooks that are in force now.
async fn one(engine: Arc<Engine>, stop: Arc<AtomicBool>) -> anyhow::Result<Outcome> {
    let mut seen = Outcome::default();
    for number in 0_u64.. {
        // At least one of each kind.
        if number > 1 && stop.load(Ordering::Relaxed) {
            break;
        }
        let is_unwanted = number % 2 == 1;
        let call = call(if is_unwanted { UNWANTED } else { "wanted" });
        let start = Instant::now();
        let cleared = engine.dispatcher(who()).clear(call).await;
        let end = Instant::now();
        seen.took.push(end - start);
        match (cleared, is_unwanted) {
            (Clearance::Run(..), false) => seen.permitted.push(end),
            (Clearance::Run(..), true) => seen.ungated += 1,
            (Clearance::Refused { .. }, false) => seen.shut += 1,
            (Clearance::Refused { .. }, true) => {}
            (other @ (Clearance::Substituted { .. } | Clearance::Waiting { .. } | Clearance::Abort { .. }), _) => {
                bail!("nobody could say this: {other:?}")
            }
        }
    }
    Ok(seen)
}
