//! Events that somebody makes up, to see what a hook says.

use std::time::Duration;

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{AgentInfo, ObservedEvent, PreToolUse, SubagentStart, UserPromptSubmit};
use pintle_domain::id::AgentId;
use pintle_domain::json::{Object, Value};
use pintle_domain::llm::Usage;
use pintle_domain::rule::{Rule, RuleEvent};
use pintle_domain::tool::{ToolCall, ToolOutput};

use super::AdminError;

/// The call of a model that an event is about which nobody made.
const CALL: &str = "test";

/// The facts of an event that somebody made up. What is missing is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The tool, under any of its names.
    pub tool_name: Option<String>,
    /// Its arguments.
    pub tool_input: Option<Object>,
    /// The message of the user, or the task of a sub-agent.
    pub raw_input: Option<String>,
}

/// An event, made up.
pub(super) enum Event {
    Prompt(UserPromptSubmit),
    Tool(PreToolUse),
    Subagent(SubagentStart),
    Told(ObservedEvent),
}

impl Sample {
    /// Reads `sampleEvent`; nothing and `null` are an empty one.
    ///
    /// # Errors
    /// `invalid request: invalid sampleEvent: …`
    pub fn read(value: &Value) -> Result<Self, AdminError> {
        let wrong = |why: String| AdminError::invalid(format!("invalid request: invalid sampleEvent: {why}"));
        let members = match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(members) => members,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(wrong("it must be an object".to_owned()));
            }
        };
        let mut sample = Self::default();
        for (name, value) in members {
            match (name.as_str(), value) {
                ("toolName" | "toolInput" | "rawInput", Value::Null) => {}
                ("toolName", Value::String(text)) => sample.tool_name = Some(text.clone()),
                ("rawInput", Value::String(text)) => sample.raw_input = Some(text.clone()),
                ("toolInput", Value::Object(input)) => sample.tool_input = Some(input.clone()),
                ("toolName" | "rawInput", _) => return Err(wrong(format!("field \"{name}\" must be a string"))),
                ("toolInput", _) => return Err(wrong("field \"toolInput\" must be an object".to_owned())),
                (other, _) => {
                    let known = "known: toolName, toolInput, rawInput";
                    return Err(wrong(format!("unknown field {other:?} ({known})")));
                }
            }
        }
        Ok(sample)
    }

    /// The event that this is for `hook`, at which a hook may act.
    pub(super) fn event(&self, hook: &Rule, agent: &AgentId, known: &dyn AgentInfo) -> Event {
        let text = self.raw_input.clone().unwrap_or_default();
        let took = Duration::ZERO;
        match RuleEvent::at(hook.event) {
            Some(RuleEvent::UserPromptSubmit) => Event::Prompt(UserPromptSubmit::first(text)),
            Some(RuleEvent::SubagentStart) => Event::Subagent(self.start(agent, known)),
            Some(RuleEvent::SessionStart) => Event::Told(ObservedEvent::SessionStart),
            Some(RuleEvent::PostToolUse) => Event::Told(ObservedEvent::PostToolUse {
                call: self.call(known),
                output: ToolOutput::ok(""),
                duration: took,
                substituted: false,
            }),
            Some(RuleEvent::Stop) => {
                Event::Told(ObservedEvent::Stop { reply: text, iterations: 1, usage: Usage::default(), duration: took })
            }
            Some(RuleEvent::SubagentStop) => Event::Told(ObservedEvent::SubagentStop {
                start: Box::new(self.start(agent, known)),
                session_id: "".into(),
                status: TurnStatus::Completed,
                timed_out: false,
                outcome: String::new(),
                denials: Vec::new(),
                duration: took,
            }),
            // The others are no events of rules.
            Some(RuleEvent::PreToolUse) | None => Event::Tool(PreToolUse { call: self.call(known) }),
        }
    }

    fn call(&self, known: &dyn AgentInfo) -> ToolCall {
        let raw_tool = self.tool_name.clone().unwrap_or_default();
        let tool = known.meant(&raw_tool);
        ToolCall { id: CALL.into(), tool, raw_tool, arguments: self.tool_input.clone().unwrap_or_default() }
    }

    /// A sub-agent one step below the agent that a person talks to.
    fn start(&self, agent: &AgentId, known: &dyn AgentInfo) -> SubagentStart {
        let call = self.tool_name.is_some().then(|| self.call(known));
        let text = |name: &str| self.tool_input.as_ref().and_then(|input| input.get(name)).and_then(Value::as_str);
        let child = text("agent").map_or_else(|| agent.clone(), AgentId::from);
        let task = text("task").or(self.raw_input.as_deref()).unwrap_or_default();
        SubagentStart::new(child, task, 1, call)
    }
}
