//! The media of one running turn.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::id::SessionId;
use pintle_domain::tool::UnusableMedia;

use super::about::MediaInfo;
use super::reference::Id;
use super::{
    Hold, MAX_MEDIUM_BYTES, MediaError, MediaFile, MediaScope, MediaStore, NewMedia, content_type, create, expired,
    name, sha256,
};

/// The store as one turn sees it: in its scope, and holding all that the turn has made or used until this is dropped.
///
/// The methods read and write files; one of the largest size takes some ten milliseconds.
pub struct TurnMedia {
    pub(super) store: Arc<MediaStore>,
    pub(super) scope: MediaScope,
    hold: Hold,
}

impl TurnMedia {
    pub(super) fn new(store: Arc<MediaStore>, scope: MediaScope, hold: Hold) -> Self {
        Self { store, scope, hold }
    }

    /// Where its references resolve.
    pub fn scope(&self) -> &MediaScope {
        &self.scope
    }

    /// Keeps a file; returns its reference.
    ///
    /// # Errors
    /// It is larger than [`MAX_MEDIUM_BYTES`], or cannot be written.
    pub fn add(&self, new: NewMedia<'_>) -> io::Result<String> {
        if new.bytes.len() as u64 > MAX_MEDIUM_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, MediaError::TooLarge.to_string()));
        }
        let id = Id::fresh();
        let draft = self.store.folder.join(id.draft());
        let written = self.write(&draft, new, &self.scope.session);
        if let Err(error) = written.and_then(|()| fs::rename(&draft, self.store.folder.join(id.folder()))) {
            // The first error is the one to tell; a sweep takes what stays.
            drop(fs::remove_dir_all(&draft));
            return Err(error);
        }
        self.hold.keep(id);
        Ok(id.reference())
    }

    pub(super) fn write(&self, draft: &Path, new: NewMedia<'_>, session: &SessionId) -> io::Result<()> {
        let content_type = content_type::settle(new.content_type, new.bytes);
        let about = MediaInfo {
            file_name: name::safe(new.file_name, &content_type),
            content_type,
            source: new.source.to_owned(),
            tenant: self.scope.tenant.clone(),
            session: session.clone(),
            size_bytes: new.bytes.len() as u64,
            sha256: sha256(new.bytes),
        };
        super::create_folder(draft)?;
        create(&draft.join(&about.file_name))?.write_all(new.bytes)?;
        about.write(draft, (self.store.clock)())
    }

    /// The file that `reference` stands for. This counts as a use.
    ///
    /// # Errors
    /// There is none, or it is not for this scope, or nobody has used it for longer than [`TTL`](super::TTL).
    pub fn resolve(&self, reference: &str) -> Result<MediaFile, UnusableMedia> {
        self.find(reference).map_err(|why| why.of(reference))
    }

    pub(super) fn find(&self, reference: &str) -> Result<MediaFile, MediaError> {
        // Whether another session has it is nobody's business, so all of these are told alike.
        let id = Id::of(reference).ok_or(MediaError::Unknown)?;
        match self.find_here(id, reference) {
            Err(MediaError::Unknown) => {
                self.fetch(id)?;
                self.find_here(id, reference)
            }
            found => found,
        }
    }

    fn find_here(&self, id: Id, reference: &str) -> Result<MediaFile, MediaError> {
        let folder = self.store.folder.join(id.folder());
        let (about, last_use) = MediaInfo::read(&folder)?;
        let now = (self.store.clock)();
        if !self.scope.sees(&about) || (expired(last_use, now) && !self.store.holds.has(&id)) {
            return Err(MediaError::Unknown);
        }
        MediaInfo::touch(&folder, now)?;
        self.hold.keep(id);
        Ok(MediaFile {
            reference: reference.to_owned(),
            path: folder.join(&about.file_name),
            file_name: about.file_name,
            content_type: about.content_type,
            size_bytes: about.size_bytes,
            sha256: about.sha256,
        })
    }

    /// Copies the file of `reference` into the folder `into`, which is made if it is not there, under a safe name that
    /// is not taken; returns its path.
    ///
    /// # Errors
    /// The reference cannot be used, or the copy cannot be written.
    pub fn deliver(&self, reference: &str, into: &Path) -> Result<PathBuf, UnusableMedia> {
        self.find(reference).and_then(|file| copy(&file, into)).map_err(|why| why.of(reference))
    }
}

fn copy(file: &MediaFile, into: &Path) -> Result<PathBuf, MediaError> {
    let bytes = file.read()?;
    fs::create_dir_all(into).map_err(MediaError::Keep)?;
    let (mut copy, path) = name::create_free(into, &file.file_name).map_err(MediaError::Keep)?;
    copy.write_all(&bytes).map_err(|error| {
        drop(fs::remove_file(&path));
        MediaError::Keep(error)
    })?;
    Ok(path)
}
