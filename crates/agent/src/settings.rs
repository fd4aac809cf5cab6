//! What an agent is: its words, its model, its tools, its limits.

use pintle_domain::id::AgentId;
use pintle_domain::json::Object;
use pintle_domain::planning::StepPrompts;
use pintle_providers::RemovalMode;

/// Rounds of one turn, unless the agent says otherwise. Source: `agents.NAME.max_iterations`.
pub const MAX_ITERATIONS: u32 = 50;

/// The settings of one agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Its name.
    pub id: AgentId,
    /// Its system text; empty for none.
    pub system: String,
    /// `provider/model`.
    pub model: String,
    /// Further models, in order, for when the first one does not answer.
    pub fallbacks: Vec<String>,
    /// Sampling options for every call.
    pub options: Object,
    /// How many model calls one turn may make.
    pub max_iterations: u32,
    /// How many tokens the model takes, about; 0 when nobody knows. The oldest messages are summarised before the
    /// conversation comes near to it.
    pub context_tokens: u64,
    /// How its turns are planned; none for turns that go straight to work.
    pub planning: Option<Planning>,
    /// The treatment on the wire of a text that left the conversation, where thoughts are bound to it.
    pub removal: RemovalMode,
    /// Whether text reaches the user before the `after_llm` hooks ruled on it.
    pub stream_unreviewed: bool,
}

impl AgentSettings {
    /// An agent called `name` that asks `model`.
    pub fn new(name: &str, model: &str) -> Self {
        Self {
            id: AgentId::from(name),
            system: String::new(),
            model: model.into(),
            fallbacks: Vec::new(),
            options: Object::new(),
            max_iterations: MAX_ITERATIONS,
            context_tokens: 0,
            planning: None,
            removal: RemovalMode::default(),
            stream_unreviewed: false,
        }
    }
}

/// How turns are planned: a call without tools comes first, and says whether tools are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planning {
    /// The prompts that the host gives the model at each step.
    pub prompts: StepPrompts,
    /// The step after a plan that does not say whether tools are needed.
    pub on_missing_tag: OnMissingTag,
    /// Whether the plan stands in the conversation.
    pub record: bool,
}

impl Default for Planning {
    fn default() -> Self {
        Self { prompts: StepPrompts::default(), on_missing_tag: OnMissingTag::Answer, record: true }
    }
}

/// The step after a plan that does not say whether tools are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissingTag {
    /// Nothing: it was the answer.
    Answer,
    /// The loop.
    Loop,
}
