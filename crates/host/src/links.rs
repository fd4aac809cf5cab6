//! Files of Pintle's that have a second name: a hard link leads past whatever guards the first one. A command of an agent
//! is confined by where files stand, so it reads and changes through the other name what it cannot by ours.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use pintle_domain::shell_word::shell_word;
use pintle_store::keyring::KEY_FILE;
use pintle_store::keyring::signing::SIGNING_KEY_FILE;

use crate::config::Loaded;
use crate::home::close_files;
use crate::protected::operator_files;

/// Does what [`mended`] does, before any key in `home` is read. The log has its lines under a target of their own, so that
/// commands that log nothing else log these.
pub fn mend(home: &Path) {
    mended(home).iter().for_each(|line| tracing::warn!(target: "pintle.keys", "{line}"));
}

/// Takes what Pintle keeps in `home` from other users, and puts the keys that have a second name into files of their own.
/// Says what was done, a line each.
pub fn mended(home: &Path) -> Vec<String> {
    close_files(home).into_iter().chain(separate_keys(home)).collect()
}

/// Puts the keys in `home` that have a second name into files of their own. Says of which that was done, a line each.
fn separate_keys(home: &Path) -> Vec<String> {
    let keys = [KEY_FILE, SIGNING_KEY_FILE].map(|key| home.join(key));
    keys.iter().filter(|key| has_other_names(key, home)).map(|key| separated(key)).collect()
}

/// The files of `loaded` that a command may reach by a second name, a line each: those of the home folder, the store, the
/// configuration, and what hooks, rules and servers run.
pub fn second_names(loaded: &Loaded) -> Vec<String> {
    let (config, home) = (&loaded.config, &loaded.config.home);
    let store = config.store_url.strip_prefix("sqlite://").map(|file| home.join(file));
    let secret: BTreeSet<PathBuf> = files_in(home).into_iter().chain(store).collect();
    let secret = secret.iter().filter(|path| has_other_names(path, home)).map(|path| told(path, "reads and changes"));
    // What may be read anyway matters where it may be written; what belongs to the system may not.
    let is_open = |path: &&PathBuf| access(path.as_path(), AccessFlags::W_OK).is_ok();
    let files: BTreeSet<PathBuf> = operator_files(config, &loaded.files).into_iter().collect();
    let files = files.iter().filter(|path| !path.starts_with(home)).filter(is_open);
    let files = files.filter(|path| has_other_names(path, home)).map(|path| told(path, "changes"));
    secret.chain(files).collect()
}

fn told(path: &Path, does: &str) -> String {
    let shown = path.display();
    let (word, new) = (shell_word(&shown.to_string()), shell_word(&format!("{shown}.new")));
    format!(
        "`{shown}` has a second name (a hard link), by which a command of an agent {does} it past the sandbox: find it \
         with `find / -xdev -samefile {word}` and remove it, or give the file a copy of its own: `cp -p {word} {new} && mv \
         {new} {word}`"
    )
}

/// The files that stand directly in `home`.
fn files_in(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| plain(path).is_some()).collect()
}

/// What is known of `path`, if a file and no link to one.
fn plain(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok().filter(Metadata::is_file)
}

/// Whether the file at `path` has names outside of `home`. For a moment a new key has two in there.
fn has_other_names(path: &Path, home: &Path) -> bool {
    let Some(of) = fs::metadata(path).ok().filter(|of| of.is_file() && of.nlink() > 1) else { return false };
    let is_it = |other: &PathBuf| plain(other).is_some_and(|it| (it.dev(), it.ino()) == (of.dev(), of.ino()));
    let inside = files_in(home).iter().filter(|other| is_it(other)).count() as u64;
    // Of such a moment nothing may be left by now.
    let names = fs::metadata(path).map_or(0, |now| now.nlink().min(of.nlink()));
    names > inside.max(1)
}

