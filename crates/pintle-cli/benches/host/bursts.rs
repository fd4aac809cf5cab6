//! More than observers can hear: what is dropped is counted, all of it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pintle_domain::checkpoint::{CheckpointKind, Notice, RuntimeEvent};
use pintle_domain::record::{EventRecord, HookOutcome, NotRun};
use pintle_domain::store::{OnKept, RecordQuery, RecordStore, StoreError, StoredEvent};
use pintle_engine::{Engine, NativeHook, async_trait};
use pintle_process::hook::ProcessHook;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use crate::child::Answers;
use crate::observers::{OBSERVERS, count, counting, hook_name};
use crate::report::Report;
use crate::stage::{Stage, sized, who};

/// Events in the burst: ten times what may wait for one observer.
const BURST: usize = 10_000;
/// How long observers may take to hear what waits for them.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of what is told: a pipe holds a tenth of the burst, and a queue no more than that.
const TOLD_BYTES: usize = 4 << 10;

/// A message that somebody pasted.
fn long_event() -> RuntimeEvent {
    let user_message = "m".repeat(TOLD_BYTES);
    RuntimeEvent::TurnStart { channel: "cli".into(), chat_id: "direct".into(), user_message, media_count: 0 }
}

/// Counts what the records say was dropped.
#[derive(Default)]
struct Drops(AtomicU64);

impl RecordStore for Drops {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        let lines = records.iter().flat_map(|record| record.hooks.whole());
        let dropped = lines.filter(|line| line.outcome == HookOutcome::NotRun(NotRun::Dropped)).count();
        self.0.fetch_add(dropped as u64, Ordering::Relaxed);
        done(Ok(()));
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

/// Hangs until the burst is over.
struct Hanging {
    heard: Arc<AtomicU64>,
    over: Arc<Semaphore>,
}

#[async_trait]
impl NativeHook for Hanging {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::Runtime]
    }

    async fn on_event(&self, _notice: &Notice) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        // It is closed when the burst is over.
        drop(self.over.acquire().await);
    }
}

/// Native observers that hang until the burst is over, and processes that hang for a second of it.
pub(crate) fn bursts(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let burst = sized(BURST, 2000);
    for (family, [heard, dropped]) in [("native", native(stage, burst)?), ("process", process(stage, burst)?)] {
        let told = (burst * OBSERVERS) as u64;
        let what = format!("10,000 events of 4 KiB at once, ten {family} observers that hang: heard");
        report.noted(&what, heard.to_string());
        report.noted("  dropped and counted", dropped.to_string());
        let lost = told.abs_diff(heard + dropped);
        report.limited("  neither", lost, 0, |count| count.to_string());
        ensure!(lost == 0, "{family}: {told} were told, {heard} heard, {dropped} dropped");
    }
    Ok(())
}

/// What was heard, and what was dropped as the records have it.
fn native(stage: &Stage, burst: usize) -> anyhow::Result<[u64; 2]> {
    let (drops, heard, over) = (Arc::new(Drops::default()), Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
    let engine = Engine::new(drops.clone(), Vec::new());
    {
        let _inside = stage.runtime.enter();
        let hanging = || Arc::new(Hanging { heard: heard.clone(), over: over.clone() });
        let mount = |number| engine.native(&format!("hook-{number}"), 0, hanging());
        engine.replace((0..OBSERVERS).map(mount).collect())?;
    }
    let hooks = engine.dispatcher(who());
    stage.run(async move {
        (0..burst).for_each(|_| hooks.tell(long_event()));
        over.close();
        Ok(())
    })?;
    // Closing waits until what waits is heard.
    stage.runtime.block_on(engine.close());
    let dropped = drops.0.load(Ordering::Relaxed);
    ensure!(dropped > 0, "a burst that fits is none");
    Ok([heard.load(Ordering::Relaxed), dropped])
}

/// What the children heard, and what was dropped as their hooks have it: what waited for too long among it.
fn process(stage: &Stage, burst: usize) -> anyhow::Result<[u64; 2]> {
    let drops = Arc::new(Drops::default());
    let engine = Arc::new(Engine::new(drops.clone(), Vec::new()));
    stage.mount_children(&engine, OBSERVERS, &counting(Answers::Hang)?)?;
    let hooks = engine.dispatcher(who());
    let sums = stage.run(async move {
        (0..burst).for_each(|_| hooks.tell(long_event()));
        let start = Instant::now();
        let (mut heard, mut dropped) = (0, 0);
        for number in 0..OBSERVERS {
            let handler = hooks.set().handler_of(&hook_name(number)).cloned().context("it is in force")?;
            let any: &dyn Any = &*handler;
            let hook = any.downcast_ref::<ProcessHook>().context("it is a process hook")?;
            loop {
                let one = count(&hooks, number).await?;
                let lost: u64 = hook.status().dropped_events.values().sum();
                if one + lost >= burst as u64 || start.elapsed() > PATIENCE {
                    (heard, dropped) = (heard + one, dropped + lost);
                    break;
                }
                yield_now().await;
            }
        }
        Ok([heard, dropped])
    });
    stage.runtime.block_on(engine.close());
    let recorded = drops.0.load(Ordering::Relaxed);
    let [heard, dropped] = sums?;
    ensure!(dropped > 0, "a burst that fits is none");
    ensure!(recorded <= dropped, "{recorded} drops are in the records, and the hooks counted {dropped}");
    Ok([heard, dropped])
}
