//! `pintle skills …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Global;
use crate::error::CliError;
use pintle_host::config::{AgentConfig, Env, Loaded};

mod explain;
mod lint;
mod list;

/// What can be done with skills.
#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// The skills of agents, their hooks in running order, and what is wrong with them
    List(ListArgs),
    /// Check skills: their manifests, their texts, their SKILL.md
    Lint(LintArgs),
    /// The exact messages of each model call of a turn: which texts stand there, who put them in, when they leave
    Explain(ExplainArgs),
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

/// Flags of `skills explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A recorded turn, or the beginning of its id; without it or --last a dry run: nothing is sent, no tool runs
    #[arg(value_name = "TURN_ID", conflicts_with = "last")]
    turn: Option<String>,
    /// The newest recorded turn
    #[arg(long)]
    last: bool,
    /// Of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// What the user says in the dry run
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["turn", "last"])]
    message: Option<String>,
    /// What the model says in the dry run: a file of replies, as scripted providers play them [default: a call of the
    /// first tool, one of the second, an answer; a plan before them where the agent plans]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["turn", "last"])]
    script: Option<PathBuf>,
    /// The body of each request as this model would get it: of a configured provider, or one of the capability table
    #[arg(long, value_name = "PROVIDER/MODEL")]
    wire: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, command: SkillsCommand) -> Result<u8, CliError> {
    match command {
        SkillsCommand::List(args) => list::run(global, &args),
        SkillsCommand::Lint(args) => lint::run(global, &args),
        SkillsCommand::Explain(args) => explain::run(global, &args),
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
