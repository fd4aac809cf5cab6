//! `pintle __exec`: confines itself, then becomes the shell of one `exec` call. Not for people.

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

/// What shells answer for a command that was found and cannot be run.
const CANNOT_RUN: u8 = 126;

pub(super) fn run(args: ExecArgs) -> Result<u8, CliError> {
    // It returns only where the shell could not be started, and has said why.
    let _said = agent::tools::sandbox::exec_helper_main(args.args);
    Ok(CANNOT_RUN)
}
