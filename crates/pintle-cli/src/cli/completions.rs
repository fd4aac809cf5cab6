//! `pintle completions SHELL`.

use clap::{Args, Command, CommandFactory as _};
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
    clap_complete::generate(args.shell, &mut typed_by_people(&Cli::command()), "pintle", &mut script);
    terminal::say(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

/// The same command line without what is hidden: the generators offer that, too.
fn typed_by_people(whole: &Command) -> Command {
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let about = whole.get_about().cloned().unwrap_or_default();
    let bare = Command::new("pintle").version(env!("CARGO_PKG_VERSION")).propagate_version(true).about(about);
    bare.args(whole.get_arguments()).subcommands(shown)
}
