//! `pintle skills …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Global;
use crate::config::{AgentConfig, Env, Loaded};
use crate::error::CliError;

mod lint;
mod list;

/// What can be done with skills.
#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// The skills of agents, their hooks in running order, and what is wrong with them
    List(ListArgs),
    /// Check skills: their manifests, their texts, their SKILL.md
    Lint(LintArgs),
}

/// Flags of `skills list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Of this agent only
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `skills lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// Skills by name, or folders of skills by path [default: those that agents have; if none has any, all that are there]
    #[arg(value_name = "SKILL|PATH")]
    skills: Vec<String>,
    /// Check them as skills of this agent: against its tools and its flow, too
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Fail on warnings, too
    #[arg(long)]
    strict: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, command: SkillsCommand) -> Result<u8, CliError> {
    match command {
        SkillsCommand::List(args) => list::run(global, &args),
        SkillsCommand::Lint(args) => lint::run(global, &args),
    }
}

/// The folder of the skills of `agent`, or the one that would count for it.
fn folder(env: &Env, loaded: &Loaded, agent: Option<&AgentConfig>) -> PathBuf {
    let own = agent.map(|agent| agent.skills_dir.clone()).filter(|dir| !dir.as_os_str().is_empty());
    let beside = || {
        let file = loaded.files.last().map(|file| env.cwd.join(file));
        file.as_deref().and_then(std::path::Path::parent).unwrap_or(&env.cwd).join("skills")
    };
    own.or_else(|| loaded.config.skills_dir.clone()).unwrap_or_else(beside)
}
