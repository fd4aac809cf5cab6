//! `pintle hooks test`: one synthetic event for one hook, through the real child and the real wire, or through the real
//! handler of a rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use pintle_agent::tools::BUILTIN;
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, AgentInfo, ApproveTool, BeforeLlm, BeforeTool, Checkpoint, CheckpointKind, PreToolUse,
    RuntimeEvent, SubagentStart, UserPromptSubmit,
};
use pintle_domain::fault::Fault;
use pintle_domain::hook::HookState;
use pintle_domain::id::{HookName, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::ruling::Ruling;
use pintle_engine::Dispatcher;

use self::answer::{Answer, TestOutcome};
use self::question::TestQuestion;
use super::super::question::Question;
use super::super::{Global, terminal};
use crate::error::CliError;
use pintle_host::config::{LoadedHook, trust};
use pintle_host::host::{Host, load};
use pintle_host::tool_names::{brought, request};

mod answer;
mod question;
mod result;
mod rule;

/// Flags of `hooks test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The hook: its name, or the id of a rule; with --file, the name of the record
    #[arg(value_name = "HOOK", required_unless_present_any = ["file", "starter"])]
    hook: Option<String>,
    /// Test a record of this file instead (`-` for standard input), without keeping it
    #[arg(long, value_name = "FILE", conflicts_with = "starter")]
    file: Option<String>,
    /// Test the starter guards instead, as a chain, whether they are added or not
    #[arg(long, conflicts_with = "hook")]
    starter: bool,
    /// What happens: a stage such as before_tool, or a runtime event such as turn_end [default: its first stage; of a
    /// stored hook its own event]
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// The tool that is called, as a model would write it [default: one that the hook is about]
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The arguments of the call
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// The user's message; for after_llm the model's answer, for after_tool the tool's result
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Print the verdict, what was sent, what came back and how long it took as JSON; of a stored hook the `result` of
    /// `hooks.test`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &TestArgs) -> Result<u8, CliError> {
    let Some(named) = args.hook.as_deref().filter(|_| args.file.is_none()) else {
        return rule::unsaved(global, args);
    };
    let (env, mut loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let Some(found) = super::show::configured(&loaded.config, named).cloned() else {
        return rule::saved((global, args), (env, loaded), named);
    };
    must_be_armed(&found)?;
    let question = TestQuestion::new(args, &found.hook, &loaded.config)?;
    // Only this hook is started, and nothing is kept of it.
    loaded.config.hooks.retain(|other| other.hook.name == found.hook.name);
    loaded.config.keep_nothing();
    let came = terminal::runtime()?.block_on(async {
        let host = Host::open(env, loaded, Vec::new())?;
        let came = put(&host, &found, question).await;
        host.close().await;
        Ok::<_, CliError>(came)
    })?;
    let answer = Answer::new(&found.hook, came);
    let whole = global.verbose > 0;
    if args.json {
        terminal::say(&answer.json()?)?
    } else {
        terminal::tell(&answer.plain(whole))?
    }
    if is_changed(&found) {
        terminal::note("  hint: `pintle trust` shows what changed, and accepts it");
    }
    Ok(answer.code())
}

/// A hook that is switched off or untrusted cannot be asked; a broken one answers with its fault.
fn must_be_armed(found: &LoadedHook) -> Result<(), CliError> {
    let name = &found.hook.name;
    match &found.hook.state {
        HookState::Armed | HookState::Broken(_) | HookState::Tripped { .. } => Ok(()),
        HookState::Disabled => Err(CliError::failed(format!("hook \"{name}\" is disabled ({})", found.hook.origin))
            .hint("set enabled = true in its entry, and `[hooks] enabled` must not be false")),
        HookState::Untrusted => Err(untrusted(&found.hook)),
    }
}

/// Nobody accepted the configuration that `hook` comes from.
fn untrusted(hook: &pintle_domain::hook::Hook) -> CliError {
    CliError {
        code: super::super::session::UNGUARDED,
        message: format!("hook \"{}\" is untrusted ({})", hook.name, hook.origin),
        hints: vec!["`pintle trust` shows what it would run, and accepts it".to_owned()],
    }
}

/// Whether the hook is not the one that was accepted.
fn is_changed(found: &LoadedHook) -> bool {
    let broken = matches!(&found.hook.state, HookState::Broken(fault) if trust::is_changed(fault));
    broken || trust::before_spawn(found.seal.as_ref())().is_err()
}

/// Waits for the hook and asks it.
async fn put(host: &Host, found: &LoadedHook, question: TestQuestion) -> TestOutcome {
    let event = question.event();
    if let Err(fault) = trust::before_spawn(found.seal.as_ref())() {
        return TestOutcome::fault(event, Fault::CannotStart { cause: fault.into() });
    }
    // A hook that never came up would be waited for until its deadline, and say no more than this.
    if let Some((_, fault)) = host.ready().await.into_iter().next() {
        return TestOutcome { stderr: stderr(host), ..TestOutcome::fault(event, fault) };
    }
    let mut came = match question {
        TestQuestion::Asked(Question::UserPromptSubmit(asked)) => {
            ask::<UserPromptSubmit>(host, found, asked, |_| None).await
        }
        TestQuestion::Asked(Question::BeforeLlm(asked)) => ask::<BeforeLlm>(host, found, asked, |_| None).await,
        TestQuestion::Asked(Question::AfterLlm(asked)) => ask::<AfterLlm>(host, found, asked, |_| None).await,
        TestQuestion::Asked(Question::BeforeTool(asked)) => ask_about_call(host, found, asked).await,
        TestQuestion::Asked(Question::PreToolUse(asked)) => {
            ask::<PreToolUse>(host, found, asked, question_to_human).await
        }
        TestQuestion::Asked(Question::ApproveTool(asked)) => ask::<ApproveTool>(host, found, asked, |_| None).await,
        TestQuestion::Asked(Question::AfterTool(asked)) => ask::<AfterTool>(host, found, asked, |_| None).await,
        TestQuestion::Asked(Question::SubagentStart(asked)) => ask::<SubagentStart>(host, found, asked, |_| None).await,
        TestQuestion::Told(event) => tell(host, found, event).await,
    };
    came.stderr = stderr(host);
    came.stray_lines = host.running().values().map(|process| process.status().stray_lines).sum();
    came
}

/// Asks about a call. A hook that brings the tool is asked as its owner, as in a turn: before the model call it is
/// asked for its tools.
async fn ask_about_call(host: &Host, found: &LoadedHook, mut asked: BeforeTool) -> TestOutcome {
    let mut hooks = host.engine.dispatcher(identity());
    if !BUILTIN.contains(&asked.call.raw_tool.as_str()) {
        let offer = request(question::MODEL.to_owned(), question::TEXT.to_owned());
        let tools = brought(&hooks, &found.hook, offer).await;
        if tools.contains(&asked.call.raw_tool) {
            asked.call.tool.clone_from(&asked.call.raw_tool);
            asked.owner = Some(found.hook.name.clone());
        }
        hooks.set_known(Arc::new(Owned { by: found.hook.name.clone(), tools }));
    }
    ask_in(&hooks, found, asked, substitute).await
}

/// Every name of a tool or model is taken as it is; some tools are brought by one hook.
struct Owned {
    by: HookName,
    tools: BTreeSet<String>,
}

impl AgentInfo for Owned {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.tools.contains(name).then(|| self.by.clone())
    }
}

