//! Hooks, agents and scripted answers for the tests beside the machines.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::chain::HookMachine;
use crate::checkpoint::{
    AfterLlm, AfterTool, AgentInfo, ApproveTool, AskedKind, BeforeLlm, BeforeTool, Checkpoint, CheckpointKind,
    EventContext, PreToolUse, Reply, Snapshot, SubagentStart, UserPromptSubmit,
};
use crate::fault::Fault;
use crate::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use crate::id::{AgentId, CallId, HookName, TurnId};
use crate::identity::Identity;
use crate::json::{Object, json};
use crate::matcher::{Matcher, RespondTools};
use crate::record::{HookOutcome, NotRun, Record, RecordLines};
use crate::roster::Roster;
use crate::tool::ToolCall;
use crate::verdict::Verdict;

/// A process hook that acts at `kinds`, with the defaults of its duties.
pub(crate) fn hook(name: &str, kinds: &[CheckpointKind]) -> Hook {
    let mut stages = Stages::default();
    for kind in kinds {
        let timeout = Duration::from_secs(5);
        stages.set(*kind, Stage { timeout, on_failure: OnFailure::default_at(*kind), paired: false });
    }
    Hook {
        name: HookName::from(name),
        family: Family::Process,
        origin: "test".into(),
        priority: 0,
        state: HookState::Armed,
        matcher: None,
        respond: RespondTools::Any,
        events: None,
        scope: Scope::Everyone,
        media_dir: None,
        stages,
        stored: None,
    }
}

impl Hook {
    /// This hook, whose faults become `on_failure` everywhere.
    pub(crate) fn failing(mut self, on_failure: OnFailure) -> Self {
        let kinds: Vec<CheckpointKind> = self.stages.kinds().collect();
        for kind in kinds {
            let stage = self.stages.get(kind).unwrap().clone();
            self.stages.set(kind, Stage { on_failure, ..stage });
        }
        self
    }

    /// This hook, called everywhere only because a twin was named.
    pub(crate) fn paired(mut self) -> Self {
        let kinds: Vec<CheckpointKind> = self.stages.kinds().collect();
        for kind in kinds {
            let stage = self.stages.get(kind).unwrap().clone();
            self.stages.set(kind, Stage { paired: true, ..stage });
        }
        self
    }

    pub(crate) fn state(self, state: HookState) -> Self {
        Self { state, ..self }
    }

    /// This hook, for the turns of `agents` and of who works for them.
    pub(crate) fn of(self, agents: &[&str]) -> Self {
        Self { scope: Scope::Agents(agents.iter().map(|agent| AgentId::from(*agent)).collect()), ..self }
    }

    pub(crate) fn matching(self, pattern: &str) -> Self {
        Self { matcher: Some(Matcher::compile(pattern).unwrap()), ..self }
    }

    pub(crate) fn responding(self, globs: &[&str]) -> Self {
        let globs: Vec<String> = globs.iter().map(ToString::to_string).collect();
        Self { respond: RespondTools::only(&globs).unwrap(), ..self }
    }
}

/// An agent with the tools `exec`, `read` and what hooks brought, and the models `m` and `big`.
#[derive(Default)]
pub(crate) struct Agent {
    pub(crate) owners: BTreeMap<String, HookName>,
    pub(crate) acting_for: Vec<AgentId>,
}

impl Agent {
    /// An agent whose name is the first of `names`, and which works for the others.
    pub(crate) fn acting_for(names: &[&str]) -> EventContext<'static> {
        event_context(Self {
            owners: BTreeMap::new(),
            acting_for: names.iter().map(|name| AgentId::from(*name)).collect(),
        })
    }

    /// An agent for whose calls each of `(tool, hook)` was injected.
    pub(crate) fn with(owned: &[(&str, &str)]) -> EventContext<'static> {
        let owners = owned.iter().map(|(tool, hook)| ((*tool).to_owned(), HookName::from(*hook))).collect();
        event_context(Self { owners, acting_for: Vec::new() })
    }
}

