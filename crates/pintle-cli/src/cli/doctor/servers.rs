//! MCP servers: started, greeted and asked for their tools, as for a turn.

use std::collections::BTreeMap;

use super::guards::end_of;
use super::{Check, State};
use pintle_host::config::trust::is_changed_text;
use pintle_host::host::Host;

/// Checks every server, and what agents name of their tools.
pub(super) async fn reach(host: &Host) -> Vec<Check> {
    let down: BTreeMap<String, String> = host.servers_ready().await.into_iter().collect();
    let counts = host.servers.catalogue().counts();
    let servers = host.loaded.config.mcp.keys();
    let mut checks: Vec<Check> = servers
        .map(|name| match down.get(name) {
            Some(why) => {
                let step = if is_changed_text(why) { "trust" } else { "start" };
                let stderr = end_of(&host.servers.stderr_tail(name));
                Check { step: Some(step), stderr, ..Check::new("mcp", name, State::Failed, why.clone()) }
            }
            None => Check::new("mcp", name, State::Ok, listed(counts.get(name).copied().unwrap_or_default())),
        })
        .collect();
    checks.extend(host.odd_tools().into_iter().map(|odd| Check::new("tools", "", State::Note, odd)));
    checks
}

fn listed(tools: usize) -> String {
    let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
    format!("it shook hands and listed {tools}")
}
