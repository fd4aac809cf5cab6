//! Being written.
use super::super::Global;
use crate::error::CliError;
/// Flags.
#[derive(Debug, clap::Args)]
pub struct NewArgs {}
pub(super) fn run(_global: &Global, _args: &NewArgs) -> Result<u8, CliError> {
    Ok(0)
}
