//! Files that hold one secret: readable by their owner only, and there whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

/// Longest secret file, in bytes; a key takes less than 100.
const MAX_FILE_BYTES: u64 = 4096;

/// Bytes of a secret.
pub(super) const SECRET_BYTES: usize = 32;

/// Why a file with a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Somebody else can read it, or could have written it.
    #[error("`{}` has mode {mode:04o}, so others have access to it; run `chmod 600 {}`", path.display(), path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A folder, a device, a pipe.
    #[error("`{}` is not a plain file", .0.display())]
    Kind(PathBuf),
    /// No key is as long.
    #[error("`{}` is longer than {MAX_FILE_BYTES} bytes, so it is not a key", .0.display())]
    TooLong(PathBuf),
    /// The operating system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random,
    /// The operating system refuses.
    #[error("`{}` cannot be {doing}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The action that was being done with it, such as `read`.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

/// The content of `path`; if it does not exist, `make` says what it will hold, a line break follows, and the file is
/// created with mode 0600. Of several processes that create it at once, all read what one of them wrote.
pub(super) fn read_or_create(
    path: &Path,
    make: impl FnOnce() -> Result<Zeroizing<String>, FileError>,
) -> Result<Zeroizing<Vec<u8>>, FileError> {
    if let Some(found) = read(path)? {
        return Ok(found);
    }
    create(path, &make()?)?;
    let vanished = || io_error(path, "read")(io::ErrorKind::NotFound.into());
    read(path)?.ok_or_else(vanished)
}

/// The content of `path`; nothing if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    // Without waiting, a pipe that stands in the file's place cannot hold the boot up.
    let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error(path, "read")(e)),
    };
    let about = file.metadata().map_err(io_error(path, "read"))?;
    if !about.is_file() {
        return Err(FileError::Kind(path.into()));
    }
    if about.mode() & 0o077 != 0 {
        return Err(FileError::Open { path: path.into(), mode: about.mode() & 0o7777 });
    }
    // With room from the start, no copy of the secret is left behind by growing.
    let mut content = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES as usize + 1));
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(io_error(path, "read"))?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::TooLong(path.into()));
    }
    Ok(Some(content))
}

/// Writes a file beside `path` and links it there, which fails if another process was faster; that is as good.
fn create(path: &Path, text: &str) -> Result<(), FileError> {
    let failed = io_error(path, "created");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(&failed)?;
    let draft = draft(path)?;
    let linked = write_new(&draft, text, 0o600).and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    match linked {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.exists() => {}
        Err(e) => return Err(failed(e)),
    }
    removed.map_err(&failed)?;
    // Its name is to survive a loss of power as its content does: what is sealed with it would be lost otherwise.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Sees to it that `path`, which anybody may read, holds `text` and a line break.
pub(super) fn publish(path: &Path, text: &str) -> Result<(), FileError> {
    if fs::read(path).is_ok_and(|found| found.strip_suffix(b"\n") == Some(text.as_bytes())) {
        return Ok(());
    }
    let draft = draft(path)?;
    let placed = write_new(&draft, text, 0o644).and_then(|()| fs::rename(&draft, path));
    if placed.is_err() && draft.exists() {
        fs::remove_file(&draft).map_err(io_error(&draft, "removed"))?;
    }
    placed.map_err(io_error(path, "created"))
}

/// A name beside `path` that nobody else uses.
fn draft(path: &Path) -> Result<PathBuf, FileError> {
    let suffix: String = fresh_secret()?.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{suffix}.new"));
    Ok(draft.into())
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn io_error(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Io { path: path.into(), doing, source }
}

/// Random bytes for a secret.
pub(super) fn fresh_secret() -> Result<Zeroizing<[u8; SECRET_BYTES]>, FileError> {
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    SystemRandom::new().fill(&mut *secret).map_err(|_| FileError::Random)?;
    Ok(secret)
}

/// `secret` in hex digits.
pub(super) fn hex(secret: &[u8; SECRET_BYTES]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(2 * SECRET_BYTES));
    for byte in secret {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from_digit(half.into(), 16).expect("four bits are one hex digit"));
        }
    }
    text
}

/// The secret that `digits` spell; nothing unless they are 64 hex digits.
pub(super) fn unhex(digits: &[u8]) -> Option<Zeroizing<[u8; SECRET_BYTES]>> {
    if digits.len() != 2 * SECRET_BYTES {
        return None;
    }
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let half = char::from(*digit).to_digit(16)?;
            *byte = *byte << 4 | u8::try_from(half).ok()?;
        }
    }
    Some(secret)
}
