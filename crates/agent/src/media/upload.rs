//! Files that clients handed over: they stand in a store that several hosts may share, and come here when they are used.

use std::fs;
use std::io;

use super::about::MediaInfo;
use super::reference::Id;
use super::{MediaError, NewMedia, TurnMedia, sha256};

/// Where such files come from, as hooks and listings have it.
const SOURCE: &str = "upload";

/// The reference of the upload `id`; nothing if that is none.
pub fn reference_of(id: &str) -> Option<String> {
    Id::of_folder(id).map(Id::reference)
}

impl TurnMedia {
    /// Brings the upload `id` here, if a session took it whose files may be used.
    pub(super) fn fetch(&self, id: Id) -> Result<(), MediaError> {
        let uploads = self.store.uploads.as_ref().ok_or(MediaError::Unknown)?;
        let lost = |error: pintle_domain::store::StoreError| MediaError::Read(io::Error::other(error.to_string()));
        let (tenant, name) = (&self.scope.tenant, id.folder());
        let found = uploads.upload(tenant, &name).map_err(lost)?.ok_or(MediaError::Unknown)?;
        let session = found.session.as_ref().filter(|session| self.scope.sees_session(&found.tenant, session));
        let session = session.ok_or(MediaError::Unknown)?;
        let folder = self.store.folder.join(&name);
        let now = (self.store.clock)();
        if folder.is_dir() {
            // Its time here was over, and it is not swept yet.
            return MediaInfo::touch(&folder, now);
        }
        let content = uploads.upload_content(tenant, &name).map_err(lost)?.ok_or(MediaError::Unknown)?;
        if sha256(&content) != found.sha256 {
            return Err(MediaError::Changed);
        }
        let new = NewMedia {
            bytes: &content,
            // The model reads the name, and no gate looked at what a client writes there.
            file_name: "",
            content_type: Some(&found.content_type),
            source: SOURCE,
        };
        let draft = self.store.folder.join(Id::fresh().draft());
        let kept = self.write(&draft, new, session).and_then(|()| fs::rename(&draft, &folder));
        if let Err(error) = kept {
            // A sweep takes what stays.
            drop(fs::remove_dir_all(&draft));
            // Another turn was faster.
            return if folder.is_dir() { Ok(()) } else { Err(MediaError::Keep(error)) };
        }
        Ok(())
    }
}
