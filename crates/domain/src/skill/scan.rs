//! What looking through the folders of skills yields.

use std::path::PathBuf;
use std::sync::Arc;

use super::catalogue::Catalogue;
use super::finding::{Finding, Severity};
use super::seal::SkillSeal;
use super::{SkillHook, Skills};

/// One enabled skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name: that of its folder.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The purpose of the skill, if its `SKILL.md` says so.
    pub description: Option<String>,
    /// Its hooks, in the order of its manifest.
    pub hooks: Vec<SkillHook>,
    /// Whether the hooks are those of an earlier look, because the manifest of now cannot be read.
    pub stale: bool,
    /// Its files as somebody accepted them; none where the skill is the user's own.
    pub seal: Option<Arc<SkillSeal>>,
}

/// The enabled skills as they were found, in running order. It never changes: a later look yields another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The skills.
    pub skills: Vec<Skill>,
    /// The findings, in the same order.
    pub findings: Vec<Finding>,
}

impl Scan {
    /// The texts of all of them.
    pub fn hooks(&self) -> Skills {
        Skills::new(self.skills.iter().flat_map(|skill| skill.hooks.iter().cloned()).collect())
    }

    /// The catalogue of the skills that the model is told.
    pub fn catalogue(&self) -> Catalogue {
        let described =
            self.skills.iter().filter_map(|skill| Some((skill.name.as_str(), skill.description.as_deref()?)));
        Catalogue::new(described)
    }

    /// The skill called `name`.
    pub fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// The severity of the worst finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
