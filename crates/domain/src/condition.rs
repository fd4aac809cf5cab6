//! A condition: whether a hook wants an event, by more than the name of its tool.

use std::fmt::Debug;
use std::sync::Arc;

use crate::json::Object;
use crate::shell::ShellFacts;

/// The input of a condition: all that it may see of an event.
#[derive(Clone, Copy)]
pub struct ConditionInput<'a> {
    /// The checkpoint's name.
    pub event: &'static str,
    /// The tool; empty where there is none.
    pub tool_name: &'a str,
    /// The tool as the model wrote it; empty where there is none.
    pub raw_tool_name: &'a str,
    /// Its arguments; nothing where there is no tool.
    pub tool_input: Option<&'a Object>,
    /// The message of the user, at `user_prompt_submit`; else empty.
    pub raw_input: &'a str,
    /// The depth of the agent; of a sub-agent that is to begin or has ended, the depth of that one.
    pub depth: u8,
    /// The id of the agent, as hooks know it.
    pub agent_id: &'a str,
    /// The key of the session.
    pub session_id: &'a str,
    /// Whether this is the first message of the session.
    pub first_prompt: bool,
    /// Reads the shell text of the call, when somebody first asks.
    pub shell: &'a (dyn Fn() -> Arc<ShellFacts> + Sync),
}

/// A condition, compiled.
pub trait Condition: Debug + Send + Sync {
    /// The condition as it was written.
    fn text(&self) -> &Arc<str>;

    /// Whether it holds for `seen`, with either name of the tool as `tool_name` where these differ.
    ///
    /// # Errors
    /// Why it cannot be said: a missing key, a wrong type, a bound.
    fn holds(&self, seen: &ConditionInput<'_>) -> Result<bool, String>;
}
