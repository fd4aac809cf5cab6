//! Small questions to one warm child: from one caller, and from many at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use pintle_dialects::process::{frame, wire};
use pintle_domain::checkpoint::{BeforeTool, CheckpointKind, Reply, Subject};
use pintle_domain::hook::INTERCEPTOR_TIMEOUT;
use pintle_domain::id::EventId;
use pintle_domain::verdict::Verdict;
use pintle_engine::Dispatcher;
use pintle_engine::handler::{HookCall, WireCache};

use crate::against::Target;
use crate::child::Answers;
use crate::floor::{Blocking, Shared, Straight};
use crate::report::{Report, shown};
use crate::stage::{Stage, call, pass, turn};

/// Arguments of the calls in question, in bytes.
const ARGUMENT_BYTES: usize = 1 << 10;
/// The number in the frames of a floor, as long as those of a hook that has been asked for a while.
const ID: u64 = 10_000;

/// One question about such a call, put to a hook without its chain.
struct Question {
    event_id: EventId,
    asked: BeforeTool,
}

impl Question {
    fn new() -> anyhow::Result<Self> {
        let asked = BeforeTool { call: call(ARGUMENT_BYTES)?, owner: None };
        Ok(Self { event_id: EventId::fresh(), asked })
    }

    /// Asks the first hook, which must answer `continue`. The question is written as JSON anew.
    async fn put_to(&self, hooks: &Dispatcher) -> anyhow::Result<()> {
        let call = HookCall {
            event_id: &self.event_id,
            who: hooks.who(),
            subject: Subject::BeforeTool(&self.asked),
            timeout: INTERCEPTOR_TIMEOUT,
            budget: INTERCEPTOR_TIMEOUT,
            again: false,
            cancel: hooks.cancel(),
            known: &**hooks.known(),
            wire: &WireCache::default(),
        };
        let reply =
            hooks.set().handler(0).ask(call).await.heard.map_err(|fault| anyhow!("the hook {}", fault.phrase()))?;
        let passes = matches!(&reply, Reply::BeforeTool(heard) if heard.verdict == Verdict::Continue);
        ensure!(passes, "the call did not pass: {reply:?}");
        Ok(())
    }
}

/// The line that a hook is sent about such a call.
fn line() -> anyhow::Result<Vec<u8>> {
    let asked = BeforeTool { call: call(ARGUMENT_BYTES)?, owner: None };
    let subject = Subject::BeforeTool(&asked);
    let params = wire::params(&EventId::fresh(), jiff::Timestamp::now(), &turn(), subject);
    let method = wire::method(CheckpointKind::BeforeTool).context("process hooks act at before_tool")?;
    Ok([frame::request_head(ID, method), params, frame::FRAME_TAIL.to_vec()].concat())
}

/// One caller, one question at a time, against pipes that block. Each round has children of its own: where the kernel
/// puts a child decides how long it takes to be woken, for as long as it lives.
pub(crate) fn one_caller(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    const TIMES: usize = 1000;
    let line = line()?;
    let mut ask = |times| one_asks(stage, times);
    let mut check = |times| one_checks(stage, times);
    let mut floor = |times| one_exchanges(stage, &line, times);
    let mut tokio_floor = |times| one_exchanges_by_tokio(stage, &line, times);
    let [asked, checked, floored, straight] =
        report.medians(TIMES, [&mut ask, &mut check, &mut floor, &mut tokio_floor])?;
    report.against("before_tool, 1 KiB, warm child, one caller: ask", [asked, floored], Target::RatioAtMost(1.5));
    report.noted("  the same with chain and record: check", shown(checked));
    report.noted("  the same bytes through tokio's pipes, by hand", shown(straight));
    Ok(())
}

/// Questions before those that count.
const WARM_UP: usize = 50;

fn one_asks(stage: &Stage, times: usize) -> anyhow::Result<Duration> {
    let engine = stage.process("before_tool", Answers::Continue)?;
    let hooks = engine.dispatcher(turn());
    let took = stage.run(async move {
        let question = Question::new()?;
        for _ in 0..WARM_UP {
            question.put_to(&hooks).await?;
        }
        let start = Instant::now();
        for _ in 0..times {
            question.put_to(&hooks).await?;
        }
        Ok(start.elapsed())
    });
    stage.end(&engine);
    took
}

