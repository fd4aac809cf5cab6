//! One command, against the bare start of the same command with the same input and surroundings.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::future::join;
use pintle_domain::checkpoint::{PreToolUse, Subject};
use pintle_domain::id::EventId;
use pintle_domain::json::json;
use pintle_domain::rule::HandlerType;
use pintle_rules::payload;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::against::Target;
use crate::host::{Host, Plan};
use crate::report::{Report, shown};
use crate::rows::gate;
use crate::stage::{Stage, call, turn};

/// A check may cost so many bare starts.
const LIMIT: f64 = 1.1;
/// Runs in a round.
const TIMES: usize = 100;
/// Reads its input and lets pass.
const COMMAND: &str = "read -r line; exit 0";

pub(crate) fn command(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let rows = vec![gate("guard", HandlerType::Command, &json!({ "command": COMMAND, "cwd": "/" }))];
    let host = Host::open(&stage.runtime, Plan { rows: rows.clone(), forgets: true, ..Plan::default() })?;
    let keeping = Host::open(&stage.runtime, Plan { rows, ..Plan::default() })?;
    let mut hook = |times| stage.check(&host, times);
    let mut bare = |times| stage.run(bare(times));
    let [hook, bare] = report.medians(TIMES, [&mut hook, &mut bare])?;
    let mut handed_over = |times| stage.check(&keeping, times);
    let mut cleared = |times| stage.clear(&keeping, times);
    let [handed_over, cleared] = report.medians(TIMES, [&mut handed_over, &mut cleared])?;
    report.against("one command: check", [hook, bare], Target::RatioAtMost(LIMIT));
    report.noted("  the same, its record handed to SQLite's writer", shown(handed_over));
    report.noted("  whole call, record committed: clear", shown(cleared));
    host.close(&stage.runtime);
    keeping.close(&stage.runtime);
    Ok(())
}

/// The floor: `sh -c`, the payload, the end.
async fn bare(times: usize) -> anyhow::Result<Duration> {
    let subject = PreToolUse { call: call() };
    let (who, at) = (turn(), jiff::Timestamp::now());
    let payload = payload::of_subject(&EventId::fresh(), &who, at, &Subject::PreToolUse(&subject));
    let payload = payload.context("commands are asked before tools")?;
    let start = Instant::now();
    for _ in 0..times {
        once(&payload).await?;
    }
    Ok(start.elapsed())
}

async fn once(payload: &[u8]) -> anyhow::Result<()> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(COMMAND).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/");
    command.env("LANG", "C.UTF-8").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("its input is a pipe")?;
    let feed = async {
        stdin.write_all(payload).await?;
        drop(stdin);
        std::io::Result::Ok(())
    };
    let (fed, output) = join(feed, child.wait_with_output()).await;
    // The payload has no line end, so the command reads all of it.
    fed?;
    ensure!(output?.status.success(), "it ended otherwise");
    Ok(())
}
