//! What hooks may know of an event of a host, and where it stands in records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::checkpoint::{AgentInfo, CheckpointKind};
use pintle_domain::id::{AgentId, HookName};
use pintle_domain::identity::{ForeignEvent, ForeignPlace, ForeignResult};
use pintle_domain::json::{Object, Value};
use pintle_domain::shell::{LastRead, ShellFacts};
use pintle_domain::tool::CallPlace;
use pintle_guard::clients::facts_of_call;
use pintle_guard::tools::ToolRow;
use pintle_guard::{HostEvent, HostWhat};

use super::rulings::result_text;

/// The knowledge about the agent in a host: every name is one of its tools, and its calls run in its folder.
pub(crate) struct HostKnowledge {
    /// The row of the tool that the event is about, if it is known.
    pub(crate) tool: Option<&'static ToolRow>,
    /// The folder that the host works in.
    pub(crate) cwd: PathBuf,
    /// The folder that its session began in.
    pub(crate) workspace: PathBuf,
    /// The agent that the host stands for.
    pub(crate) agent: AgentId,
    /// The id under which rules know the agent.
    pub(crate) agent_uuid: String,
    /// What was read of its calls last.
    pub(crate) read: LastRead,
}

impl AgentInfo for HostKnowledge {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn acting_for(&self) -> &[AgentId] {
        std::slice::from_ref(&self.agent)
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        let Some(row) = self.tool.filter(|row| row.canonical == name) else { return Arc::default() };
        self.read.facts(name, arguments, || facts_of_call(row, arguments, (&self.cwd, &self.workspace)))
    }

    fn place(&self, _name: &str) -> CallPlace {
        CallPlace::in_folder(real(&self.cwd).display())
    }
}

/// The real path of a folder, as far as there is one.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The checkpoint that the record of an event stands at.
pub(crate) fn worked_at(what: &HostWhat) -> CheckpointKind {
    match what {
        HostWhat::Prompt { .. } | HostWhat::PromptSent { .. } => CheckpointKind::UserPromptSubmit,
        HostWhat::ToolDone { .. } => CheckpointKind::AfterTool,
        HostWhat::BeforeModel { .. } => CheckpointKind::BeforeLlm,
        HostWhat::AfterModel { .. } => CheckpointKind::AfterLlm,
        HostWhat::SessionStart
        | HostWhat::SessionEnd
        | HostWhat::Tool(_)
        | HostWhat::Permission { .. }
        | HostWhat::SubagentStart
        | HostWhat::SubagentStop { .. }
        | HostWhat::Stop { .. }
        | HostWhat::ConfigChange { .. }
        | HostWhat::Other => CheckpointKind::PreToolUse,
    }
}

/// What rules may know of `event` as its host, which runs in `version` as `process`, has it.
pub(crate) fn foreign(event: &HostEvent, version: Option<&str>, process: Option<(u32, u64)>) -> ForeignEvent {
    ForeignEvent {
        host: event.host.to_owned(),
        version: version.map(str::to_owned),
        event: event.event.clone(),
        raw: bounded(&event.host_raw),
        place: ForeignPlace {
            session: event.session.clone(),
            transcript: event.transcript.clone(),
            agent_id: event.subagent.as_ref().and_then(|agent| agent.id.clone()),
            agent_kind: event.subagent.as_ref().and_then(|agent| agent.kind.clone()),
        },
        process,
        result: match &event.what {
            HostWhat::ToolDone { result, .. } => {
                Some(ForeignResult { text: result_text(result), value: result.clone() })
            }
            HostWhat::SessionStart
            | HostWhat::SessionEnd
            | HostWhat::Prompt { .. }
            | HostWhat::PromptSent { .. }
            | HostWhat::Tool(_)
            | HostWhat::Permission { .. }
            | HostWhat::SubagentStart
            | HostWhat::SubagentStop { .. }
            | HostWhat::Stop { .. }
            | HostWhat::BeforeModel { .. }
            | HostWhat::AfterModel { .. }
            | HostWhat::ConfigChange { .. }
            | HostWhat::Other => None,
        },
    }
}

/// Most bytes of what a host said besides that rules are sent: more is a conversation, and no fact about one event.
const MAX_RAW_BYTES: usize = 64 << 10;

/// The members of `raw` that fit, in their order: the shortest ones, so that nothing long takes the room of what is said
/// behind it, such as the mode that the host works in.
fn bounded(raw: &Object) -> Object {
    let bytes = |(name, value): (&String, &Value)| name.len() + value.to_string().len();
    let mut sizes: Vec<(usize, &str)> = raw.iter().map(|member| (bytes(member), member.0.as_str())).collect();
    sizes.sort_unstable();
    let mut room = MAX_RAW_BYTES;
    let fits = |(bytes, name): (usize, &'_ str)| {
        room = room.checked_sub(bytes)?;
        Some(name.to_owned())
    };
    let fitting: BTreeSet<String> = sizes.into_iter().map_while(fits).collect();
    let kept = raw.iter().filter(|(name, _)| fitting.contains(name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_says_besides_has_bounds() {
        let long = "x".repeat(MAX_RAW_BYTES);
        let raw = pintle_domain::json::json!({"a": 1, "long": long, "b": {"c": [true]}});
        let kept = pintle_domain::json::json!({"a": 1, "b": {"c": [true]}});
        assert_eq!(Some(&bounded(raw.as_object().unwrap())), kept.as_object());
        // Nothing long hides what is said behind it.
        let nearly = "x".repeat(MAX_RAW_BYTES - 8);
        let raw = pintle_domain::json::json!({"long": nearly, "permission_mode": "plan", "is_interrupt": true});
        let kept = pintle_domain::json::json!({"permission_mode": "plan", "is_interrupt": true});
        assert_eq!(Some(&bounded(raw.as_object().unwrap())), kept.as_object());
    }
}
