//! What the engine concluded about an event of a host, in the words that all hosts share.

use pintle_domain::json::{Object, Value};

/// The conclusion about one event.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a ruling nobody reads is a gate nobody closes"]
pub enum GuardRuling {
    /// Go on; the host's own permissions decide.
    NoObjection,
    /// A person has said yes to exactly this: where the host is about to ask, it need not.
    Allow,
    /// No.
    Deny {
        /// Why, for the model and the person. Where it is empty, a text of ours stands in its place.
        reason: String,
    },
    /// A person must say. Where the host cannot ask, or nobody is there, it is refused in the name of the approval.
    Ask {
        /// The tool that is called, by the name that the model knows.
        tool: String,
        /// The number of the approval: all that the model learns beside the tool.
        approval: String,
        /// Why, for the person before the host.
        reason: String,
        /// Whether somebody sits before the host.
        attended: bool,
    },
    /// Go on with other arguments.
    ModifyInput {
        /// All of them, not only the changed ones.
        arguments: Object,
        /// A text for the model beside them.
        context: Option<String>,
    },
    /// Do not run the tool: this is its result.
    Respond {
        /// The hook that answered.
        by: String,
        /// The result.
        text: String,
    },
    /// The model sees another result of the tool.
    ModifyResult {
        /// The text that replaces it.
        text: String,
        /// The result in the host's own shape, where it is known.
        shaped: Option<Value>,
        /// What hooks said of it, where the result itself stays as it is and only that comes behind it.
        added: Option<String>,
    },
    /// The model gets another prompt.
    ModifyPrompt {
        /// The whole text.
        text: String,
    },
    /// The model gets another request (Gemini).
    ModifyRequest {
        /// The whole request.
        request: Value,
    },
    /// Stop the turn.
    AbortTurn {
        /// Why.
        reason: String,
    },
    /// Stop the run of the host.
    AbortRun {
        /// Why.
        reason: String,
    },
    /// Go on, with a text for the model.
    Inject {
        /// The text.
        text: String,
    },
}

/// A ruling without what it carries, for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulingWord {
    /// [`GuardRuling::NoObjection`].
    NoObjection,
    /// [`GuardRuling::Allow`].
    Allow,
    /// [`GuardRuling::Deny`].
    Deny,
    /// [`GuardRuling::Ask`].
    Ask,
    /// [`GuardRuling::ModifyInput`], [`GuardRuling::ModifyPrompt`] and [`GuardRuling::ModifyRequest`].
    Modify,
    /// [`GuardRuling::Respond`].
    Respond,
    /// [`GuardRuling::ModifyResult`].
    ModifyResult,
    /// [`GuardRuling::AbortTurn`].
    AbortTurn,
    /// [`GuardRuling::AbortRun`].
    AbortRun,
    /// [`GuardRuling::Inject`].
    Inject,
}

impl RulingWord {
    /// As records say it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoObjection => "no_objection",
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Modify => "modify",
            Self::Respond => "respond",
            Self::ModifyResult => "modify_result",
            Self::AbortTurn => "abort_turn",
            Self::AbortRun => "hard_abort",
            Self::Inject => "inject",
        }
    }
}

impl GuardRuling {
    /// Its word.
    pub const fn word(&self) -> RulingWord {
        match self {
            Self::NoObjection => RulingWord::NoObjection,
            Self::Allow => RulingWord::Allow,
            Self::Deny { .. } => RulingWord::Deny,
            Self::Ask { .. } => RulingWord::Ask,
            Self::ModifyInput { .. } | Self::ModifyPrompt { .. } | Self::ModifyRequest { .. } => RulingWord::Modify,
            Self::Respond { .. } => RulingWord::Respond,
            Self::ModifyResult { .. } => RulingWord::ModifyResult,
            Self::AbortTurn { .. } => RulingWord::AbortTurn,
            Self::AbortRun { .. } => RulingWord::AbortRun,
            Self::Inject { .. } => RulingWord::Inject,
        }
    }

    /// Whether nothing of the event may go on: then the answer must hold it, whatever the host can express.
    pub const fn stops(&self) -> bool {
        match self {
            Self::Deny { .. }
            | Self::Ask { .. }
            | Self::Respond { .. }
            | Self::AbortTurn { .. }
            | Self::AbortRun { .. } => true,
            Self::NoObjection
            | Self::Allow
            | Self::ModifyInput { .. }
            | Self::ModifyResult { .. }
            | Self::ModifyPrompt { .. }
            | Self::ModifyRequest { .. }
            | Self::Inject { .. } => false,
        }
    }
}
