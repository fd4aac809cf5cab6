//! `delegate` and `spawn`: tasks for other agents. The turn that they are called in runs them.

use futures_util::future::BoxFuture;
use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::ToolOutput;
use pintle_engine::permit::Permit;
use pintle_engine::tool::Tool;
use tokio_util::sync::CancellationToken;

use super::DELEGATE;

/// The definition of one of the two tools.
pub(super) struct Delegation {
    definition: ToolDef,
}

impl Delegation {
    pub(super) fn new(name: &str, agents: &[(String, String)]) -> Self {
        let what = if name == DELEGATE {
            "Gives a task to another agent, waits until it is done, and returns what the agent says."
        } else {
            "Gives a task to another agent, which works on it in the background. What it says comes later, as a message."
        };
        let lines = agents.iter().map(|(agent, about)| match about.is_empty() {
            true => format!("\n- {agent}"),
            false => format!("\n- {agent}: {about}"),
        });
        let description = format!("{what} The agents:{}", lines.collect::<String>());
        let names: Vec<&str> = agents.iter().map(|(agent, _)| agent.as_str()).collect();
        let parameters = json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "enum": names, "description": "The agent that gets the task." },
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The task, whole: the agent sees nothing of this conversation.",
                },
            },
            "required": ["agent", "task"],
            "additionalProperties": false,
        });
        Self { definition: ToolDef::new(name, &description, parameters) }
    }
}

impl Tool for Delegation {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    fn read_only(&self) -> bool {
        false
    }

    /// Only a turn has the session, the gates and the limits that a sub-agent needs.
    fn run<'a>(&'a self, permit: Permit, _cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        let text = format!("`{}` works only inside a turn of an agent that has others beside it", permit.call().tool);
        Box::pin(async move { ToolOutput::error(text) })
    }
}
