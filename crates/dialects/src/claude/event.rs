//! The events of Claude's command hooks that have a place here.

use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;

/// An event, by the name that configurations have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`ClaudeEvent::checkpoint` says where each happens")]
pub enum ClaudeEvent {
    SessionStart,
    UserPromptSubmit,
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    SubagentStart,
    SubagentStop,
    Stop,
}

/// How long a command may take unless its entry says otherwise. Source: the default of the agent whose wire it is.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The same of one that is asked about a prompt. Source: as above.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(30);

impl ClaudeEvent {
    /// Every event, in the order of a turn.
    pub const ALL: [Self; 8] = [
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::Stop,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::Stop => "Stop",
        }
    }

    /// The event called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Where it happens here.
    pub const fn checkpoint(self) -> CheckpointKind {
        match self {
            Self::SessionStart => CheckpointKind::SessionStart,
            Self::UserPromptSubmit => CheckpointKind::UserPromptSubmit,
            Self::PreToolUse => CheckpointKind::PreToolUse,
            // The result can still be changed there; at `post_tool_use` it is settled.
            Self::PostToolUse | Self::PostToolUseFailure => CheckpointKind::AfterTool,
            Self::SubagentStart => CheckpointKind::SubagentStart,
            Self::SubagentStop => CheckpointKind::SubagentStop,
            Self::Stop => CheckpointKind::Stop,
        }
    }

    /// Whether what a command answers decides something. At the others it is told.
    pub fn is_asked(self) -> bool {
        self.checkpoint().asked().is_some()
    }

    /// Whether it is about the call of a tool: its matchers are compared with the tool's name.
    pub const fn is_about_a_tool(self) -> bool {
        match self {
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure => true,
            Self::SessionStart | Self::UserPromptSubmit | Self::SubagentStart | Self::SubagentStop | Self::Stop => {
                false
            }
        }
    }

    /// Whether plain text on standard output is a text for the model.
    pub const fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit)
    }

    /// How long a command may take unless its entry says otherwise.
    pub const fn timeout(self) -> Duration {
        match self {
            Self::UserPromptSubmit => PROMPT_TIMEOUT,
            Self::SessionStart
            | Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::Stop => TIMEOUT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_events_and_back() {
        for event in ClaudeEvent::ALL {
            assert_eq!(ClaudeEvent::named(event.name()), Some(event));
        }
        assert_eq!(ClaudeEvent::named("PreToolUsed"), None);
    }

    #[test]
    fn answers_decide_where_something_can_still_be_stopped_or_changed() {
        use ClaudeEvent::{PostToolUse, PostToolUseFailure, PreToolUse, SubagentStart, UserPromptSubmit};
        let asked: Vec<ClaudeEvent> = ClaudeEvent::ALL.into_iter().filter(|event| event.is_asked()).collect();
        assert_eq!(asked, [UserPromptSubmit, PreToolUse, PostToolUse, PostToolUseFailure, SubagentStart]);
    }
}
