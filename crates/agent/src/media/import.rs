//! What stands in the `media` of a result, taken over into the store.

use std::collections::HashSet;
use std::path::Path;

use data_url::{DataUrl, DataUrlError, forgiving_base64::DecodeError};
use pintle_domain::tool::{ToolOutput, UnusableMedia};

use super::reference::SCHEME;
use super::why::MAX_ENTRIES;
use super::{Hides, MAX_MEDIUM_BYTES, MediaError, NewMedia, TurnMedia, confined};

/// Where a result comes from.
#[derive(Clone, Copy)]
pub struct MediaOrigin<'a> {
    /// The folder that its paths must lie in; without one no path is taken.
    pub dir: Option<&'a Path>,
    /// Says of a file whether its paths must not lead to it; they may lead to any without it.
    pub hides: Option<Hides<'a>>,
    /// The hook or tool.
    pub source: &'a str,
}

impl TurnMedia {
    /// Takes over one entry: a reference that resolves here stays as it is, a `data:` URL or the absolute path
    /// of a regular file in the folder of `from` is copied and gets one.
    ///
    /// # Errors
    /// It is none of these, larger than [`MAX_MEDIUM_BYTES`], or cannot be read or stored.
    pub fn import(&self, from: &MediaOrigin<'_>, entry: &str) -> Result<String, UnusableMedia> {
        let imported = if entry.starts_with(SCHEME) {
            self.find(entry).map(|file| file.reference)
        } else if entry.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
            self.import_data(from, entry)
        } else if entry.starts_with('/') {
            self.import_path(from, Path::new(entry))
        } else {
            Err(MediaError::Unfamiliar)
        };
        imported.map_err(|why| why.of(entry))
    }

    fn import_data(&self, from: &MediaOrigin<'_>, entry: &str) -> Result<String, MediaError> {
        let url = DataUrl::process(entry).map_err(|error| match error {
            DataUrlError::NotADataUrl => MediaError::Unfamiliar,
            DataUrlError::NoComma => MediaError::Data("there is no comma before its data".into()),
        })?;
        let mime = url.mime_type();
        let content_type = format!("{}/{}", mime.type_, mime.subtype);
        let mut bytes = Vec::new();
        let decoded = url.decode(|piece| {
            bytes.extend_from_slice(piece);
            if bytes.len() as u64 > MAX_MEDIUM_BYTES { Err(MediaError::TooLarge) } else { Ok(()) }
        });
        decoded.map_err(|error| match error {
            DecodeError::InvalidBase64(_) => MediaError::Data("its data is not base64".into()),
            DecodeError::WriteError(why) => why,
        })?;
        let new = NewMedia { bytes: &bytes, file_name: "", content_type: Some(&content_type), source: from.source };
        self.add(new).map_err(MediaError::Keep)
    }

    fn import_path(&self, from: &MediaOrigin<'_>, path: &Path) -> Result<String, MediaError> {
        let bytes = confined::locate(path, from.dir.ok_or(MediaError::NoDir)?, from.hides)?.read()?;
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let new = NewMedia { bytes: &bytes, file_name: &file_name, content_type: None, source: from.source };
        self.add(new).map_err(MediaError::Keep)
    }

    /// Takes over all media of a result, before anything else sees it. What remains in `media` are references; what
    /// cannot be used is named beside it, for [`ToolOutput::delivered`].
    pub fn receive(&self, from: &MediaOrigin<'_>, mut output: ToolOutput) -> (ToolOutput, Vec<UnusableMedia>) {
        let mut seen = HashSet::new();
        let mut entries = std::mem::take(&mut output.media);
        entries.retain(|entry| seen.insert(entry.clone()));
        let mut unusable = Vec::new();
        for entry in entries.iter().take(MAX_ENTRIES) {
            match self.import(from, entry) {
                Ok(reference) => output.media.push(reference),
                Err(why) => unusable.push(why),
            }
        }
        if let Some(more) = entries.len().checked_sub(MAX_ENTRIES).filter(|more| *more > 0) {
            unusable.push(MediaError::TooMany.of(&format!("{more} more")));
        }
        (output, unusable)
    }
}
