//! What hooks may know of a call of a host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::checkpoint::AgentInfo;
use domain::id::{AgentId, HookName};
use domain::json::Object;
use domain::shell::{ShellFacts, ShellKind, ShellText};
use domain::tool::CallPlace;
use guard::tools::{ToolRow, shell_texts};

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
        let texts = shell_texts(row, arguments);
        facts_of(&texts, (&self.cwd, &self.workspace))
    }

    fn place(&self, _name: &str) -> CallPlace {
        CallPlace::in_folder(real(&self.cwd).display())
    }
}

/// What shell texts of one call would do, in a folder of a workspace.
pub(crate) fn facts_of(texts: &[&str], (cwd, workspace): (&Path, &Path)) -> Arc<ShellFacts> {
    if texts.is_empty() {
        return Arc::default();
    }
    // Several run one after another, each in a shell of its own.
    let text = texts.join("\n");
    Arc::new(shell::facts(ShellText { text: &text, cwd, workspace, shell: ShellKind::Unknown }))
}

/// The real path of a folder, as far as there is one.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
