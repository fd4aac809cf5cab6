//! The facts about the subject of an event that matchers see.

use crate::json::Object;
use crate::tool::ToolCall;

/// What matchers and conditions may see of the subject of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts<'a> {
    /// The canonical name of the tool and the one that the model wrote, where there is a tool.
    pub tool: Option<(&'a str, &'a str)>,
    /// The arguments of the tool, or what stands for them.
    pub input: Option<&'a Object>,
    /// The message of the user, where one is on its way.
    pub prompt: Option<&'a str>,
    /// Whether that is the first one of its session.
    pub first_prompt: bool,
    /// How deep the agent stands that this is about, where that is another one than the one that acts.
    pub depth: Option<u8>,
}

impl<'a> Facts<'a> {
    /// Facts about a call of a tool.
    pub fn of_call(call: &'a ToolCall) -> Self {
        Self { tool: Some((&call.tool, &call.raw_tool)), input: Some(&call.arguments), ..Self::default() }
    }

    /// Facts about a tool of which only the name is known.
    pub fn of_tool(name: &'a str) -> Self {
        Self { tool: Some((name, name)), ..Self::default() }
    }
}
