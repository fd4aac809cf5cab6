//! `pintle completions SHELL`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, terminal};
use crate::error::CliError;

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete in
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pintle", &mut script);
    terminal::say(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
