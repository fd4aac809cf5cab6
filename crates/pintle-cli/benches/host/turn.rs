//! A whole turn of ten rounds, against the same replies and the same tool in a bare loop.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pintle_agent::driver::TurnEnding;
use pintle_agent::tools::Tools;
use pintle_agent::{AgentSettings, Conversation, Models, NullOutput, Runner, TurnHandle};
use pintle_domain::checkpoint::{BeforeTool, CheckpointKind};
use pintle_domain::id::TurnId;
use pintle_domain::json::Rendered;
use pintle_domain::store::SessionStore;
use pintle_domain::verdict::Verdict;
use pintle_engine::evidence::Evidence;
use pintle_engine::{Deadlines, Engine, HookCx, NativeAnswer, NativeHook, async_trait};
use pintle_providers::Provider;
use pintle_store::{Durability, Store};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::bare::{self, LookUp, PROMPT, ROUNDS, Replies};
use crate::child::{Answers, Pipes};
use crate::report::{Report, shown};
use crate::stage::{Stage, forgetful, interceptor, sized};

/// Turns in a round of measuring.
const TIMES: usize = 20;
/// Most that a round may take beyond one of the bare loop.
const ROUND_LIMIT: Duration = Duration::from_micros(100);
/// The same where everything is kept in SQLite.
const KEPT_ROUND_LIMIT: Duration = Duration::from_micros(250);
/// Most that a native hook may add to a round.
const NATIVE_LIMIT: Duration = Duration::from_micros(1);
/// What a process hook adds to a round may cost so many bare exchanges.
const PROCESS_LIMIT: f64 = 1.2;
/// How many hooks there are, and how many more.
const HOOKS: [usize; 2] = [10, 50];

/// Lets every call pass.
struct Passing;

#[async_trait]
impl NativeHook for Passing {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::BeforeTool]
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        let known = at.call.arguments.contains_key("mark");
        Ok(if known { Verdict::Continue } else { Verdict::deny("a mark is missing") })
    }
}

/// The hooks of an agent, each at `before_tool`.
#[derive(Clone, Copy)]
enum Hooks {
    Native(usize),
    Process(usize),
}

/// An agent, and where its turns are kept, if they are.
struct Agent {
    engine: Arc<Engine>,
    runner: Arc<Runner>,
    kept: Option<(Arc<dyn Store>, TempDir)>,
}

impl Agent {
    fn new(stage: &Stage, hooks: Hooks, keeps: bool) -> anyhow::Result<Self> {
        let kept = match keeps {
            true => {
                let folder = tempfile::tempdir()?;
                Some((pintle_store::open("sqlite://turns.db", folder.path(), Durability::Commit)?, folder))
            }
            false => None,
        };
        let engine = match &kept {
            // As the program has it.
            Some((store, _)) => Arc::new(Engine::keeping(
                Evidence::new(store.clone(), Vec::new(), Deadlines::default()).writing_in_place(),
            )),
            None => forgetful(),
        };
        match hooks {
            Hooks::Native(number) => {
                let _inside = stage.runtime.enter();
                let mount = |number| engine.native(&format!("hook-{number}"), 0, Arc::new(Passing));
                engine.replace((0..number).map(mount).collect())?;
            }
            Hooks::Process(number) => {
                stage.mount_children(&engine, number, &interceptor(Answers::Continue)?)?;
            }
        }
        let mut tools = Tools::default();
        tools.add(Arc::new(LookUp(bare::definition())))?;
        let models = Models::default().with("scripted", Arc::new(Replies::new()));
        let settings = AgentSettings::new("main", "scripted/m");
        let runner = Arc::new(Runner::new(settings, Arc::new(models), Arc::new(tools), engine.clone()));
        Ok(Self { engine, runner, kept })
    }

    /// Works so many turns, each in a conversation of its own, whose opening is not counted.
    fn turns(&self, stage: &Stage, times: usize) -> anyhow::Result<Duration> {
        let runner = self.runner.clone();
        let sessions = self.kept.as_ref().map(|(store, _)| -> Arc<dyn SessionStore> { store.clone() });
        let took = stage.run(async move {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                let key = format!("bench:{}", TurnId::fresh());
                let key = key.as_str();
                let mut conversation = match &sessions {
                    Some(sessions) => Conversation::open(sessions.clone(), key)?,
                    None => Conversation::new(key),
                };
                let handle = TurnHandle::new(&CancellationToken::new());
                let start = Instant::now();
                let report = runner.turn(&mut conversation, PROMPT, Arc::new(NullOutput), &handle).await;
                took += start.elapsed();
                let is_whole = conversation.messages().len() == 2 * ROUNDS + 2;
                ensure!(report.ending == TurnEnding::Completed && is_whole, "not a whole turn: {report:?}");
                ensure!(report.denials.is_empty(), "a call was denied: {report:?}");
            }
            Ok(took)
        })?;
        // What nobody waits for is written before another side has its turn.
        if let Some((store, _)) = &self.kept {
            let (say, hear) = channel();
            store.keep(Vec::new(), Box::new(move |how| drop(say.send(how))));
            hear.recv().context("the store forgot to say")??;
        }
        Ok(took)
    }

    fn end(self, stage: &Stage) {
        stage.runtime.block_on(self.engine.close());
    }
}

