//! Telling observers: what it costs whoever tells, and how soon all have heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use pintle_dialects::process::config::EventForm;
use pintle_dialects::process::{frame, wire};
use pintle_domain::checkpoint::{BeforeTool, CheckpointKind, Notice, ObservedEvent, Reply, RuntimeEvent, Subject};
use pintle_domain::id::{EventId, HookName};
use pintle_domain::json::{Value, json};
use pintle_domain::verdict::{ParsedVerdict, Verdict};
use pintle_engine::{Dispatcher, Engine, NativeHook, async_trait};
use tokio::sync::mpsc;
use tokio::task::yield_now;

use crate::child::{Answers, Pipes, VARIABLE};
use crate::report::{Report, shown};
use crate::stage::{Stage, call, forgetful, who};

/// How many observers there are.
pub(crate) const OBSERVERS: usize = 10;
/// Most that telling ten may take.
const TELL_LIMIT: Duration = Duration::from_micros(1);
/// Events in a round: half of what may wait for one observer, so that none is dropped.
const TIMES: usize = 500;
/// How many notices may wait in a channel of the floor, as for a native observer.
const WAITING: usize = 1024;
/// How long children are waited for at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is told: the smallest event, and the one that there are most of.
fn event() -> RuntimeEvent {
    RuntimeEvent::LlmDelta { content_delta_len: 17, reasoning_delta_len: 0 }
}

/// Counts what it hears.
struct Hearing(Arc<AtomicU64>);

#[async_trait]
impl NativeHook for Hearing {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::Runtime]
    }

    async fn on_event(&self, _notice: &Notice) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A time of those that a round takes.
#[derive(Clone, Copy)]
enum Until {
    /// Everything is told.
    Told,
    /// Everybody has heard everything.
    Heard,
}

/// Ten native observers and ten that are processes.
pub(crate) fn told(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    native(stage, report)?;
    process(stage, report)
}

fn native(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let (engine, heard) = (forgetful(), Arc::new(AtomicU64::new(0)));
    {
        let _inside = stage.runtime.enter();
        let mount = |number| engine.native(&format!("hook-{number}"), 0, Arc::new(Hearing(heard.clone())));
        engine.replace((0..OBSERVERS).map(mount).collect())?;
    }
    let hooks = Arc::new(engine.dispatcher(who()));
    let tell = |until| {
        let (hooks, heard) = (hooks.clone(), heard.clone());
        move |times| tell_native(stage, (hooks.clone(), heard.clone()), (times, until))
    };
    let (mut tells, mut hears) = (tell(Until::Told), tell(Until::Heard));
    let mut sends = |times| send(stage, (times, Until::Told));
    let mut receives = |times| send(stage, (times, Until::Heard));
    let [told, heard, sent, received] = report.medians(TIMES, [&mut tells, &mut hears, &mut sends, &mut receives])?;
    against(report, "ten native observers: tell", [told, sent], Some(TELL_LIMIT));
    against(report, "  the same until all have heard", [heard, received], None);
    stage.runtime.block_on(engine.close());
    Ok(())
}

/// A line with a floor whose target is a time.
fn against(report: &mut Report, what: &str, [ours, floor]: [Duration; 2], limit: Option<Duration>) {
    let ratio = format!("{:.2}", ours.as_secs_f64() / floor.as_secs_f64());
    let wanted = limit.map(|limit| format!("<= {}", shown(limit))).unwrap_or_default();
    report.row(what, [shown(ours), shown(floor), ratio, wanted], limit.map(|limit| ours <= limit));
}

fn tell_native(
    stage: &Stage,
    (hooks, heard): (Arc<Dispatcher>, Arc<AtomicU64>),
    (times, until): (usize, Until),
) -> anyhow::Result<Duration> {
    stage.run(async move {
        let before = heard.load(Ordering::Relaxed);
        let start = Instant::now();
        for _ in 0..times {
            hooks.tell(event());
        }
        let told = start.elapsed();
        all_hear(&heard, before + (times * OBSERVERS) as u64).await?;
        Ok(match until {
            Until::Told => told,
            Until::Heard => start.elapsed(),
        })
    })
}

async fn all_hear(heard: &AtomicU64, wanted: u64) -> anyhow::Result<()> {
    let start = Instant::now();
    while heard.load(Ordering::Relaxed) < wanted {
        ensure!(start.elapsed() < PATIENCE, "not everybody heard everything");
        yield_now().await;
    }
    Ok(())
}

