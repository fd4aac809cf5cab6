//! The agents of the configuration in force, made ready once and shared by all turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pintle_domain::json::json;
use pintle_domain::nearest::nearest;
use pintle_host::Host;
use pintle_host::config::{AgentConfig, Config};
use pintle_host::ready_agent::ReadyAgent;

use crate::error::{ApiError, ErrorCode};
use crate::told::NOT_READY;

/// Another word for the agent that is meant without a name. Source: the published protocol.
const DEFAULT: &str = "default";

/// An agent, and the model in place of its own.
type Wanted = (String, Option<String>);

/// Agents that are ready to work.
#[derive(Default)]
pub(crate) struct Agents(Mutex<HashMap<Wanted, Arc<ReadyAgent>>>);

impl Agents {
    /// The agent called `name` of `host`, with `model` in place of its own.
    pub(crate) fn ready(&self, host: &Host, name: &str, model: Option<&str>) -> Result<Arc<ReadyAgent>, ApiError> {
        let wanted = (name.to_owned(), model.map(str::to_owned));
        let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = ready.get(&wanted).filter(|agent| !host.has_other_tools(agent)) {
            return Ok(agent.clone());
        }
        let made = host.runner(Some(name), model);
        let agent = Arc::new(made.map_err(|error| {
            tracing::warn!(agent = name, "agent.not_ready: {}", error.message);
            ApiError::new(ErrorCode::Unavailable, error.message).with_details(json!({ "cause": NOT_READY }))
        })?);
        ready.insert(wanted, agent.clone());
        Ok(agent)
    }

    /// Another configuration is in force.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Most characters of a text of somebody else that a message repeats.
const MAX_REPEATED: usize = 200;

/// A text of somebody else in a message: its beginning, with what is not seen of it spelled out.
pub(crate) fn repeated(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(MAX_REPEATED) {
        match c {
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(MAX_REPEATED).is_some() {
        shown.push('…');
    }
    shown
}

/// The agent that a client means by `name`.
pub(crate) fn named<'a>(config: &'a Config, name: Option<&str>) -> Result<&'a AgentConfig, ApiError> {
    let name = name.filter(|name| *name != DEFAULT || config.agents.contains_key(DEFAULT));
    let found = config.agent(name);
    found.map_err(|_| {
        let name = name.unwrap_or(DEFAULT);
        let near = nearest(name, config.agents.keys().map(String::as_str));
        let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        ApiError::new(ErrorCode::NotFound, format!("agent not found: {}{near}", repeated(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_of_a_strangers_text_is_short_and_seen() {
        assert_eq!(repeated("it's \"main\" \\ é"), "it's \"main\" \\ é");
        assert_eq!(repeated("a\u{202e}b\n"), "a\\u{202e}b\\n");
        assert_eq!(repeated(&"x".repeat(5000)), format!("{}…", "x".repeat(MAX_REPEATED)));
    }
}
