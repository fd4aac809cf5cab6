//! Where files are looked for. Nothing here reads the process's own environment: it is handed in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::HostError;

use super::document::MAX_FILE_BYTES;

/// The surroundings of the process, as far as configuration depends on them.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Environment variables.
    pub vars: BTreeMap<String, OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
}

impl Env {
    /// The surroundings of this process. A variable whose name is not UTF-8 is left out.
    ///
    /// # Errors
    /// There is no working directory.
    pub fn of_process() -> Result<Self, HostError> {
        let cwd = std::env::current_dir()
            .map_err(|why| HostError::failed(format!("the working directory cannot be read: {why}")))?;
        let vars = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        Ok(Self { vars, cwd })
    }

    /// The value of a variable that is set, not empty, and UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.vars.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// The folder in a variable; the XDG specification says that relative ones are to be ignored.
    fn folder(&self, name: &str) -> Option<PathBuf> {
        self.vars.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The folder of the user's own configuration, if there can be one.
    pub fn config_folder(&self) -> Option<PathBuf> {
        let base = self.folder("XDG_CONFIG_HOME").or_else(|| Some(self.folder("HOME")?.join(".config")))?;
        Some(base.join("pintle"))
    }

    /// The folder of the state: `named` (`--home`, taken from the working directory), `$PINTLE_HOME`, or the data
    /// folder.
    ///
    /// # Errors
    /// Nothing says where it is, or `$PINTLE_HOME` is relative: then every folder would have a state of its own, and a
    /// stranger's folder could bring one.
    pub fn home(&self, named: Option<&Path>) -> Result<PathBuf, HostError> {
        if let Some(named) = named {
            return Ok(self.cwd.join(named));
        }
        match self.vars.get("PINTLE_HOME").filter(|value| !value.is_empty()).map(Path::new) {
            Some(home) if home.is_absolute() => return Ok(home.to_owned()),
            Some(home) => {
                let message = format!("PINTLE_HOME is `{}`, expected an absolute path", home.display());
                return Err(
                    HostError::usage(message).hint("set it to a path from `/`, or name a folder with --home DIR")
                );
            }
            None => {}
        }
        let data = self.folder("XDG_DATA_HOME").or_else(|| Some(self.folder("HOME")?.join(".local/share")));
        data.map(|data| data.join("pintle")).ok_or_else(|| {
            let relative = ["XDG_DATA_HOME", "HOME"].into_iter().find_map(|name| Some((name, self.text(name)?)));
            let message = match relative {
                Some((name, path)) => {
                    format!("there is no home folder: {name} is relative (`{path}`), so it does not count")
                }
                None => "there is no home folder: neither PINTLE_HOME nor XDG_DATA_HOME nor HOME is set".to_owned(),
            };
            HostError::usage(message).hint("name one with --home DIR")
        })
    }
}

/// The names that a configuration file has.
pub const FILE_NAMES: [&str; 2] = ["pintle.toml", "pintle.json"];

/// The user's own configuration file in `folder`, if there is one.
///
/// # Errors
/// There are two, or nobody can tell: whoever takes away the rights to a folder takes no guard away with them.
fn file_in(folder: &Path) -> Result<Option<PathBuf>, HostError> {
    let mut files = Vec::new();
    for file in FILE_NAMES.map(|name| folder.join(name)) {
        match file.metadata() {
            Ok(of) if of.is_file() => files.push(file),
            Ok(_) => {}
            Err(error) if is_absent(&file, &error) => {}
            Err(error) => {
                let message = format!("your configuration {} cannot be looked at: {error}", file.display());
                return Err(HostError::usage(message).hint(
                    "fix the permissions of it and of the folders above, or remove it; until then nothing runs without it",
                ));
            }
        }
    }
    only_one(files)
}

/// Whether `error` says that nothing stands at `file`, not even a link that leads nowhere.
fn is_absent(file: &Path, error: &io::Error) -> bool {
    let is_none = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    is_none(error.kind()) && file.symlink_metadata().err().is_some_and(|error| is_none(error.kind()))
}

/// The only one of `files`, if there is one.
///
/// # Errors
/// There are two.
pub(super) fn only_one(files: Vec<PathBuf>) -> Result<Option<PathBuf>, HostError> {
    match files.as_slice() {
        [] => Ok(None),
        [file] => Ok(Some(file.clone())),
        [first, second, ..] => Err(both(first, second).hint("keep one of them, or name it with -c")),
    }
}

/// The failure where nobody can tell which of two files is meant.
pub(super) fn both(first: &Path, second: &Path) -> HostError {
    HostError::usage(format!("both {} and {} are there", first.display(), second.display()))
}

/// The configuration files that stand in one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderFiles {
    /// Those that are files.
    pub(super) files: Vec<PathBuf>,
    /// Those that are links to files: what a link leads to was not found here.
    pub(super) links: Vec<PathBuf>,
}

