//! What an agent is: its words, its model, its tools, its limits.

use domain::id::AgentId;
use domain::json::Object;

/// Rounds of one turn, unless the agent says otherwise. Source: `agents.NAME.max_iterations`.
pub const MAX_ITERATIONS: u32 = 50;

/// The settings of one agent.
#[derive(Clone, Debug)]
pub struct Settings {
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
    /// Whether text reaches the user before the `after_llm` hooks ruled on it.
    pub stream_unreviewed: bool,
}

impl Settings {
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
            stream_unreviewed: false,
        }
    }
}
