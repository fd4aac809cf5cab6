//! `load_skill`: what a skill says, when a model wants to know.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::skill::scan::{Scan, Skill};
use pintle_domain::tool::ToolOutput;
use pintle_engine::permit::Permit;
use pintle_engine::tool::Tool;
use pintle_skills::{self, ReadLimits, SkillFileError};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::protected::Guard;
use super::{LOAD_SKILL, blocking, typed};

/// Reads the files of the skills that the model was told of.
pub(super) struct LoadSkill {
    definition: ToolDef,
    /// The skills.
    skills: Vec<Skill>,
    /// What belongs to the host, whatever it is called in the folder of a skill.
    guard: Arc<Guard>,
}

#[derive(Debug, Deserialize)]
struct Args {
    name: String,
    file: Option<String>,
}

impl LoadSkill {
    /// The tool for the skills of `scan` that have a description; none if no skill has one. It reads nothing that
    /// `guard` hides.
    pub(super) fn new(scan: &Scan, guard: Guard) -> Option<Self> {
        let catalogue = scan.catalogue();
        let skills: Vec<Skill> = catalogue.names().filter_map(|name| scan.skill(name).cloned()).collect();
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        let definition = ToolDef::new(
            LOAD_SKILL,
            "Reads the instructions of a skill, or another file of its folder that they name.",
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "enum": names, "description": "The skill."},
                    "file": {
                        "type": "string",
                        "minLength": 1,
                        "description": "A file in the folder of the skill, relative to it; its instructions by default.",
                    },
                },
                "required": ["name"],
                "additionalProperties": false,
            }),
        );
        (!skills.is_empty()).then_some(Self { definition, skills, guard: Arc::new(guard) })
    }
}

impl Tool for LoadSkill {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    fn read_only(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, permit: Permit, cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let call = permit.call();
            let Args { name, file } = match typed(&call.tool, call.arguments.clone()) {
                Ok(args) => args,
                Err(reason) => return ToolOutput::error(reason),
            };
            // The schema names them all.
            let Some(skill) = self.skills.iter().find(|skill| skill.name == name).cloned() else {
                return ToolOutput::error(format!("there is no skill `{name}`"));
            };
            let guard = self.guard.clone();
            blocking(cancel, move |_| {
                let is_hidden = guard.hides_from_skills();
                let limits = ReadLimits { seal: skill.seal.as_deref(), hidden: Some(&is_hidden) };
                match pintle_skills::body(&skill.folder, file.as_deref(), limits) {
                    Ok(text) if text.trim().is_empty() => Ok(ToolOutput::ok("(nothing is written there)")),
                    Ok(text) => Ok(ToolOutput::ok(text)),
                    Err(why) => Err(refused(&name, file.as_deref(), &why)),
                }
            })
            .await
        })
    }
}

fn refused(name: &str, file: Option<&str>, why: &SkillFileError) -> ToolError {
    ToolError::Argument(match file {
        Some(file) => format!("`{file}` of the skill `{name}` {why}; name a text file in its folder"),
        None => format!("the instructions of the skill `{name}` cannot be had: `SKILL.md` {why}"),
    })
}
