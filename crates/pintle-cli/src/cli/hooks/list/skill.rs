//! Hooks of skills in a listing: texts, which are proven by being read.

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::health::Health;
use pintle_domain::hook::Family;
use pintle_domain::json::{Value, json};
use pintle_domain::skill::finding::Severity;
use pintle_host::config::Loaded;
use pintle_host::skill_sets::{health, scan, standing};

/// A text of a skill, or what is wrong with one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SkillRow {
    /// The skill and, of a text, its name.
    pub(super) name: String,
    /// Where it goes in; none for what is in force nowhere.
    pub(super) kind: Option<CheckpointKind>,
    /// The agents that have it.
    pub(super) agents: Vec<String>,
    /// How it stands.
    pub(super) health: Health,
    /// The folder of its skill.
    pub(super) origin: String,
}

impl SkillRow {
    /// Those of all agents, a text that several of them share once. What is wrong stands behind what is in force.
    pub(super) fn all(loaded: &Loaded) -> Vec<Self> {
        let now = Timestamp::now();
        let mut rows: Vec<Self> = Vec::new();
        for agent in loaded.config.agents.values().filter(|agent| !agent.skills.is_empty()) {
            let scan = scan(loaded, agent);
            let texts = scan.skills.iter().flat_map(|skill| skill.hooks.iter().map(move |hook| (skill, hook)));
            let texts = texts.map(|(skill, hook)| Self {
                name: hook.id().to_string(),
                kind: CheckpointKind::named(hook.timing.word()),
                agents: Vec::new(),
                health: health(skill, now),
                origin: skill.folder.display().to_string(),
            });
            let errors = scan.findings.iter().filter(|found| found.severity == Severity::Error);
            let errors = errors.map(|found| Self {
                name: found.skill.clone(),
                kind: None,
                agents: Vec::new(),
                health: standing(found),
                origin: agent.skills_dir.display().to_string(),
            });
            for row in texts.chain(errors) {
                match rows.iter_mut().find(|known| known.is_same(&row)) {
                    Some(known) => known.agents.push(agent.name.clone()),
                    None => rows.push(Self { agents: vec![agent.name.clone()], ..row }),
                }
            }
        }
        rows
    }

    /// Whether `other` is the same, of whichever agent.
    fn is_same(&self, other: &Self) -> bool {
        (&self.name, self.kind, &self.health, &self.origin) == (&other.name, other.kind, &other.health, &other.origin)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "hook": self.name,
            "family": Family::Skill,
            "origin": self.origin,
            "scope": format!("agent {}", self.agents.join(", ")),
            "state": if self.health.is_armed() { "armed" } else { "broken" },
        })
    }
}
