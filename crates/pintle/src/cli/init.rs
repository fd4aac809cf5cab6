//! Being written.
use super::Global;
use crate::error::CliError;
/// Flags.
#[derive(Debug, clap::Args)]
pub struct InitArgs {}
pub(super) fn run(_global: &Global, _args: &InitArgs) -> Result<u8, CliError> {
    Ok(0)
}
