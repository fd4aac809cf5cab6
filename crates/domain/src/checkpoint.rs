//! The named points of a turn at which hooks can act.

use std::fmt::Debug;
use std::sync::Arc;

use crate::fault::Fault;
use crate::hook::Hook;
use crate::id::{AgentId, HookName};
use crate::identity::Identity;
use crate::json::Object;
use crate::reason::{Describe, Reason, VerdictKind};
use crate::rule::Rights;
use crate::shell::ShellFacts;
use crate::tool::{Annotations, CallPlace};

pub mod after_llm;
pub mod after_tool;
pub mod approve_tool;
pub mod before_llm;
pub mod before_tool;
pub(crate) mod facts;
pub mod finished;
pub(crate) mod kind;
pub mod notice;
pub mod pre_tool_use;
pub mod runtime;
pub mod subagent_start;
pub mod user_prompt_submit;
pub(crate) mod verdict;

pub use after_llm::AfterLlm;
pub use after_tool::AfterTool;
pub use approve_tool::ApproveTool;
pub use before_llm::{BeforeLlm, LlmPatch};
pub use before_tool::{BeforeTool, CallPatch, Substitute};
pub use facts::Facts;
pub use finished::{FinishedCall, FinishedTurn};
pub use kind::{AskedKind, CHECKPOINT_COUNT, CHECKPOINTS, CheckpointKind, CheckpointRow, Duty};
pub use notice::{Notice, ObservedEvent};
pub use pre_tool_use::PreToolUse;
pub use runtime::{RuntimeEvent, RuntimeKind};
pub use subagent_start::SubagentStart;
pub use user_prompt_submit::UserPromptSubmit;
use verdict::{ParsedVerdict, Verdict};

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
    /// The name under which hooks are asked about a call of `name`: that of a tool of this agent. Where it has none, a
    /// hook may still answer the call, so another spelling of a name that rules are written for is that name.
    fn meant(&self, name: &str) -> String {
        self.tool(name).unwrap_or_else(|| name.to_owned())
    }
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
    /// Where calls of the tool `name` run, as far as the configuration says; anywhere where the host does not say.
    fn place(&self, _name: &str) -> CallPlace {
        CallPlace::default()
    }
    /// The agent whose turn it is, then those that it works for, nearest first; empty where the host does not say.
    fn acting_for(&self) -> &[AgentId] {
        &[]
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

/// The subject that a rule is asked about. At the other checkpoints rules are told, or have no place.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is the checkpoint of the same name")]
pub enum RuleSubject<'a> {
    UserPromptSubmit(&'a UserPromptSubmit),
    PreToolUse(&'a PreToolUse),
    SubagentStart(&'a SubagentStart),
}

impl<'a> Subject<'a> {
    /// The subject, if rules are asked about it.
    pub fn of_rules(self) -> Option<RuleSubject<'a>> {
        match self {
            Self::UserPromptSubmit(at) => Some(RuleSubject::UserPromptSubmit(at)),
            Self::PreToolUse(at) => Some(RuleSubject::PreToolUse(at)),
            Self::SubagentStart(at) => Some(RuleSubject::SubagentStart(at)),
            Self::BeforeLlm(_)
            | Self::AfterLlm(_)
            | Self::BeforeTool(_)
            | Self::ApproveTool(_)
            | Self::AfterTool(_) => None,
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

macro_rules! of_each {
    ($reply:expr, $heard:ident => $what:expr) => {
        match $reply {
            Reply::UserPromptSubmit($heard) => $what,
            Reply::BeforeLlm($heard) => $what,
            Reply::AfterLlm($heard) => $what,
            Reply::BeforeTool($heard) => $what,
            Reply::PreToolUse($heard) => $what,
            Reply::ApproveTool($heard) => $what,
            Reply::AfterTool($heard) => $what,
            Reply::SubagentStart($heard) => $what,
        }
    };
}

impl Reply {
    /// The word of what was answered, wherever it was.
    pub fn word(&self) -> VerdictKind {
        of_each!(self, heard => heard.verdict.told().0)
    }

    /// The reason that was given with it, if any.
    pub fn reason(&self) -> Option<&str> {
        of_each!(self, heard => heard.verdict.told().1.map(crate::reason::Reason::as_str))
    }

    /// The likely mistakes that it was read with.
    pub fn warnings(&self) -> &[String] {
        of_each!(self, heard => &heard.warnings)
    }

    /// What the model is to read besides.
    pub fn context(&self) -> Option<&str> {
        of_each!(self, heard => heard.context.as_deref())
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
