//! The folder of the state, closed to other users where it is Pintle's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use store::anchor_file::ANCHOR_PREFIX;
use store::keyring::KEY_FILE;
use store::keyring::signing::{PUBLIC_KEY_FILE, SIGNING_KEY_FILE};

use crate::files::{DELIVERED, MEDIA};
use crate::health;

/// The rights of everybody but the owner, among the bits of a mode.
const OTHERS: u32 = 0o077;

/// The mode of a folder for its owner only.
const OWNER_ONLY: u32 = 0o700;

/// Takes the folder `home` from other users, if it is ours and holds nothing but what Pintle keeps there. A folder that
/// is not there yet is made closed.
///
/// # Errors
/// It stays open to others: why, and what to do.
pub fn close(home: &Path) -> Result<(), String> {
    let Ok(metadata) = fs::metadata(home) else { return Ok(()) };
    if !metadata.is_dir() || metadata.mode() & OTHERS == 0 {
        return Ok(());
    }
    let open = |why: &str| format!("{} is open to other users, {why}", home.display());
    if metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Err(open("and belongs to one of them; name a folder of your own with --home DIR"));
    }
    let only_ours = fs::read_dir(home).is_ok_and(|entries| {
        entries.into_iter().all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_ours)))
    });
    if !only_ours {
        return Err(open("and holds more than Pintle's own files; close it with `chmod 700`, or name another --home"));
    }
    fs::set_permissions(home, Permissions::from_mode(OWNER_ONLY)).map_err(|why| open(&format!("and stays so: {why}")))
}

/// Whether Pintle gives the name to what it keeps: the database with its companions, what was accepted, keys, files.
fn is_ours(name: &str) -> bool {
    [MEDIA, DELIVERED].contains(&name)
        || name.starts_with("pintle.db")
        || name == "trust.json"
        || name == health::FILE
        || name.starts_with(ANCHOR_PREFIX)
        || [KEY_FILE, SIGNING_KEY_FILE, PUBLIC_KEY_FILE].contains(&name)
        || name.starts_with(".trust.json.")
        || name.strip_prefix('.').is_some_and(|part| part.starts_with(health::FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(folder: &Path) -> u32 {
        fs::metadata(folder).unwrap().mode() & 0o777
    }

    #[test]
    fn a_folder_of_our_own_is_closed_and_another_is_told_of() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        assert_eq!(close(&home), Ok(()));
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
        for name in ["pintle.db", "pintle.db-wal", "trust.json"] {
            fs::write(home.join(name), "").unwrap();
        }
        fs::write(home.join("letter.txt"), "").unwrap();
        let said = close(&home).unwrap_err();
        assert!(said.contains("holds more than Pintle's own files"), "{said}");
        assert_eq!(mode(&home), 0o755);
        fs::remove_file(home.join("letter.txt")).unwrap();
        assert_eq!((close(&home), mode(&home)), (Ok(()), 0o700));
        fs::write(home.join("letter.txt"), "").unwrap();
        assert_eq!(close(&home), Ok(()), "closed already");
    }
}
