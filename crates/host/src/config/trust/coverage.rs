//! What an entry is made of, as digests.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use domain::json::{Value, canonical};
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{EntryCommand, TrustEntry, search_path};

/// The things that trust in an entry covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// SHA-256 over all parts, in hexadecimal.
    pub digest: String,
    /// The parts.
    pub parts: Vec<CoveredPart>,
}

/// One thing that is covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredPart {
    /// The kind of the thing: `entry`, `program PATH`, `file PATH`.
    pub what: String,
    /// SHA-256 of its content, in hexadecimal; for a program, of its resolved path.
    pub sha256: String,
}

/// The things that trust in `entry` covers now: the entry in normal form, the resolved path of the first word of its
/// command, and the content of each word that resolves, against its folder, to a regular file that the user can write.
pub fn covers(entry: &TrustEntry, inherited_path: Option<&OsStr>) -> Coverage {
    let mut parts = vec![CoveredPart::of("entry".to_owned(), canonical(&without_nulls(&entry.value)).as_bytes())];
    if let Some(command) = &entry.command {
        if let Some(program) = program(command, search_path(command, inherited_path)) {
            parts.push(CoveredPart::of(format!("program {}", program.display()), program.as_os_str().as_bytes()));
        }
        for word in &command.argv {
            parts.extend(file(&command.dir.join(word)));
        }
    }
    let mut all = Sha256::new();
    for part in &parts {
        // Names end with a zero byte, which no path has, so that no two lists of parts read the same.
        all.update(part.what.as_bytes());
        all.update([0]);
        all.update(part.sha256.as_bytes());
    }
    Coverage { digest: hex(&all.finalize()), parts }
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

fn file(path: &Path) -> Option<CoveredPart> {
    if !path.is_file() || !replaceable(path) {
        return None;
    }
    let what = format!("file {}", path.display());
    // A file that cannot be read now has no digest that one that can be read could have.
    Some(match content(path) {
        Ok(sha256) => CoveredPart { what, sha256 },
        Err(why) => CoveredPart { what, sha256: why.kind().to_string() },
    })
}

/// Whether the user can write the file, or put another one in its place.
fn replaceable(path: &Path) -> bool {
    let writable = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    writable(&real) || [path, &real].iter().any(|path| path.parent().is_some_and(writable))
}

fn content(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hex(&hash.finalize()))
}

impl CoveredPart {
    fn of(what: String, content: &[u8]) -> Self {
        Self { what, sha256: hex(&Sha256::digest(content)) }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
