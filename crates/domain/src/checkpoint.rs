//! The named points of a turn at which hooks can act.

use std::fmt::Debug;
use std::sync::Arc;

use crate::fault::Fault;
use crate::hook::Hook;
use crate::id::{AgentId, HookName};
use crate::identity::Identity;
use crate::json::Object;
use crate::rule::Rights;
use crate::shell::ShellFacts;
use crate::tool::{Annotations, ToolCall};
use crate::verdict::{Describe, ParsedVerdict, Reason, Verdict, VerdictKind};

pub mod after_llm;
pub mod after_tool;
pub mod approve_tool;
pub mod before_llm;
pub mod before_tool;
pub mod notice;
pub mod pre_tool_use;
pub mod runtime;
pub mod subagent_start;
pub mod user_prompt_submit;

pub use after_llm::AfterLlm;
pub use after_tool::AfterTool;
pub use approve_tool::ApproveTool;
pub use before_llm::{BeforeLlm, LlmPatch};
pub use before_tool::{BeforeTool, CallPatch, Substitute};
pub use notice::{Notice, ObservedEvent};
pub use pre_tool_use::PreToolUse;
pub use runtime::{RuntimeEvent, RuntimeKind};
pub use subagent_start::SubagentStart;
pub use user_prompt_submit::UserPromptSubmit;

/// A point at which hooks are asked and may answer. The five associated types are the column "may answer":
/// [`Never`](crate::verdict::Never) where an answer is not allowed.
pub trait Checkpoint: Clone + Debug + Send + Sync + Sized + 'static {
    /// Its name.
    const KIND: CheckpointKind;
    /// Whether what hooks want the model to read besides has a place here.
    const TAKES_NOTES: bool = false;
    /// The content of a rewrite.
    type Modify: Clone + Debug + PartialEq + Send;
    /// The content of an answer in the tool's place.
    type Respond: Clone + Debug + PartialEq + Send;
    /// The content of a question for a person.
    type Ask: Describe + Clone + Debug + PartialEq + Send;
    /// The content of a refusal.
    type Deny: Describe + Clone + Debug + PartialEq + Send;
    /// The content of an abort.
    type Abort: Describe + Clone + Debug + PartialEq + Send;

    /// The facts that matchers may see.
    fn facts(&self) -> Facts<'_>;

    /// Applies a rewrite by the hook `by`.
    ///
    /// # Errors
    /// Why the rewrite is not allowed here; the value is then unchanged.
    fn modify(&mut self, with: Self::Modify, by: &HookName, known: &dyn AgentInfo) -> Result<Vec<String>, String>;

    /// The verdict that a fault becomes when the hook's duty is to close; `None` where nothing can be closed.
    fn closed(why: Reason) -> Option<Verdict<Self>>;

    /// The verdict that ends the turn, where that is allowed.
    fn aborted(why: Reason) -> Option<Verdict<Self>>;

    /// The subject that is asked about, for a handler that serves several checkpoints.
    fn subject(&self) -> Subject<'_>;

    /// Takes the answer to [`Checkpoint::subject`] out of a reply; `None` if it answers another question.
    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>>;

    /// The value as it is compared and recorded.
    fn snapshot(&self) -> Snapshot;

    /// The hook that brought the tool this is about, if one did.
    fn owner(&self) -> Option<&HookName> {
        None
    }

    /// The part of a rewrite that a hook with these rights may do, and the reason why the rest may not be done;
    /// nothing where nothing is left.
    fn permitted(&self, with: Self::Modify, rights: &Rights) -> (Option<Self::Modify>, Option<String>) {
        match rights {
            Rights::Everything => (Some(with), None),
            Rights::Nothing | Rights::Fields(_) => (None, Some("it may not rewrite".to_owned())),
        }
    }

    /// Whether `hook` may say `verdict` here, beyond what the types allow.
    ///
    /// # Errors
    /// The fault that such an answer is.
    fn admit(&self, _verdict: &Verdict<Self>, _hook: &Hook, _known: &dyn AgentInfo) -> Result<(), Fault> {
        Ok(())
    }
}

/// The knowledge about the agent that the event belongs to.
pub trait AgentInfo: Send + Sync {
    /// The canonical name of a tool of this agent.
    fn tool(&self, name: &str) -> Option<String>;
    /// Whether `model` can be resolved like a configured one.
    fn model(&self, model: &str) -> bool;
    /// The hook that brought the tool `name` for the calls of this response.
    fn owner(&self, name: &str) -> Option<HookName>;
    /// The annotations that the tool `name` has about itself.
    fn annotations(&self, _name: &str) -> Annotations {
        Annotations::default()
    }
    /// The id under which rules know the agent; empty where the host does not say.
    fn agent_uuid(&self) -> &str {
        ""
    }
    /// The facts about the shell text in the arguments of the tool `name`; nothing where there is none.
    fn shell(&self, _name: &str, _arguments: &Object) -> Arc<ShellFacts> {
        Arc::default()
    }
    /// The agent whose turn it is, then those that it works for, nearest first; empty where the host does not say.
    fn acting_for(&self) -> &[AgentId] {
        &[]
    }
}