/// An event of `agent`. What it borrows lives as long as the test.
fn event_context(agent: Agent) -> EventContext<'static> {
    let who = Box::leak(Box::new(Identity::top("main", "s", TurnId::from("t"))));
    EventContext { who, known: Box::leak(Box::new(agent)) }
}

impl AgentInfo for Agent {
    fn tool(&self, name: &str) -> Option<String> {
        let name = if name == "bash" { "exec" } else { name };
        (["exec", "read"].contains(&name) || self.owners.contains_key(name)).then(|| name.to_owned())
    }

    fn model(&self, model: &str) -> bool {
        ["m", "big"].contains(&model)
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.owners.get(name).cloned()
    }

    fn acting_for(&self) -> &[AgentId] {
        &self.acting_for
    }
}

/// The object `{"cmd": cmd}`.
pub(crate) fn args(cmd: &str) -> Object {
    Object::from_iter([("cmd".to_owned(), json!(cmd))])
}

/// The call `c1` of `tool` with `{"cmd": cmd}`.
pub(crate) fn call(tool: &str, cmd: &str) -> ToolCall {
    ToolCall { id: CallId::from("c1"), tool: tool.into(), raw_tool: tool.into(), arguments: args(cmd) }
}

/// The answer of a hook.
pub(crate) type HookAnswer = Result<Reply, Fault>;

macro_rules! says {
    ($($checkpoint:ident)*) => {$(
        impl Says for $checkpoint {
            fn reply(verdict: Verdict<Self>) -> Reply {
                Reply::$checkpoint(verdict.into())
            }
        }
    )*};
}

/// Turns a verdict into a reply.
pub(crate) trait Says: Checkpoint {
    fn reply(verdict: Verdict<Self>) -> Reply;
}

says! { UserPromptSubmit BeforeLlm AfterLlm BeforeTool PreToolUse ApproveTool AfterTool SubagentStart }

/// The answer `verdict`.
pub(crate) fn said<C: Says>(verdict: Verdict<C>) -> HookAnswer {
    Ok(C::reply(verdict))
}

/// The answers of each hook at each checkpoint, in order; the last answer repeats, silence continues.
#[derive(Default)]
pub(crate) struct Script(BTreeMap<(String, CheckpointKind), VecDeque<HookAnswer>>);

impl Script {
    /// This script, in which `hook` also gives `verdict`.
    pub(crate) fn says<C: Says>(self, hook: &str, verdict: Verdict<C>) -> Self {
        self.answers(hook, C::KIND, said(verdict))
    }

    /// This script, in which `hook` also fails at `kind`.
    pub(crate) fn fails(self, hook: &str, kind: CheckpointKind, fault: Fault) -> Self {
        self.answers(hook, kind, Err(fault))
    }

    fn answers(mut self, hook: &str, kind: CheckpointKind, answer: HookAnswer) -> Self {
        self.0.entry((hook.to_owned(), kind)).or_default().push_back(answer);
        self
    }

    fn answer(&mut self, hook: &str, kind: CheckpointKind) -> HookAnswer {
        let Some(queue) = self.0.get_mut(&(hook.to_owned(), kind)) else { return Ok(continues(kind)) };
        if queue.len() > 1 { queue.pop_front().unwrap() } else { queue[0].clone() }
    }

    /// Answers for everyone until nobody is left to ask; says who was asked and what they saw.
    pub(crate) fn play(mut self, asks: &mut impl HookMachine, roster: &Roster) -> Vec<String> {
        let mut asked = Vec::new();
        while let Some(need) = asks.next() {
            let (hook, kind) = (roster.hook(need.hook).name.to_string(), need.subject.kind());
            asked.push(format!("{} {hook} sees {}", kind.name(), seen(&need.subject)));
            let answer = self.answer(&hook, kind);
            asks.settle(answer, Duration::from_millis(1));
        }
        asked
    }
}

