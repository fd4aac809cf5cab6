//! What the hot path costs in instructions and allocations: checks and clearings with native hooks, on one thread.
//!
//! `cargo xtask bench -- --count` counts; anything else runs each case once.

#![expect(missing_docs, reason = "the macros of the harness write public items")]

use std::sync::Arc;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, main};
use pintle_domain::checkpoint::{ApproveTool, BeforeTool, CheckpointKind, PreToolUse};
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::ruling::Ruling;
use pintle_domain::tool::ToolCall;
use pintle_domain::verdict::Verdict;
use pintle_engine::{Clearance, Dispatcher, Engine, HookCx, NativeAnswer, NativeHook, NullStore, async_trait};
use tokio::runtime::Runtime;

/// Lets every call pass, at the stages that it names.
struct Passing(&'static [CheckpointKind]);

#[async_trait]
impl NativeHook for Passing {
    fn stages(&self) -> Vec<CheckpointKind> {
        self.0.to_vec()
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, _at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        Ok(Verdict::Continue)
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, _at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        Ok(Verdict::Continue)
    }

    async fn approve_tool(&self, _cx: &HookCx<'_>, _at: &ApproveTool) -> NativeAnswer<ApproveTool> {
        Ok(Verdict::Continue)
    }
}

/// Hooks in force, a turn, and a runtime of this thread alone.
struct Scene {
    runtime: Runtime,
    hooks: Dispatcher,
}

impl Scene {
    fn new(hooks: usize, stages: &'static [CheckpointKind]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let inside = runtime.enter();
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        let mounts = (0..hooks).map(|number| {
            let hook = engine.native(&format!("hook-{number}"), 0, Arc::new(Passing(stages)));
            hook.matching("^(read|write|edit)$").expect("a good pattern")
        });
        engine.replace(mounts.collect()).expect("every hook has a name of its own");
        let hooks = engine.dispatcher(Identity::top("main", "cli:direct", TurnId::from("turn_00000001")));
        drop(inside);
        Self { runtime, hooks }
    }

    fn check(&self, subject: BeforeTool) -> BeforeTool {
        let (subject, ruling) = self.runtime.block_on(self.hooks.check(subject));
        assert!(matches!(ruling, Ruling::Proceed), "the call did not pass");
        subject
    }

    fn clear(&self, call: ToolCall) -> Clearance {
        let cleared = self.runtime.block_on(self.hooks.clear(call));
        assert!(matches!(cleared, Clearance::Run(..)), "the call was not cleared");
        cleared
    }
}

fn call() -> ToolCall {
    let arguments = json!({ "path": "notes/größe.md", "text": "x".repeat(200) });
    ToolCall {
        id: CallId::from("call_00000017"),
        tool: "write".to_owned(),
        raw_tool: "write".to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    }
}

/// So many hooks before tools, asked once before.
fn rewriters(hooks: usize) -> (Scene, BeforeTool) {
    let scene = Scene::new(hooks, &[CheckpointKind::BeforeTool]);
    let subject = scene.check(BeforeTool { call: call(), owner: None });
    (scene, subject)
}

#[library_benchmark(setup = rewriters)]
#[bench::no_hooks(0)]
#[bench::one_hook(1)]
#[bench::ten_hooks(10)]
fn check((scene, subject): (Scene, BeforeTool)) -> (BeforeTool, Scene) {
    (scene.check(subject), scene)
}

/// Hooks at these stages, asked once before: none where there is no stage, else three.
fn guarded(stages: &'static [CheckpointKind]) -> (Scene, ToolCall) {
    let scene = Scene::new(3 * stages.len().min(1), stages);
    assert!(matches!(scene.clear(call()), Clearance::Run(..)), "the call was not cleared");
    (scene, call())
}

#[library_benchmark(setup = guarded)]
#[bench::no_hooks(&[])]
#[bench::three_gates(&[CheckpointKind::PreToolUse])]
#[bench::three_approvers(&[CheckpointKind::ApproveTool])]
#[bench::three_hooks_everywhere(&[CheckpointKind::BeforeTool, CheckpointKind::PreToolUse, CheckpointKind::ApproveTool])]
fn clear((scene, call): (Scene, ToolCall)) -> (Clearance, Scene) {
    (scene.clear(call), scene)
}

library_benchmark_group!(name = host, benchmarks = [check, clear]);
main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        .tool(Dhat::with_args(["--num-callers=500"])),
    library_benchmark_groups = host
);