/// The configuration files of `folder`, which must be a real path.
///
/// # Errors
/// The folder is our own, and nobody can tell: whoever takes away the rights to it takes no guard away with them.
pub(super) fn files_of(folder: &Path) -> Result<FolderFiles, HostError> {
    files_of_user(folder, nix::unistd::geteuid().as_raw())
}

/// The same for the user `me`. A folder of somebody else that they keep closed, above a workspace in it, never had
/// anything for us; only its owner could have closed it.
fn files_of_user(folder: &Path, me: u32) -> Result<FolderFiles, HostError> {
    let mut found = FolderFiles::default();
    let is_ours = || folder.metadata().is_ok_and(|of| of.uid() == me);
    for file in FILE_NAMES.map(|name| folder.join(name)) {
        match file.symlink_metadata() {
            Ok(of) if of.is_file() => found.files.push(file),
            Ok(of) if of.is_symlink() && file.is_file() => found.links.push(file),
            Err(error) if !is_absent(&file, &error) && is_ours() => {
                let message = format!("{} cannot be looked at: {error}", file.display());
                return Err(HostError::usage(message).hint(format!(
                    "the folder is yours, and a configuration with guards may stand there: give yourself the rights \
                     back with `chmod u+rx {}`, or name the configuration that counts with -c FILE",
                    folder.display()
                )));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(found)
}

/// The configuration files of `folder` and of those above, the nearest first, by the real path of each; folders
/// without any are left out.
///
/// # Errors
/// One of them is our own, and nobody can tell.
fn files_above(folder: &Path) -> Result<Vec<FolderFiles>, HostError> {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let all: Result<Vec<_>, _> = real.ancestors().map(files_of).collect();
    Ok(all?.into_iter().filter(|found| *found != FolderFiles::default()).collect())
}

/// The user's own file, if there is one.
///
/// # Errors
/// There are two.
pub(super) fn own_file(env: &Env) -> Result<Option<PathBuf>, HostError> {
    Ok(env.config_folder().map(|folder| file_in(&folder)).transpose()?.flatten())
}

/// What is found from the working directory upwards, the nearest first, without the user's own file.
///
/// # Errors
/// One of the folders is our own, and cannot be looked at.
pub(super) fn found(env: &Env, own: Option<&Path>) -> Result<Vec<FolderFiles>, HostError> {
    let own = own.map(|own| own.canonicalize().unwrap_or_else(|_| own.to_owned()));
    let is_own = |file: &PathBuf| own.is_some() && file.canonicalize().ok() == own;
    let mut folders = files_above(&env.cwd)?;
    for folder in &mut folders {
        folder.files.retain(|file| !is_own(file));
        folder.links.retain(|link| !is_own(link));
    }
    folders.retain(|folder| *folder != FolderFiles::default());
    Ok(folders)
}

/// The bytes that `file` holds.
///
/// # Errors
/// It is missing, unreadable, too large, or no regular file.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, HostError> {
    let refused = |why: &dyn std::fmt::Display| HostError::usage(format!("{}: cannot be read: {why}", file.display()));
    // A pipe that nobody writes to would otherwise be waited for already while it is opened.
    let at_once = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let open = File::options().read(true).custom_flags(at_once).open(file).map_err(|why| refused(&why))?;
    if !open.metadata().map_err(|why| refused(&why))?.is_file() {
        return Err(refused(&"it is not a regular file").hint("write the configuration to a file, and name that"));
    }
    let mut bytes = Vec::new();
    open.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|why| refused(&why))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(HostError::usage(format!("{}: larger than {MAX_FILE_BYTES} bytes", file.display())));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(vars: &[(&str, &str)]) -> Env {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        Env { vars, cwd: "/srv".into() }
    }

    #[test]
    fn the_home_is_named_or_follows_from_the_environment() {
        let check = |vars: &[(&str, &str)], named: Option<&str>, expected: &str| {
            assert_eq!(env(vars).home(named.map(Path::new)).unwrap(), Path::new(expected));
        };
        let all = [("PINTLE_HOME", "/p"), ("XDG_DATA_HOME", "/d"), ("HOME", "/h")];
        check(&all, Some("n"), "/srv/n");
        check(&all, None, "/p");
        check(&all[1..], None, "/d/pintle");
        check(&[("PINTLE_HOME", ""), ("HOME", "/h")], None, "/h/.local/share/pintle");
        check(&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")], None, "/h/.local/share/pintle");
        let said = |vars: &[(&str, &str)]| env(vars).home(None).unwrap_err();
        assert_eq!(said(&[]).kind, crate::error::ErrorKind::Usage);
        for relative in ["p", ".", "../p"] {
            let error = said(&[("PINTLE_HOME", relative), ("HOME", "/h")]);
            assert_eq!(error.message, format!("PINTLE_HOME is `{relative}`, expected an absolute path"));
            check(&[("PINTLE_HOME", relative)], Some("/n"), "/n");
        }
        assert_eq!(
            said(&[("HOME", "h")]).message,
            "there is no home folder: HOME is relative (`h`), so it does not count"
        );
    }

    /// What `work` comes to for a user who is not root, whose the folder is.
    fn as_user<T: Send>(folder: &Path, work: impl FnOnce(u32) -> T + Send) -> T {
        use nix::unistd::{Uid, chown, geteuid, setfsuid};
        let me = if geteuid().is_root() { Uid::from_raw(65_534) } else { geteuid() };
        for at in [folder.to_owned(), folder.join("a"), folder.join("a/b"), folder.join("a/b/c")] {
            chown(&at, Some(me), None).unwrap();
        }
        // For the files that this thread opens, and for no other thread.
        std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                setfsuid(me);
                work(me.as_raw())
            });
            working.join().unwrap()
        })
    }

    #[test]
    fn a_folder_of_ones_own_that_was_closed_is_not_taken_for_an_empty_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/c");
        std::fs::create_dir_all(&folder).unwrap();
        let closed = root.path().join("a/b");
        std::fs::write(closed.join("pintle.toml"), "").unwrap();
        let mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
        let look = |me: u32| {
            let of = |folder: &Path| files_of_user(folder, me).map(|found| found.files.len()).map_err(|e| e.message);
            [of(&folder), of(&closed), of(root.path())]
        };
        assert_eq!(as_user(root.path(), look), [Ok(0), Ok(1), Ok(0)]);
        mode(0o000);
        let [_, at, above] = as_user(root.path(), look);
        let said = at.unwrap_err();
        assert!(said.contains("a/b/pintle.toml cannot be looked at"), "{said}");
        assert_eq!(above, Ok(0));
        // Somebody else's: it never was for us.
        assert_eq!(as_user(root.path(), |me| look(me + 1)), [Ok(0), Ok(0), Ok(0)]);
        // One may go through it and not list it, as homes are.
        mode(0o311);
        assert_eq!(as_user(root.path(), look), [Ok(0), Ok(1), Ok(0)]);
        mode(0o700);
    }

    #[test]
    fn the_configuration_folder_follows_from_the_environment() {
        assert_eq!(env(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]).config_folder(), Some("/c/pintle".into()));
        assert_eq!(env(&[("HOME", "/h")]).config_folder(), Some("/h/.config/pintle".into()));
        assert_eq!(env(&[]).config_folder(), None);
    }
}
