//! What a command hook costs beside the bare start of the same command, and beside a start below an adopter in C.
//!
//! `cargo bench -p pintle-process --bench command` measures, anything else runs each case once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures_util::future::{join, try_join_all};
use pintle_engine::Deadlines;
use pintle_process::command::{CommandEnd, CommandSpec, RunLimit};
use report::{Report, Side, shown};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[expect(dead_code, reason = "it is shared, and absolute figures are for others")]
#[path = "hooks/report.rs"]
mod report;

/// How often one side runs in a round.
const RUNS: usize = 200;
/// How many run at once, where many do: as many as processors and a few that wait.
const AT_ONCE: usize = 8;
/// Most that a hook may cost, in bare starts.
const LIMIT: f64 = 1.1;
/// The same, in starts below an adopter.
const ADOPTED_LIMIT: f64 = 1.2;
/// The program that is the floor of those starts.
const ADOPTED_FLOOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/floors/command.c");
/// A usual deadline; no command comes near it.
const DEADLINE: Duration = Duration::from_secs(5);
/// Memory of a host at work, in bytes. Starting a process the plain way copies the tables of all of it.
const BALLAST_BYTES: usize = 64 << 20;
/// Distance at which every page of the usual size is touched.
const PAGE_BYTES: usize = 4 << 10;

/// A name, a command, and the bytes of its payload.
const CASES: [(&str, &str, usize); 3] = [
    ("guard", "read -r line; exit 0", 1 << 10),
    ("reply", r#"cat >/dev/null; echo '{"decision":"allow"}'"#, 1 << 10),
    ("large", "cat", 512 << 10),
];

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("command: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (word, command, bytes) in CASES {
        for at_once in [1, AT_ONCE] {
            let word = format!("command-{word}-{at_once}");
            if report.wants(&word) {
                against_bare(&mut report, &runtime, &Case::new(&word, command, bytes, at_once))?;
            }
        }
    }
    let (_, command, bytes) = CASES[0];
    let case = Case::new("command-adopter-1", command, bytes, 1);
    if report.wants(&case.name) {
        against_adopted(&mut report, &runtime, &case)?;
    }
    if report.wants("command-ballast") {
        let mut ballast = vec![0_u8; BALLAST_BYTES];
        ballast.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
        against_bare(&mut report, &runtime, &Case::new("command-ballast-1", command, bytes, 1))?;
        ensure!(std::hint::black_box(&ballast).contains(&1), "the ballast is in memory");
    }
    report.print()
}

/// A command that is run on both sides.
struct Case {
    /// A host has one timer for all its hooks.
    deadlines: Deadlines,
    name: String,
    command: &'static str,
    payload: Bytes,
    at_once: usize,
    cwd: PathBuf,
    vars: Vec<(OsString, OsString)>,
}

impl Case {
    fn new(name: &str, command: &'static str, bytes: usize, at_once: usize) -> Self {
        let payload = Bytes::from(format!("{{\"RawInput\":\"{}\"}}\n", "x".repeat(bytes)));
        let vars = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/"), ("LANG", "C.UTF-8")];
        let vars = vars.map(|(name, value)| (name.into(), value.into())).to_vec();
        Self {
            deadlines: Deadlines::default(),
            name: name.to_owned(),
            command,
            payload,
            at_once,
            cwd: "/".into(),
            vars,
        }
    }
}

fn against_bare(report: &mut Report, runtime: &Runtime, case: &Case) -> anyhow::Result<()> {
    let spec = CommandSpec::new(case.command.to_owned(), case.cwd.clone(), case.vars.clone());
    let hooked: Side<'_> = &mut |times| timed(times, || runtime.block_on(hooked(&spec, case)));
    let bare: Side<'_> = &mut |times| timed(times, || runtime.block_on(bare(case)));
    let [hooked, bare] = report.medians(RUNS.div_ceil(case.at_once), [hooked, bare])?;
    let ratio = hooked.as_secs_f64() / bare.as_secs_f64();
    let row = [shown(hooked), shown(bare), format!("{ratio:.2}"), format!("<= {LIMIT}")];
    report.row(&case.name, row, Some(ratio <= LIMIT));
    Ok(())
}

/// Against a program in C that does what cannot be done without, adopter included.
fn against_adopted(report: &mut Report, runtime: &Runtime, case: &Case) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let floor = folder.path().join("floor");
    let built = Program::new("cc").args(["-O2", "-o"]).arg(&floor).arg(ADOPTED_FLOOR).status()?;
    ensure!(built.success(), "the floor cannot be compiled");
    let spec = CommandSpec::new(case.command.to_owned(), case.cwd.clone(), case.vars.clone());
    let hooked: Side<'_> = &mut |times| timed(times, || runtime.block_on(hooked(&spec, case)));
    let adopted: Side<'_> = &mut |times| {
        let bytes = case.payload.len();
        let ran = Program::new(&floor).args([times.to_string(), bytes.to_string()]).arg(case.command).output()?;
        ensure!(ran.status.success(), "the floor ended otherwise: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(Duration::from_nanos(String::from_utf8_lossy(&ran.stdout).trim().parse()?))
    };
    let [hooked, adopted] = report.medians(RUNS, [hooked, adopted])?;
    let ratio = hooked.as_secs_f64() / adopted.as_secs_f64();
    let row = [shown(hooked), shown(adopted), format!("{ratio:.2}"), format!("<= {ADOPTED_LIMIT}")];
    report.row(&case.name, row, Some(ratio <= ADOPTED_LIMIT));
    Ok(())
}

fn timed(times: usize, mut run: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    for _ in 0..times {
        run()?;
    }
    Ok(began.elapsed())
}

async fn hooked(spec: &CommandSpec, case: &Case) -> anyhow::Result<()> {
    let (cancel, tasks) = (CancellationToken::new(), TaskTracker::new());
    let limit = RunLimit { time: DEADLINE, deadlines: &case.deadlines };
    let runs = (0..case.at_once).map(async |_| {
        let ran = spec.run(case.payload.clone(), limit, &cancel, &tasks).await;
        ensure!(ran.end == CommandEnd::Exit(0), "it ended otherwise: {ran:?}");
        Ok(())
    });
    try_join_all(runs).await?;
    Ok(())
}

async fn bare(case: &Case) -> anyhow::Result<()> {
    try_join_all((0..case.at_once).map(|_| bare_run(case))).await?;
    Ok(())
}

async fn bare_run(case: &Case) -> anyhow::Result<()> {
    let mut command = Command::new(Path::new("/bin/sh"));
    command.arg("-c").arg(case.command).env_clear().envs(case.vars.iter().map(|(name, value)| (name, value)));
    command.current_dir(&case.cwd).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("its input is a pipe")?;
    let feed = async {
        stdin.write_all(&case.payload).await?;
        drop(stdin);
        std::io::Result::Ok(())
    };
    let (fed, output) = join(feed, child.wait_with_output()).await;
    fed?;
    ensure!(output?.status.success(), "it ended otherwise");
    Ok(())
}