fn continues(kind: CheckpointKind) -> Reply {
    match kind.asked() {
        Some(AskedKind::UserPromptSubmit) => UserPromptSubmit::reply(Verdict::Continue),
        Some(AskedKind::BeforeLlm) => BeforeLlm::reply(Verdict::Continue),
        Some(AskedKind::AfterLlm) => AfterLlm::reply(Verdict::Continue),
        Some(AskedKind::BeforeTool) => BeforeTool::reply(Verdict::Continue),
        Some(AskedKind::PreToolUse) => PreToolUse::reply(Verdict::Continue),
        Some(AskedKind::ApproveTool) => ApproveTool::reply(Verdict::Continue),
        Some(AskedKind::AfterTool) => AfterTool::reply(Verdict::Continue),
        Some(AskedKind::SubagentStart) => SubagentStart::reply(Verdict::Continue),
        None => {
            unreachable!("nobody is asked there")
        }
    }
}

fn seen(subject: &crate::checkpoint::Subject<'_>) -> String {
    use crate::checkpoint::Subject;
    let snapshot = match subject {
        Subject::UserPromptSubmit(it) => it.snapshot(),
        Subject::BeforeLlm(it) => it.snapshot(),
        Subject::AfterLlm(it) => it.snapshot(),
        Subject::BeforeTool(it) => it.snapshot(),
        Subject::PreToolUse(it) => it.snapshot(),
        Subject::ApproveTool(it) => it.snapshot(),
        Subject::AfterTool(it) => it.snapshot(),
        Subject::SubagentStart(it) => it.snapshot(),
    };
    match snapshot {
        Snapshot::Call { tool, arguments } => format!("{tool} {}", json!(arguments)),
        Snapshot::Prompt(text) => text,
        other @ (Snapshot::Request(_) | Snapshot::Reply(_) | Snapshot::Output(_) | Snapshot::Task { .. }) => {
            other.to_json().to_string()
        }
    }
}

/// One record on one line.
pub(crate) fn line(record: &Record) -> String {
    let what = match &record.outcome {
        HookOutcome::Said { word, reason: Some(reason), .. } => format!("{}: {reason}", word.as_str()),
        HookOutcome::Said { word, reason: None, .. } => word.as_str().to_owned(),
        HookOutcome::Failed { fault, became, .. } => format!("{} became {}", fault.kind().word(), became.as_str()),
        HookOutcome::Told => "told".to_owned(),
        HookOutcome::NotRun(NotRun::Matcher { pattern, value }) => format!("not run, {pattern} does not match {value}"),
        HookOutcome::NotRun(NotRun::Decided { by }) => format!("not run, decided by {by}"),
        HookOutcome::NotRun(NotRun::Condition { text }) => format!("not run, {text} does not hold"),
        HookOutcome::NotRun(NotRun::BreakerOpen { since }) => format!("not run, off since {since}"),
        HookOutcome::NotRun(NotRun::ChainTimeSpent { .. }) => "not run, chain time spent".to_owned(),
        HookOutcome::NotRun(NotRun::BudgetSpent(_)) => "not run, budget spent".to_owned(),
        HookOutcome::NotRun(NotRun::CapReached { cap }) => format!("not run, asked {cap} times already"),
        HookOutcome::NotRun(why @ (NotRun::Disabled | NotRun::OutOfScope | NotRun::Untrusted | NotRun::Dropped)) => {
            format!("not run, {why:?}").to_lowercase()
        }
    };
    let change = record.change.as_ref().map(|change| format!(" {}", change.patch())).unwrap_or_default();
    let again = if record.again { " again" } else { "" };
    let warnings: String = record.warnings.iter().map(|warning| format!(" ({warning})")).collect();
    format!("{} {}{again} {what}{change}{warnings}", record.checkpoint.name(), record.hook)
}

/// All records, one a line.
pub(crate) fn lines(records: &RecordLines) -> String {
    records.iter().map(|record| line(&record)).collect::<Vec<_>>().join("\n")
}
