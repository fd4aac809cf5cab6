//! The folder of the state, closed to other users where it is Pintle's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use pintle_store::anchor_file::ANCHOR_PREFIX;
use pintle_store::keyring::KEY_FILE;
use pintle_store::keyring::signing::{PUBLIC_KEY_FILE, SIGNING_KEY_FILE};

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
    if !holds_only_ours(home) {
        return Err(open("and holds more than Pintle's own files; close it with `chmod 700`, or name another --home"));
    }
    fs::set_permissions(home, Permissions::from_mode(OWNER_ONLY)).map_err(|why| open(&format!("and stays so: {why}")))
}

/// Whether the folder `home` holds nothing but what Pintle keeps there.
pub(crate) fn holds_only_ours(home: &Path) -> bool {
    fs::read_dir(home).is_ok_and(|entries| {
        entries.into_iter().all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_ours)))
    })
}

/// Takes what Pintle keeps in `home` from other users, where it is ours and somebody opened it: a command that an agent
/// runs may change the mode of files that it cannot write. Says what was closed, a line each.
pub fn close_files(home: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(home) else { return Vec::new() };
    let me = nix::unistd::geteuid().as_raw();
    let mut lines: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| is_ours(name) && name != PUBLIC_KEY_FILE))
        .filter_map(|entry| {
            // Of a link, that of the link: what it leads to is not ours.
            let mode = entry.metadata().ok().filter(|of| !of.is_symlink() && of.uid() == me)?.mode() & 0o7777;
            if mode & OTHERS == 0 {
                return None;
            }
            let path = entry.path();
            let is_key = [KEY_FILE, SIGNING_KEY_FILE].iter().any(|key| path.ends_with(key));
            let then =
                if is_key { "; if others use this machine, it is no secret any more: make another one" } else { "" };
            Some(match fs::set_permissions(&path, Permissions::from_mode(mode & !OTHERS)) {
                Ok(()) => {
                    format!("{} was open to other users (mode {mode:04o}) and is closed again{then}", path.display())
                }
                Err(why) => format!("{} is open to other users (mode {mode:04o}) and stays so: {why}", path.display()),
            })
        })
        .collect();
    lines.sort();
    lines
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
    fn files_that_somebody_opened_are_closed_and_told_of() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path();
        for (name, mode) in [
            (KEY_FILE, 0o644),
            (SIGNING_KEY_FILE, 0o600),
            (PUBLIC_KEY_FILE, 0o644),
            ("pintle.db", 0o666),
            ("trust.json", 0o640),
            ("letter.txt", 0o644),
        ] {
            fs::write(home.join(name), "").unwrap();
            fs::set_permissions(home.join(name), Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink("letter.txt", home.join("pintle.db-wal")).unwrap();
        let said = close_files(home);
        let told = |name: &str| said.iter().find(|line| line.contains(name)).cloned().unwrap_or_default();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(told(KEY_FILE).contains("(mode 0644) and is closed again; if others use this machine"), "{said:?}");
        assert!(told("pintle.db").ends_with("(mode 0666) and is closed again"), "{said:?}");
        let modes = [KEY_FILE, PUBLIC_KEY_FILE, "pintle.db", "trust.json", "letter.txt"].map(|it| mode(&home.join(it)));
        assert_eq!(modes, [0o600, 0o644, 0o600, 0o600, 0o644]);
        assert_eq!(close_files(home), Vec::<String>::new());
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