/// The facts about the subject of an event that matchers and conditions may see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts<'a> {
    /// The canonical name of the tool and the one that the model wrote, where there is a tool.
    pub tool: Option<(&'a str, &'a str)>,
    /// The arguments of the tool, or what stands for them.
    pub input: Option<&'a Object>,
    /// The message of the user, where one is on its way.
    pub prompt: Option<&'a str>,
    /// Whether that is the first one of its session.
    pub first_prompt: bool,
    /// The depth of the agent that this is about, where that is another one than the one that acts.
    pub depth: Option<u8>,
}

impl<'a> Facts<'a> {
    /// Facts about a call of a tool.
    pub fn of_call(call: &'a ToolCall) -> Self {
        Self { tool: Some((&call.tool, &call.raw_tool)), input: Some(&call.arguments), ..Self::default() }
    }

    /// Facts about a tool of which only the name is known.
    pub fn of_tool(name: &'a str) -> Self {
        Self { tool: Some((name, name)), ..Self::default() }
    }
}

/// Who acts, and what is known of them: what a chain needs beside its hooks and its subject.
#[derive(Clone, Copy)]
pub struct EventContext<'a> {
    /// The identity of the turn that the event belongs to.
    pub who: &'a Identity,
    /// The knowledge about the agent.
    pub known: &'a dyn AgentInfo,
}