fn one_checks(stage: &Stage, times: usize) -> anyhow::Result<Duration> {
    let engine = stage.process("before_tool", Answers::Continue)?;
    let hooks = engine.dispatcher(turn());
    let took = stage.run(async move {
        let mut subject = BeforeTool { call: call(ARGUMENT_BYTES)?, owner: None };
        for _ in 0..WARM_UP {
            subject = pass(&hooks, subject).await?;
        }
        let start = Instant::now();
        for _ in 0..times {
            subject = pass(&hooks, subject).await?;
        }
        Ok(start.elapsed())
    });
    stage.end(&engine);
    took
}

/// On a worker too: where the asking thread runs decides as much as where the child does.
fn one_exchanges(stage: &Stage, line: &[u8], times: usize) -> anyhow::Result<Duration> {
    let line = line.to_vec();
    stage.run(async move {
        let mut blocking = Blocking::start(Answers::Continue)?;
        for _ in 0..WARM_UP {
            blocking.exchange(&line)?;
        }
        let start = Instant::now();
        for _ in 0..times {
            blocking.exchange(&line)?;
        }
        let took = start.elapsed();
        blocking.end()?;
        Ok(took)
    })
}

fn one_exchanges_by_tokio(stage: &Stage, line: &[u8], times: usize) -> anyhow::Result<Duration> {
    let line = line.to_vec();
    stage.run(async move {
        let mut straight = Straight::start(Answers::Continue)?;
        for _ in 0..WARM_UP {
            straight.exchange(&line).await?;
        }
        let start = Instant::now();
        for _ in 0..times {
            straight.exchange(&line).await?;
        }
        let took = start.elapsed();
        straight.end().await?;
        Ok(took)
    })
}

/// Callers that ask at the same time.
const CALLERS: usize = 64;

/// Many callers of one child, against callers that share a child by hand.
pub(crate) fn many_callers(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    const TIMES: usize = CALLERS * 300;
    let engine = stage.process("before_tool", Answers::Continue)?;
    let hooks = Arc::new(engine.dispatcher(turn()));
    let mut ask = |times: usize| {
        let each = times.div_ceil(CALLERS);
        let hooks = hooks.clone();
        all_at_once(stage, times, move || {
            let hooks = hooks.clone();
            async move {
                let question = Question::new()?;
                for _ in 0..each {
                    question.put_to(&hooks).await?;
                }
                Ok(())
            }
        })
    };
    let mut check = |times: usize| {
        let each = times.div_ceil(CALLERS);
        let hooks = hooks.clone();
        all_at_once(stage, times, move || {
            let hooks = hooks.clone();
            async move {
                let mut subject = BeforeTool { call: call(ARGUMENT_BYTES)?, owner: None };
                for _ in 0..each {
                    subject = pass(&hooks, subject).await?;
                }
                Ok(())
            }
        })
    };
    let line = String::from_utf8(line()?)?;
    let rest: Arc<str> = line.split_once(&format!("{ID},")).context("the line has its number")?.1.into();
    let shared = {
        let _inside = stage.runtime.enter();
        Shared::start(Answers::Continue, &stage.tracker)?
    };
    let mut floor = |times: usize| {
        let each = times.div_ceil(CALLERS);
        let (shared, rest) = (shared.clone(), rest.clone());
        all_at_once(stage, times, move || {
            let (shared, rest) = (shared.clone(), rest.clone());
            async move {
                for _ in 0..each {
                    shared.exchange(&rest).await?;
                }
                Ok(())
            }
        })
    };
    let [asked, checked, floored] = report.medians(TIMES, [&mut ask, &mut check, &mut floor])?;
    let target = Target::ThroughputAtLeast(0.8);
    report.against("64 concurrent callers of one child, 1 KiB: ask", [asked, floored], target);
    report.noted("  the same with chain and record: check", shown(checked));
    stage.end(&engine);
    Ok(())
}

/// Runs all callers; the time, as if exactly `times` questions had been asked.
fn all_at_once<F>(stage: &Stage, times: usize, caller: impl Fn() -> F + Send + 'static) -> anyhow::Result<Duration>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let tracker = stage.tracker.clone();
    let took = stage.run(async move {
        let start = Instant::now();
        let callers: Vec<_> = (0..CALLERS).map(|_| tracker.spawn(caller())).collect();
        for caller in callers {
            caller.await??;
        }
        Ok(start.elapsed())
    })?;
    let asked = times.div_ceil(CALLERS) * CALLERS;
    Ok(took.mul_f64(times as f64 / asked as f64))
}
