//! The synthetic event: what is asked, made of the flags and of what the hook is about.

use pintle_agent::tools::{BUILTIN, canonical_builtin};
use pintle_domain::checkpoint::runtime::{InterruptKind, RUNTIME_KINDS, RetryReason, TurnStatus};
use pintle_domain::checkpoint::{CHECKPOINTS, CheckpointKind, Duty, RuntimeEvent, RuntimeKind};
use pintle_domain::hook::Hook;
use pintle_domain::json::{Object, Value, parse};
use pintle_domain::nearest::nearest;
use pintle_domain::tool::ToolCall;
use pintle_guard::shell_tools::known_as;

use super::super::super::question::{Question, QuestionTexts, TOOK};
use super::TestArgs;
use crate::error::CliError;
use pintle_host::config::Config;
use pintle_host::tool_names::is_about;

/// The id of the synthetic call.
const CALL_ID: &str = "test_1";

/// The tool of the synthetic call, if neither the flags nor the hook's matcher name one.
pub(super) const TOOL: &str = "exec";

/// The text where the flags give none.
pub(super) const TEXT: &str = "hello";

/// The model of the synthetic event, if the agent has none.
pub(super) const MODEL: &str = "test/model";

/// What the hook is asked or told.
pub(super) enum TestQuestion {
    Asked(Question),
    Told(RuntimeEvent),
}

impl TestQuestion {
    /// The question that `args` ask for.
    ///
    /// # Errors
    /// An event that is none or at which the hook does not act, or an input that is not a JSON object.
    pub(super) fn new(args: &TestArgs, hook: &Hook, config: &Config) -> Result<Self, CliError> {
        let text = args.prompt.clone().unwrap_or_else(|| TEXT.to_owned());
        let kind = match args.event.as_deref() {
            None => super::first_stage(hook).ok_or_else(|| CliError::usage("the hook acts nowhere"))?,
            Some(name) => match CheckpointKind::named(name) {
                Some(kind) => kind,
                None => return runtime(name).and_then(|kind| told(kind, hook, &text, args)),
            },
        };
        if hook.stages.get(kind).is_none() {
            return Err(elsewhere(hook, kind.name()));
        }
        let model = config.agent(None).ok().and_then(|agent| agent.model.as_ref()).map(|named| named.text.clone());
        let model = model.unwrap_or_else(|| MODEL.to_owned());
        match (kind.asked(), kind.duty()) {
            (Some(asked), _) => {
                let agent = config.agents.keys().next().map_or("main", String::as_str).into();
                let says = QuestionTexts { model, text, agent };
                Question::at(asked, says, || call(args, hook)).map(Self::Asked)
            }
            (None, _) if kind == CheckpointKind::Runtime => {
                let first = hook.events.as_ref().and_then(|kinds| kinds.first().copied());
                told(first.unwrap_or(RuntimeKind::TurnStart), hook, &text, args)
            }
            (None, Duty::Injector) => {
                Err(CliError::usage(format!("no hook is asked at `{}`: texts of skills go in there", kind.name())))
            }
            (None, Duty::Observer | Duty::Gate | Duty::Rewriter | Duty::Approver) => {
                Err(CliError::usage(format!("only native hooks are told at `{}`, and nobody is asked", kind.name())))
            }
        }
    }

    /// The event's name.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Self::Asked(question) => question.subject().kind().name(),
            Self::Told(event) => event.kind().name(),
        }
    }
}

fn elsewhere(hook: &Hook, event: &str) -> CliError {
    let acts: Vec<&str> = hook.stages.kinds().map(CheckpointKind::name).collect();
    CliError::usage(format!(
        "--event: hook \"{}\" does not act at `{event}`; it acts at {}",
        hook.name,
        acts.join(", ")
    ))
}

fn runtime(name: &str) -> Result<RuntimeKind, CliError> {
    RuntimeKind::named(name).ok_or_else(|| {
        // Where texts of skills go in, nobody is asked.
        let asked = CHECKPOINTS.iter().filter(|row| row.kind.duty() != Duty::Injector).map(|row| row.name);
        let known: Vec<&str> = asked.chain(RUNTIME_KINDS.iter().map(|row| row.1)).collect();
        match nearest(name, known.iter().copied()) {
            Some(near) => CliError::usage(format!("--event: there is no event `{name}`; did you mean `{near}`?")),
            None => CliError::usage(format!("--event: there is no event `{name}`"))
                .hint(format!("the events are {}", known.join(", "))),
        }
    })
}

