//! Hooks and tools for tests: native ones made of closures, children that answer from a table.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CHECKPOINTS, Checkpoint, CheckpointKind, Duty, PreToolUse,
    SubagentStart, UserPromptSubmit,
};
use pintle_domain::json::{Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::Verdict;
use pintle_engine::{Engine, HookCx, Mount, NativeAnswer, NativeHook, Permit, Tool, async_trait};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::host::Host;

/// What a rule says at one stage.
pub(crate) type Say<C> = Option<Box<dyn Fn(&C) -> Verdict<C> + Send + Sync>>;

/// A native hook that says at each stage what its closure says; it acts only where it has one.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) prompt: Say<UserPromptSubmit>,
    pub(crate) before_llm: Say<BeforeLlm>,
    pub(crate) after_llm: Say<AfterLlm>,
    pub(crate) before_tool: Say<BeforeTool>,
    pub(crate) gate: Say<PreToolUse>,
    pub(crate) approve: Say<ApproveTool>,
    pub(crate) after_tool: Say<AfterTool>,
    pub(crate) subagent: Say<SubagentStart>,
}

fn said<C: Checkpoint>(say: &Say<C>, at: &C) -> NativeAnswer<C> {
    Ok(say.as_ref().map_or(Verdict::Continue, |say| say(at)))
}

#[async_trait]
impl NativeHook for Rule {
    fn stages(&self) -> Vec<CheckpointKind> {
        let stages = [
            (CheckpointKind::UserPromptSubmit, self.prompt.is_some()),
            (CheckpointKind::BeforeLlm, self.before_llm.is_some()),
            (CheckpointKind::AfterLlm, self.after_llm.is_some()),
            (CheckpointKind::BeforeTool, self.before_tool.is_some()),
            (CheckpointKind::PreToolUse, self.gate.is_some()),
            (CheckpointKind::ApproveTool, self.approve.is_some()),
            (CheckpointKind::AfterTool, self.after_tool.is_some()),
            (CheckpointKind::SubagentStart, self.subagent.is_some()),
        ];
        stages.into_iter().filter_map(|(kind, acts)| acts.then_some(kind)).collect()
    }

    async fn user_prompt_submit(&self, _cx: &HookCx<'_>, at: &UserPromptSubmit) -> NativeAnswer<UserPromptSubmit> {
        said(&self.prompt, at)
    }

    async fn before_llm(&self, _cx: &HookCx<'_>, at: &BeforeLlm) -> NativeAnswer<BeforeLlm> {
        said(&self.before_llm, at)
    }

    async fn after_llm(&self, _cx: &HookCx<'_>, at: &AfterLlm) -> NativeAnswer<AfterLlm> {
        said(&self.after_llm, at)
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        said(&self.before_tool, at)
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        said(&self.gate, at)
    }

    async fn approve_tool(&self, _cx: &HookCx<'_>, at: &ApproveTool) -> NativeAnswer<ApproveTool> {
        said(&self.approve, at)
    }

    async fn after_tool(&self, _cx: &HookCx<'_>, at: &AfterTool) -> NativeAnswer<AfterTool> {
        said(&self.after_tool, at)
    }

    async fn subagent_start(&self, _cx: &HookCx<'_>, at: &SubagentStart) -> NativeAnswer<SubagentStart> {
        said(&self.subagent, at)
    }
}

type Act = Box<dyn Fn(CheckpointKind) -> BoxFuture<'static, ()> + Send + Sync>;

/// A native hook that lets everything pass, once it has done something.
pub(crate) struct Passing {
    stages: Vec<CheckpointKind>,
    act: Act,
}

impl Passing {
    /// A hook that does `act` at each place where hooks are asked.
    pub(crate) fn everywhere(
        act: impl Fn(CheckpointKind) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let asked = |kind: &CheckpointKind| ![Duty::Observer, Duty::Injector].contains(&kind.duty());
        let stages = CHECKPOINTS.iter().map(|row| row.kind).filter(asked).collect();
        Arc::new(Self { stages, act: Box::new(act) })
    }

