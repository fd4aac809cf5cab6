//! Being written.
use super::Global;
use crate::error::CliError;
/// Flags.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {}
pub(super) fn run(_global: &Global, _args: &DoctorArgs) -> Result<u8, CliError> {
    Ok(0)
}
