//! One script, against an engine made afresh in this process for the same source and event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use pintle_domain::checkpoint::{PreToolUse, Subject};
use pintle_domain::id::EventId;
use pintle_domain::json::{Object, json};
use pintle_domain::rule::HandlerType;
use pintle_domain::shell::ShellFacts;
use pintle_rules::payload;
use rquickjs::{Context, Function, Runtime, Value};

use crate::against::Target;
use crate::host::{Host, Plan};
use crate::report::{Report, shown};
use crate::rows::gate;
use crate::stage::{Stage, call, pass, turn};

/// A check may cost so many fresh engines.
const LIMIT: f64 = 1.4;
/// Runs in a round.
const TIMES: usize = 100;

const GUARD: &str = "function handle(event) {
  const cmd = event.toolInput.cmd;
  if (/\\brm\\s+-rf\\b/.test(cmd)) return { decision: 'block', reason: 'not here' };
  return { decision: 'allow' };
}";

pub(crate) fn script(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let rows = vec![gate("guard", HandlerType::Script, &json!({ "source": GUARD }))];
    let host = Host::open(&stage.runtime, Plan { rows: rows.clone(), forgets: true, ..Plan::default() })?;
    let keeping = Host::open(&stage.runtime, Plan { rows, ..Plan::default() })?;
    let fresh = std::cell::Cell::new(Duration::ZERO);
    // In turns, one run each: a worker prepares the next engine while nobody waits for it, as between real calls.
    let mut hook = |times| {
        let (hook, floor) = in_turns(stage, &host, times)?;
        fresh.set(floor);
        Ok(hook)
    };
    let mut floor = |_| Ok(fresh.get());
    let [hook, floor] = report.medians(TIMES, [&mut hook, &mut floor])?;
    let mut back_to_back = |times| stage.check(&host, times);
    let mut handed_over = |times| stage.check(&keeping, times);
    let mut cleared = |times| stage.clear(&keeping, times);
    let sides = report.medians(TIMES, [&mut back_to_back, &mut handed_over, &mut cleared])?;
    let [back_to_back, handed_over, cleared] = sides;
    report.against("one script: check", [hook, floor], Target::RatioAtMost(LIMIT));
    report.noted("  one check after the other, without a pause", shown(back_to_back));
    report.noted("  so, its record handed to SQLite's writer", shown(handed_over));
    report.noted("  whole call, record committed: clear", shown(cleared));
    host.close(&stage.runtime);
    keeping.close(&stage.runtime);
    Ok(())
}

/// The time of so many checks, and of so many fresh engines, in turns.
fn in_turns(stage: &Stage, host: &Host, times: usize) -> anyhow::Result<(Duration, Duration)> {
    let (hooks, before) = (host.dispatcher(), host.store.questions());
    let took = stage.run(async move {
        let mut subject = PreToolUse { call: call() };
        let event = event(&subject)?;
        let (mut hook, mut fresh) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..times {
            let start = Instant::now();
            in_process(&event)?;
            fresh += start.elapsed();
            let start = Instant::now();
            subject = pass(&hooks, subject).await?;
            hook += start.elapsed();
        }
        Ok((hook, fresh))
    })?;
    ensure!(host.store.questions() == before, "the store was asked on the way of a call");
    host.store.written()?;
    Ok(took)
}

/// What the script is called with.
fn event(subject: &PreToolUse) -> anyhow::Result<Arc<str>> {
    let (who, at) = (turn(), jiff::Timestamp::now());
    let payload = payload::of_subject(&EventId::fresh(), &who, at, &Subject::PreToolUse(subject));
    let payload = payload.context("scripts are asked before tools")?;
    let event = payload::for_script(&payload, &ShellFacts::default()).map_err(anyhow::Error::msg)?;
    Ok(event.into())
}

/// The floor: what everybody pays who runs a script in an engine of its own.
fn in_process(event: &str) -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(pintle_sandbox::limits::HEAP_BYTES);
    Context::full(&runtime)?.with(|ctx| {
        let event = ctx.json_parse(event)?;
        ctx.eval::<(), _>(GUARD)?;
        let handle: Function<'_> = ctx.globals().get("handle")?;
        let returned: Value<'_> = handle.call((event,))?;
        let text = ctx.json_stringify(returned)?.ok_or_else(|| anyhow!("nothing was returned"))?;
        let object: Object = serde_json::from_str(&text.to_string()?)?;
        ensure!(object.contains_key("decision"), "no decision");
        Ok(())
    })
}