fn separated(key: &Path) -> String {
    let shown = key.display();
    match separate(key) {
        Ok(()) => format!(
            "`{shown}` had a second name (a hard link) outside of its folder and is a file of its own again; what the other \
             name leads to is the key too: if you did not make it, make another key"
        ),
        Err(why) => format!("`{shown}` has a second name (a hard link) outside of its folder and stays so: {why}"),
    }
}

/// Puts a copy of the file `key` in its place.
fn separate(key: &Path) -> io::Result<()> {
    let content = fs::read(key)?;
    let draft = key.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let written = write_new(&draft, &content).and_then(|()| fs::rename(&draft, key));
    if written.is_err() && draft.exists() {
        fs::remove_file(&draft)?;
    }
    written?;
    File::open(key.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::{Env, LoadOptions, load};

    fn names(path: &Path) -> u64 {
        fs::metadata(path).unwrap().nlink()
    }

    #[test]
    fn a_key_with_a_second_name_gets_a_file_of_its_own() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = home.path().join(KEY_FILE);
        fs::write(&key, "the key\n").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(separate_keys(home.path()), Vec::<String>::new());
        // As it is while a key is being made.
        fs::hard_link(&key, home.path().join("draft")).unwrap();
        assert_eq!((separate_keys(home.path()), names(&key)), (vec![], 2));
        fs::remove_file(home.path().join("draft")).unwrap();

        let other = outside.path().join("notes.txt");
        fs::hard_link(&key, &other).unwrap();
        let lines = separate_keys(home.path());
        assert!(lines.len() == 1 && lines[0].contains("is a file of its own again"), "{lines:?}");
        let of = fs::metadata(&key).unwrap();
        assert_eq!(
            (of.nlink(), of.mode() & 0o777, fs::read_to_string(&key).unwrap().as_str()),
            (1, 0o600, "the key\n")
        );
        assert_eq!(names(&other), 1);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
        assert_eq!(separate_keys(home.path()), Vec::<String>::new());
    }

    #[test]
    fn the_store_the_configuration_and_scripts_with_a_second_name_are_told_of() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["user/.config/pintle", "state", "work"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let (file, script) = (at("user/.config/pintle/pintle.toml"), at("guard.sh"));
        fs::write(&script, "").unwrap();
        fs::write(at("state/pintle.db"), "").unwrap();
        let command = format!("command = ['sh', '{}']", script.display());
        fs::write(&file, format!("[hooks.processes.g]\nenabled = true\nobserve = ['*']\n{command}\n")).unwrap();
        let env = Env { vars: [("HOME".to_owned(), at("user").into_os_string())].into(), cwd: at("work") };
        let home = at("state");
        let loaded = load(&env, &LoadOptions { home: Some(&home), ..LoadOptions::default() }).unwrap();
        assert_eq!(second_names(&loaded), Vec::<String>::new());
        for (name, path) in [("a", &file), ("b", &script), ("c", &at("state/pintle.db"))] {
            fs::hard_link(path, at("work").join(name)).unwrap();
        }
        let lines = second_names(&loaded);
        assert_eq!(lines.len(), 3, "{lines:?}");
        for (path, does) in [(&file, "changes"), (&script, "changes"), (&at("state/pintle.db"), "reads and changes")] {
            let begins = format!("`{}` has a second name (a hard link), by which", path.display());
            let line = lines.iter().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("{lines:?}"));
            assert!(line.contains(&format!("a command of an agent {does} it past")), "{line}");
        }
    }

    #[test]
    fn what_is_printed_to_be_pasted_is_one_word() {
        let line = told(Path::new("/srv/it's mine/pintle.db"), "changes");
        let pasted = r"`find / -xdev -samefile '/srv/it'\''s mine/pintle.db'`";
        assert!(line.starts_with("`/srv/it's mine/pintle.db` has a") && line.contains(pasted), "{line}");
        assert!(line.contains(r"'/srv/it'\''s mine/pintle.db' '/srv/it'\''s mine/pintle.db.new' && mv"), "{line}");
        assert!(told(Path::new("/srv/a"), "changes").contains("`cp -p /srv/a /srv/a.new && mv /srv/a.new /srv/a`"));
    }
}