fn call(args: &TestArgs, hook: &Hook) -> Result<ToolCall, CliError> {
    let default = || BUILTIN.into_iter().find(|tool| is_about(hook, tool) && hook.matcher.is_some()).unwrap_or(TOOL);
    let raw_tool = args.tool.clone().unwrap_or_else(|| default().to_owned());
    let arguments = arguments(args.input.as_deref())?;
    // As the door before a client's model would say it, where the tool is a shell of some client.
    let (tool, arguments) = match known_as(&raw_tool, &arguments) {
        Some(known) => known,
        None => (canonical_builtin(&raw_tool).map_or_else(|| raw_tool.clone(), str::to_owned), arguments),
    };
    Ok(ToolCall { id: CALL_ID.into(), tool, raw_tool, arguments })
}

pub(super) fn arguments(input: Option<&str>) -> Result<Object, CliError> {
    let wrong = |what: &str| {
        CliError::usage(format!("--input: expected a JSON object; {what}"))
            .hint(r#"write the arguments of the call, such as --input '{"command": "git push --force"}'"#)
    };
    match input.map(parse) {
        None => Ok(Object::new()),
        Some(Ok(Value::Object(members))) => Ok(members),
        Some(Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_))) => {
            Err(wrong("got another value"))
        }
        Some(Err(why)) => Err(wrong(&why)),
    }
}

/// A notice of `kind`, if the hook is told of it and this version sends it.
fn told(kind: RuntimeKind, hook: &Hook, text: &str, args: &TestArgs) -> Result<TestQuestion, CliError> {
    let wanted = hook.events.as_ref().is_none_or(|kinds| kinds.contains(&kind));
    if hook.stages.get(CheckpointKind::Runtime).is_none() || !wanted {
        return Err(elsewhere(hook, kind.name()));
    }
    let call = call(args, hook)?;
    let event = sample(kind, text, call)
        .ok_or_else(|| CliError::usage(format!("--event: this version never sends `{}`", kind.name())))?;
    Ok(TestQuestion::Told(event))
}

fn sample(kind: RuntimeKind, text: &str, call: ToolCall) -> Option<RuntimeEvent> {
    let (text, tool, tool_call_id) = (text.to_owned(), call.tool, call.id.to_string());
    Some(match kind {
        RuntimeKind::TurnStart => RuntimeEvent::TurnStart {
            channel: "cli".into(),
            chat_id: "direct".into(),
            user_message: text,
            media_count: 0,
        },
        RuntimeKind::TurnEnd => RuntimeEvent::TurnEnd {
            status: TurnStatus::Completed,
            iterations: 1,
            duration: TOOK,
            final_content_len: text.len(),
            user_message: TEXT.into(),
            final_content: text,
            tool_kinds: Vec::new(),
            tool_executions: Vec::new(),
        },
        RuntimeKind::LlmRequest => RuntimeEvent::LlmRequest {
            model: MODEL.into(),
            messages_count: 1,
            tools_count: 0,
            max_tokens: 0,
            temperature: 0.0,
        },
        RuntimeKind::LlmDelta => RuntimeEvent::LlmDelta { content_delta_len: text.len(), reasoning_delta_len: 0 },
        RuntimeKind::LlmResponse => {
            RuntimeEvent::LlmResponse { content_len: text.len(), tool_calls: 0, has_reasoning: false, odd_end: None }
        }
        RuntimeKind::LlmRetry => RuntimeEvent::LlmRetry {
            attempt: 1,
            max_retries: 1,
            reason: RetryReason::Timeout,
            error: text,
            backoff: TOOK,
        },
        RuntimeKind::ToolExecStart => {
            RuntimeEvent::ToolExecStart { tool, arguments: call.arguments, tool_call_id, hook: None }
        }
        RuntimeKind::ToolExecEnd => RuntimeEvent::ToolExecEnd {
            tool,
            duration: TOOK,
            for_llm_len: text.len(),
            for_user_len: 0,
            is_error: false,
            r#async: false,
            tool_call_id,
            hook: None,
            error: None,
        },
        RuntimeKind::ToolExecSkipped => RuntimeEvent::ToolExecSkipped { tool, reason: text, tool_call_id, hook: None },
        RuntimeKind::InterruptReceived => RuntimeEvent::InterruptReceived {
            kind: InterruptKind::HardAbort,
            role: "hook".into(),
            content_len: 0,
            queue_depth: 0,
            hint_len: 0,
            hook: None,
        },
        RuntimeKind::Error => RuntimeEvent::Error { stage: "llm".into(), message: text, hook: None },
        RuntimeKind::ContextCompress
        | RuntimeKind::SessionSummarize
        | RuntimeKind::SteeringInjected
        | RuntimeKind::FollowUpQueued
        | RuntimeKind::SubturnSpawn
        | RuntimeKind::SubturnEnd
        | RuntimeKind::SubturnResultDelivered
        | RuntimeKind::SubturnOrphan => return None,
    })
}
