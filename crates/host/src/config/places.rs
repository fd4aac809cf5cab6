//! Where files are looked for. Nothing here reads the process's own environment: it is handed in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
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

    /// The folder of the state: `named` (`--home`), `$PINTLE_HOME`, or the data folder.
    ///
    /// # Errors
    /// Nothing says where it is.
    pub fn home(&self, named: Option<&Path>) -> Result<PathBuf, HostError> {
        let variable = self.vars.get("PINTLE_HOME").filter(|value| !value.is_empty()).map(Path::new);
        if let Some(home) = named.or(variable) {
            return Ok(self.cwd.join(home));
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

/// The configuration file in `folder`, if there is one.
///
/// # Errors
/// There are two.
pub(super) fn file_in(folder: &Path) -> Result<Option<PathBuf>, HostError> {
    let [toml, json] = ["pintle.toml", "pintle.json"].map(|name| folder.join(name));
    match (toml.is_file(), json.is_file()) {
        (true, true) => Err(HostError::usage(format!("both {} and {} are there", toml.display(), json.display()))
            .hint("keep one of them, or name it with -c")),
        (true, false) => Ok(Some(toml)),
        (false, true) => Ok(Some(json)),
        (false, false) => Ok(None),
    }
}

/// The nearest configuration file in `folder` or above.
///
/// # Errors
/// There are two in one folder.
pub(super) fn file_above(folder: &Path) -> Result<Option<PathBuf>, HostError> {
    folder.ancestors().find_map(|folder| file_in(folder).transpose()).transpose()
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
        return Err(refused(&"it is no regular file").hint("write the configuration to a file, and name that"));
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
        let all = [("PINTLE_HOME", "p"), ("XDG_DATA_HOME", "/d"), ("HOME", "/h")];
        check(&all, Some("n"), "/srv/n");
        check(&all, None, "/srv/p");
        check(&all[1..], None, "/d/pintle");
        check(&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")], None, "/h/.local/share/pintle");
        let said = |vars: &[(&str, &str)]| env(vars).home(None).unwrap_err();
        assert_eq!(said(&[]).kind, crate::error::ErrorKind::Usage);
        assert_eq!(
            said(&[("HOME", "h")]).message,
            "there is no home folder: HOME is relative (`h`), so it does not count"
        );
    }

    #[test]
    fn the_configuration_folder_follows_from_the_environment() {
        assert_eq!(env(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]).config_folder(), Some("/c/pintle".into()));
        assert_eq!(env(&[("HOME", "/h")]).config_folder(), Some("/h/.config/pintle".into()));
        assert_eq!(env(&[]).config_folder(), None);
    }
}
