//! Why an entry cannot be used, in words for whoever made it.

use std::io;

use pintle_domain::tool::UnusableMedia;

use super::MAX_MEDIUM_BYTES;

/// The most media of one result: more than a person looks at. A bound for what one result can put on the disk.
pub(super) const MAX_ENTRIES: usize = 64;

#[derive(Debug, thiserror::Error)]
pub(super) enum MediaError {
    #[error("expected a `media://` reference, a `data:` URL or the absolute path of a file")]
    Unfamiliar,
    #[error("no file of this session has this reference, or it was not used for 30 minutes")]
    Unknown,
    #[error("a path is taken only from a hook whose `dir` is set")]
    NoDir,
    #[error("its real path does not lie in the hook's `dir`, {0:?}")]
    Outside(std::path::PathBuf),
    #[error("the hook's `dir` cannot be used: {0}")]
    Dir(io::Error),
    #[error("it is one of Pintle's own files, under another name")]
    Protected,
    #[error("expected a regular file, got a {0}")]
    NotAFile(&'static str),
    #[error("it is larger than {MAX_MEDIUM_BYTES} bytes")]
    TooLarge,
    #[error("it is not a well-formed `data:` URL: {0}")]
    Data(String),
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    #[error("it cannot be written: {0}")]
    Keep(io::Error),
    #[error("its file was changed after it was stored")]
    Changed,
    #[error("a result carries at most {MAX_ENTRIES} media")]
    TooMany,
}

impl MediaError {
    pub(super) fn of(&self, entry: &str) -> UnusableMedia {
        UnusableMedia { entry: entry.to_owned(), why: self.to_string() }
    }
}
