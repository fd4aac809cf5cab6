//! A walk over a part of the workspace, without leaving it and without following links.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, FileType};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::protected::{Ids, identity};
use super::workspace::{Workspace, open_regular};

/// How deep folders are followed: each level holds a descriptor, and no sane tree comes near it.
const MAX_DEPTH: usize = 100;

/// How many entries one walk looks at before it gives up, and says so.
const MAX_VISITED: usize = 200_000;

/// How many entries of one folder are read.
const MAX_ENTRIES: usize = 100_000;

/// How much of a `.gitignore` counts, in bytes.
const MAX_IGNORE_BYTES: u64 = 256 * 1024;

/// The names in one folder, sorted.
pub(super) struct Entries {
    pub(super) names: Vec<OsString>,
    /// False when there were more than are looked at.
    pub(super) whole: bool,
}

pub(super) fn entries(dir: &Dir, cancel: &CancellationToken) -> io::Result<Entries> {
    let mut names = Vec::new();
    let mut whole = true;
    for entry in dir.entries()? {
        if names.len() == MAX_ENTRIES || cancel.is_cancelled() {
            whole = false;
            break;
        }
        names.push(entry?.file_name());
    }
    names.sort_unstable();
    Ok(Entries { names, whole })
}

/// Opens the folder `name` in `dir`: `None` if that fails, `Some(None)` if it is protected.
pub(super) fn opened_below(dir: &Dir, name: &OsString, ids: &Ids<'_>) -> Option<Option<Dir>> {
    let below = dir.open_dir(name).ok()?;
    let of = below.try_clone().ok()?.into_std_file().metadata().ok()?;
    Some((!ids.is_dir(identity(&of))).then_some(below))
}

/// One file or folder on the way.
pub(super) struct WalkEntry<'a> {
    /// The folder that holds it.
    pub(super) dir: &'a Dir,
    pub(super) name: &'a Path,
    /// Relative to the workspace.
    pub(super) path: &'a Path,
    pub(super) file_type: FileType,
}

/// The step after an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    On,
    Stop,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All was seen.
    Whole,
    /// The visitor had enough.
    Stopped,
    /// There was too much to look at.
    TooMuch,
}

/// A folder whose entries are being visited.
struct Level {
    dir: Dir,
    path: PathBuf,
    names: std::vec::IntoIter<OsString>,
    ignore: Gitignore,
}

/// A walk: depth first, in the order of names.
pub(super) struct Walk<'a> {
    ids: &'a Ids<'a>,
    cancel: &'a CancellationToken,
    /// Whether files that `.gitignore` names are seen too.
    all: bool,
    /// The `.gitignore` files above the start.
    above: Vec<Gitignore>,
    levels: Vec<Level>,
    end: End,
}

impl<'a> Walk<'a> {
    /// A walk over the folder `start`.
    pub(super) fn new(
        workspace: &Workspace,
        start: &str,
        all: bool,
        ids: &'a Ids<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<Self, ToolError> {
        let (dir, path) = workspace.open_dir(start)?;
        let mut walk = Self { ids, cancel, all, above: Vec::new(), levels: Vec::new(), end: End::Whole };
        if !all {
            for parent in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                let (dir, _) = workspace.open_dir(&parent.to_string_lossy())?;
                walk.above.push(read_ignore(&dir, parent, ids));
            }
        }
        walk.enter(dir, path).map_err(|e| ToolError::io("list", start, e))?;
        Ok(walk)
    }

    fn enter(&mut self, dir: Dir, path: PathBuf) -> io::Result<()> {
        let entries = entries(&dir, self.cancel)?;
        if !entries.whole {
            self.end = End::TooMuch;
        }
        let ignore = if self.all { Gitignore::empty() } else { read_ignore(&dir, &path, self.ids) };
        self.levels.push(Level { dir, path, names: entries.names.into_iter(), ignore });
        Ok(())
    }

    /// Shows every file and folder to `visit`.
    pub(super) fn run(mut self, visit: &mut dyn FnMut(&WalkEntry<'_>) -> Next) -> Result<End, ToolError> {
        let mut visited = 0;
        while let Some(level) = self.levels.last_mut() {
            if self.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let Some(name) = level.names.next() else {
                drop(self.levels.pop());
                continue;
            };
            visited += 1;
            if visited > MAX_VISITED {
                return Ok(End::TooMuch);
            }
            if self.visit(&name, visit) == Next::Stop {
                return Ok(End::Stopped);
            }
        }
        Ok(self.end)
    }

    fn visit(&mut self, name: &OsString, visit: &mut dyn FnMut(&WalkEntry<'_>) -> Next) -> Next {
        let Some(level) = self.levels.last() else { return Next::On };
        let Ok(of) = level.dir.symlink_metadata(name) else { return Next::On };
        let path = level.path.join(name);
        if name == ".git" || self.ignored(&path, of.is_dir()) {
            return Next::On;
        }
        let below = match of.is_dir().then(|| opened_below(&level.dir, name, self.ids)) {
            Some(Some(None)) => return Next::On,
            Some(below) => below.flatten(),
            None => None,
        };
        let found = WalkEntry { dir: &level.dir, name: name.as_ref(), path: &path, file_type: of.file_type() };
        if visit(&found) == Next::Stop {
            return Next::Stop;
        }
        match below {
            Some(_) if self.levels.len() == MAX_DEPTH => self.end = End::TooMuch,
            // A folder that cannot be listed is passed over, as its entries would be.
            Some(below) => drop(self.enter(below, path)),
            None => {}
        }
        Next::On
    }

    /// Whether the nearest `.gitignore` that has a word on `path` excludes it.
    fn ignored(&self, path: &Path, is_dir: bool) -> bool {
        let nearest_first = self.levels.iter().rev().map(|level| &level.ignore).chain(self.above.iter().rev());
        let verdict = nearest_first.map(|ignore| ignore.matched(path, is_dir)).find(|verdict| !verdict.is_none());
        verdict.is_some_and(|verdict| verdict.is_ignore())
    }
}

/// The rules of the `.gitignore` in `dir`, which is `path` in the workspace. What cannot be read has none.
fn read_ignore(dir: &Dir, path: &Path, ids: &Ids<'_>) -> Gitignore {
    let mut text = String::new();
    let read = open_regular(dir, Path::new(".gitignore"), ".gitignore", ids)
        .ok()
        .and_then(|opened| opened.file.take(MAX_IGNORE_BYTES).read_to_string(&mut text).ok());
    if read.is_none() {
        return Gitignore::empty();
    }
    let mut rules = GitignoreBuilder::new(path);
    for line in text.lines() {
        // git passes over a line that it cannot read, and so do we.
        drop(rules.add_line(None, line));
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}
