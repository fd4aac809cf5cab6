//! `hooks.list`: the rules, and beside them the hooks of the configuration and the texts of skills, which nobody changes
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_agent::tools::canonical_builtin;
use pintle_domain::checkpoint::{CHECKPOINTS, CheckpointKind};
use pintle_domain::hook::{Family, Hook, Scope};
use pintle_domain::json::{Value, json};
use pintle_domain::roster::Roster;
use pintle_host::Host;
use pintle_host::config::FlowConfig;
use pintle_rules::admin::{Caller, ChainQuery};

use crate::Shared;
use crate::error::ApiError;
use crate::guards::{self, GuardLine, GuardState};
use crate::principal::Principal;

impl Shared {
    pub(super) async fn hooks_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        // Whoever is refused is so before anything else is looked at.
        let mut listed = self.rule_admin.call(&who.caller(), "hooks.list", params).await?;
        let filter = ListedFilter {
            event: params["event"].as_str().and_then(CheckpointKind::named),
            enabled: params["enabled"].as_bool(),
            is_of_rules: ["scope", "agentId"]
                .iter()
                .any(|name| params[*name].as_str().is_some_and(|it| !it.is_empty())),
        };
        let whole = who.caller().is_master();
        let rules = listed["hooks"].as_array().cloned().unwrap_or_default();
        let lines = self.lines_of(who, rules).await?;
        let bad = |line: &&GuardLine| !matches!(line.state, GuardState::Armed | GuardState::Disabled);
        listed["notArmed"] = lines.iter().filter(bad).map(|line| line.shown(whole)).collect();
        listed["configured"] = match filter.is_of_rules {
            true => json!([]),
            false => {
                self.blocking(move |shared| Ok(json!(configured(&shared.host.blocking_read(), &filter, whole)))).await?
            }
        };
        Ok(listed)
    }

    /// Who would be asked at an event: the rules, and beside them everybody else, each with whether it would run.
    pub(super) async fn hooks_chain(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let caller = who.caller();
        let mut asked = self.rule_admin.call(&caller, "hooks.chain", params).await?;
        let params = params.clone();
        let beside = self.blocking(move |shared| shared.chain_beside(&caller, &params)).await?;
        if let Some(beside) = beside {
            asked["configured"] = beside.into();
        }
        Ok(asked)
    }

    /// Who is asked beside the rules at the event that `params` name, if they name one. Reads files.
    fn chain_beside(&self, caller: &Caller, params: &Value) -> Result<Option<Vec<Value>>, ApiError> {
        let text = |name: &str| params[name].as_str().filter(|text| !text.is_empty());
        let Some(event) = text("event").and_then(CheckpointKind::named) else { return Ok(None) };
        let asking = ChainQuery {
            event,
            agent: text("agentId"),
            tool: text("toolName"),
            input: params["toolInput"].as_object(),
        };
        let agent = self.rule_admin.meant_agent(caller, asking.agent)?;
        let host = self.host.blocking_read();
        let roster = roster(&host);
        let hooks: Vec<Arc<Hook>> = roster.at(event).iter().map(|number| roster.hook(*number).clone()).collect();
        let fates = self.rule_admin.fates(caller, &asking, &hooks)?;
        let standing = standing(&host);
        let whole = caller.is_master();
        let of_hooks = hooks.iter().zip(fates).filter_map(|(hook, fate)| {
            let line = standing.get(hook.name.as_str())?;
            // What is known not to work is asked all the same, and its fault counts.
            Some(with_fate(shown(hook, event, line, whole), fate))
        });
        let planned = host.loaded.config.agents.get(agent.as_str()).is_some_and(|it| it.flow == FlowConfig::Planned);
        let tool = asking.tool.map(|raw| (canonical_builtin(raw).unwrap_or(raw), raw));
        let about = TextQuery { agent: agent.as_str(), planned, tool };
        let texts = texts(&host);
        let of_texts = texts.iter().filter(|text| text.kind == event);
        let of_texts = of_texts.map(|text| with_fate(text.shown(whole), text.fate(&about)));
        Ok(Some(of_hooks.chain(of_texts).collect()))
    }
}

