//! Texts that skills put into a conversation, as they are in force for one request.
//!
//! Such a hook runs no code and decides nothing: at its timing its text is appended to the conversation, and it leaves
//! when its scope ends.

pub mod catalogue;
pub mod finding;
pub mod scan;
pub mod seal;
pub(crate) mod timing;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Role;

pub use timing::Timing;

/// Who seems to say a hook's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    /// The operator.
    System,
    /// The user.
    User,
}

impl Voice {
    /// The role of the message.
    pub fn role(self) -> Role {
        match self {
            Self::System => Role::System,
            Self::User => Role::User,
        }
    }

    /// The word in manifests, frames and listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
        }
    }
}

/// One entry of a skill's manifest with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillHook {
    /// The skill that brings it: the name of its folder.
    pub skill: String,
    /// Its name, unique in its skill.
    pub name: String,
    /// The text: trimmed, never empty.
    pub content: String,
    /// When it goes in.
    pub timing: Timing,
    /// Who seems to say it.
    pub role: Voice,
    /// Whether it stays, and is announced to whoever keeps the conversation.
    pub persistent: bool,
    /// At [`Timing::AfterToolCall`]: the tools it is about; every tool when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_filter: Vec<String>,
}

impl SkillHook {
    /// Its id in records: `skill:<skill>/<name>`.
    pub fn id(&self) -> String {
        format!("skill:{}/{}", self.skill, self.name)
    }

    /// Whether a call that answers to any of `names` is one that it is about: exact and case-sensitive.
    pub fn is_about(&self, names: &[&str]) -> bool {
        self.tool_filter.is_empty() || self.tool_filter.iter().any(|wanted| names.contains(&wanted.as_str()))
    }
}

/// The texts in force for one request, in running order: that of the enabled skills, then that of their manifests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skills {
    /// The hooks.
    pub hooks: Arc<[SkillHook]>,
    /// A hash over everything in them, to tell snapshots apart: lowercase hexadecimal.
    pub hash: String,
    /// The skills among them that the request switched off: their hooks are passed over.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub off: BTreeSet<String>,
}

impl Skills {
    /// A snapshot of `hooks`.
    pub fn new(hooks: Vec<SkillHook>) -> Self {
        use sha2::Digest;
        let json = serde_json::to_vec(&hooks).expect("texts, words and switches are plain JSON");
        Self { hooks: hooks.into(), hash: format!("{:x}", sha2::Sha256::digest(json)), off: BTreeSet::new() }
    }

    /// No texts at all.
    pub fn none() -> Self {
        Self::new(Vec::new())
    }

    /// These skills, of which only those called `wanted` go in: a request narrows, and never widens.
    #[must_use]
    pub fn narrowed(mut self, wanted: &[String]) -> Self {
        let unwanted = self.hooks.iter().map(|hook| &hook.skill).filter(|skill| !wanted.contains(skill));
        self.off.extend(unwanted.cloned().collect::<BTreeSet<String>>());
        self
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_known_by_everything_in_it() {
        let hook = SkillHook {
            skill: "beta".into(),
            name: "trunc".into(),
            content: "say what is missing".into(),
            timing: Timing::AfterToolCall,
            role: Voice::System,
            persistent: false,
            tool_filter: vec!["read_file".into()],
        };
        let other = SkillHook { tool_filter: Vec::new(), ..hook.clone() };
        assert_ne!(Skills::new(vec![hook.clone()]).hash, Skills::new(vec![other.clone()]).hash);
        assert_eq!(Skills::new(vec![hook.clone()]), Skills::new(vec![hook.clone()]));
        assert!(hook.is_about(&["search_text", "read_file"]) && !hook.is_about(&["Read_file"]) && !hook.is_about(&[]));
        assert!(other.is_about(&[]));
        assert_eq!(hook.id(), "skill:beta/trunc");
    }
}
