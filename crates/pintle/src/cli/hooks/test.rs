//! Being written.
use super::super::Global;
use crate::error::CliError;
/// Flags.
#[derive(Debug, clap::Args)]
pub struct TestArgs {}
pub(super) fn run(_global: &Global, _args: &TestArgs) -> Result<u8, CliError> {
    Ok(0)
}
