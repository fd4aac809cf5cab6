//! The skills of agents: looked for where the configuration says, and kept for as long as nobody looks again.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use pintle_agent::tools::{BUILTIN, Guard, LOAD_SKILL, READ_ONLY, canonical_builtin};
use pintle_dialects::skill::manifest::AgentView;
use pintle_domain::health::{Health, HookProof, Step};
use pintle_domain::hook::HookState;
use pintle_domain::skill::finding::{Finding, FindingCode};
use pintle_domain::skill::scan::{Scan, Skill};
use pintle_skills::{Scanner, SkillSelection};

use crate::config::{AgentConfig, Config, FlowConfig, Loaded, NamedRef};
use crate::mcp_names::is_mcp;
use crate::protected::protected;
use crate::tool_names::may_bring_tools;

/// The skills of each agent, by its name.
#[derive(Default)]
pub struct SkillSets(Mutex<BTreeMap<String, Scanner>>);

impl SkillSets {
    /// Looks at the skills of all agents of `loaded`. Returns whether anything differs from the time before. What is new
    /// among the findings goes to the log.
    pub fn look(&self, loaded: &Loaded) -> bool {
        let config = &loaded.config;
        let mut skill_sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *skill_sets);
        let mut changed = before.keys().any(|name| !config.agents.contains_key(name));
        for agent in config.agents.values() {
            let mut scanner = before.remove(&agent.name).unwrap_or_default();
            let known = scanner.current().clone();
            if look_with(&mut scanner, loaded, agent) {
                changed = true;
                let new = scanner.current().findings.iter().filter(|found| !known.findings.contains(found));
                new.map(|found| placed(found.clone(), agent)).for_each(|found| told(&found));
            }
            skill_sets.insert(agent.name.clone(), scanner);
        }
        changed
    }

    /// The folders that are there in which a change of a file is a change of an enabled skill.
    pub fn folders(&self) -> Vec<PathBuf> {
        let skill_sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let scans = skill_sets.values().map(Scanner::current);
        let own = scans.flat_map(|scan| &scan.skills).flat_map(|skill| {
            // A link is not followed: whoever made it would choose what is looked at.
            let hooks =
                Some(skill.folder.join("hooks")).filter(|hooks| hooks.symlink_metadata().is_ok_and(|of| of.is_dir()));
            std::iter::once(skill.folder.clone()).chain(hooks)
        });
        let above = skill_sets.values().flat_map(Scanner::dirs).filter(|dir| dir.is_dir()).map(Path::to_owned);
        above.chain(own).collect()
    }

    /// The skills of the agent called `name`, as they were found the last time.
    pub fn of(&self, name: &str) -> Arc<Scan> {
        let skill_sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        skill_sets.get(name).map(|scanner| scanner.current().clone()).unwrap_or_default()
    }
}

fn told(found: &Finding) {
    use pintle_domain::skill::finding::Severity;
    match found.severity {
        Severity::Error | Severity::Warning => tracing::warn!("{found}"),
        Severity::Notice => tracing::info!("{found}"),
    }
}

/// The skills of `agent`, as they are now.
pub fn scan(loaded: &Loaded, agent: &AgentConfig) -> Scan {
    let mut scanner = Scanner::default();
    look_with(&mut scanner, loaded, agent);
    let mut scan = Scan::clone(scanner.current());
    scan.findings = scan.findings.into_iter().map(|found| placed(found, agent)).collect();
    scan
}

/// How the texts of `skill` stand, which was read at `at`: that proves a text. One that cannot be read any more is in
/// force as it was before.
pub fn health(skill: &Skill, at: Timestamp) -> Health {
    match skill.stale {
        true => Health::unproven(Step::Configuration, "cannot be read any more; what was read before is in force"),
        false => Health::Armed(HookProof { at, refused: None }),
    }
}

/// How stands what `found` is about, which is not in force.
pub fn standing(found: &Finding) -> Health {
    Health::unproven(Step::Configuration, found.to_string())
}

fn look_with(scanner: &mut Scanner, loaded: &Loaded, agent: &AgentConfig) -> bool {
    let config = &loaded.config;
    let enabled: Vec<String> = agent.skills.iter().map(|named| named.text.clone()).collect();
    // A text under another name of a key would be sent with the next request. Nothing is looked for where no file is read.
    let guard = LazyCell::new(|| Guard::new(&protected(config, &loaded.files)));
    let hides = LazyCell::new(|| guard.hides_from_skills());
    view(config, agent, |view| {
        scanner.look(SkillSelection {
            dir: &agent.skills_dir,
            more: &config.more_skills,
            enabled: &enabled,
            agent: Some(view),
            seals: agent.skill_seals.as_ref(),
            hidden: Some(&|file| hides(file)),
        })
    })
}

/// What skills of `agent` are held against. Tools that MCP servers and hooks bring are not known before those run.
pub fn view<T>(config: &Config, agent: &AgentConfig, with: impl FnOnce(AgentView<'_>) -> T) -> T {
    let names = || agent.tools.iter().flatten().map(String::as_str).filter(|name| !is_mcp(name));
    let mut tools: Vec<&str> = if agent.tools.is_some() { names().collect() } else { READ_ONLY.to_vec() };
    tools.push(LOAD_SKILL);
    let brought =
        config.hooks.iter().any(|loaded| loaded.hook.state == HookState::Armed && may_bring_tools(&loaded.hook));
    let served = !config.mcp.is_empty();
    let knows = |name: &str| {
        // The name that the model wrote counts as well, and an alias is one.
        let own = canonical_builtin(name).unwrap_or(name);
        tools.contains(&own) || (served && is_mcp(name)) || (brought && !BUILTIN.contains(&own))
    };
    with(AgentView { knows: &knows, tools: &tools, plans: agent.flow == FlowConfig::Planned })
}

/// What is wrong with the list of skills itself is shown where that is written.
fn placed(found: Finding, agent: &AgentConfig) -> Finding {
    let mut named = agent.skills.iter().filter(|named| named.text == found.skill);
    let entry: Option<&NamedRef> = if matches!(found.code, FindingCode::S1 | FindingCode::S2) {
        named.next()
    } else if found.code == FindingCode::S3 {
        named.nth(1)
    } else {
        None
    };
    match entry.and_then(|named| named.place.as_ref()) {
        Some(place) => found.of(&place.file).at((place.line, place.column)),
        None => found,
    }
}
