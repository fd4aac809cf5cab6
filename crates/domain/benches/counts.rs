//! What the rules cost in instructions and allocations: the hooks of an event, the clearing of a call, matchers, digests.
//!
//! `cargo xtask bench -- --count` counts; anything else runs each case once.

#![expect(missing_docs, reason = "the macros of the harness write public items")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, main};
use pintle_domain::chain::{Chain, Conclusion, HookMachine};
use pintle_domain::checkpoint::{
    AgentInfo, ApproveTool, BeforeTool, CheckpointKind, EventContext, Facts, PreToolUse, Reply,
};
use pintle_domain::clearing::{Clearing, ClearingOutcome};
use pintle_domain::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use pintle_domain::id::{CallId, HookName, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, canonical, json};
use pintle_domain::matcher::{Matcher, RespondTools};
use pintle_domain::roster::Roster;
use pintle_domain::tool::{Digest, ToolCall};
use pintle_domain::verdict::Verdict;

/// What every hook takes to answer: no clock is read here.
const TOOK: Duration = Duration::from_micros(10);

/// An agent that takes every name as it is.
struct Plain;

impl AgentInfo for Plain {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }
}

/// Hooks that are to be asked about one call.
struct Scene {
    roster: Arc<Roster>,
    who: Identity,
    call: ToolCall,
}

impl Scene {
    /// So many hooks, all of which act at each of `kinds`.
    fn new(hooks: usize, kinds: &[CheckpointKind]) -> Self {
        let roster = Arc::new(Roster::new((0..hooks).map(|number| hook(number, kinds)).collect()));
        let who = Identity::top("main", "cli:direct", TurnId::from("turn_00000001"));
        let scene = Self { roster, who, call: call() };
        // Once before, so that what is remembered of names and patterns is remembered.
        assert!(matches!(scene.clear(), ClearingOutcome::Run(_)), "the call does not run");
        scene
    }

    /// Asks everybody about the call; what it came to.
    fn clear(&self) -> ClearingOutcome {
        let mut clearing = Clearing::new(self.roster.clone(), self.event_context(), self.call.clone());
        ask_all(&mut clearing);
        clearing.conclude().0
    }

    fn event_context(&self) -> EventContext<'_> {
        EventContext { who: &self.who, known: &Plain }
    }
}

fn hook(number: usize, kinds: &[CheckpointKind]) -> Hook {
    let mut stages = Stages::default();
    for kind in kinds {
        let stage = Stage { timeout: Duration::from_secs(5), on_failure: OnFailure::default_at(*kind), paired: false };
        stages.set(*kind, stage);
    }
    Hook {
        name: HookName::new(format!("hook-{number}")),
        family: Family::Process,
        origin: String::new(),
        priority: 0,
        state: HookState::Armed,
        scope: Scope::Everyone,
        matcher: Some(Matcher::compile("^(read|write|edit)$").expect("a good pattern")),
        respond: RespondTools::Any,
        events: None,
        stages,
        stored: None,
        media_dir: None,
    }
}

/// A call with nested arguments and numbers of several forms.
fn call() -> ToolCall {
    let arguments = json!({
        "path": "src/main.rs",
        "text": "fn main() {\n    println!(\"hello\");\n}\n".repeat(20),
        "lines": [1, 2.5, 1e21, -7],
        "options": { "create": true, "mode": null, "encoding": "utf-8" },
    });
    ToolCall {
        id: CallId::from("call_00000017"),
        tool: "write".to_owned(),
        raw_tool: "write".to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    }
}

/// What a hook says that lets everything pass.
fn passing(kind: CheckpointKind) -> Reply {
    if kind == CheckpointKind::BeforeTool {
        Reply::BeforeTool(Verdict::<BeforeTool>::Continue.into())
    } else if kind == CheckpointKind::PreToolUse {
        Reply::PreToolUse(Verdict::<PreToolUse>::Continue.into())
    } else {
        Reply::ApproveTool(Verdict::<ApproveTool>::Continue.into())
    }
}

/// Asks everybody; how many that were.
fn ask_all(asks: &mut impl HookMachine) -> usize {
    let mut asked = 0;
    while let Some(need) = asks.next() {
        let reply = passing(need.subject.kind());
        asks.settle(Ok(reply), TOOK);
        asked += 1;
    }
    asked
}

fn row(hooks: usize) -> Scene {
    Scene::new(hooks, &[CheckpointKind::BeforeTool])
}

#[library_benchmark(setup = row)]
#[bench::no_hooks(0)]
#[bench::one_hook(1)]
#[bench::ten_hooks(10)]
fn chain(scene: Scene) -> (Conclusion<BeforeTool>, Scene) {
    let subject = BeforeTool { call: scene.call.clone(), owner: None };
    let mut chain = Chain::new(scene.roster.clone(), scene.event_context(), subject);
    let asked = ask_all(&mut chain);
    assert_eq!(asked, scene.roster.hooks().len(), "a hook was passed over");
    (chain.conclude(), scene)
}

fn stages(kinds: &[CheckpointKind]) -> Scene {
    Scene::new(kinds.len().min(1) * 3, kinds)
}

#[library_benchmark(setup = stages)]
#[bench::no_hooks(&[])]
#[bench::three_gates(&[CheckpointKind::PreToolUse])]
#[bench::three_approvers(&[CheckpointKind::ApproveTool])]
#[bench::three_hooks_everywhere(&[CheckpointKind::BeforeTool, CheckpointKind::PreToolUse, CheckpointKind::ApproveTool])]
fn clearing(scene: Scene) -> (ClearingOutcome, Scene) {
    (scene.clear(), scene)
}

/// So many matchers that do not match, and so many that do; each tried once before.
fn patterns((misses, hits): (usize, usize)) -> (Vec<Matcher>, usize) {
    let missing = (0..misses).map(|number| format!("^(tool_{number}|other_{number})$"));
    let all = missing.chain((0..hits).map(|_| "^(read|write|edit)$".to_owned()));
    let matchers: Vec<Matcher> = all.map(|it| Matcher::compile(&it).expect("a good pattern")).collect();
    assert_eq!(matching(&matchers), hits, "another number of matchers matches");
    (matchers, hits)
}

/// How many of `matchers` match the name of a tool.
fn matching(matchers: &[Matcher]) -> usize {
    let facts = Facts { tool: Some(("write", "write")), ..Facts::default() };
    matchers.iter().filter(|matcher| matcher.matches(black_box(&facts))).count()
}

#[library_benchmark(setup = patterns)]
#[bench::fifty_misses((50, 0))]
#[bench::one_hit((0, 1))]
fn matcher((matchers, _): (Vec<Matcher>, usize)) -> (usize, Vec<Matcher>) {
    (matching(&matchers), matchers)
}

fn arguments() -> Value {
    Value::Object(call().arguments)
}

#[library_benchmark(setup = arguments)]
#[bench::of_arguments()]
fn canonical_json(value: Value) -> (String, Value) {
    (canonical(black_box(&value)), value)
}

#[library_benchmark(setup = row)]
#[bench::of_a_call(0)]
fn digest(scene: Scene) -> (Digest, Scene) {
    (Digest::of(black_box(&scene.who), &scene.call), scene)
}

library_benchmark_group!(name = decisions, benchmarks = [chain, clearing, matcher, canonical_json, digest]);
main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        .tool(Dhat::with_args(["--num-callers=500"])),
    library_benchmark_groups = decisions
);
