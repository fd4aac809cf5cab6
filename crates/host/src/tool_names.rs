//! Which tools agents have, which ones hooks bring, and which of them a matcher probably means.

use std::collections::BTreeSet;

use pintle_agent::tools::{BUILTIN, READ_ONLY, nearest_builtin};
use pintle_domain::checkpoint::{BeforeLlm, CheckpointKind, Facts};
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::json::{Object, Rendered};
use pintle_domain::llm::LlmRequest;
use pintle_domain::message::{Message, Role};
use pintle_engine::Dispatcher;

use crate::config::Config;
use crate::mcp_names::{is_mcp, names_mcp};

/// Shortest piece of a pattern that is taken for a name: shorter ones are like everything.
const SHORTEST_NAME: usize = 3;

/// The tools that some agent of `config` is offered; hooks may bring more.
pub fn offered(config: &Config) -> BTreeSet<&str> {
    let named = config.agents.values().filter_map(|agent| agent.tools.as_ref()).flatten().map(String::as_str);
    let read_only = config.agents.values().any(|agent| agent.tools.is_none());
    named.filter(|name| BUILTIN.contains(name)).chain(READ_ONLY.into_iter().filter(|_| read_only)).collect()
}

/// Names that tools of MCP servers may have, as far as the configuration alone says: those that agents name, and for
/// each server one that its tools could have.
pub fn of_servers(config: &Config) -> BTreeSet<String> {
    let named = config.agents.values().filter_map(|agent| agent.tools.as_ref()).flatten();
    let named = named.filter(|name| is_mcp(name)).map(|name| name.replace('*', "tool"));
    named.chain(servers(config).map(|server| format!("mcp_{server}_tool"))).collect()
}

/// The names of MCP servers: those that agents use, and those behind the tool door.
pub fn servers(config: &Config) -> impl Iterator<Item = &String> {
    config.mcp.keys().chain(config.tool_doors.keys())
}

/// Whether `hook` may be about tools of the MCP servers of `config`; which they are is not known before those run.
pub fn may_be_about_servers(config: &Config, hook: &Hook) -> bool {
    let pattern = hook.matcher.as_ref().map(|matcher| matcher.pattern()).unwrap_or_default();
    let spelled = |server: &String| pattern.contains(&format!("mcp_{server}"));
    servers(config).any(spelled) || of_servers(config).iter().any(|tool| is_about(hook, tool))
}

/// Whether `hook` is about the tool `name`, as far as its matcher says.
pub fn is_about(hook: &Hook, name: &str) -> bool {
    hook.matches(&Facts::of_tool(name))
}

/// Whether `hook` is asked before model calls, and so may bring tools of its own.
pub fn may_bring_tools(hook: &Hook) -> bool {
    hook.state == HookState::Armed && hook.stages.get(CheckpointKind::BeforeLlm).is_some()
}

/// A request for `model` that says `text` and offers nothing.
pub fn request(model: String, text: String) -> LlmRequest {
    let messages = vec![Rendered::new(Message::text(Role::User, text))];
    LlmRequest { model, messages, tools: Vec::new(), options: Object::new(), graceful_terminal: false }
}

/// The tools that `hook` brings into `request`. It is asked, and one that fails brings none.
pub async fn brought(dispatcher: &Dispatcher, hook: &Hook, request: LlmRequest) -> BTreeSet<String> {
    if !may_bring_tools(hook) {
        return BTreeSet::new();
    }
    let heard = dispatcher.try_hook(&hook.name, BeforeLlm::new(request)).await;
    heard.map(|heard| heard.subject.owners.into_keys().collect()).unwrap_or_default()
}

/// The built-in tool that whoever wrote `pattern` probably meant; none where it is about tools of MCP servers.
pub fn meant(pattern: &str) -> Option<&'static str> {
    if names_mcp(pattern) {
        return None;
    }
    let words = pattern.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    words.filter(|word| word.len() >= SHORTEST_NAME).find_map(nearest_builtin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_leads_to_the_tool_that_it_resembles() {
        for (pattern, tool) in [
            ("writefile", Some("write_file")),
            ("^(wirte_file)$", Some("write_file")),
            ("^Bash$", Some("exec")),
            ("^a|webfetch", Some("web_fetch")),
            ("^zzz$", None),
            ("^mcp_files_read", None),
            ("", None),
        ] {
            assert_eq!(meant(pattern), tool, "{pattern}");
        }
    }
}
