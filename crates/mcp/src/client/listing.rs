//! The tools that a server lists, and what they are called here.

use std::sync::Arc;

use pintle_domain::json::{Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{Annotations, mcp_tool_names};
use pintle_domain::tool_schema::{self, expanded};
use pintle_engine::Tool;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::{Peer, ServiceError};

use super::link::Trouble;
use super::shared::{Shared, undelivered, value_of};
use super::tool::McpTool;

/// Most tools that are taken from one server: models lose their way among far fewer.
const MAX_TOOLS: usize = 512;
/// Most pages that are asked for, so that a server which never ends its list does not hold us.
const MAX_PAGES: usize = 128;
/// Most schemas that all tools of one server may come to, references followed: ten times what one tool may, and what is
/// read within a second.
const MAX_SCHEMAS: u64 = 10 * tool_schema::MAX_SCHEMAS;
/// Longest description, in characters: a page. It goes into every request to a model.
const MAX_DESCRIPTION_CHARS: usize = 8192;

/// Asks the server for all of its tools.
pub(super) async fn list(peer: &Peer<RoleClient>, server: &Arc<Shared>) -> Result<Vec<Arc<dyn Tool>>, Trouble> {
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        tracing::warn!(mcp = %server.spec.name, "it offers no tools");
        return Ok(Vec::new());
    }
    let mut found: Vec<Value> = Vec::new();
    let mut cursor = None;
    for _page in 0..MAX_PAGES {
        let mut page = page(peer, cursor.take()).await?;
        match page.get_mut("tools").map(Value::take) {
            Some(Value::Array(tools)) => found.extend(tools),
            _ => return Err(Trouble::Refused("its list of tools is invalid: expected an array `tools`".into())),
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || found.len() > MAX_TOOLS {
            break;
        }
    }
    if cursor.is_some() || found.len() > MAX_TOOLS {
        tracing::warn!(mcp = %server.spec.name, MAX_TOOLS, MAX_PAGES, "its list of tools is too long; the rest is left out");
        found.truncate(MAX_TOOLS);
    }
    Ok(adopt(found, server))
}

async fn page(peer: &Peer<RoleClient>, cursor: Option<String>) -> Result<Value, Trouble> {
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ListToolsRequest { method: Default::default(), params, extensions: Default::default() };
    match peer.send_request(ClientRequest::ListToolsRequest(request)).await {
        Ok(result) => value_of(result).map_err(Trouble::Refused),
        Err(ServiceError::McpError(error)) => {
            Err(Trouble::Refused(format!("it refused to list its tools: {}", error.message)))
        }
        Err(error) => Err(Trouble::Cut(format!("it did not list its tools: {}", undelivered(&error)))),
    }
}

/// The tools of a list, named; what is none, or named as another, is left out.
fn adopt(found: Vec<Value>, server: &Arc<Shared>) -> Vec<Arc<dyn Tool>> {
    let own: Vec<&str> = found.iter().map(|tool| tool.get("name").and_then(Value::as_str).unwrap_or("")).collect();
    let names = mcp_tool_names(&server.spec.name, &own);
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let mut left = SchemaBudget(MAX_SCHEMAS);
    for (tool, name) in found.iter().zip(names) {
        if needs_a_task(tool) {
            let shown = tool.get("name").map(ToString::to_string);
            tracing::info!(mcp = %server.spec.name, name = ?shown, "a tool is left out: it runs only as a task, which we do not begin");
            continue;
        }
        match name.map(|name| read(tool, &name, server)) {
            Some(tool) => match left.take(&tool.definition.function.parameters) {
                Ok(()) => tools.push(Arc::new(tool)),
                Err(why) => {
                    tracing::warn!(mcp = %server.spec.name, name = ?tool.name, "a tool is left out: {why}");
                }
            },
            None => {
                let shown = tool.get("name").map_or_else(|| "(none)".into(), ToString::to_string);
                tracing::warn!(mcp = %server.spec.name, name = ?shown, "a tool is left out: it has no name of its own");
            }
        }
    }
    tools
}

/// Whether a tool can only be called as a task, whose result is asked for later. Source: `execution.taskSupport` of the
/// Model Context Protocol.
fn needs_a_task(tool: &Value) -> bool {
    let support = tool.get("execution").and_then(|execution| execution.get("taskSupport"));
    support.and_then(Value::as_str) == Some("required")
}

/// The schemas that the tools of one server may still come to.
struct SchemaBudget(u64);

impl SchemaBudget {
    /// Takes what `schema` comes to.
    fn take(&mut self, schema: &Value) -> Result<(), String> {
        let comes_to = expanded(schema).map_err(|refusal| refusal.to_string())?;
        self.0 = self.0.checked_sub(comes_to.schemas).ok_or_else(|| {
            format!("with those before it the server's schemas come to more than {MAX_SCHEMAS}; offer fewer tools")
        })?;
        Ok(())
    }
}

fn read(tool: &Value, name: &str, server: &Arc<Shared>) -> McpTool {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    let hint = |key: &str| tool.get("annotations").and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let description = if text("description").is_empty() { text("title") } else { text("description") };
    let description: String = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
    let schema = tool.get("inputSchema").filter(|schema| schema.is_object());
    let schema = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    McpTool {
        definition: ToolDef::new(name, &description, schema),
        annotations: Annotations { read_only: hint("readOnlyHint"), destructive: hint("destructiveHint") },
        name: text("name").to_owned(),
        server: server.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_runs_only_as_a_task_is_not_offered() {
        let needs = |tool: Value| needs_a_task(&tool);
        assert!(needs(json!({"name": "t", "execution": {"taskSupport": "required"}})));
        assert!(!needs(json!({"name": "t", "execution": {"taskSupport": "optional"}})));
        assert!(!needs(json!({"name": "t", "execution": {}})) && !needs(json!({"name": "t"})));
    }

    #[test]
    fn a_server_has_a_budget_of_schemas() {
        let large = json!({"anyOf": vec![json!(true); 9_999]});
        let mut left = SchemaBudget(MAX_SCHEMAS);
        for _ in 0..10 {
            assert_eq!(left.take(&large), Ok(()));
        }
        let text = "with those before it the server's schemas come to more than 100000; offer fewer tools";
        assert_eq!(left.take(&json!({})), Err(text.into()));
    }
}
