//! What a script costs: against an engine made afresh in this process for the same source and event, and how exact a
//! deadline is.
//!
//! `cargo bench -p pintle-sandbox --bench scripts` measures; anything else runs each case once. Within a round the two
//! take turns. A hook crosses to another process and back, so on a machine that is busy with other work the figures show
//! what the system's scheduler does.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use against::Target;
use anyhow::{Result, anyhow};
use pintle_domain::checkpoint::Duty;
use pintle_sandbox::{Launcher, Sandbox, ScriptRun, limits};
use report::{Report, Side, shown};
use rquickjs::{Context, Function, Runtime, Value};
use tokio_util::task::TaskTracker;

#[expect(dead_code, reason = "it is shared, and throughputs are for others")]
#[path = "../../process/benches/hooks/against.rs"]
mod against;
#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// Runs of each side in a round.
const TIMES: usize = 60;
/// Runs in a round of each program that only a kill ends.
const ENDLESS_TIMES: usize = 2;
/// A hook may cost so many fresh engines.
const MOST_TIMES: f64 = 1.4;
/// A program that does not end may go on so long after its deadline. Source: agent hooks, scripts.
const MOST_PAST_DEADLINE: Duration = Duration::from_millis(250);

const GUARD: &str = "function handle(event) {
  const cmd = event.toolInput.cmd;
  if (/\\brm\\s+-rf\\b/.test(cmd)) return { decision: 'block', reason: 'not here' };
  return { decision: 'allow' };
}";

const REDACT: &str = r#"function handle(event) {
  const clean = (text) => text
    .replace(/[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}/g, "[REDACTED_EMAIL]")
    .replace(/(?<![\d+])\+?[1-9]\d{7,14}(?![\d+])/g, "[REDACTED_PHONE]");
  const after = clean(event.rawInput);
  return after === event.rawInput ? { decision: "allow" } : { decision: "allow", updatedInput: { rawInput: after } };
}"#;

/// Programs that only a kill ends.
const ENDLESS: [(&str, &str); 3] = [
    ("a loop", "function handle(event) { for (;;); }"),
    ("a native loop", "function handle(event) { return { decision: new Array(1e9) + '' }; }"),
    ("a regex", "function handle(event) { return { decision: /^(a+)+$/.test('a'.repeat(50) + '!') }; }"),
];

fn main() -> Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if report.wants("script") {
        let stage = Stage::new()?;
        let small =
            r#"{"toolName":"exec","toolInput":{"cmd":"ls -la"},"rawInput":"write to a@example.org or +4915112345678"}"#;
        let text = "write to a@example.org, or not; ".repeat(2000);
        let large = pintle_domain::json::json!({"toolInput": {"cmd": text}, "rawInput": text}).to_string();
        let long = format!("{GUARD}\n{}", "function unused(a, b) { return a + b * 2; }\n".repeat(500));
        let cases = [
            ("script: guard", GUARD, small),
            ("script: redactor", REDACT, small),
            ("script: guard, 128 KiB event", GUARD, large.as_str()),
            ("script: guard of 22 KiB", long.as_str(), small),
        ];
        for (name, source, event) in cases {
            stage.compare(&mut report, name, (source, event))?;
        }
        for (name, source) in ENDLESS {
            stage.end(&mut report, name, (source, small))?;
        }
    }
    report.print()
}

/// As in the product: the caller is a task on one of several threads.
struct Stage {
    runtime: tokio::runtime::Runtime,
    sandbox: Arc<Sandbox>,
    tasks: TaskTracker,
}

