//! The key by which a hook knows that its own daemon answers: a file that only its owner reads.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A pipe in the place of a file is opened at once: whoever put it there must not make a hook wait for its other end until
/// the host loses patience, and runs the call.
pub(crate) const NEVER_WAITS: OFlag = OFlag::O_NONBLOCK;

/// Reads the key in `file`.
///
/// # Errors
/// It cannot be read, is not a key, or is not this user's alone.
pub fn read(file: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut opened = own(file)?;
    let mut key = [0; KEY_BYTES];
    opened.read_exact(&mut key)?;
    let is_whole = opened.read(&mut [0])? == 0;
    if is_whole { Ok(key) } else { Err(io::Error::other("it is longer than a key")) }
}

/// Opens `file`, if it is this user's and nobody else may read or change it.
///
/// # Errors
/// It cannot be opened, or it is not so.
pub(crate) fn own(file: &Path) -> io::Result<File> {
    let opened = File::options().read(true).custom_flags(NEVER_WAITS.bits()).open(file)?;
    let metadata = opened.metadata()?;
    if metadata.uid() != geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("others may read or change it"));
    }
    Ok(opened)
}

/// Fills a nonce or a key with what nobody can guess.
///
/// # Errors
/// The system has no randomness to give.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_a_whole_key_that_is_the_users_alone_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let kept = |bytes: &[u8], mode: u32| {
            fs::write(&file, bytes).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            read(&file).map_err(|error| error.to_string())
        };
        assert_eq!(kept(&[3; KEY_BYTES], 0o600), Ok([3; KEY_BYTES]));
        assert_eq!(kept(&[3; KEY_BYTES], 0o640), Err("others may read or change it".into()));
        assert_eq!(kept(&[3; KEY_BYTES + 1], 0o600), Err("it is longer than a key".into()));
        assert!(kept(&[3; KEY_BYTES - 1], 0o600).is_err());
    }

    #[test]
    fn no_two_nonces_are_alike() {
        assert_ne!(random::<16>().unwrap(), random::<16>().unwrap());
    }
}