async fn ask<C: Checkpoint>(
    host: &Host,
    found: &LoadedHook,
    subject: C,
    note: impl Fn(&Ruling<C>) -> Option<String>,
) -> TestOutcome {
    ask_in(&host.engine.dispatcher(identity()), found, subject, note).await
}

async fn ask_in<C: Checkpoint>(
    hooks: &Dispatcher,
    found: &LoadedHook,
    subject: C,
    note: impl Fn(&Ruling<C>) -> Option<String>,
) -> TestOutcome {
    let trial = hooks.try_hook(&found.hook.name, subject).await;
    match trial.and_then(|heard| heard.record.clone().map(|record| (heard, record))) {
        Some((heard, record)) => TestOutcome {
            note: note(&heard.ruling),
            sent: heard.sent,
            came: heard.came,
            ..TestOutcome::recorded(C::KIND.name(), record)
        },
        None => {
            let detail = format!("it does not act at `{}`", C::KIND.name());
            TestOutcome::fault(C::KIND.name(), Fault::Unavailable { cause: detail.into() })
        }
    }
}

/// Tells the hook, and sees whether it was written before the hook was closed.
async fn tell(host: &Host, found: &LoadedHook, event: RuntimeEvent) -> TestOutcome {
    let kind = event.kind();
    host.engine.dispatcher(identity()).tell(event);
    host.close().await;
    let running = host.running();
    let dropped =
        running.get(found.hook.name.as_str()).is_some_and(|process| !process.status().dropped_events.is_empty());
    if dropped { TestOutcome::dropped(kind.name()) } else { TestOutcome::told(kind.name()) }
}

fn identity() -> Identity {
    Identity { iteration: 1, is_test: true, ..Identity::top("main", "test", TurnId::fresh()) }
}

fn substitute(ruling: &Ruling<BeforeTool>) -> Option<String> {
    match ruling {
        Ruling::Respond { with, .. } => Some(with.result.for_llm.clone()),
        Ruling::Proceed | Ruling::Ask { .. } | Ruling::Deny(_) | Ruling::Abort(_) => None,
    }
}

fn question_to_human(ruling: &Ruling<PreToolUse>) -> Option<String> {
    match ruling {
        Ruling::Ask { why, .. } => Some(why.to_string()),
        Ruling::Proceed | Ruling::Respond { .. } | Ruling::Deny(_) | Ruling::Abort(_) => None,
    }
}

/// The end of what the hook wrote to standard error.
fn stderr(host: &Host) -> String {
    host.running().values().map(|process| process.stderr_tail()).collect()
}

/// The stage of a hook that says most about it: a guard's first.
fn first_stage(found: &pintle_domain::hook::Hook) -> Option<CheckpointKind> {
    let own = |kind: &CheckpointKind| found.stages.get(*kind).is_some_and(|stage| !stage.paired);
    let tool = Some(CheckpointKind::BeforeTool).filter(own);
    tool.or_else(|| found.stages.kinds().find(|kind| own(kind)))
}
