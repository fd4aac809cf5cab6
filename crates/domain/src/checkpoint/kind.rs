//! The kinds of checkpoints, and the table of them.

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

/// The name of a checkpoint at which hooks are asked, and one ruling is obeyed. At the others hooks are told, or texts of
/// skills come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`CHECKPOINTS` says what each is")]
pub enum AskedKind {
    UserPromptSubmit,
    BeforeLlm,
    AfterLlm,
    BeforeTool,
    PreToolUse,
    ApproveTool,
    AfterTool,
    SubagentStart,
}

/// How many checkpoints there are.
pub const CHECKPOINT_COUNT: usize = CHECKPOINTS.len();

/// One row of the table of checkpoints.
#[derive(Debug)]
pub struct CheckpointRow {
    /// Its name.
    pub kind: CheckpointKind,
    /// The name on the wire, in configuration and in listings.
    pub name: &'static str,
    /// What a hook is there.
    pub duty: Duty,
    /// When it happens.
    pub when: &'static str,
}

/// What a hook may be at a checkpoint.
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

    /// What a hook is there.
    pub fn duty(self) -> Duty {
        self.row().duty
    }

    /// The checkpoint, if hooks are asked there.
    pub fn asked(self) -> Option<AskedKind> {
        match self {
            Self::UserPromptSubmit => Some(AskedKind::UserPromptSubmit),
            Self::BeforeLlm => Some(AskedKind::BeforeLlm),
            Self::AfterLlm => Some(AskedKind::AfterLlm),
            Self::BeforeTool => Some(AskedKind::BeforeTool),
            Self::PreToolUse => Some(AskedKind::PreToolUse),
            Self::ApproveTool => Some(AskedKind::ApproveTool),
            Self::AfterTool => Some(AskedKind::AfterTool),
            Self::SubagentStart => Some(AskedKind::SubagentStart),
            Self::SessionStart
            | Self::AfterUserInput
            | Self::BeforePlanning
            | Self::BeforeEachAgent
            | Self::BeforeFirstAgent
            | Self::PostToolUse
            | Self::AfterToolCall
            | Self::SubagentStop
            | Self::Stop
            | Self::Runtime => None,
        }
    }

    /// Whether what happens there happens to a tool call.
    pub fn is_about_a_call(self) -> bool {
        match self {
            Self::BeforeTool
            | Self::PreToolUse
            | Self::ApproveTool
            | Self::AfterTool
            | Self::PostToolUse
            | Self::AfterToolCall
            | Self::SubagentStart
            | Self::SubagentStop => true,
            Self::SessionStart
            | Self::UserPromptSubmit
            | Self::AfterUserInput
            | Self::BeforePlanning
            | Self::BeforeEachAgent
            | Self::BeforeFirstAgent
            | Self::BeforeLlm
            | Self::AfterLlm
            | Self::Stop
            | Self::Runtime => false,
        }
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
    fn hooks_are_asked_where_their_duty_is_to_answer() {
        for row in &CHECKPOINTS {
            let answers = matches!(row.duty, Duty::Gate | Duty::Rewriter | Duty::Approver);
            assert_eq!(row.kind.asked().is_some(), answers, "{}", row.name);
        }
    }

    #[test]
    fn rows_stand_where_their_kind_points() {
        for (i, row) in CHECKPOINTS.iter().enumerate() {
            assert_eq!(row.kind as usize, i, "{}", row.name);
            assert_eq!(CheckpointKind::named(row.name), Some(row.kind));
        }
    }
}
