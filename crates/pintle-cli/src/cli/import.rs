//! `pintle import`: taking over from another program.

use clap::Subcommand;

use super::Global;
use crate::error::CliError;

mod goclaw;

/// What can be taken over.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// The hooks of a GoClaw database, and the quality gates of its agents
    Goclaw(goclaw::GoclawArgs),
}

pub(super) fn run(global: &Global, command: ImportCommand) -> Result<u8, CliError> {
    match command {
        ImportCommand::Goclaw(args) => goclaw::run(global, &args),
    }
}
