//! What a turn is asked for, and the texts of skills that are in force for it.

use std::sync::{PoisonError, RwLock};

use pintle_domain::history::HistoryMessage;
use pintle_domain::id::TurnId;
use pintle_domain::llm::LlmReply;
use pintle_domain::planning::{ToolNeed, need};
use pintle_domain::skill::Skills;

/// The texts of an agent's skills. A turn keeps those that it began with.
#[derive(Debug)]
pub struct SkillSet(RwLock<Skills>);

impl SkillSet {
    /// A shelf with `skills` on it.
    pub fn new(skills: Skills) -> Self {
        Self(RwLock::new(skills))
    }

    /// The texts that are in force for the next turn.
    pub fn skills(&self) -> Skills {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts others in their place, all at once.
    pub fn put(&self, skills: Skills) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = skills;
    }
}

/// The request for the texts of a turn.
#[derive(Clone, Copy, Debug)]
pub struct TextRequest<'a> {
    /// The prompt of the user.
    pub prompt: &'a str,
    /// The skills whose texts go in, of those that the agent has; all of them if nobody says.
    pub skills: Option<&'a [String]>,
    /// Whether tools are offered.
    pub enable_tools: bool,
    /// The conversation so far, as a front end keeps it: it takes the place of what the session holds. Without one, that
    /// counts.
    pub history: Option<&'a [HistoryMessage]>,
    /// How many messages of the session stay, where the prompt takes the place of the one behind them; all of them
    /// unless it is said.
    pub keep: Option<usize>,
    /// The files that come with the prompt, as `media://` references of its session.
    pub media: &'a [String],
    /// The id of the turn, where somebody has given it one already.
    pub turn_id: Option<&'a TurnId>,
    /// The id of the API key with which somebody asks, where they have one.
    pub key: Option<&'a str>,
}

impl<'a> From<&'a str> for TextRequest<'a> {
    fn from(prompt: &'a str) -> Self {
        Self {
            prompt,
            skills: None,
            enable_tools: true,
            history: None,
            keep: None,
            media: &[],
            turn_id: None,
            key: None,
        }
    }
}

impl<'a> From<&'a String> for TextRequest<'a> {
    fn from(prompt: &'a String) -> Self {
        prompt.as_str().into()
    }
}

/// Decides whether a plan needs tools.
pub trait ToolNeedJudge: Send + Sync {
    /// The need for tools that `reply`, which passed its hooks, tells.
    fn need(&self, reply: &LlmReply) -> ToolNeed;
}

/// Looks for the tags that the host asks for.
pub(crate) struct Tags;

impl ToolNeedJudge for Tags {
    fn need(&self, reply: &LlmReply) -> ToolNeed {
        need(reply)
    }
}