/// The subject that a handler is asked about.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is the checkpoint of the same name")]
pub enum Subject<'a> {
    UserPromptSubmit(&'a UserPromptSubmit),
    BeforeLlm(&'a BeforeLlm),
    AfterLlm(&'a AfterLlm),
    BeforeTool(&'a BeforeTool),
    PreToolUse(&'a PreToolUse),
    ApproveTool(&'a ApproveTool),
    AfterTool(&'a AfterTool),
    SubagentStart(&'a SubagentStart),
}

impl Subject<'_> {
    /// The checkpoint's name.
    pub fn kind(&self) -> CheckpointKind {
        match self {
            Self::UserPromptSubmit(_) => CheckpointKind::UserPromptSubmit,
            Self::BeforeLlm(_) => CheckpointKind::BeforeLlm,
            Self::AfterLlm(_) => CheckpointKind::AfterLlm,
            Self::BeforeTool(_) => CheckpointKind::BeforeTool,
            Self::PreToolUse(_) => CheckpointKind::PreToolUse,
            Self::ApproveTool(_) => CheckpointKind::ApproveTool,
            Self::AfterTool(_) => CheckpointKind::AfterTool,
            Self::SubagentStart(_) => CheckpointKind::SubagentStart,
        }
    }
}

/// The reply of a handler.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is the checkpoint of the same name")]
pub enum Reply {
    UserPromptSubmit(ParsedVerdict<UserPromptSubmit>),
    BeforeLlm(ParsedVerdict<BeforeLlm>),
    AfterLlm(ParsedVerdict<AfterLlm>),
    BeforeTool(ParsedVerdict<BeforeTool>),
    PreToolUse(ParsedVerdict<PreToolUse>),
    ApproveTool(ParsedVerdict<ApproveTool>),
    AfterTool(ParsedVerdict<AfterTool>),
    SubagentStart(ParsedVerdict<SubagentStart>),
}

impl Reply {
    /// The word of what was answered, wherever it was.
    pub fn word(&self) -> VerdictKind {
        match self {
            Self::UserPromptSubmit(heard) => heard.verdict.told().0,
            Self::BeforeLlm(heard) => heard.verdict.told().0,
            Self::AfterLlm(heard) => heard.verdict.told().0,
            Self::BeforeTool(heard) => heard.verdict.told().0,
            Self::PreToolUse(heard) => heard.verdict.told().0,
            Self::ApproveTool(heard) => heard.verdict.told().0,
            Self::AfterTool(heard) => heard.verdict.told().0,
            Self::SubagentStart(heard) => heard.verdict.told().0,
        }
    }
}

/// A value before or after a hook, cheap to keep: long conversations are shared, not copied.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is the value of the checkpoint that carries it")]
pub enum Snapshot {
    Prompt(String),
    Request(crate::llm::LlmRequest),
    Reply(crate::llm::LlmReply),
    Call { tool: String, arguments: crate::json::Object },
    Output(crate::tool::ToolOutput),
    Task { agent: String, task: String },
}

/// The name of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "`CHECKPOINTS` says what each is")]
pub enum CheckpointKind {
    SessionStart,
    UserPromptSubmit,
    AfterUserInput,
    BeforePlanning,
    BeforeEachAgent,
    BeforeFirstAgent,
    BeforeLlm,
    AfterLlm,
    BeforeTool,
    PreToolUse,
    ApproveTool,
    AfterTool,
    PostToolUse,
    AfterToolCall,
    SubagentStart,
    SubagentStop,
    Stop,
    Runtime,
}

/// The number of checkpoints.
pub const CHECKPOINT_COUNT: usize = CHECKPOINTS.len();

/// One row of the table of checkpoints.
#[derive(Debug)]
pub struct CheckpointRow {
    /// Its name.
    pub kind: CheckpointKind,
    /// The name on the wire, in configuration and in listings.
    pub name: &'static str,
    /// The duty of a hook at the checkpoint.
    pub duty: Duty,
    /// When it happens.
    pub when: &'static str,
}

/// The duty that a hook may have at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// Sees, changes nothing.
    Observer,
    /// Lets pass or blocks; a fault blocks.
    Gate,
    /// Changes what is on its way; a fault lets it pass unchanged, but for `before_tool`, where it denies.
    Rewriter,
    /// Approves or refuses a call; a fault refuses.
    Approver,
    /// Puts a text into the conversation; decides nothing.
    Injector,
}

/// Every checkpoint, in the order of a turn. Each has an emit site in the agent's loop.
pub const CHECKPOINTS: [CheckpointRow; 18] = [
    row(CheckpointKind::SessionStart, "session_start", Duty::Observer, "a session is new"),
    row(CheckpointKind::UserPromptSubmit, "user_prompt_submit", Duty::Gate, "a message may reach the model"),
    row(
        CheckpointKind::AfterUserInput,
        "after_user_input",
        Duty::Injector,
        "the message of the user stands in the list",
    ),
    row(CheckpointKind::BeforePlanning, "before_planning", Duty::Injector, "a plan is about to be asked for"),
    row(CheckpointKind::BeforeEachAgent, "before_each_agent", Duty::Injector, "a round begins"),
    row(CheckpointKind::BeforeFirstAgent, "before_first_agent", Duty::Injector, "the first round begins"),
    row(CheckpointKind::BeforeLlm, "before_llm", Duty::Rewriter, "a request is about to leave for a model"),
    row(CheckpointKind::AfterLlm, "after_llm", Duty::Rewriter, "a model has answered"),
    row(CheckpointKind::BeforeTool, "before_tool", Duty::Rewriter, "a model asks for a tool"),
    row(CheckpointKind::PreToolUse, "pre_tool_use", Duty::Gate, "a tool call has its final input"),
    row(CheckpointKind::ApproveTool, "approve_tool", Duty::Approver, "a tool call passed the gates"),
    row(CheckpointKind::AfterTool, "after_tool", Duty::Rewriter, "a tool has run"),
    row(CheckpointKind::PostToolUse, "post_tool_use", Duty::Observer, "a tool's result is settled"),
    row(
        CheckpointKind::AfterToolCall,
        "after_tool_call",
        Duty::Injector,
        "a batch has its results, once for each call",
    ),
    row(CheckpointKind::SubagentStart, "subagent_start", Duty::Gate, "an agent is about to delegate to another"),
    row(CheckpointKind::SubagentStop, "subagent_stop", Duty::Observer, "a sub-agent has ended"),
    row(CheckpointKind::Stop, "stop", Duty::Observer, "a turn completed"),
    row(CheckpointKind::Runtime, "runtime", Duty::Observer, "something happened in the run"),
];

const fn row(kind: CheckpointKind, name: &'static str, duty: Duty, when: &'static str) -> CheckpointRow {
    CheckpointRow { kind, name, duty, when }
}

impl CheckpointKind {
    /// Its row in [`CHECKPOINTS`].
    pub fn row(self) -> &'static CheckpointRow {
        &CHECKPOINTS[self as usize]
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The duty of a hook at this checkpoint.
    pub fn duty(self) -> Duty {
        self.row().duty
    }

    /// The checkpoint called `name`.
    pub fn named(name: &str) -> Option<Self> {
        CHECKPOINTS.iter().find(|row| row.name == name).map(|row| row.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_their_kind_points() {
        for (i, row) in CHECKPOINTS.iter().enumerate() {
            assert_eq!(row.kind as usize, i, "{}", row.name);
            assert_eq!(CheckpointKind::named(row.name), Some(row.kind));
        }
    }
}