impl Stage {
    fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let program = env!("CARGO_BIN_EXE_pintle-script-worker").into();
        let sandbox = Arc::new(Sandbox::new(Launcher { program, args: Vec::new(), vars: Vec::new() }));
        Ok(Self { runtime, sandbox, tasks: TaskTracker::new() })
    }

    fn run<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        self.runtime.block_on(self.tasks.spawn_on(work, self.runtime.handle()))?
    }

    fn compare(&self, report: &mut Report, name: &str, (source, event): (&str, &str)) -> Result<()> {
        let (source, event): (Arc<str>, Arc<str>) = (source.into(), event.into());
        let fresh = Cell::new(Duration::ZERO);
        // One run each in turns: a child prepares its next engine meanwhile, as it does between the calls of an agent.
        let hook: Side<'_> = &mut |times| {
            let work = in_turns(self.sandbox.clone(), source.clone(), event.clone(), times);
            let (hook, floor) = self.run(work)?;
            fresh.set(floor);
            Ok(hook)
        };
        let floor: Side<'_> = &mut |_| Ok(fresh.get());
        let medians = report.medians(TIMES, [hook, floor])?;
        let busy: Side<'_> =
            &mut |times| self.run(back_to_back(self.sandbox.clone(), source.clone(), event.clone(), times));
        let [busy] = report.medians(TIMES, [busy])?;
        report.against(name, medians, Target::RatioAtMost(MOST_TIMES));
        report.noted("  one after the other, without a pause", shown(busy));
        Ok(())
    }

    /// The worst of a few runs of a program that does not end.
    fn end(&self, report: &mut Report, name: &str, (source, event): (&'static str, &str)) -> Result<()> {
        let (mut most, event) = (Duration::ZERO, Arc::<str>::from(event));
        let side: Side<'_> = &mut |times| {
            for _ in 0..times {
                most = most.max(self.run(past_deadline(self.sandbox.clone(), source, event.clone()))?);
            }
            Ok(most)
        };
        report.medians(ENDLESS_TIMES, [side])?;
        report.limited(&format!("script: {name}, ends after its deadline"), most, MOST_PAST_DEADLINE, shown);
        Ok(())
    }
}

/// The time of so many hooks, and of so many fresh engines.
async fn in_turns(
    sandbox: Arc<Sandbox>,
    source: Arc<str>,
    event: Arc<str>,
    times: usize,
) -> Result<(Duration, Duration)> {
    let (mut hook, mut fresh) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..times {
        let started = Instant::now();
        in_process(&source, &event)?;
        fresh += started.elapsed();
        let started = Instant::now();
        in_child(&sandbox, &source, &event).await?;
        hook += started.elapsed();
    }
    Ok((hook, fresh))
}

/// The floor: what everybody pays who runs a script in an engine of its own.
fn in_process(source: &str, event: &str) -> Result<()> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(limits::HEAP_BYTES);
    Context::full(&runtime)?.with(|ctx| {
        let event = ctx.json_parse(event)?;
        ctx.eval::<(), _>(source)?;
        let handle: Function<'_> = ctx.globals().get("handle")?;
        let returned: Value<'_> = handle.call((event,))?;
        let text = ctx.json_stringify(returned)?.ok_or_else(|| anyhow!("nothing was returned"))?;
        let object: pintle_domain::json::Object = serde_json::from_str(&text.to_string()?)?;
        anyhow::ensure!(object.contains_key("decision"), "no decision");
        Ok(())
    })
}

async fn in_child(sandbox: &Sandbox, source: &str, event: &str) -> Result<()> {
    let time = Duration::from_secs(5);
    let ran =
        sandbox.run(ScriptRun { tenant: "acme", duty: Duty::Gate, source, event, timeout: time, budget: time }).await;
    anyhow::ensure!(ran.returned?.contains_key("decision"), "no decision");
    Ok(())
}

/// One after the other without a pause, so that no child has time to prepare.
async fn back_to_back(sandbox: Arc<Sandbox>, source: Arc<str>, event: Arc<str>, times: usize) -> Result<Duration> {
    let started = Instant::now();
    for _ in 0..times {
        in_child(&sandbox, &source, &event).await?;
    }
    Ok(started.elapsed())
}

async fn past_deadline(sandbox: Arc<Sandbox>, source: &str, event: Arc<str>) -> Result<Duration> {
    let (timeout, budget) = (Duration::from_millis(100), Duration::from_secs(5));
    let started = Instant::now();
    let ran = sandbox.run(ScriptRun { tenant: "acme", duty: Duty::Gate, source, event: &event, timeout, budget }).await;
    anyhow::ensure!(ran.returned.is_err(), "a program that does not end has answered");
    Ok(started.elapsed().saturating_sub(timeout))
}
