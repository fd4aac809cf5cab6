//! `pintle import`: taking over from another program.

use clap::Subcommand;

use super::Global;
use crate::error::CliError;

mod goclaw;
mod picoclaw;

/// What can be taken over.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// The hooks of a GoClaw database, and the quality gates of its agents
    Goclaw(goclaw::GoclawArgs),
    /// The hooks of a PicoClaw configuration, as a configuration on stdout
    Picoclaw(picoclaw::PicoclawArgs),
}

pub(super) fn run(global: &Global, command: ImportCommand) -> Result<u8, CliError> {
    match command {
        ImportCommand::Goclaw(args) => goclaw::run(global, &args),
        ImportCommand::Picoclaw(args) => picoclaw::run(&args),
    }
}
