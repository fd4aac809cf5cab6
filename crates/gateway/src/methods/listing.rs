//! `hooks.list`: the rules, and beside them the hooks of the configuration and the texts of skills, which nobody changes
//! here.

use std::collections::BTreeMap;

use domain::checkpoint::{CHECKPOINTS, CheckpointKind};
use domain::hook::{Family, Hook, Scope};
use domain::json::{Value, json};
use domain::roster::Roster;
use host::Host;

use crate::Shared;
use crate::error::ApiError;
use crate::guards::{self, GuardLine, GuardState};
use crate::principal::Principal;

impl Shared {
    pub(super) async fn hooks_list(&self, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        // Whoever is refused is so before anything else is looked at.
        let mut listed = self.rule_admin.call(&who.caller(), "hooks.list", params).await?;
        let filter = ListedFilter {
            event: params["event"].as_str().and_then(CheckpointKind::named),
            enabled: params["enabled"].as_bool(),
            is_of_rules: ["scope", "agentId"]
                .iter()
                .any(|name| params[*name].as_str().is_some_and(|it| !it.is_empty())),
        };
        let host = self.host.read().await;
        listed["configured"] = if filter.is_of_rules { json!([]) } else { json!(configured(&host, &filter, who)) };
        Ok(listed)
    }
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
fn configured(host: &Host, filter: &ListedFilter, who: &Principal) -> Vec<Value> {
    let whole = who.caller().is_master();
    let standing: BTreeMap<String, GuardLine> =
        guards::configured(host).into_iter().map(|line| (line.name.clone(), line)).collect();
    let roster = Roster::new(host.loaded.config.hooks.iter().map(|loaded| loaded.hook.clone()).collect());
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
                None => found.push(SkillText { name, kind, agents: vec![agent.clone()], folder }),
            }
        }
    }
    found
}

impl SkillText {
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
