//! `pintle hooks …`.

use clap::{Args, Subcommand};

use super::Global;
use crate::error::CliError;

mod lint;
mod list;
mod new;
mod show;
mod test;

/// What can be done with hooks.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Each checkpoint's chain, in running order
    List(ListArgs),
    /// Everything about one hook
    Show(ShowArgs),
    /// Fire one synthetic event at one hook
    Test(test::TestArgs),
    /// Check the configuration of hooks
    Lint(lint::LintArgs),
    /// Write a working starter with its test
    New(new::NewArgs),
}

/// Flags of `hooks list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Flags of `hooks show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The hook's name
    #[arg(value_name = "HOOK")]
    pub(super) hook: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(global: &Global, command: HooksCommand) -> Result<u8, CliError> {
    match command {
        HooksCommand::List(args) => list::run(global, &args),
        HooksCommand::Show(args) => show::run(global, &args),
        HooksCommand::Test(args) => test::run(global, &args),
        HooksCommand::Lint(args) => lint::run(global, &args),
        HooksCommand::New(args) => new::run(global, &args),
    }
}
