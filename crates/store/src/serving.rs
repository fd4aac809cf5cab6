//! One gateway for each file: whoever serves a file of SQLite holds a lock beside it, which says where it listens.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use pintle_domain::store::StoreError;

use crate::sqlite_file;

/// Keeps others from serving the same file while it lives; it ends with the process, however that ends.
#[derive(Debug)]
pub struct ServeLock {
    file: File,
    path: PathBuf,
}

impl ServeLock {
    /// Takes the file at `url`, as [`open`](crate::open) reads it; nothing where any number may serve it.
    ///
    /// # Errors
    /// Somebody else serves it, and where; or the lock cannot be had.
    pub fn take(url: &str, home: &Path) -> Result<Option<Self>, StoreError> {
        let Some(("sqlite", rest)) = url.split_once(':') else { return Ok(None) };
        // What is wrong with the URL is said when the store is opened.
        let Ok(file) = sqlite_file(rest) else { return Ok(None) };
        let mut database = home.join(file);
        if let Ok(real) = database.canonicalize() {
            database = real;
        }
        let mut name = database.clone().into_os_string();
        name.push("-serve");
        let path = PathBuf::from(name);
        let failed =
            |error: std::io::Error| StoreError::Unavailable(format!("`{}` cannot be locked: {error}", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = opened.map_err(failed)?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole())) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => {
                let mut at = String::new();
                let at = file.read_to_string(&mut at).map_or("", |_| at.trim());
                let at = if at.is_empty() { "it is just starting".to_owned() } else { format!("it listens at {at}") };
                return Err(StoreError::Conflict(format!(
                    "`{}` is served already: {at}; several servers can share a database of PostgreSQL",
                    database.display()
                )));
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).map_err(failed)?;
        Ok(Some(Self { file, path }))
    }

    /// Says where it is served.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn say(&mut self, addresses: &[String]) -> Result<(), StoreError> {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(addresses.join(", ").as_bytes())
        };
        write(&mut self.file)
            .map_err(|error| StoreError::Unavailable(format!("`{}` cannot be written: {error}", self.path.display())))
    }
}

/// All of a file, in the form of the system. The process must be 0 for locks of a description.
fn whole() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_served_once_and_a_second_one_hears_where() {
        let home = tempfile::tempdir().unwrap();
        let take = || ServeLock::take("sqlite://pintle.db", home.path());
        let mut first = take().unwrap().unwrap();
        let refused = |why: &str| {
            let said = take().unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        };
        refused("is served already: it is just starting; several servers");
        first.say(&["127.0.0.1:18790".into(), "unix:/run/x.sock".into()]).unwrap();
        refused("is served already: it listens at 127.0.0.1:18790, unix:/run/x.sock; several");
        drop(first);
        assert!(take().unwrap().is_some());
        assert!(ServeLock::take("postgres://u@h/d", home.path()).unwrap().is_none());
        assert!(ServeLock::take("memory:", home.path()).unwrap().is_none());
    }
}
