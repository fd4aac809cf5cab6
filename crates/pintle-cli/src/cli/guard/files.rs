//! What stands in the files that are changed, and why one is left.

use std::io;
use std::path::Path;

use pintle_guard::GuardHost;
use pintle_guard::settings::{KeptFile, NotEdited, OtherHook};

use crate::clean::clean;
use crate::cli::terminal;
use crate::error::CliError;
use crate::guard::host_files::{kept, text_of};
use crate::guard::places::GuardPlaces;

pub(super) fn not_edited(file: &Path, why: &NotEdited) -> CliError {
    CliError::usage(format!("{} cannot be changed: {why}", file.display()))
}

/// What stands in `file`, if it is there.
pub(super) fn read(file: &Path) -> Result<Option<String>, CliError> {
    text_of(file).map_err(|error: io::Error| CliError::failed(format!("{} cannot be read: {error}", file.display())))
}

/// What the last installation for `host` left in `file`, and what was there before, if there was one.
pub(super) fn known_of(places: &GuardPlaces, host: &str, file: &Path) -> Result<Option<KeptFile>, CliError> {
    kept(places, host, file).map_err(|error| {
        let file = clean(&file.display().to_string());
        let error = clean(&error.to_string());
        CliError::failed(format!("what {file} was before it was installed there cannot be read: {error}"))
            .hint("mend or remove what is kept there; without it, only our own entries are taken out")
    })
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
