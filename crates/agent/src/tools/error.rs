//! What can go wrong in a tool, as the model reads it.

use std::io;

/// Why a built-in tool did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The path leaves the workspace, by itself or through a link.
    #[error("`{0}` is outside the workspace; use a path inside it, relative to its root")]
    Outside(String),
    /// The host keeps this for itself.
    #[error("`{0}` is protected: it belongs to the program that runs you and is not yours to {1}")]
    Protected(String, &'static str),
    /// It would be loaded by what the host runs there.
    #[error(
        "`{0}` would stand beside a script of {1}, which could load it, so nothing new is made in that folder; write to \
         another one"
    )]
    Beside(String, String),
    /// There is no such file or folder.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// Something else than a regular file.
    #[error("`{path}` is a {kind}, not a regular file")]
    NotAFile {
        /// The path as given.
        path: String,
        /// The kind of the thing.
        kind: &'static str,
    },
    /// Something else than a folder.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// Not text.
    #[error("`{path}` is a binary file ({bytes} bytes); only text can be shown")]
    Binary {
        /// The path as given.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// The system refused.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// The action that was tried.
        action: &'static str,
        /// The path as given.
        path: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// An argument that no schema can catch.
    #[error("{0}")]
    Argument(String),
    /// The turn was cancelled while the tool ran.
    #[error("cancelled while the tool ran")]
    Cancelled,
}

impl ToolError {
    /// Sorts what the system said about `path`.
    pub(super) fn io(action: &'static str, path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        let is = |kind| source.kind() == kind;
        // cap-std reports an escape without an error number of the system.
        if is(io::ErrorKind::PermissionDenied) && source.raw_os_error().is_none() {
            Self::Outside(path)
        } else if is(io::ErrorKind::NotFound) {
            Self::NotFound(path)
        } else if is(io::ErrorKind::NotADirectory) {
            Self::NotAFolder(path)
        } else {
            Self::Io { action, path, source }
        }
    }
}