    /// A hook that lets others run before it answers.
    pub(crate) fn slow() -> Arc<Self> {
        Self::everywhere(|_| {
            Box::pin(async {
                // Whoever asks a hook polls it twice at first.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            })
        })
    }

    /// A hook that never answers at one stage, and says when it was asked.
    pub(crate) fn hanging(at: CheckpointKind, asked: Arc<Notify>) -> Arc<Self> {
        let act: Act = Box::new(move |_| {
            asked.notify_one();
            Box::pin(std::future::pending())
        });
        Arc::new(Self { stages: vec![at], act })
    }

    async fn pass<C: Checkpoint>(&self, _at: &C) -> NativeAnswer<C> {
        (self.act)(C::KIND).await;
        Ok(Verdict::Continue)
    }
}

#[async_trait]
impl NativeHook for Passing {
    fn stages(&self) -> Vec<CheckpointKind> {
        self.stages.clone()
    }

    async fn user_prompt_submit(&self, _cx: &HookCx<'_>, at: &UserPromptSubmit) -> NativeAnswer<UserPromptSubmit> {
        self.pass(at).await
    }

    async fn before_llm(&self, _cx: &HookCx<'_>, at: &BeforeLlm) -> NativeAnswer<BeforeLlm> {
        self.pass(at).await
    }

    async fn after_llm(&self, _cx: &HookCx<'_>, at: &AfterLlm) -> NativeAnswer<AfterLlm> {
        self.pass(at).await
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        self.pass(at).await
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        self.pass(at).await
    }

    async fn approve_tool(&self, _cx: &HookCx<'_>, at: &ApproveTool) -> NativeAnswer<ApproveTool> {
        self.pass(at).await
    }

    async fn after_tool(&self, _cx: &HookCx<'_>, at: &AfterTool) -> NativeAnswer<AfterTool> {
        self.pass(at).await
    }

    async fn subagent_start(&self, _cx: &HookCx<'_>, at: &SubagentStart) -> NativeAnswer<SubagentStart> {
        self.pass(at).await
    }
}

type Run = Box<dyn Fn(ToolCall, CancellationToken) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

/// A tool of an embedder that remembers the calls it ran.
pub(crate) struct OwnTool {
    definition: ToolDef,
    read_only: bool,
    run: Run,
    pub(crate) ran: Mutex<Vec<ToolCall>>,
}

impl OwnTool {
    pub(crate) fn new(name: &str, read_only: bool, run: Run) -> Arc<Self> {
        let definition = ToolDef::new(name, "", json!({"type": "object"}));
        Arc::new(Self { definition, read_only, run, ran: Mutex::default() })
    }

    /// A tool that always gives `output`.
    pub(crate) fn giving(name: &str, output: ToolOutput) -> Arc<Self> {
        Self::new(name, false, Box::new(move |_, _| Box::pin(std::future::ready(output.clone()))))
    }

    /// The calls that it ran, as `tool(arguments)`.
    pub(crate) fn calls(&self) -> Vec<String> {
        let ran = self.ran.lock().unwrap();
        ran.iter().map(|call| format!("{}({})", call.tool, json!(call.arguments))).collect()
    }
}

impl Tool for OwnTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn run<'a>(&'a self, permit: Permit, cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        let call = permit.call().clone();
        self.ran.lock().unwrap().push(call.clone());
        (self.run)(call, cancel.clone())
    }
}

/// A child that answers each method with the JSON that stands for it in a table, and writes down what it was sent.
/// A method that is not in the table gets `{}`. The answers are text, so that their digits stay as they are.
const TABLE: &str = r#"
import json, sys
answers = json.loads(sys.argv[1])
log = open(sys.argv[2], "w")
for line in sys.stdin:
    log.write(line)
    log.flush()
    message = json.loads(line)
    if "id" in message:
        print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (message["id"], answers.get(message["method"], "{}")), flush=True)
"#;

/// A process hook whose child answers from `answers`: method without `hook.` → JSON text. `more` are further keys of
/// its entry. What the child is sent stands in the file `NAME.log` of the host's folder.
pub(crate) fn child(host: &Host, name: &str, answers: &[(&str, &str)], more: Value) -> Mount {
    child_in((&host.engine, host.folder.path()), name, answers, more)
}

/// The same, of an engine whose host's folder is `folder`.
pub(crate) fn child_in((engine, folder): (&Engine, &Path), name: &str, answers: &[(&str, &str)], more: Value) -> Mount {
    let table: pintle_domain::json::Object =
        answers.iter().map(|(stage, answer)| (format!("hook.{stage}"), json!(answer))).collect();
    let log = folder.join(format!("{name}.log"));
    let stages: Vec<&str> = answers.iter().map(|(stage, _)| *stage).collect();
    let mut entry = json!({
        "enabled": true,
        "command": ["python3", "-S", "-c", TABLE, Value::Object(table).to_string(), log],
        "intercept": stages,
        "start_timeout_ms": 60_000,
        "timeout_ms": 60_000,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        entry[key] = value.clone();
    }
    pintle_process::mount_entry(engine, name, &entry, folder).unwrap()
}

/// A mounted child that has shaken hands, as at the start of a host: what it is told then need not wait for it.
pub(crate) async fn shaken(mount: Mount) -> Mount {
    let handler: &dyn std::any::Any = &*mount.handler;
    handler.downcast_ref::<pintle_process::ProcessHook>().unwrap().ready().await.unwrap();
    mount
}

/// What the child of the hook called `name` was sent, by line, as text.
pub(crate) fn sent(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.log"))).unwrap();
    text.lines().map(str::to_owned).collect()
}
