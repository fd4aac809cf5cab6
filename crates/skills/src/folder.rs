//! The folder of one skill, opened once. Every path in it is opened below that handle, in one step of the kernel
//! (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS`, or step by step where it has none), so that neither `..`
//! nor a link leads out of it, whoever changes it meanwhile.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, FileTypeExt as _, OpenOptions, OpenOptionsExt as _};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use pintle_domain::nearest::nearest;
use pintle_domain::skill::finding::FileRefusal;
use pintle_domain::skill::seal::SkillSeal;

/// Most entries of a folder that are looked at where names are listed: a folder of more is not a folder of texts.
const MAX_LISTED: usize = 4096;

/// Most files of a skill that are named: what a model chooses from.
const MAX_NAMED: usize = 100;

/// What the model reads of a skill.
pub(super) const BODY: &str = "SKILL.md";

/// The folder of hooks in that of a skill: their texts go in by themselves.
pub(super) const HOOKS: &str = "hooks";

/// Most files of a skill that can be accepted: a folder of more is not a skill.
const MAX_FILES: usize = 2048;

/// Most bytes of a skill that can be accepted, all files together: far more than models read.
const MAX_BYTES: u64 = 64 << 20;

/// Says of an opened file whether it is hidden from whoever reads skills.
pub type IsHidden<'a> = &'a dyn Fn(&File) -> bool;

/// What of a skill's folder may be read.
#[derive(Clone, Copy, Default)]
pub struct ReadLimits<'a> {
    /// Only files that it covers; all of them without it.
    pub seal: Option<&'a SkillSeal>,
    /// Nothing of which it says so.
    pub hidden: Option<IsHidden<'a>>,
}

/// The folder of a skill.
pub struct SkillFolder<'a> {
    dir: Dir,
    limits: ReadLimits<'a>,
}

/// Why a file of a skill is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFileError {
    /// In one word.
    pub why: FileRefusal,
    /// What is to be known beyond it; may be empty.
    pub detail: String,
}

impl SkillFileError {
    /// A refusal that its word says all of.
    pub fn plain(why: FileRefusal) -> Self {
        Self { why, detail: String::new() }
    }

    fn new(why: FileRefusal, detail: impl Into<String>) -> Self {
        Self { why, detail: detail.into() }
    }
}

/// Behind the name of the file: what is wrong with it.
impl fmt::Display for SkillFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why.said())?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}

impl<'a> SkillFolder<'a> {
    /// Opens a folder, which may be a link to one, to read no more of it than `limits` has.
    ///
    /// # Errors
    /// It is not there, or no folder, or the system refuses.
    pub fn open(path: &Path, limits: ReadLimits<'a>) -> io::Result<Self> {
        Ok(Self { dir: Dir::open_ambient_dir(path, ambient_authority())?, limits })
    }

    /// All files of the folder and of those below, with what each holds. Links are followed to files inside.
    ///
    /// # Errors
    /// There are more files, or more bytes, than anybody could look through; or one cannot be read.
    pub fn seal(&self) -> Result<SkillSeal, SkillFileError> {
        let mut seal = SkillSeal::default();
        let (mut folders, mut entries, mut left) = (vec![PathBuf::from(".")], 0, MAX_BYTES);
        while let Some(folder) = folders.pop() {
            let listed = self.dir.read_dir(&folder).map_err(|error| self.refused(&folder, &error))?;
            for entry in listed {
                let entry = entry.map_err(|error| self.refused(&folder, &error))?;
                entries += 1;
                if entries > MAX_FILES {
                    let detail = format!("the folder holds more than {MAX_FILES} files");
                    return Err(SkillFileError::new(FileRefusal::TooLarge, detail));
                }
                let path = folder.join(entry.file_name());
                let is_folder = entry.file_type().is_ok_and(|of| of.is_dir());
                if is_folder {
                    folders.push(path);
                    continue;
                }
                // What is not a file, or leads out, is never read either.
                if !self.dir.metadata(&path).is_ok_and(|of| of.is_file()) {
                    continue;
                }
                let bytes = self.read(&path, usize::try_from(left).unwrap_or(usize::MAX))?;
                left = left.saturating_sub(bytes.len() as u64);
                seal.add(&path, &bytes);
            }
        }
        Ok(seal)
    }

    /// The files of the folder that somebody might name, sorted, and how many more there are: nothing hidden, nothing
    /// that only a machine reads, no hooks.
    pub fn files(&self) -> (Vec<String>, usize) {
        let (mut folders, mut files, mut seen) = (vec![PathBuf::new()], Vec::new(), 0);
        while let Some(folder) = folders.pop() {
            let at = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            for entry in self.dir.read_dir(at).into_iter().flatten().flatten() {
                seen += 1;
                let (path, name) = (folder.join(entry.file_name()), entry.file_name());
                let name = name.to_string_lossy();
                let is_noise = name.starts_with('.') || name == "__pycache__" || name == "node_modules";
                if seen > MAX_LISTED || is_noise || path == Path::new(HOOKS) {
                    continue;
                }
                let of = self.dir.metadata(&path);
                if entry.file_type().is_ok_and(|of| of.is_dir()) {
                    folders.push(path);
                } else if of.is_ok_and(|of| of.is_file()) && self.limits.seal.is_none_or(|seal| seal.names(&path)) {
                    files.push(path.to_string_lossy().into_owned());
                }
            }
        }
        files.sort();
        let more = files.len().saturating_sub(MAX_NAMED);
        files.truncate(MAX_NAMED);
        (files, more)
    }

