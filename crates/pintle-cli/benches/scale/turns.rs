//! Many turns at once in one engine and one store.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pintle_store::{Durability, Store};
use pintle_testkit::postgres::Server;
use tokio_util::task::TaskTracker;

use crate::report::{Report, Side, shown};
use crate::role::Role;
use crate::stage::{Load, Stage};
use crate::{postgres, rows, size, syncs};

/// Turns at once.
const TURNS: usize = 200;
const FEW_TURNS: usize = 4;
/// Calls of each turn in one round.
const CALLS: usize = 10;
/// Ours does at least this share of what bare grouped transactions do.
const LEAST_SHARE: f64 = 0.7;
/// One call in a hundred waits at most so many times as long as the median.
const MOST_WAIT: f64 = 10.0;
/// The most memory that a turn may take beside others.
const MOST_KIB: u64 = 100;
/// At least so many calls share a sync of the disk.
const CALLS_A_SYNC: u64 = 8;
/// How long connections may take to be gone that are closed.
const GONE_WITHIN: Duration = Duration::from_secs(10);

const DURABILITIES: [(Durability, &str); 2] =
    [(Durability::Commit, "commit"), (Durability::BeforeEffect, "before_effect")];

pub(crate) fn turns(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    for (durability, word) in DURABILITIES {
        if report.wants(&format!("scale-turns-sqlite-{word}")) {
            sqlite(stage, report, durability)?;
        }
    }
    if report.wants("scale-turns-sqlite-memory") {
        memory(stage, report, ("SQLite", "sqlite://memory.db"))?;
    }
    let wants = |report: &Report, word: &str| report.wants(&format!("scale-turns-postgres-{word}"));
    let words = ["commit", "before_effect", "memory"];
    if !words.iter().any(|word| wants(report, word)) {
        return Ok(());
    }
    if !Server::is_installed() {
        report.noted("turns on PostgreSQL, which is not installed here", "left out".to_owned());
        return Ok(());
    }
    // Where nothing is measured, nothing has to survive.
    let server = if size(1, 0) == 1 { Server::start_syncing() } else { Server::start() };
    for (durability, word) in DURABILITIES {
        if wants(report, word) {
            Databases::new(stage, &server, durability)?.measure(report)?;
        }
    }
    if wants(report, "memory") {
        memory(stage, report, ("PostgreSQL", &server.fresh_database()))?;
    }
    Ok(())
}

fn load(calls: usize) -> Load {
    Load { turns: size(TURNS, FEW_TURNS), calls }
}

fn name(store: &str, durability: Durability) -> String {
    let word = DURABILITIES.iter().find(|(known, _)| *known == durability).map_or("", |(_, word)| word);
    format!("{} turns at once, {store}, {word}", load(0).turns)
}

/// Measures `ours` and `bare`, which are told the calls of each turn, and says how long the calls of `ours` waited.
fn compared(
    report: &mut Report,
    name: &str,
    ours: &mut dyn FnMut(usize) -> anyhow::Result<(Duration, Vec<Duration>)>,
    bare: Side<'_>,
) -> anyhow::Result<()> {
    let mut waited = Vec::new();
    let mut waiting = |calls| {
        let (took, mut all) = ours(calls)?;
        // Rounds that only warm up are shorter.
        if calls == size(CALLS, 1) {
            waited.append(&mut all);
        }
        Ok(took)
    };
    let medians = report.medians(CALLS, [&mut waiting, bare])?;
    let [ours, bare] = medians.map(|all| all / u32::try_from(load(0).turns).unwrap_or(1));
    let share = bare.div_duration_f64(ours);
    let cells = [shown(ours), shown(bare), format!("{share:.2}"), format!(">= {LEAST_SHARE}")];
    report.row(&format!("{name}: one of their calls"), cells, Some(share >= LEAST_SHARE));
    waited.sort_unstable();
    let at = |part: usize, of: usize| waited.get((waited.len() * part / of).min(waited.len() - 1)).copied();
    let [median, slow] = [at(1, 2), at(99, 100)].map(Option::unwrap_or_default);
    let ratio = slow.div_duration_f64(median);
    let cells = [shown(slow), shown(median), format!("{ratio:.2}"), format!("<= {MOST_WAIT}")];
    report.row(&format!("{name}: wait of one call in 100, and median"), cells, Some(ratio <= MOST_WAIT));
    Ok(())
}

/// How often the disk was synced for so many calls.
fn synced(report: &mut Report, name: &str, syncs: u64, calls: usize) {
    let most = (calls as u64).div_ceil(CALLS_A_SYNC);
    report.limited(&format!("{name}: syncs for {calls} calls"), syncs, most, |count| count.to_string());
}

