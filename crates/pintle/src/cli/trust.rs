//! Being written.
use super::Global;
use crate::error::CliError;
/// Flags.
#[derive(Debug, clap::Args)]
pub struct TrustArgs {}
pub(super) fn run(_global: &Global, _args: &TrustArgs) -> Result<u8, CliError> {
    Ok(0)
}
