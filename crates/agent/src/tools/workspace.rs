//! The folder that file tools stay in.
//!
//! Every path is opened step by step below the folder's own handle, so neither `..` nor a link, not even one that is
//! put in place meanwhile, leads out of it. What was opened is then compared with what is protected.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, FileTypeExt, OpenOptions, OpenOptionsExt};
use nix::fcntl::OFlag;

use super::error::ToolError;
use super::protected::{Guard, Ids, Protected};

/// The workspace, opened once.
#[derive(Debug)]
pub(super) struct Workspace {
    dir: Dir,
    /// Canonical.
    root: PathBuf,
    /// As configured, for absolute paths that are spelled like it.
    spelled: PathBuf,
    guard: Guard,
}

/// A file that has passed every check.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) metadata: std::fs::Metadata,
}

/// Where a file is to be written.
pub(super) struct Target {
    /// Its folder.
    pub(super) parent: Dir,
    /// Its name there.
    pub(super) name: PathBuf,
    /// The metadata of what stands there now.
    pub(super) existing: Option<std::fs::Metadata>,
}

impl Workspace {
    pub(super) fn open(root: &Path, protected: &Protected) -> io::Result<Self> {
        let spelled = std::path::absolute(root)?;
        let root = root.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self { dir, root, spelled, guard: Guard::new(protected) })
    }

    /// The canonical path of the workspace.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// What says which files belong to the host.
    pub(super) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The identities of what is protected, as of now.
    pub(super) fn ids(&self) -> Ids<'_> {
        self.guard.ids()
    }

    /// `path` relative to the root; `.` for the root itself.
    fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.contains('\0') {
            return Err(ToolError::Argument(format!("{path:?} is not a path: it holds a zero byte")));
        }
        let asked = Path::new(path);
        let inside = if asked.is_absolute() {
            let tail = asked.strip_prefix(&self.root).or_else(|_| asked.strip_prefix(&self.spelled));
            tail.map_err(|_| ToolError::Outside(path.into()))?
        } else {
            asked
        };
        Ok(if inside.as_os_str().is_empty() { ".".into() } else { inside.to_owned() })
    }

    /// Opens a regular file for reading. Nothing else is ever opened: a fifo would block, a device might act.
    pub(super) fn open_file(&self, path: &str) -> Result<Opened, ToolError> {
        let relative = self.relative(path)?;
        open_regular(&self.dir, &relative, path, &self.ids())
    }

    /// Opens a folder; returns its canonical path relative to the root too, empty for the root.
    pub(super) fn open_dir(&self, path: &str) -> Result<(Dir, PathBuf), ToolError> {
        let relative = self.relative(path)?;
        let failed = |e| ToolError::io("open", path, e);
        let canonical = self.dir.canonicalize(&relative).map_err(failed)?;
        let dir = self.dir.open_dir(&relative).map_err(failed)?;
        if self.ids().hides(&real_path(&dir, || self.root.join(&canonical))) {
            return Err(ToolError::Protected(path.into(), "read"));
        }
        Ok((dir, if canonical == Path::new(".") { PathBuf::new() } else { canonical }))
    }

    /// Whether `path` is a folder that can be reached from inside.
    pub(super) fn is_dir(&self, path: &str) -> Result<bool, ToolError> {
        let relative = self.relative(path)?;
        self.dir.metadata(&relative).map(|of| of.is_dir()).map_err(|e| ToolError::io("open", path, e))
    }

    /// Where a write to `path` goes: links are followed as far as they stay inside, and folders that are missing made.
    pub(super) fn target(&self, path: &str) -> Result<Target, ToolError> {
        let relative = self.relative(path)?;
        let failed = |e| ToolError::io("write", path, e);
        let place = match self.dir.canonicalize(&relative) {
            Ok(canonical) => canonical,
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.missing(path, &relative)?,
            Err(e) => return Err(failed(e)),
        };
        let Some(name) = place.file_name() else {
            return Err(ToolError::NotAFile { path: path.into(), kind: "folder" });
        };
        let parent_path = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = self.dir.open_dir(parent_path).map_err(failed)?;
        let real = real_path(&parent, || self.root.join(parent_path)).join(name);
        let existing = existing_file(&parent, name.as_ref(), path)?;
        self.ids().check_write(path, &real, existing.as_ref())?;
        Ok(Target { parent, name: name.into(), existing })
    }

    /// Makes the folders above a file that does not exist yet; returns where it will be.
    fn missing(&self, path: &str, relative: &Path) -> Result<PathBuf, ToolError> {
        let failed = |e| ToolError::io("write", path, e);
        if self.dir.symlink_metadata(relative).is_ok() {
            return Err(ToolError::Argument(format!("`{path}` is a symbolic link to nothing; write to its target")));
        }
        let Some(name) = relative.file_name() else { return Err(ToolError::NotFound(path.into())) };
        let parent = relative.parent().unwrap_or(Path::new(""));
        let standing = parent.ancestors().find_map(|at| Some((at, self.dir.canonicalize(nonempty(at)).ok()?)));
        let Some((standing, above)) = standing else { return Err(ToolError::NotFound(path.into())) };
        let rest = parent.strip_prefix(standing).expect("an ancestor is a prefix");
        if !rest.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(ToolError::NotFound(path.into()));
        }
        let folder = above.join(rest);
        let real = self.root.join(&folder).join(name);
        self.ids().check_write(path, &real, None)?;
        if !rest.as_os_str().is_empty() {
            self.dir.create_dir_all(&folder).map_err(failed)?;
        }
        self.dir.canonicalize(nonempty(&folder)).map(|at| at.join(name)).map_err(failed)
    }
}