/// The bare loop, with children that are asked by hand.
struct Loop {
    children: Arc<Mutex<Vec<Pipes>>>,
    line: Vec<u8>,
}

impl Loop {
    fn new(children: usize) -> anyhow::Result<Self> {
        let children = (0..children).map(|_| Pipes::start(Answers::Continue)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { children: Arc::new(Mutex::new(children)), line: bare::line()? })
    }

    fn turns(&self, stage: &Stage, times: usize) -> anyhow::Result<Duration> {
        let (shared, line) = (self.children.clone(), self.line.clone());
        let mut children = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
        let (took, children) = stage.run(async move {
            let model: Arc<dyn Provider> = Arc::new(Replies::new());
            let tools = [Rendered::new(bare::definition())];
            let start = Instant::now();
            for _ in 0..times {
                bare::turn(&model, &tools, (&mut children, &line)).await?;
            }
            Ok((start.elapsed(), children))
        })?;
        *shared.lock().unwrap_or_else(PoisonError::into_inner) = children;
        Ok(took)
    }

    fn end(self) -> anyhow::Result<()> {
        let children = std::mem::take(&mut *self.children.lock().unwrap_or_else(PoisonError::into_inner));
        children.into_iter().try_for_each(Pipes::end)
    }
}

/// Without hooks, with some, and with more: what is kept nowhere, then what is kept in SQLite.
pub(crate) fn ten_rounds(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    for keeps in [false, true] {
        let [bare, none, native, process] = measured(stage, report, keeps)?;
        let (place, limit) = match keeps {
            false => ("kept nowhere", ROUND_LIMIT),
            true => ("SQLite", KEPT_ROUND_LIMIT),
        };
        let (bare, none) = (bare[0], none[0]);
        report.noted(&format!("a turn of ten rounds without hooks, {place}"), shown(none));
        let beyond = none.saturating_sub(bare).div_f64(ROUNDS as f64);
        let cells = [shown(beyond), shown(bare.div_f64(ROUNDS as f64)), String::new(), at_most(limit)];
        report.row(&format!("  a round of it, beyond one of the bare loop, {place}"), cells, Some(beyond <= limit));
        for (number, took) in HOOKS.into_iter().zip(native) {
            let each = took.saturating_sub(none).div_f64((ROUNDS * number) as f64);
            let what = format!("  a round, each of {number} native hooks, {place}");
            report.limited(&what, each, NATIVE_LIMIT, shown);
        }
        for (number, [took, floor]) in HOOKS.into_iter().zip([[process[0], process[1]], [process[2], process[3]]]) {
            let each = |took: Duration, without| took.saturating_sub(without).div_f64((ROUNDS * number) as f64);
            let (each, floor) = (each(took, none), each(floor, bare));
            let ratio = each.as_secs_f64() / floor.as_secs_f64();
            let cells = [shown(each), shown(floor), format!("{ratio:.2}"), format!("<= {PROCESS_LIMIT}")];
            let what = format!("  a round, each of {number} process hooks, 1 KiB, {place}");
            report.row(&what, cells, Some(ratio <= PROCESS_LIMIT));
        }
    }
    Ok(())
}

fn at_most(limit: Duration) -> String {
    format!("<= {}", shown(limit))
}

/// The times of a turn: of the bare loop, without hooks, with native hooks, and with process hooks and their floors.
fn measured(stage: &Stage, report: &Report, keeps: bool) -> anyhow::Result<[Vec<Duration>; 4]> {
    let [some, more] = sized(HOOKS, [2, 3]);
    let agent = |hooks| Agent::new(stage, hooks, keeps);
    let agents = [
        agent(Hooks::Native(0))?,
        agent(Hooks::Native(some))?,
        agent(Hooks::Native(more))?,
        agent(Hooks::Process(some))?,
        agent(Hooks::Process(more))?,
    ];
    let loops = [Loop::new(0)?, Loop::new(some)?, Loop::new(more)?];
    let [mut none, mut native, mut natives, mut process, mut processes] =
        agents.each_ref().map(|agent| move |times| agent.turns(stage, times));
    let [mut bare, mut floor, mut floors] = loops.each_ref().map(|bare| move |times| bare.turns(stage, times));
    let [bare, none, native, natives, process, floor, processes, floors] = report.medians(
        TIMES,
        [&mut bare, &mut none, &mut native, &mut natives, &mut process, &mut floor, &mut processes, &mut floors],
    )?;
    agents.into_iter().for_each(|agent| agent.end(stage));
    loops.into_iter().try_for_each(Loop::end)?;
    Ok([vec![bare], vec![none], vec![native, natives], vec![process, floor, processes, floors]])
}
