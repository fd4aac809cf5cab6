//! How many system calls write while a warm child is asked one question after the other.
//!
//! `cargo xtask bench -- --count` counts; anything else asks once.

use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use pintle_domain::checkpoint::BeforeTool;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, json};
use pintle_domain::ruling::Ruling;
use pintle_domain::tool::ToolCall;
use pintle_engine::{Engine, NullStore};

/// Questions, each when the one before is answered.
const QUESTIONS: u64 = 100;
/// The size of the arguments, in bytes, about.
const ARGUMENT_BYTES: usize = 1024;
/// Set in the child, which is this program.
const CHILD: &str = "PINTLE_BENCH_CHILD";

fn main() -> ExitCode {
    let done = if std::env::var_os(CHILD).is_some() { answer() } else { count() };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("exchange: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Answers every line on standard input with `continue`.
fn answer() -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let reply = json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "action": "continue" } });
        writeln!(out, "{reply}")?;
        out.flush()?;
    }
    Ok(())
}

fn count() -> anyhow::Result<()> {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has("--list") {
        return Ok(());
    }
    let counts = has("--bench") && !has("--test");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let written = runtime.block_on(exchange(if counts { QUESTIONS } else { 1 }))?;
    if !counts {
        return Ok(());
    }
    let case = format!("exchange/{QUESTIONS}_questions/1_kib");
    let line = json!({ "unit": "writes", "case": case, "count": written });
    writeln!(io::stdout(), "{line}").context("the output is closed")
}

/// Asks one child; how many system calls wrote anything meanwhile.
async fn exchange(questions: u64) -> anyhow::Result<u64> {
    let engine = Engine::new(Arc::new(NullStore), Vec::new());
    let entry = json!({
        "enabled": true,
        "command": [std::env::current_exe()?],
        "env": { CHILD: "1" },
        "intercept": ["before_tool"],
        "strict": true,
    });
    engine.replace(vec![pintle_process::mount_entry(&engine, "hook", &entry, Path::new("."))?])?;
    let hooks = engine.dispatcher(Identity::top("main", "cli:direct", TurnId::from("turn_00000001")));
    let mut subject = BeforeTool { call: call(), owner: None };
    let mut before = 0;
    // The first question finds the child started.
    for number in 0..=questions {
        let (left, ruling) = hooks.check(subject).await;
        ensure!(matches!(ruling, Ruling::Proceed), "the call did not pass: {ruling:?}");
        subject = left;
        if number == 0 {
            before = writes()?;
        }
    }
    let written = writes()? - before;
    ensure!(written >= questions, "{written} writes for {questions} questions");
    engine.close().await;
    Ok(written)
}

/// How many system calls of this process wrote something so far, as the kernel counts them.
fn writes() -> anyhow::Result<u64> {
    let counters = std::fs::read_to_string("/proc/self/io")?;
    let count =
        counters.lines().find_map(|line| line.strip_prefix("syscw: ")).context("the kernel counts no writes")?;
    Ok(count.trim().parse()?)
}

fn call() -> ToolCall {
    let arguments = json!({ "path": "notes/größe.md", "text": "x".repeat(ARGUMENT_BYTES) });
    ToolCall {
        id: CallId::from("call_00000017"),
        tool: "write".to_owned(),
        raw_tool: "write".to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    }
}
