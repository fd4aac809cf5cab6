//! The files of agents on this machine: where they are, what stands in them, and what was there before we came.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use guard::GuardHost;
use guard::settings::KeptFile;
use host::config::Env;
use nix::fcntl::OFlag;
use serde_json::{Value, json};
use uuid::Uuid;

use super::places::GuardPlaces;

/// Longest file of settings that is read, in bytes: those of people are some kilobytes long.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The file that `path` of the table means here.
pub(crate) fn file_of(path: &str, env: &Env) -> Option<PathBuf> {
    match (path.strip_prefix("~/"), path.strip_prefix("./")) {
        (Some(below), _) => Some(Path::new(env.text("HOME")?).join(below)),
        (None, Some(below)) => Some(env.cwd.join(below)),
        (None, None) => Some(PathBuf::from(path)),
    }
}

/// What stands in `file`, if it is there.
///
/// # Errors
/// It cannot be read, or it is not a file of a length that settings have.
pub(crate) fn text_of(file: &Path) -> io::Result<Option<String>> {
    // Whoever opens a pipe would wait for its other end.
    let opened = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(file);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let length = opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    Ok(Some(text))
}

/// Where it is kept what `file` of `host` was before it was changed.
fn kept_file(places: &GuardPlaces, host: &GuardHost, file: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, file.as_os_str().as_encoded_bytes());
    places.folder.join("kept").join(format!("{}-{name}.json", host.id))
}

/// What the last installation left in `file`, and what was there before.
pub(crate) fn kept(places: &GuardPlaces, host: &GuardHost, file: &Path) -> Option<KeptFile> {
    let bytes = fs::read(kept_file(places, host, file)).ok()?;
    let kept: Value = serde_json::from_slice(&bytes).ok()?;
    let before = kept["before"].as_str().map(str::to_owned);
    Some(KeptFile { before, after: kept["after"].as_str()?.to_owned() })
}

/// Keeps that, for nobody else to read; or forgets it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_kept(
    places: &GuardPlaces,
    host: &GuardHost,
    (file, kept): (&Path, Option<&KeptFile>),
) -> io::Result<()> {
    let at = kept_file(places, host, file);
    match kept {
        Some(kept) => {
            fs::create_dir_all(at.parent().unwrap_or(&places.folder))?;
            let text = json!({"file": file, "before": kept.before, "after": kept.after}).to_string();
            // Whole or not at all: what was there before stands nowhere else.
            let beside = at.with_extension("new");
            let mut made = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            made.write_all(text.as_bytes())?;
            made.sync_all()?;
            fs::rename(beside, at)
        }
        None if at.exists() => fs::remove_file(at),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn only_files_are_read_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(text_of(&at("none")).unwrap(), None);
        fs::write(at("some"), "{}").unwrap();
        assert_eq!(text_of(&at("some")).unwrap().as_deref(), Some("{}"));
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        for name in ["pipe", "."] {
            assert!(text_of(&at(name)).unwrap_err().to_string().contains("not a regular file"), "{name}");
        }
    }
}