fn sqlite(stage: &Stage, report: &mut Report, durability: Durability) -> anyhow::Result<()> {
    let file = |name: &str| stage.folder.path().join(name);
    let (blank, ours) = (file("blank.db"), file("ours.db"));
    drop(stage.open(&url(&blank), durability)?);
    let worked = |calls| {
        rows::fresh(&blank, &ours)?;
        let store = stage.open(&url(&ours), durability)?;
        let worked = stage.work_well(&store, load(calls))?;
        anyhow::Ok((worked.took, worked.waited))
    };
    let calls = size(CALLS, 1);
    worked(calls)?;
    let bare = rows::BareRows::of(&ours, &blank, calls, durability)?;
    let name = name("SQLite", durability);
    let mut bare = |calls| bare.insert(calls);
    compared(report, &name, &mut |calls| worked(calls), &mut bare)?;
    // One round by itself: the syncs of opening and closing are not a call's.
    rows::fresh(&blank, &ours)?;
    let store = stage.open(&url(&ours), durability)?;
    let before = syncs::so_far();
    stage.work_well(&store, load(calls))?;
    synced(report, &name, syncs::so_far() - before, load(0).turns * calls);
    Ok(())
}

fn url(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

/// The memory of a process that works them.
fn memory(stage: &Stage, report: &mut Report, (what, url): (&str, &str)) -> anyhow::Result<()> {
    let Load { turns, calls } = load(CALLS);
    let home = home(stage)?;
    let [grown] = Role::said(&["turns", &home, url, &turns.to_string(), &calls.to_string()])?;
    let name = format!("{turns} turns at once, {what}: memory for each");
    // A few share what all have in common.
    let each = grown / turns as u64;
    report.limited(&name, each, MOST_KIB, |kib| format!("{kib} KiB"));
    Ok(())
}

fn home(stage: &Stage) -> anyhow::Result<String> {
    stage.folder.path().to_str().map(str::to_owned).context("the temporary folder has a name")
}

/// A database of ours and one of the floor.
struct Databases<'a> {
    stage: &'a Stage,
    server: &'a Server,
    durability: Durability,
    ours: String,
    bare: String,
}

impl<'a> Databases<'a> {
    fn new(stage: &'a Stage, server: &'a Server, durability: Durability) -> anyhow::Result<Self> {
        let [ours, bare] = [server.fresh_database(), server.fresh_database()];
        for url in [&ours, &bare] {
            drop(stage.open(url, durability)?);
        }
        Ok(Self { stage, server, durability, ours, bare })
    }

    fn emptied(&self) -> anyhow::Result<Arc<dyn Store>> {
        self.alone()?;
        self.server.execute(&self.ours, postgres::EMPTY);
        self.stage.open(&self.ours, self.durability)
    }

    fn measure(&self, report: &mut Report) -> anyhow::Result<()> {
        let worked = |calls| {
            let worked = self.stage.work_well(&self.emptied()?, load(calls))?;
            anyhow::Ok((worked.took, worked.waited))
        };
        let calls = size(CALLS, 1);
        worked(calls)?;
        let (runtime, tasks) = (&self.stage.runtime, TaskTracker::new());
        self.alone()?;
        let bare = {
            let _inside = runtime.enter();
            runtime.block_on(postgres::BareRows::of((&self.ours, &self.bare), calls, &tasks))?
        };
        let name = name("PostgreSQL", self.durability);
        let mut inserted = |calls| bare.insert(runtime, calls);
        compared(report, &name, &mut |calls| worked(calls), &mut inserted)?;
        let store = self.emptied()?;
        let before = self.syncs()?;
        self.stage.work_well(&store, load(calls))?;
        drop(store);
        // A server process says what it did once it ends.
        self.alone()?;
        synced(report, &name, self.syncs()? - before, load(0).turns * calls);
        drop(bare);
        tasks.close();
        runtime.block_on(tasks.wait());
        Ok(())
    }

    /// Waits until nobody is connected to the database of ours.
    fn alone(&self) -> anyhow::Result<()> {
        let database = self.ours.rsplit('/').next().unwrap_or_default();
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
        let start = Instant::now();
        while self.server.execute("postgres", &sql).trim() != "0" {
            ensure!(start.elapsed() < GONE_WITHIN, "a connection stays");
        }
        Ok(())
    }

    /// The syncs of the server's log so far.
    fn syncs(&self) -> anyhow::Result<u64> {
        let counted = self.server.execute("postgres", "SELECT wal_sync FROM pg_stat_wal");
        counted.trim().parse().with_context(|| format!("`{counted}` is not a number"))
    }
}
