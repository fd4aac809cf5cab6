//! What stands in the files that are changed, and why one is left.

use std::io;
use std::path::Path;

use guard::settings::NotEdited;

use crate::error::CliError;
use crate::guard::host_files::text_of;

pub(super) fn not_edited(file: &Path, why: &NotEdited) -> CliError {
    CliError::usage(format!("{} cannot be changed: {why}", file.display()))
}

/// What stands in `file`, if it is there.
pub(super) fn read(file: &Path) -> Result<Option<String>, CliError> {
    text_of(file).map_err(|error: io::Error| CliError::failed(format!("{} cannot be read: {error}", file.display())))
}