    /// The one file that is called like `path` but for the case of its letters.
    pub(super) fn alike(&self, path: &Path) -> Option<PathBuf> {
        let asked = path.to_str()?.trim_start_matches("./");
        let mut alike = self.files().0.into_iter().filter(|file| file.eq_ignore_ascii_case(asked));
        alike.next().filter(|_| alike.next().is_none()).map(PathBuf::from)
    }

    /// What `path` holds, or the one file that is called so but for the case of its letters; at most `max_bytes` of it.
    ///
    /// # Errors
    /// As [`read`](Self::read); where there is no such file, with the name that was probably meant.
    pub fn read_alike(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, SkillFileError> {
        let missing = match self.read(path, max_bytes) {
            Err(why) if why.why == FileRefusal::Missing => why,
            read => return read,
        };
        if let Some(alike) = self.alike(path) {
            return self.read(&alike, max_bytes);
        }
        let files = self.files().0;
        let meant = path.to_str().and_then(|asked| nearest(asked, files.iter().map(String::as_str)));
        Err(match meant {
            Some(meant) if missing.detail.is_empty() => {
                SkillFileError::new(FileRefusal::Missing, format!("did you mean `{meant}`?"))
            }
            Some(_) | None => missing,
        })
    }

    /// What `path` holds, at most `max_bytes` of it.
    ///
    /// # Errors
    /// It is not there, leads out of the folder, is not a regular file, is larger, is hidden or not what was accepted, or
    /// the system refuses.
    pub fn read(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, SkillFileError> {
        // A device acts already when it is opened, so what is none is sorted out first.
        regular(self.dir.metadata(path).map_err(|error| self.refused(path, &error))?.file_type())?;
        // Should it have become a pipe meanwhile, opening it does not wait.
        let quiet = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
        let opened = self.dir.open_with(path, OpenOptions::new().read(true).custom_flags(quiet));
        let file = opened.map_err(|error| self.refused(path, &error))?;
        let of = file.metadata().map_err(|error| self.refused(path, &error))?;
        regular(of.file_type())?;
        let file = file.into_std();
        if self.limits.hidden.is_some_and(|is_hidden| is_hidden(&file)) {
            return Err(SkillFileError::plain(FileRefusal::Protected));
        }
        let too_large = |bytes: u64| {
            SkillFileError::new(FileRefusal::TooLarge, format!("{bytes} bytes, at most {max_bytes} are read"))
        };
        let max = max_bytes as u64;
        if of.len() > max {
            return Err(too_large(of.len()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(of.len()).unwrap_or_default());
        file.take(max + 1).read_to_end(&mut bytes).map_err(|error| self.refused(path, &error))?;
        if bytes.len() > max_bytes {
            return Err(too_large(bytes.len() as u64));
        }
        if self.limits.seal.is_some_and(|seal| !seal.covers(path, &bytes)) {
            return Err(SkillFileError::plain(FileRefusal::NotAccepted));
        }
        Ok(bytes)
    }

    /// Whether `path` is a folder inside this one. None if there is nothing.
    ///
    /// # Errors
    /// It leads out of the folder, or to nothing, or the system refuses.
    pub fn is_folder(&self, path: &Path) -> Result<Option<bool>, SkillFileError> {
        match self.dir.metadata(path) {
            Ok(of) => Ok(Some(of.is_dir())),
            Err(error) => match self.refused(path, &error) {
                gone if gone == SkillFileError::plain(FileRefusal::Missing) => Ok(None),
                refused => Err(refused),
            },
        }
    }

    /// Whether a file for which `is` says so of its name stands in the folder `path`.
    pub(super) fn has(&self, path: &Path, is: impl Fn(&str) -> bool) -> bool {
        let entries = self.dir.read_dir(path).into_iter().flatten().take(MAX_LISTED).flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(&is))
    }

    fn refused(&self, path: &Path, error: &io::Error) -> SkillFileError {
        let is = |errno: Errno| error.raw_os_error() == Some(errno as i32);
        // An escape is reported without a number of the system.
        let escapes = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        if escapes || is(Errno::EXDEV) {
            SkillFileError::plain(FileRefusal::Outside)
        } else if is(Errno::ELOOP) {
            SkillFileError::new(FileRefusal::Unreadable, "its links lead in a circle, or too far")
        } else if error.kind() == io::ErrorKind::NotFound {
            let link = self.dir.symlink_metadata(path).is_ok_and(|of| of.is_symlink());
            let detail = if link { "it is a link to nothing" } else { "" };
            SkillFileError::new(FileRefusal::Missing, detail)
        } else if error.kind() == io::ErrorKind::NotADirectory {
            SkillFileError::new(FileRefusal::Missing, "a part of the path is not a folder")
        } else {
            SkillFileError::new(FileRefusal::Unreadable, error.to_string())
        }
    }
}

/// # Errors
/// What it is instead.
fn regular(of: FileType) -> Result<(), SkillFileError> {
    let what = if of.is_file() {
        return Ok(());
    } else if of.is_dir() {
        "it is a folder"
    } else if of.is_fifo() {
        "it is a named pipe"
    } else if of.is_socket() {
        "it is a socket"
    } else if of.is_char_device() || of.is_block_device() {
        "it is a device"
    } else {
        "it is a special file"
    };
    Err(SkillFileError::new(FileRefusal::NotRegular, what))
}

/// The names of the folders in `dir`, sorted: skills that could be enabled. None if there is no such folder.
pub fn folders(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(MAX_LISTED).flatten();
    let names = entries.filter(|entry| is_folder(&entry.path())).map(|entry| entry.file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}

fn is_folder(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|of| of.is_dir())
}
