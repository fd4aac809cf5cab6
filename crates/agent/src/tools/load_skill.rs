//! `load_skill`: what a skill says, when a model wants to know.

use std::path::PathBuf;

use domain::json::json;
use domain::llm::ToolDef;
use domain::skill::scan::Scan;
use domain::tool::ToolOutput;
use engine::permit::Permit;
use engine::tool::Tool;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use skills::{self, SkillFileError};
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::{LOAD_SKILL, blocking, typed};

/// Reads the files of the skills that the model was told of.
pub(super) struct LoadSkill {
    definition: ToolDef,
    /// The skills, each with its folder.
    folders: Vec<(String, PathBuf)>,
}

#[derive(Debug, Deserialize)]
struct Args {
    name: String,
    file: Option<String>,
}

impl LoadSkill {
    /// The tool for the skills of `scan` that have a description; none if no skill has one.
    pub(super) fn new(scan: &Scan) -> Option<Self> {
        let catalogue = scan.catalogue();
        let folder = |name: &str| Some((name.to_owned(), scan.skill(name)?.folder.clone()));
        let folders: Vec<_> = catalogue.names().filter_map(folder).collect();
        let names: Vec<&str> = folders.iter().map(|(name, _)| name.as_str()).collect();
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
        (!folders.is_empty()).then_some(Self { definition, folders })
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        self.folders.iter().find(|(skill, _)| skill == name).map(|(_, folder)| folder.clone())
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
            let Some(folder) = self.folder(&name) else {
                return ToolOutput::error(format!("there is no skill `{name}`"));
            };
            blocking(cancel, move |_| match skills::body(&folder, file.as_deref()) {
                Ok(text) if text.trim().is_empty() => Ok(ToolOutput::ok("(nothing is written there)")),
                Ok(text) => Ok(ToolOutput::ok(text)),
                Err(why) => Err(refused(&name, file.as_deref(), &why)),
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
