//! What agents' programs reach although a gateway keeps it from them elsewhere: secrets where it runs as root, and what
//! turns of other tenants left in a folder that all of them work in.

use pintle_domain::store::Tenant;
use pintle_host::config::Config;

use crate::clean::clean;

/// The tool that runs commands.
const EXEC: &str = "exec";

/// The built-in tools that change files of the workspace.
const WRITES: [&str; 3] = ["write_file", "edit_file", EXEC];

/// That commands of `exec` read what is withheld from them, where some agent has that tool and Pintle runs as root.
pub(super) fn of_root(config: &Config, is_root: bool) -> Option<String> {
    let agents = agents_with(config, &[EXEC]);
    (is_root && !agents.is_empty()).then(|| {
        format!(
            "Pintle runs as root, so commands of `exec` (agents: {}) can read in /proc the secrets that are withheld from \
             them, this server's token and keys too; give it a user of its own",
            agents.join(", ")
        )
    })
}

/// Whose workspace is one for all `tenants`, as a store has them, where there are several and turns change files there.
pub(super) fn of_workspaces(config: &Config, tenants: &[Tenant]) -> Option<String> {
    let agents = agents_with(config, &WRITES);
    // The first is the owner of global rules, and nobody's tenant.
    let several = tenants.len() > 2;
    (several && !agents.is_empty()).then(|| {
        format!(
            "the tenants share the workspaces of the agents {}: what a turn of one tenant writes there, turns of the \
             others can read and change",
            agents.join(", ")
        )
    })
}

/// The agents that have one of `tools`.
fn agents_with(config: &Config, tools: &[&str]) -> Vec<String> {
    let agents = config.agents.values();
    let having = agents.filter(|agent| agent.tools.iter().flatten().any(|tool| tools.contains(&tool.as_str())));
    having.map(|agent| clean(&agent.name)).collect()
}
