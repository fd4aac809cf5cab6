//! Makes single files of the workspace unwritable, so that Landlock need not close the folders that they stand in.
//!
//! Landlock can only allow, and on folders with all below them. So a file that is not to be changed would close its
//! folder to whatever creates, renames or removes there. In a mount namespace of its own a process can lay each such
//! file over itself, read-only; and each folder on the way to it, as it is, because the place of a mount cannot be
//! renamed or removed. Landlock then keeps the process from undoing it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{getegid, geteuid};

use crate::tools::protected::Protected;

/// What of the protected files lies below a workspace: all that is there, unless it has a second name, by which it could
/// be reached. Configurations that are not there yet count for nothing when they appear: nobody accepted them.
pub(super) struct Shield {
    workspace: PathBuf,
    inside: BTreeSet<PathBuf>,
    /// What need not be kept from appearing.
    absent: BTreeSet<PathBuf>,
}

impl Shield {
    /// The shield for `workspace`; none if nothing in it can be shielded.
    pub(super) fn of(protected: &Protected, workspace: &Path) -> Option<Self> {
        let workspace = workspace.canonicalize().ok()?;
        let below = |path: &&PathBuf| path.starts_with(&workspace) && **path != workspace;
        let is_name = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            protected.names.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
        };
        let (mut inside, mut absent) = (BTreeSet::new(), BTreeSet::new());
        for path in protected.files.iter().filter(below) {
            match fs::symlink_metadata(path) {
                Ok(of) if of.is_dir() || of.nlink() == 1 => drop(inside.insert(path.clone())),
                Err(_) if is_name(path) => drop(absent.insert(path.clone())),
                // Landlock closes the folder, as it would without a shield.
                Ok(_) | Err(_) => return None,
            }
        }
        // Whatever is made beside a hook's script is loaded by it, perhaps. The workspace itself has to stay open.
        inside.extend(protected.beside.keys().filter(below).filter(|folder| folder.is_dir()).cloned());
        let covers = |path: &PathBuf| workspace.starts_with(path) || path.starts_with(&workspace);
        let is_closed = protected.dirs.iter().any(covers) || protected.files.iter().any(|it| workspace.starts_with(it));
        (!inside.is_empty() && !is_closed).then_some(Self { workspace, inside, absent })
    }

    /// Raises it around the calling thread.
    ///
    /// # Errors
    /// The system has no such namespaces, or does not let this user have one.
    pub(super) fn raise(&self) -> Result<(), Errno> {
        enter_namespace()?;
        let none = None::<&Path>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        let above = |path: &PathBuf| {
            let ways = path.ancestors().skip(1).take_while(|way| *way != self.workspace);
            ways.map(Path::to_owned).collect::<Vec<_>>()
        };
        // Below a folder that is unwritable everything is.
        let is_below = |path: &&PathBuf| path.ancestors().skip(1).any(|way| self.inside.contains(way));
        let roots: Vec<&PathBuf> = self.inside.iter().filter(|path| !is_below(path)).collect();
        let ways: BTreeSet<PathBuf> = roots.iter().copied().flat_map(above).collect();
        // From above to below: what is laid over a folder later would hide what was laid over its files before.
        for way in &ways {
            mount(Some(way), way, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
        }
        for path in roots {
            mount(Some(path), path, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
            let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | kept_flags(path)?;
            mount(none, path, none, flags, none)?;
        }
        Ok(())
    }

    /// What Landlock still has to keep, and the folder that it has to leave open.
    pub(super) fn rest(&self, protected: &Protected) -> (Protected, &Path) {
        let is_shielded = |path: &PathBuf| self.inside.contains(path) || self.absent.contains(path);
        let files = protected.files.iter().filter(|path| !is_shielded(path)).cloned().collect();
        // What of these lies in the workspace is shielded, but for the workspace itself, which could only be closed whole.
        let outside = |(folder, _): &(&PathBuf, &String)| !folder.starts_with(&self.workspace);
        let beside = protected.beside.iter().filter(outside).map(|(path, of)| (path.clone(), of.clone())).collect();
        (Protected { files, beside, ..protected.clone() }, &self.workspace)
    }
}

/// Gives the calling thread mounts of its own.
fn enter_namespace() -> Result<(), Errno> {
    let (uid, gid) = (geteuid(), getegid());
    if uid.is_root() {
        // Within a namespace of users, root would own no files but its own.
        return unshare(CloneFlags::CLONE_NEWNS);
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    let write = |file: &str, text: String| fs::write(file, text).map_err(|_| Errno::EPERM);
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// The flags of the mount that `path` is on, which must not be lost where somebody else set them.
fn kept_flags(path: &Path) -> Result<MsFlags, Errno> {
    let has = statvfs(path)?.flags();
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    Ok(pairs.into_iter().filter(|(of, _)| has.contains(*of)).fold(MsFlags::empty(), |all, (_, flag)| all | flag))
}
