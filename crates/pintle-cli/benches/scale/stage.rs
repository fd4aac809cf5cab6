//! Where everything runs: a runtime of two workers, engines whose turns are tasks on it, and the stores below them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::tool::ToolCall;
use pintle_engine::evidence::Evidence;

use futures_util::future::try_join_all;
use pintle_engine::{Clearance, Deadlines, Dispatcher, Engine, NativeHook};
use pintle_store::keyring::signing::SigningKey;
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_store::{Durability, Store, StoreKeys};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Workers of the runtime, as many as the machines have on which an agent is run at the least.
const WORKERS: usize = 2;
/// The size of a call's input beside its command: no call is empty.
const NOTE_BYTES: usize = 1024;

pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    /// Files and keys of this run.
    pub(crate) folder: TempDir,
}

/// How much is to be worked.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Turns that are worked at once.
    pub(crate) turns: usize,
    /// Calls of each, one after another.
    pub(crate) calls: usize,
}

/// What became of it.
#[derive(Default)]
pub(crate) struct Worked {
    pub(crate) took: Duration,
    /// How long each call waited until it might run.
    pub(crate) waited: Vec<Duration>,
    /// Why calls might not run, and records that could not be kept, a line each.
    pub(crate) failed: Vec<String>,
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        Ok(Self { runtime, folder: tempfile::tempdir()? })
    }

    /// Opens a store as the program does, with keys of this run.
    pub(crate) fn open(&self, url: &str, durability: Durability) -> anyhow::Result<Arc<dyn Store>> {
        open(url, self.folder.path(), durability)
    }

    /// Works turns with one gate on an engine over `store`.
    pub(crate) fn work(&self, store: &Arc<dyn Store>, load: Load) -> anyhow::Result<Worked> {
        let inside = self.runtime.enter();
        let engine = Engine::keeping(Evidence::new(store.clone(), Vec::new(), Deadlines::default()).writing_in_place());
        engine.replace(vec![engine.native("gate", 0, Arc::new(Gate))])?;
        drop(inside);
        let start = Instant::now();
        let tasks = (0..load.turns).map(|number| {
            let hooks = engine.dispatcher(Identity::top("main", &format!("cli:{number}"), TurnId::fresh()));
            engine.tasks().spawn_on(turn(hooks, load.calls), self.runtime.handle())
        });
        let turns = self.runtime.block_on(try_join_all(tasks.collect::<Vec<_>>()))?;
        // What waits beside its tables is brought there.
        store.unhashed()?;
        let mut worked = Worked { took: start.elapsed(), ..Worked::default() };
        for mut turn in turns {
            worked.waited.append(&mut turn.waited);
            worked.failed.append(&mut turn.failed);
        }
        let lost = engine.evidence().lost();
        if lost > 0 {
            worked.failed.push(format!("{lost} records are lost"));
        }
        self.runtime.block_on(engine.close());
        Ok(worked)
    }

    /// The same where every call may run.
    pub(crate) fn work_well(&self, store: &Arc<dyn Store>, load: Load) -> anyhow::Result<Worked> {
        let worked = self.work(store, load)?;
        ensure!(worked.failed.is_empty(), "{} calls failed: {}", worked.failed.len(), worked.failed[0]);
        Ok(worked)
    }
}

/// Opens a store with the keys of `home`.
pub(crate) fn open(url: &str, home: &Path, durability: Durability) -> anyhow::Result<Arc<dyn Store>> {
    let source = KeySource { file: Some(home.join(KEY_FILE)), ..KeySource::default() };
    let keys = StoreKeys {
        keyring: Some(Arc::new(Keyring::open(&source)?)),
        signing: Some(Arc::new(SigningKey::open_or_create(home)?)),
        ..StoreKeys::default()
    };
    pintle_store::open_with(url, home, durability, keys).with_context(|| format!("`{url}` does not open"))
}

/// Lets every call pass.
struct Gate;

#[async_trait]
impl NativeHook for Gate {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::PreToolUse]
    }
}

/// A turn that wants so many calls, each when the one before may run.
async fn turn(hooks: Dispatcher, calls: usize) -> Worked {
    let mut worked = Worked::default();
    for number in 0..calls {
        let call = call(number);
        let asked = Instant::now();
        let cleared = hooks.clear(call).await;
        worked.waited.push(asked.elapsed());
        if !matches!(cleared, Clearance::Run(..)) {
            worked.failed.push(format!("{cleared:?}"));
        }
    }
    worked
}

fn call(number: usize) -> ToolCall {
    let arguments = json!({ "cmd": "cargo test --workspace", "note": "n".repeat(NOTE_BYTES), "timeout": 30 });
    ToolCall {
        id: CallId::from(format!("call_{number:08}").as_str()),
        tool: "exec".into(),
        raw_tool: "exec".into(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    }
}
