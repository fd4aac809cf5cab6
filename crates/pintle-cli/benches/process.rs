//! What the program itself costs: how soon it is there, how much memory it holds, what it takes to write a clearing
//! down.
//!
//! `cargo bench -p pintle-cli --bench process` measures, anything else runs each case once. The floors, and what hooks
//! cost, stand in the engine's benchmark.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::RecordStore;
use pintle_domain::tool::ToolCall;
use pintle_engine::{Clearance, Engine, NullStore};
use pintle_store::Durability;
use report::{Report, shown};
use tempfile::TempDir;

#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// Most that the shortest command may take, from its start to its end.
const VERSION_LIMIT: Duration = Duration::from_millis(10);
/// Most memory that an idle conversation may hold, in KiB.
const IDLE_LIMIT_KIB: u64 = 30 << 10;

const CONFIG: &str = r#"
[providers.scripted]
kind = "scripted"
script = "replies.json"

[agents.main]
model = "scripted/m"
workspace = "workspace"
"#;
const REPLIES: &str = r#"{ "replies": [{ "text": "Nobody asked." }] }"#;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("process: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    let home = home()?;
    if report.wants("version") {
        version(&mut report, home.path())?;
    }
    if report.wants("idle") {
        idle(&mut report, home.path())?;
    }
    if report.wants("commit") {
        commit(&mut report, home.path())?;
    }
    report.print()
}

/// A folder with a configuration whose model answers from a file.
fn home() -> anyhow::Result<TempDir> {
    let home = tempfile::tempdir()?;
    fs::create_dir(home.path().join("workspace"))?;
    fs::write(home.path().join("pintle.toml"), CONFIG)?;
    fs::write(home.path().join("replies.json"), REPLIES)?;
    Ok(home)
}

/// The program, in surroundings of its own.
fn pintle(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    command.env_clear().current_dir(home).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(name, home);
    }
    command
}

/// The shortest command, from its start to its end.
fn version(report: &mut Report, home: &Path) -> anyhow::Result<()> {
    const TIMES: usize = 20;
    let mut run = |times| {
        let start = Instant::now();
        for _ in 0..times {
            let output = pintle(home).arg("version").output()?;
            ensure!(output.status.success() && output.stdout.starts_with(b"pintle "), "it failed: {output:?}");
        }
        Ok(start.elapsed())
    };
    let [took] = report.medians(TIMES, [&mut run])?;
    report.limited("pintle version, whole process", took, VERSION_LIMIT, shown);
    Ok(())
}

/// A conversation that waits for its first line.
fn idle(report: &mut Report, home: &Path) -> anyhow::Result<()> {
    let mut chat = pintle(home)
        .args(["chat", "--config", "pintle.toml", "--home", "data"])
        .stdin(Stdio::piped())
        .spawn()
        .context("`pintle chat` does not start")?;
    let memory = greeted(&mut chat).and_then(|()| memory_kib(chat.id()));
    // Its input ends, so it leaves.
    drop(chat.stdin.take());
    let status = chat.wait()?;
    let (resident, peak) = memory?;
    ensure!(status.success(), "`pintle chat` failed: {status}");
    let show = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
    report.limited("pintle chat, idle: resident memory", resident, IDLE_LIMIT_KIB, show);
    report.limited("pintle chat, idle: most it ever had", peak, IDLE_LIMIT_KIB, show);
    Ok(())
}

/// Waits until the conversation has begun, which it says on standard error.
fn greeted(chat: &mut Child) -> anyhow::Result<()> {
    let mut said = String::new();
    for line in BufReader::new(chat.stderr.take().context("its standard error is piped")?).lines() {
        let line = line?;
        if line.contains("session ") {
            return Ok(());
        }
        said.push_str(&line);
        said.push('\n');
    }
    bail!("`pintle chat` ended before its conversation began:\n{said}")
}

/// The resident memory of a process, now and at its peak, in KiB.
fn memory_kib(pid: u32) -> anyhow::Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().with_context(|| format!("{name} is not a number"))
    };
    Ok((kib("VmRSS:")?, kib("VmHWM:")?))
}

/// A clearing without hooks: with a store that forgets, and with the record in a file before the call may run.
fn commit(report: &mut Report, home: &Path) -> anyhow::Result<()> {
    const TIMES: usize = 300;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let opened = |url: &str, durability| {
        pintle_store::open(url, home, durability).with_context(|| format!("`{url}` does not open"))
    };
    let forgets: Arc<dyn RecordStore> = Arc::new(NullStore);
    let mut forgotten = |times| clear_often(&runtime, &forgets, times);
    let with_the_system: Arc<dyn RecordStore> = opened("sqlite://system.db", Durability::Commit)?;
    let mut handed_over = |times| clear_often(&runtime, &with_the_system, times);
    let on_disk: Arc<dyn RecordStore> = opened("sqlite://disk.db", Durability::BeforeEffect)?;
    let mut synced = |times| clear_often(&runtime, &on_disk, times);
    let [forgot, handed, written] = report.medians(TIMES, [&mut forgotten, &mut handed_over, &mut synced])?;
    report.noted("clear without hooks, record kept nowhere", shown(forgot));
    report.noted("clear without hooks, record committed to SQLite", shown(handed));
    report.noted("clear without hooks, record synced to the disk", shown(written));
    Ok(())
}

/// Clears calls one after the other, as the task of one turn does.
fn clear_often(
    runtime: &tokio::runtime::Runtime,
    store: &Arc<dyn RecordStore>,
    times: usize,
) -> anyhow::Result<Duration> {
    let engine = Engine::new(store.clone(), Vec::new());
    let hooks = engine.dispatcher(Identity::top("main", "cli:direct", TurnId::fresh()));
    let turn = engine.tasks().spawn_on(
        async move {
            let arguments = pintle_domain::json::json!({ "path": "notes.md", "text": "x".repeat(1000) });
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            let call =
                ToolCall { id: CallId::from("call_1"), tool: "write".into(), raw_tool: "write".into(), arguments };
            let start = Instant::now();
            for _ in 0..times {
                let cleared = hooks.clear(call.clone()).await;
                ensure!(matches!(cleared, Clearance::Run(..)), "the call was not cleared: {cleared:?}");
            }
            Ok(start.elapsed())
        },
        runtime.handle(),
    );
    runtime.block_on(turn)?
}