/// The floor: one notice each time, into ten channels that ten tasks count from.
fn send(stage: &Stage, (times, until): (usize, Until)) -> anyhow::Result<Duration> {
    let (heard, tracker) = (Arc::new(AtomicU64::new(0)), stage.tracker.clone());
    stage.run(async move {
        let mut channels = Vec::with_capacity(OBSERVERS);
        for _ in 0..OBSERVERS {
            let (channel, mut queue) = mpsc::channel::<Arc<Notice>>(WAITING);
            let heard = heard.clone();
            tracker.spawn(async move {
                while queue.recv().await.is_some() {
                    heard.fetch_add(1, Ordering::Relaxed);
                }
            });
            channels.push(channel);
        }
        let (who, event_id, at) = (who(), EventId::fresh(), jiff::Timestamp::now());
        let notice = |what| Notice { event_id: event_id.clone(), at, who: who.clone(), what };
        let start = Instant::now();
        for _ in 0..times {
            let notice = Arc::new(notice(ObservedEvent::Runtime(event())));
            for channel in &channels {
                channel.try_send(notice.clone()).ok().context("there is room for all")?;
            }
        }
        let told = start.elapsed();
        all_hear(&heard, (times * OBSERVERS) as u64).await?;
        Ok(match until {
            Until::Told => told,
            Until::Heard => start.elapsed(),
        })
    })
}

/// The entry of a process hook that is told everything, and says how much it heard when it is asked.
pub(crate) fn counting(answers: Answers) -> anyhow::Result<Value> {
    let command = std::env::current_exe()?;
    Ok(json!({
        "enabled": true,
        "command": [command],
        "env": { VARIABLE: answers.word() },
        "intercept": ["before_tool"],
        "observe": ["all"],
    }))
}

fn process(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let engine = forgetful();
    stage.mount_children(&engine, OBSERVERS, &counting(Answers::Count)?)?;
    let mut floors = (0..OBSERVERS).map(|_| Pipes::start(Answers::Count)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut tells = |times| tell_children(stage, &engine, (times, Until::Told));
    let mut hears = |times| tell_children(stage, &engine, (times, Until::Heard));
    let mut writes = |times| write(&mut floors, times);
    let [told, heard, written] = report.medians(TIMES, [&mut tells, &mut hears, &mut writes])?;
    report.limited("ten process observers: tell", told, TELL_LIMIT, shown);
    against(report, "  the same until all have heard", [heard, written], None);
    stage.runtime.block_on(engine.close());
    floors.into_iter().try_for_each(Pipes::end)
}

fn tell_children(stage: &Stage, engine: &Engine, (times, until): (usize, Until)) -> anyhow::Result<Duration> {
    let hooks = engine.dispatcher(who());
    stage.run(async move {
        let mut wanted = Vec::with_capacity(OBSERVERS);
        for number in 0..OBSERVERS {
            wanted.push(count(&hooks, number).await? + times as u64);
        }
        let start = Instant::now();
        for _ in 0..times {
            hooks.tell(event());
        }
        let told = start.elapsed();
        for (number, wanted) in wanted.into_iter().enumerate() {
            while count(&hooks, number).await? < wanted {
                ensure!(start.elapsed() < PATIENCE, "not every child heard everything");
                yield_now().await;
            }
        }
        Ok(match until {
            Until::Told => told,
            Until::Heard => start.elapsed(),
        })
    })
}

/// The name of the hook with this number.
pub(crate) fn hook_name(number: usize) -> HookName {
    HookName::from(format!("hook-{number}").as_str())
}

/// How much the child of the hook with this number has heard.
pub(crate) async fn count(hooks: &Dispatcher, number: usize) -> anyhow::Result<u64> {
    let asked = BeforeTool { call: call("count"), owner: None };
    let reply = hooks.probe(&hook_name(number), Subject::BeforeTool(&asked)).await;
    let reply = reply.map_err(|fault| anyhow!("the hook {}", fault.phrase()))?;
    let Reply::BeforeTool(ParsedVerdict { verdict: Verdict::Deny(reason), .. }) = &reply else {
        bail!("it was to refuse: {reply:?}");
    };
    Ok(reason.to_string().parse()?)
}

/// The floor: the same lines, ready, through pipes that block, and a question to each child in the end.
fn write(children: &mut [Pipes], times: usize) -> anyhow::Result<Duration> {
    let notice = Notice { event_id: EventId::fresh(), at: jiff::Timestamp::now(), who: who(), what: event().into() };
    let params = wire::event_params(EventForm::Hook, &notice, 10_000).context("it is told to children")?;
    let line = frame::notification("hook.event", &params);
    let asked = crate::bare::line()?;
    let start = Instant::now();
    for _ in 0..times {
        for child in &mut *children {
            child.write(&line)?;
        }
    }
    for child in &mut *children {
        child.write(&asked)?;
        child.read()?;
    }
    Ok(start.elapsed())
}
