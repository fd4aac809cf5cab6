//! What was accepted, kept in one file of the home folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pintle_domain::json::Value;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use super::{Coverage, CoveredPart, FileHashes, TrustEntry, TrustStanding, covers_by};
use crate::config::places;
use crate::error::HostError;

/// The name of the file in the home folder.
const FILE: &str = "trust.json";

/// The entries that were accepted, of every file.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: PathBuf,
    accepted: TrustFile,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    /// By file, then by the path of the entry in it.
    files: BTreeMap<String, BTreeMap<String, AcceptedEntry>>,
}

/// An entry as it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedEntry {
    digest: String,
    parts: Vec<CoveredPart>,
    value: Value,
}

impl AcceptedEntry {
    /// Accepts `value`, which covers `coverage`.
    pub fn new(coverage: Coverage, value: Value) -> Self {
        Self { digest: coverage.digest, parts: coverage.parts, value }
    }
}

impl TrustStore {
    /// Reads what was accepted; without a file that is nothing.
    ///
    /// # Errors
    /// The file is there and cannot be read: then nobody knows what was accepted.
    pub fn open(home: &Path) -> Result<Self, HostError> {
        let file = home.join(FILE);
        if matches!(file.symlink_metadata(), Err(why) if why.kind() == io::ErrorKind::NotFound) {
            return Ok(Self { file, accepted: TrustFile::default() });
        }
        let bytes = places::read(&file)?;
        let accepted = serde_json::from_slice(&bytes).map_err(|why| {
            HostError::usage(format!("{}: does not parse: {why}", file.display()))
                .hint("remove it, and accept the configurations again with `pintle trust`")
        })?;
        Ok(Self { file, accepted })
    }

    /// How `entry` of `file` stands now, one of many that are looked at together.
    pub fn check(
        &self,
        file: &Path,
        entry: &TrustEntry,
        (search_path, hashes): (Option<&OsStr>, &mut FileHashes),
    ) -> TrustStanding {
        let accepted = self.accepted.files.get(&key(file)).and_then(|entries| entries.get(&entry.path));
        let Some(accepted) = accepted else { return TrustStanding::Unknown };
        let now = covers_by(entry, search_path, hashes);
        if now.is(&accepted.digest) {
            return TrustStanding::Trusted;
        }
        TrustStanding::Changed { accepted: accepted.value.clone(), diff: diff(accepted, &now, &entry.value) }
    }

    /// Whether anything of `file` was ever accepted.
    pub fn knows(&self, file: &Path) -> bool {
        self.accepted.files.contains_key(&key(file))
    }

    /// The digest under which `entry` of `file` was accepted.
    pub(in crate::config) fn digest(&self, file: &Path, entry: &str) -> Option<&str> {
        Some(&self.accepted.files.get(&key(file))?.get(entry)?.digest)
    }

    /// Accepts `entries` of `file`, and nothing else of it.
    pub fn accept(&mut self, file: &Path, entries: BTreeMap<String, AcceptedEntry>) {
        self.accepted.files.insert(key(file), entries);
    }

    /// Writes the file, whole or not at all; only the user can read it.
    ///
    /// # Errors
    /// The home folder cannot be written.
    pub fn save(&self) -> Result<(), HostError> {
        let text = serde_json::to_vec_pretty(&self.accepted).expect("maps with text keys always serialise");
        self.write(&text).map_err(|why| {
            HostError::failed(format!("{}: cannot be written: {why}", self.file.display()))
                .hint("name a folder that you can write with --home DIR")
        })
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        let home = self.file.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        let part = home.join(format!(".{FILE}.{}", uuid::Uuid::now_v7()));
        let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        let written = open.write_all(text).and_then(|()| open.sync_all()).and_then(|()| fs::rename(&part, &self.file));
        written.inspect_err(|_| drop(fs::remove_file(&part)))
    }
}

/// One file in the folder where it was found: the real path of the folder, and its name there. A link is not followed,
/// since whoever makes it would choose what was accepted.
fn key(file: &Path) -> String {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(file.file_name()).map_or(file.to_owned(), |(folder, name)| folder.join(name)).display().to_string()
}

fn diff(accepted: &AcceptedEntry, now: &Coverage, value: &Value) -> Vec<String> {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON always serialises");
    let (old, new) = (pretty(&accepted.value), pretty(value));
    let mut lines: Vec<String> = TextDiff::from_lines(&old, &new)
        .iter_all_changes()
        .filter_map(|change| match change.tag() {
            ChangeTag::Delete => Some(format!("- {}", change.value().trim_end())),
            ChangeTag::Insert => Some(format!("+ {}", change.value().trim_end())),
            ChangeTag::Equal => None,
        })
        .collect();
    let places = accepted.parts.iter().any(CoveredPart::is_place);
    let shown = |part: &&CoveredPart| part.what != "entry" && (places || now.linked || !part.is_place());
    let gone = accepted.parts.iter().filter(shown).filter(|part| !now.parts.contains(part));
    let come = now.parts.iter().filter(shown).filter(|part| !accepted.parts.contains(part));
    lines.extend(gone.map(|part| format!("- {} sha256:{}", part.what, part.sha256)));
    lines.extend(come.map(|part| format!("+ {} sha256:{}", part.what, part.sha256)));
    lines
}
