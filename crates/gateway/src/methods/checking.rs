//! `hooks.check`: whether a matcher and a condition can be read, and which tools a matcher is about, nothing is run; and
//! `hooks.test`, which runs a rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_agent::tools::BUILTIN;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::Decision;
use pintle_host::Host;
use pintle_host::host::builtin_names;
use pintle_host::servers::is_wanted;
use pintle_rules::condition;

use crate::Shared;
use crate::agents;
use crate::error::ApiError;
use crate::params::Params;
use crate::principal::Principal;
use crate::proofs::is_answer;

impl Shared {
    /// Tests a rule (`hooks.test`). One that answers as it is kept is proven by that.
    pub(super) async fn hooks_test(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let caller = who.caller();
        let version = match params["hookId"].as_str() {
            Some(id) => self.rule_admin.get(&caller, id).await.ok().and_then(|hook| hook["version"].as_u64()),
            None => None,
        };
        let tested = self.rule_admin.call(&caller, "hooks.test", params).await?;
        let result = &tested["result"];
        let said = result["decision"].as_str().and_then(Decision::named);
        let answers = said.is_some_and(is_answer) && result["fault"].is_null();
        if let (Some(id), Some(version), true) = (params["hookId"].as_str(), version, answers) {
            self.desk.proofs.tested(&id.to_lowercase(), version, Timestamp::now());
        }
        Ok(tested)
    }

    pub(super) async fn hooks_check(&self, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["matcher", "condition", "agentId"])?;
        let tools = {
            let host = self.host.read().await;
            tools(&host, params.text("agentId")?)?
        };
        Ok(json!({
            "tools": tools,
            "matcher": params.text("matcher")?.map(|pattern| matcher(pattern, &tools)),
            "condition": params.text("condition")?.map(expression),
        }))
    }
}

/// The tools that hooks can be asked about: those of one agent, or of all.
fn tools(host: &Host, agent: Option<&str>) -> Result<BTreeSet<String>, ApiError> {
    let config = &host.loaded.config;
    let Some(agent) = agent else {
        return Ok(BUILTIN.iter().map(|name| (*name).to_owned()).chain(host.server_tools()).collect());
    };
    let agent = agents::named(config, Some(agent))?;
    let servers = host.servers.catalogue().names().into_iter();
    let servers = servers.filter(|name| is_wanted(name, agent.tools.as_deref()));
    Ok(builtin_names(config, agent).into_iter().chain(servers).collect())
}

fn matcher(pattern: &str, tools: &BTreeSet<String>) -> Value {
    match condition::compile_matcher(pattern) {
        Ok(matcher) => {
            let matches: Vec<&String> = tools.iter().filter(|tool| matcher.is_match(tool)).collect();
            json!({ "ok": true, "matches": matches })
        }
        Err(error) => json!({ "ok": false, "error": error, "matches": [] }),
    }
}

fn expression(text: &str) -> Value {
    match condition::compile_located(text) {
        Ok(_) => json!({ "ok": true }),
        Err(error) => json!({
            "ok": false,
            "line": error.place.map(|(line, _)| line),
            "column": error.place.map(|(_, column)| column),
            "error": error.text,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_is_held_against_the_tools_that_there_are() {
        let tools = ["exec", "read_file"].map(str::to_owned).into_iter().collect();
        for (pattern, ok, matches) in
            [("^exec$", true, json!(["exec"])), ("e", true, json!(["exec", "read_file"])), ("(", false, json!([]))]
        {
            let said = matcher(pattern, &tools);
            assert_eq!((said["ok"].as_bool(), &said["matches"]), (Some(ok), &matches), "{pattern}");
            assert_eq!(said.get("error").is_some(), !ok);
        }
    }

    #[test]
    fn an_expression_says_where_it_is_wrong() {
        assert_eq!(expression("tool_name == 'exec'"), json!({ "ok": true }));
        let bad = expression("tool_name == == 1");
        assert_eq!((bad["ok"].as_bool(), bad["line"].as_u64()), (Some(false), Some(1)), "{bad}");
        assert!(bad["column"].as_u64().is_some_and(|column| column > 1), "{bad}");
        let number = expression("1 + 1");
        assert_eq!((number["ok"].as_bool(), &number["line"]), (Some(false), &Value::Null), "{number}");
        assert_eq!(expression("true &&\n== 1")["line"], 2);
    }
}
