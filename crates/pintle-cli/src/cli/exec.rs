//! `pintle __exec`: confines itself, then runs the shell of one `exec` call. Not for people.

use std::ffi::OsString;

use clap::Args;

use crate::error::CliError;

/// What the `exec` tool hands over.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The protected paths and the command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    args: Vec<OsString>,
}

pub(super) fn run(args: ExecArgs) -> Result<u8, CliError> {
    Ok(pintle_agent::tools::exec_helper_main(args.args))
}