/// A line of a listing with whether it would run, and if not why.
fn with_fate(mut line: Value, fate: Option<String>) -> Value {
    line["wouldRun"] = json!(fate.is_none());
    line["reason"] = json!(fate.unwrap_or_default());
    line
}

/// The hooks of the configuration in running order.
fn roster(host: &Host) -> Roster {
    Roster::new(host.loaded.config.hooks.iter().map(|loaded| loaded.hook.clone()).collect())
}

/// How the hooks of the configuration stand.
fn standing(host: &Host) -> BTreeMap<String, GuardLine> {
    guards::configured(host).into_iter().map(|line| (line.name.clone(), line)).collect()
}

/// Which hooks of the configuration are wanted.
struct ListedFilter {
    event: Option<CheckpointKind>,
    enabled: Option<bool>,
    /// It asks for something that only rules have.
    is_of_rules: bool,
}

impl ListedFilter {
    fn wants(&self, kind: CheckpointKind, state: GuardState) -> bool {
        let acts = state != GuardState::Disabled;
        self.event.is_none_or(|event| event == kind) && self.enabled.is_none_or(|enabled| enabled == acts)
    }
}

/// The hooks of the configuration, and the texts of skills, checkpoint by checkpoint in running order.
fn configured(host: &Host, filter: &ListedFilter, whole: bool) -> Vec<Value> {
    let (standing, roster) = (standing(host), roster(host));
    let texts = texts(host);
    let mut listed = Vec::new();
    for kind in CHECKPOINTS.iter().map(|row| row.kind) {
        for hook in roster.at(kind).iter().map(|number| roster.hook(*number)) {
            let Some(line) = standing.get(hook.name.as_str()) else { continue };
            if filter.wants(kind, line.state) {
                listed.push(shown(hook, kind, line, whole));
            }
        }
        let own = texts.iter().filter(|text| text.kind == kind && filter.wants(kind, GuardState::Armed));
        listed.extend(own.map(|text| text.shown(whole)));
    }
    listed
}

fn shown(hook: &Hook, kind: CheckpointKind, line: &GuardLine, whole: bool) -> Value {
    let stage = hook.stages.get(kind);
    let agents = match &hook.scope {
        Scope::Everyone => Vec::new(),
        Scope::Agents(agents) => agents.iter().map(ToString::to_string).collect(),
    };
    json!({
        "name": hook.name,
        "family": hook.family.word(),
        "event": kind.name(),
        "runs": "before",
        "priority": hook.priority,
        "state": line.state.word(),
        "step": line.step,
        "why": line.why.as_ref().filter(|_| whole),
        "agents": agents,
        "matcher": hook.matcher.as_ref().map_or("", |matcher| matcher.pattern()),
        "timeoutMs": stage.map(|stage| u64::try_from(stage.timeout.as_millis()).unwrap_or(u64::MAX)),
        "onFailure": stage.map(|stage| stage.on_failure.word_at(kind)),
        "origin": Some(&hook.origin).filter(|_| whole),
    })
}

/// A text of a skill.
struct SkillText {
    name: String,
    kind: CheckpointKind,
    agents: Vec<String>,
    folder: String,
    /// The tools that it is about; all where there are none.
    tools: Vec<String>,
}

/// An event at which somebody wants to know which texts go in.
struct TextQuery<'a> {
    agent: &'a str,
    /// Whether the agent plans.
    planned: bool,
    /// The tool, by its own name and as it was said.
    tool: Option<(&'a str, &'a str)>,
}

