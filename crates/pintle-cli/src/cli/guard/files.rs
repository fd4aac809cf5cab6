//! What stands in the files that are changed, and why one is left.

use std::io;
use std::path::Path;

use guard::GuardHost;
use guard::settings::{NotEdited, OtherHook};

use crate::clean::clean;
use crate::cli::terminal;
use crate::error::CliError;
use crate::guard::host_files::text_of;

pub(super) fn not_edited(file: &Path, why: &NotEdited) -> CliError {
    CliError::usage(format!("{} cannot be changed: {why}", file.display()))
}

/// What stands in `file`, if it is there.
pub(super) fn read(file: &Path) -> Result<Option<String>, CliError> {
    text_of(file).map_err(|error: io::Error| CliError::failed(format!("{} cannot be read: {error}", file.display())))
}

/// Names the hooks of others beside ours.
pub(super) fn warn_of(host: &GuardHost, others: &[OtherHook]) {
    for other in others {
        let (event, runs) = (clean(&other.event), clean(&other.runs));
        terminal::warn(&format!(
            "{} has another hook at {event}: {runs}; who comes last may undo what the other said",
            host.id
        ));
    }
}
