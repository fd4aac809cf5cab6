//! `pintle hooks …`.

use clap::{Args, Subcommand};

use super::Global;
use crate::error::CliError;

mod add;
mod history;
mod lint;
mod list;
mod manage;
mod new;
mod set;
mod show;
mod stored;
mod test;

/// What can be done with hooks.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Each checkpoint's chain, in running order
    List(ListArgs),
    /// Everything about one hook
    Show(ShowArgs),
    /// Add rules, in force within two seconds: the records of a file, or the starter guards
    Add(add::AddArgs),
    /// Change a rule
    Set(set::SetArgs),
    /// Enable a rule; closes its circuit breaker
    Enable(manage::OneArgs),
    /// Disable a rule
    Disable(manage::OffArgs),
    /// Delete a rule; what it did stays in the history
    Remove(manage::OffArgs),
    /// Close the circuit breaker of a rule
    Reset(manage::ResetArgs),
    /// What rules did, newest first
    History(history::HistoryArgs),
    /// Fire one synthetic event at one hook
    Test(test::TestArgs),
    /// Check the configuration of hooks
    Lint(lint::LintArgs),
    /// Write a first hook that works, with its test
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
    /// The hook: its name, or the id of a rule
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
        HooksCommand::Add(args) => add::run(global, &args),
        HooksCommand::Set(args) => set::run(global, &args),
        HooksCommand::Enable(args) => manage::enable(global, args),
        HooksCommand::Disable(args) => manage::toggle(global, &args, false),
        HooksCommand::Remove(args) => manage::remove(global, &args),
        HooksCommand::Reset(args) => manage::reset(global, &args),
        HooksCommand::History(args) => history::run(global, &args),
        HooksCommand::Test(args) => test::run(global, &args),
        HooksCommand::Lint(args) => lint::run(global, &args),
        HooksCommand::New(args) => new::run(global, &args),
    }
}