/// The texts of the skills of all agents; one that several of them share stands there once.
fn texts(host: &Host) -> Vec<SkillText> {
    let mut found: Vec<SkillText> = Vec::new();
    for agent in host.loaded.config.agents.keys() {
        let scan = host.skills.of(agent);
        let hooks = scan.skills.iter().flat_map(|skill| skill.hooks.iter().map(move |hook| (skill, hook)));
        for (skill, hook) in hooks {
            let Some(kind) = CheckpointKind::named(hook.timing.word()) else { continue };
            let (name, folder) = (hook.id().to_string(), skill.folder.display().to_string());
            match found.iter_mut().find(|text| (&text.name, text.kind, &text.folder) == (&name, kind, &folder)) {
                Some(known) => known.agents.push(agent.clone()),
                None => found.push(SkillText {
                    name,
                    kind,
                    agents: vec![agent.clone()],
                    folder,
                    tools: hook.tool_filter.clone(),
                }),
            }
        }
    }
    found
}

impl SkillText {
    /// Why it would not go in, if it would not.
    fn fate(&self, about: &TextQuery<'_>) -> Option<String> {
        if !self.agents.iter().any(|agent| agent == about.agent) {
            return Some("about other agents".to_owned());
        }
        if self.kind == CheckpointKind::BeforePlanning && !about.planned {
            return Some("the agent does not plan: its flow is direct".to_owned());
        }
        let (tool, raw) = about.tool.filter(|_| !self.tools.is_empty())?;
        let wanted = |name: &String| *name == tool || *name == raw;
        (!self.tools.iter().any(wanted)).then(|| format!("its tool_filter {:?} does not name {tool:?}", self.tools))
    }

    fn shown(&self, whole: bool) -> Value {
        json!({
            "name": self.name,
            "family": Family::Skill.word(),
            "event": self.kind.name(),
            "runs": "after",
            "priority": 0,
            "state": GuardState::Armed.word(),
            "step": null,
            "why": null,
            "agents": self.agents,
            "matcher": "",
            "timeoutMs": null,
            "onFailure": null,
            "origin": Some(&self.folder).filter(|_| whole),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_in_for_its_agents_where_they_plan_and_after_its_tools() {
        let text = |kind, tools: &[&str]| SkillText {
            name: "skill:s/t".to_owned(),
            kind,
            agents: vec!["main".to_owned()],
            folder: String::new(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        };
        let (plan, call) = (CheckpointKind::BeforePlanning, CheckpointKind::AfterToolCall);
        for (text, agent, planned, tool, goes) in [
            (text(plan, &[]), "main", true, None, true),
            (text(plan, &[]), "main", false, None, false),
            (text(plan, &[]), "other", true, None, false),
            (text(call, &[]), "main", false, Some(("exec", "Bash")), true),
            (text(call, &["exec"]), "main", false, Some(("exec", "Bash")), true),
            (text(call, &["Bash"]), "main", false, Some(("exec", "Bash")), true),
            (text(call, &["read_file"]), "main", false, Some(("exec", "Bash")), false),
            (text(call, &["read_file"]), "main", false, None, true),
        ] {
            let about = TextQuery { agent, planned, tool };
            assert_eq!(text.fate(&about).is_none(), goes, "{:?} {agent} {planned} {tool:?}", text.tools);
        }
    }

    #[test]
    fn a_filter_is_about_the_checkpoint_and_whether_it_acts() {
        let (llm, tool) = (CheckpointKind::BeforeLlm, CheckpointKind::BeforeTool);
        for (event, enabled, kind, state, wanted) in [
            (None, None, llm, GuardState::Disabled, true),
            (Some(tool), None, llm, GuardState::Armed, false),
            (Some(tool), Some(true), tool, GuardState::Broken, true),
            (None, Some(true), tool, GuardState::Disabled, false),
            (None, Some(false), tool, GuardState::Disabled, true),
        ] {
            let filter = ListedFilter { event, enabled, is_of_rules: false };
            assert_eq!(filter.wants(kind, state), wanted, "{event:?} {enabled:?} {kind:?} {state:?}");
        }
    }
}
