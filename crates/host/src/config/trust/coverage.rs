//! What an entry is made of, as digests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use pintle_domain::json::{Value, canonical};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::stamps::{FileStamp, FileStamps};
use super::{EntryCommand, TrustEntry, meant, search_path};

/// The things that trust in an entry covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// SHA-256 over all parts, in hexadecimal.
    pub digest: String,
    /// The parts.
    pub parts: Vec<CoveredPart>,
    /// Whether a link leads to one of its places.
    pub(super) linked: bool,
}

/// The digests of the files that were read in one look at many entries: hooks often share an interpreter or a script, and
/// are looked at in one moment. Whoever looks later begins anew.
#[derive(Debug, Default)]
pub struct FileHashes {
    digests: BTreeMap<PathBuf, String>,
    /// What was read, as it was then.
    pub(super) stamps: FileStamps,
}

/// Where an entry leads beside the program and the files of its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredPlace {
    kind: PlaceKind,
    path: PathBuf,
}

/// The kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// The working directory of a command.
    Dir,
    /// The workspace of an agent.
    Workspace,
    /// The file of replies of a scripted provider.
    Script,
}

/// One thing that is covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredPart {
    /// The kind of the thing: `entry`, `program PATH`, `file PATH`, `dir PATH`, `workspace PATH`, `script PATH`.
    pub what: String,
    /// SHA-256 of its content, in hexadecimal; for a program and for a folder, of its resolved path.
    pub sha256: String,
}

impl PlaceKind {
    const ALL: [Self; 3] = [Self::Dir, Self::Workspace, Self::Script];

    fn word(self) -> &'static str {
        match self {
            Self::Dir => "dir",
            Self::Workspace => "workspace",
            Self::Script => "script",
        }
    }
}

impl CoveredPlace {
    /// The place at `path`, which is absolute.
    pub fn new(kind: PlaceKind, path: PathBuf) -> Self {
        Self { kind, path }
    }

    fn part(&self, hashes: &mut FileHashes) -> CoveredPart {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let what = format!("{} {}", self.kind.word(), real.display());
        match self.kind {
            PlaceKind::Dir | PlaceKind::Workspace => CoveredPart::of(what, real.as_os_str().as_bytes()),
            PlaceKind::Script => CoveredPart::of_file(what, &real, hashes),
        }
    }

    /// Whether a link stands on the way there, so that somebody else chooses where it leads.
    fn is_linked(&self) -> bool {
        let mut plain = PathBuf::new();
        for step in self.path.components() {
            match step {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(step),
            }
        }
        self.path.canonicalize().is_ok_and(|real| real != plain)
    }
}

impl CoveredPart {
    /// Whether it is one of the places, which older acceptances do not have.
    pub(super) fn is_place(&self) -> bool {
        PlaceKind::ALL.iter().any(|kind| self.what.split_once(' ').is_some_and(|(word, _)| word == kind.word()))
    }
}

impl Coverage {
    /// Whether `digest` is that of all parts, or was made before places were parts, of places that nobody but the user
    /// chose.
    pub fn is(&self, digest: &str) -> bool {
        self.digest == digest
            || (!self.linked && digest_of(self.parts.iter().filter(|part| !part.is_place())) == digest)
    }
}

/// The things that trust in `entry` covers now: the entry in normal form, the resolved path of the first word of its
/// command, the content of each file that the user can write and that a word names, against its folder, or that its
/// texts may mean, and the resolved places that it leads to.
pub fn covers(entry: &TrustEntry, inherited_path: Option<&OsStr>) -> Coverage {
    covers_by(entry, inherited_path, &mut FileHashes::default())
}

/// The same for one of many entries that are looked at together: each file is read once.
pub fn covers_by(entry: &TrustEntry, inherited_path: Option<&OsStr>, hashes: &mut FileHashes) -> Coverage {
    let mut parts = vec![CoveredPart::of("entry".to_owned(), canonical(&without_nulls(&entry.value)).as_bytes())];
    if let Some(command) = &entry.command {
        if let Some(program) = program(command, search_path(command, inherited_path)) {
            parts.push(CoveredPart::of(format!("program {}", program.display()), program.as_os_str().as_bytes()));
        }
        let named: Vec<PathBuf> = command.argv.iter().map(|word| command.dir.join(word)).collect();
        let meant = command.texts.iter().flat_map(|text| meant::files(text, &command.dir));
        let meant: BTreeSet<PathBuf> = meant.filter(|path| !named.contains(path)).collect();
        for path in named.iter().chain(&meant) {
            parts.extend(file(path, hashes));
        }
    }
    parts.extend(entry.places.iter().map(|place| place.part(hashes)));
    let linked = entry.places.iter().any(CoveredPlace::is_linked);
    Coverage { digest: digest_of(parts.iter()), parts, linked }
}

/// One digest over all of `parts`.
fn digest_of<'a>(parts: impl Iterator<Item = &'a CoveredPart>) -> String {
    let mut all = Sha256::new();
    for part in parts {
        // Names end with a zero byte, which no path has, so that no two lists of parts read the same.
        all.update(part.what.as_bytes());
        all.update([0]);
        all.update(part.sha256.as_bytes());
    }
    hex(&all.finalize())
}

/// A key that is `null` is as if it were not there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The program that the first word names: with a slash it is taken from the folder, without one from `PATH`.
fn program(command: &EntryCommand, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let first = command.argv.first()?;
    let candidates: Vec<PathBuf> = match first.contains('/') {
        true => vec![command.dir.join(first)],
        false => std::env::split_paths(search_path?).map(|folder| command.dir.join(folder).join(first)).collect(),
    };
    let found = candidates.into_iter().find(|path| path.is_file() && access(path, AccessFlags::X_OK).is_ok())?;
    Some(found.canonicalize().unwrap_or(found))
}

fn file(path: &Path, hashes: &mut FileHashes) -> Option<CoveredPart> {
    if !path.is_file() || !replaceable(path) {
        return None;
    }
    Some(CoveredPart::of_file(format!("file {}", path.display()), path, hashes))
}

/// Whether the user can write the file, or put another one in its place.
fn replaceable(path: &Path) -> bool {
    let writable = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    writable(&real) || [path, &real].iter().any(|path| path.parent().is_some_and(writable))
}

impl FileHashes {
    pub(super) fn of(&mut self, path: &Path) -> String {
        if let Some(known) = self.digests.get(path) {
            return known.clone();
        }
        let sha256 = match path.is_file() {
            true => self.content(path).unwrap_or_else(|why| why.kind().to_string()),
            false => "no file".to_owned(),
        };
        self.digests.insert(path.to_owned(), sha256.clone());
        sha256
    }

    fn content(&mut self, path: &Path) -> io::Result<String> {
        let (mut file, mut hash) = (File::open(path)?, Sha256::new());
        // What is written while it is read has another stamp by the end.
        self.stamps.0.insert(path.to_owned(), FileStamp::of(&file.metadata()?));
        io::copy(&mut file, &mut hash)?;
        Ok(hex(&hash.finalize()))
    }
}

impl CoveredPart {
    fn of(what: String, content: &[u8]) -> Self {
        Self { what, sha256: hex(&Sha256::digest(content)) }
    }

    /// The content of the file at `path`. One that cannot be read now has no digest that one that can be read could
    /// have.
    fn of_file(what: String, path: &Path, hashes: &mut FileHashes) -> Self {
        Self { what, sha256: hashes.of(path) }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
