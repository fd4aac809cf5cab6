//! `pintle guard uninstall`: what an installation put in goes out again.

use std::path::PathBuf;

use clap::Args;

use super::install::{self, InstallArgs};
use crate::cli::Global;
use crate::error::CliError;

/// Flags of `guard uninstall`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct UninstallArgs {
    /// The agents, with commas between them, or `all`
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    host: Vec<String>,
    /// A client's file of MCP servers (`mcpServers`): each is started without Pintle again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "project", "local", "system"])]
    mcp: Option<PathBuf>,
    /// From the settings of everybody who works in this project, not from your own
    #[arg(long, conflicts_with_all = ["local", "system"])]
    project: bool,
    /// From your own settings of this project
    #[arg(long, conflicts_with = "system")]
    local: bool,
    /// From the settings of the machine, which only root writes
    #[arg(long)]
    system: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Change it without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(global: &Global, args: &UninstallArgs) -> Result<u8, CliError> {
    let UninstallArgs { host, mcp, project, local, system, dry_run, yes } = args;
    let installed = InstallArgs {
        host: host.clone(),
        mcp: mcp.clone(),
        project: *project,
        local: *local,
        system: *system,
        dry_run: *dry_run,
        yes: *yes,
        adopt: false,
        events: None,
        force: false,
    };
    install::uninstall(global, &installed)
}