fn nonempty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// The metadata of what stands under `name` in `parent`, if it is a regular file.
fn existing_file(parent: &Dir, name: &Path, shown: &str) -> Result<Option<std::fs::Metadata>, ToolError> {
    match parent.symlink_metadata(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(ToolError::io("write", shown, e)),
        Ok(of) if of.is_file() => {
            let path_only = (OFlag::O_PATH | OFlag::O_NOFOLLOW).bits();
            let file = parent.open_with(name, OpenOptions::new().read(true).custom_flags(path_only));
            let metadata = file.and_then(|file| file.into_std().metadata());
            metadata.map(Some).map_err(|e| ToolError::io("write", shown, e))
        }
        Ok(of) => Err(ToolError::NotAFile { path: shown.into(), kind: kind(of.file_type()) }),
    }
}

/// Opens the regular file `path` below `dir` for reading, unless it is protected.
pub(super) fn open_regular(dir: &Dir, path: &Path, shown: &str, ids: &Ids<'_>) -> Result<Opened, ToolError> {
    let failed = |e| ToolError::io("read", shown, e);
    let before = dir.metadata(path).map_err(failed)?;
    let not_a_file = |kind| Err(ToolError::NotAFile { path: shown.into(), kind });
    if !before.is_file() {
        return not_a_file(kind(before.file_type()));
    }
    // Should it have become a fifo in between, opening it still does not wait.
    let quiet = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    let file = dir.open_with(path, OpenOptions::new().read(true).custom_flags(quiet)).map_err(failed)?.into_std();
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return not_a_file("special file");
    }
    ids.check_read(shown, &real_path(&file, || PathBuf::from(shown)), &metadata)?;
    Ok(Opened { file, metadata })
}

/// The path of what is open, as the kernel knows it: no other process can bend it.
fn real_path(open: &impl AsFd, otherwise: impl FnOnce() -> PathBuf) -> PathBuf {
    let link = format!("/proc/self/fd/{}", open.as_fd().as_raw_fd());
    std::fs::read_link(link).unwrap_or_else(|_| otherwise())
}

/// The name of a kind of thing that is not a regular file.
pub(super) fn kind(of: FileType) -> &'static str {
    if of.is_dir() {
        "folder"
    } else if of.is_symlink() {
        "symbolic link"
    } else if of.is_fifo() {
        "named pipe"
    } else if of.is_socket() {
        "socket"
    } else if of.is_char_device() || of.is_block_device() {
        "device"
    } else {
        "special file"
    }
}
