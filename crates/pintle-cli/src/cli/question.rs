//! A subject of each kind that hooks are asked about, made up: for `hooks test`, and for the canaries of `doctor`.

use std::time::Duration;

use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, AskedKind, BeforeLlm, BeforeTool, Checkpoint as _, PreToolUse, SubagentStart,
    Subject, UserPromptSubmit,
};
use pintle_domain::id::AgentId;
use pintle_domain::llm::LlmReply;
use pintle_domain::tool::{ToolCall, ToolOutput};

use pintle_host::tool_names::request;

/// How long the synthetic work took: anything that is not zero.
pub(super) const TOOK: Duration = Duration::from_millis(15);

/// What a hook is asked.
pub(super) enum Question {
    UserPromptSubmit(UserPromptSubmit),
    BeforeLlm(BeforeLlm),
    AfterLlm(AfterLlm),
    BeforeTool(BeforeTool),
    PreToolUse(PreToolUse),
    ApproveTool(ApproveTool),
    AfterTool(AfterTool),
    SubagentStart(SubagentStart),
}

/// What the subject says.
pub(super) struct QuestionTexts {
    /// The model that is called.
    pub(super) model: String,
    /// What the user, the model or the tool said, or what a sub-agent is to do.
    pub(super) text: String,
    /// The agent that is delegated to.
    pub(super) agent: AgentId,
}

impl Question {
    /// The question at `kind`, with `call` where it is about one.
    ///
    /// # Errors
    /// There is no such call.
    pub(super) fn at<E>(
        kind: AskedKind,
        says: QuestionTexts,
        call: impl FnOnce() -> Result<ToolCall, E>,
    ) -> Result<Self, E> {
        let QuestionTexts { model, text, agent } = says;
        Ok(match kind {
            AskedKind::UserPromptSubmit => Self::UserPromptSubmit(UserPromptSubmit::first(text)),
            AskedKind::BeforeLlm => Self::BeforeLlm(BeforeLlm::new(request(model, text))),
            AskedKind::AfterLlm => Self::AfterLlm(AfterLlm { model, response: LlmReply::text(text) }),
            AskedKind::BeforeTool => Self::BeforeTool(BeforeTool { call: call()?, owner: None }),
            AskedKind::PreToolUse => Self::PreToolUse(PreToolUse { call: call()? }),
            AskedKind::ApproveTool => Self::ApproveTool(ApproveTool { call: call()? }),
            AskedKind::AfterTool => {
                Self::AfterTool(AfterTool { call: call()?, result: ToolOutput::ok(text), duration: TOOK })
            }
            AskedKind::SubagentStart => Self::SubagentStart(SubagentStart::new(agent, text, 1, None)),
        })
    }

    /// The subject, as a handler takes it.
    pub(super) fn subject(&self) -> Subject<'_> {
        match self {
            Self::UserPromptSubmit(asked) => asked.subject(),
            Self::BeforeLlm(asked) => asked.subject(),
            Self::AfterLlm(asked) => asked.subject(),
            Self::BeforeTool(asked) => asked.subject(),
            Self::PreToolUse(asked) => asked.subject(),
            Self::ApproveTool(asked) => asked.subject(),
            Self::AfterTool(asked) => asked.subject(),
            Self::SubagentStart(asked) => asked.subject(),
        }
    }
}
