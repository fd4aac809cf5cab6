//! Inside the process: no hooks at all, and ten that are native.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_domain::checkpoint::{BeforeTool, CheckpointKind};
use pintle_domain::ruling::Ruling;
use pintle_domain::verdict::Verdict;
use pintle_engine::{Clearance, Dispatcher, Engine, HookCx, Mount, NativeAnswer, NativeHook, async_trait};

use crate::allocations;
use crate::report::{Report, shown};
use crate::stage::{Stage, call, pass, turn};

/// Most that a checkpoint without hooks may take.
const NO_HOOKS_LIMIT: Duration = Duration::from_nanos(50);
/// Most that ten native hooks may take together.
const TEN_HOOKS_LIMIT: Duration = Duration::from_micros(5);
/// Arguments of the calls in question, in bytes.
const ARGUMENT_BYTES: usize = 200;

/// A checkpoint that nobody acts at.
pub(crate) fn no_hooks(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    const TIMES: usize = 50_000;
    let engine = stage.engine(|_| Ok(Vec::new()))?;
    let hooks = engine.dispatcher(turn());
    let mut allocated = 0;
    let mut side = |times| {
        let (took, made) = check_often(stage, &hooks, times)?;
        allocated += made;
        Ok(took)
    };
    let [took] = report.medians(TIMES, [&mut side])?;
    report.limited("checkpoint without hooks: check", took, NO_HOOKS_LIMIT, shown);
    report.limited("checkpoint without hooks: allocations", allocated, 0, |count| count.to_string());
    stage.end(&engine);
    Ok(())
}

/// Checks `times` times; the time, and how many allocations were made.
fn check_often(stage: &Stage, hooks: &Dispatcher, times: usize) -> anyhow::Result<(Duration, u64)> {
    let mut subject = BeforeTool { call: call(ARGUMENT_BYTES)?, owner: None };
    stage.runtime.block_on(async {
        let (start, before) = (Instant::now(), allocations::made());
        for _ in 0..times {
            let (left, ruling) = hooks.check(subject).await;
            ensure!(matches!(ruling, Ruling::Proceed), "nobody could refuse");
            subject = left;
        }
        Ok((start.elapsed(), allocations::made() - before))
    })
}

/// Lets every call pass.
struct Passing;

#[async_trait]
impl NativeHook for Passing {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::BeforeTool]
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        let known = at.call.arguments.contains_key("path");
        Ok(if known { Verdict::Continue } else { Verdict::deny("a path is missing") })
    }
}

fn ten(engine: &Engine) -> anyhow::Result<Vec<Mount>> {
    let mount = |number| {
        let hook = engine.native(&format!("hook-{number}"), number, Arc::new(Passing));
        hook.matching("^(read|write|edit)$").map_err(anyhow::Error::msg)
    };
    (0..10).map(mount).collect()
}

/// Ten native hooks whose matchers name the tool.
pub(crate) fn ten_hooks(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    const TIMES: usize = 500;
    let engine = stage.engine(ten)?;
    let hooks = Arc::new(engine.dispatcher(turn()));
    let mut check = |times| {
        let hooks = hooks.clone();
        stage.run(async move {
            let mut subject = BeforeTool { call: call(ARGUMENT_BYTES)?, owner: None };
            let start = Instant::now();
            for _ in 0..times {
                subject = pass(&hooks, subject).await?;
            }
            Ok(start.elapsed())
        })
    };
    let mut clear = |times| {
        let hooks = hooks.clone();
        stage.run(async move {
            let calls = vec![call(ARGUMENT_BYTES)?; times];
            let start = Instant::now();
            for call in calls {
                let cleared = hooks.clear(call).await;
                ensure!(matches!(cleared, Clearance::Run(..)), "the call was not cleared: {cleared:?}");
            }
            Ok(start.elapsed())
        })
    };
    let [checked, cleared] = report.medians(TIMES, [&mut check, &mut clear])?;
    report.limited("ten native hooks with matchers, before_tool: check", checked, TEN_HOOKS_LIMIT, shown);
    report.noted("ten native hooks with matchers, whole call: clear", shown(cleared));
    stage.end(&engine);
    Ok(())
}
