//! What keeps a command away from the host's own files: Landlock, set up by a helper process right before the shell.
//!
//! Landlock can only allow, and what it allows on a folder it allows on all below. So everything *beside* the way from
//! `/` to each protected path is allowed, and the folders *on* the way are not. It follows that a command cannot
//!
//! * create, rename or remove entries directly in a folder on the way to a protected path,
//! * list a folder on the way to a protected folder, or read a file that is made in one later.
//!
//! Where the system lets a process have mounts of its own, the first does not hold for the workspace: there the protected
//! files alone are out of reach ([`confine_in`]).
//!
//! Where something stands, and its size and dates, stay visible everywhere. A second hard link to a protected file,
//! made earlier and elsewhere, is another way to it; [`Confinement::hard_linked`] names such files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus,
};
use nix::fcntl::OFlag;

use self::shield::Shield;
use super::protected::{Identity, Protected, identity};

mod shield;

/// The kernel's interface that the rights below are named after; older kernels enforce the part that they know.
const INTERFACE: ABI = ABI::V3;

/// How well a process is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// How much of it the kernel enforces.
    pub enforced: Enforced,
    /// Protected files that have several names: another name may lead around the confinement.
    pub hard_linked: Vec<PathBuf>,
}

/// How much of a confinement the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// All of it.
    Fully,
    /// The part that this kernel knows: before Linux 6.2 a protected file can be truncated.
    Partly,
    /// Nothing: the kernel has no Landlock.
    Not,
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The kernel has Landlock and refused the rules.
    #[error("landlock: {0}")]
    Ruleset(#[from] RulesetError),
}

/// Confines the calling thread, and all that it starts, away from what is protected; there is no way back.
///
/// # Errors
/// When the kernel has Landlock and refuses the rules. Where it has none, that is not an error but told in the result.
pub fn confine(protected: &Protected) -> Result<Confinement, SandboxError> {
    confine_by(Plan::new(protected))
}

/// The same, for a command that works in `workspace`, which stays open but for what is protected there, where the system
/// has a way to do that.
///
/// # Errors
/// As those of [`confine`].
pub fn confine_in(workspace: &Path, protected: &Protected) -> Result<Confinement, SandboxError> {
    let protected = protected.resolved();
    // Without Landlock a shield could be taken down again.
    let shield = Shield::of(&protected, workspace).filter(|_| kernel_confines());
    match shield.map(|shield| shield.raise().map(|()| shield)) {
        Some(Ok(shield)) => {
            let (rest, open) = shield.rest(&protected);
            confine_by(Plan::new(&rest).leaving_open(open))
        }
        // Landlock alone is too tight, never too wide.
        Some(Err(_)) | None => confine(&protected),
    }
}

/// Whether the kernel has Landlock, asked without changing anything.
fn kernel_confines() -> bool {
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::Execute).and_then(Ruleset::create).is_ok()
}

fn confine_by(plan: Plan) -> Result<Confinement, SandboxError> {
    let handled = if plan.dirs.is_empty() { write() } else { read() | write() };
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(handled)?.create()?;
    let mut rules = Rules { ruleset, handled };
    plan.allow(&mut rules)?;
    let enforced = match rules.ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    };
    let several_names = |file: &&PathBuf| fs::metadata(file).is_ok_and(|of| of.is_file() && of.nlink() > 1);
    Ok(Confinement { enforced, hard_linked: plan.files.iter().filter(several_names).cloned().collect() })
}

fn read() -> BitFlags<AccessFs> {
    AccessFs::from_read(INTERFACE)
}

fn write() -> BitFlags<AccessFs> {
    AccessFs::from_write(INTERFACE)
}

/// The rules as they are collected.
struct Rules {
    ruleset: RulesetCreated,
    handled: BitFlags<AccessFs>,
}

impl Rules {
    fn add(&mut self, on: &File, is_dir: bool, rights: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        let fitting = if is_dir { rights } else { rights & AccessFs::from_file(INTERFACE) };
        let rights = fitting & self.handled;
        // The kernel refuses a rule that allows nothing.
        if rights.is_empty() {
            return Ok(());
        }
        (&mut self.ruleset).add_rule(PathBeneath::new(on, rights)).map(|_| ())
    }
}

/// What is protected, and the folders on the way to it.
struct Plan {
    files: BTreeSet<PathBuf>,
    dirs: BTreeSet<PathBuf>,
    /// Of files and folders: nothing may be changed directly in these.
    on_the_way: BTreeSet<PathBuf>,
    /// Of folders: nothing may be read directly in these.
    on_the_way_to_dirs: BTreeSet<PathBuf>,
    ids: BTreeSet<Identity>,
    dir_ids: BTreeSet<Identity>,
}

impl Plan {
    fn new(protected: &Protected) -> Self {
        let Protected { files, dirs, beside, .. } = protected.resolved();
        let (files, dirs) = (BTreeSet::from_iter(files), BTreeSet::from_iter(dirs));
        let above = |path: &PathBuf| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        let on_the_way_to_dirs: BTreeSet<_> = dirs.iter().flat_map(above).collect();
        // A folder that something stands in is on the way to it.
        let folders = beside.into_keys().flat_map(|folder| [above(&folder), vec![folder]].concat());
        let on_the_way =
            files.iter().flat_map(above).chain(on_the_way_to_dirs.iter().cloned()).chain(folders).collect();
        let ids = |paths: &BTreeSet<PathBuf>| -> BTreeSet<Identity> {
            paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|of| identity(&of)).collect()
        };
        let (ids, dir_ids) = (ids(&files), ids(&dirs));
        Self { files, dirs, on_the_way, on_the_way_to_dirs, ids, dir_ids }
    }

    /// The same plan, for a process that must not rename or remove the folder `open`, and may do all in it.
    fn leaving_open(mut self, open: &Path) -> Self {
        self.on_the_way.extend(open.ancestors().skip(1).map(Path::to_owned));
        self
    }

    /// Adds a rule for everything beside the ways.
    fn allow(&self, rules: &mut Rules) -> Result<(), RulesetError> {
        if self.on_the_way.is_empty() {
            return match open(Path::new("/")) {
                Ok((root, _)) => rules.add(&root, true, read() | write()),
                Err(_) => Ok(()),
            };
        }
        for folder in &self.on_the_way {
            if self.inside_protected(folder) {
                continue;
            }
            // What cannot be listed is not allowed either: the confinement is then too tight, never too wide.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                self.allow_entry(&entry.path(), rules)?;
            }
            // Below a folder on the way to files only, everything may be read.
            if !self.on_the_way_to_dirs.contains(folder)
                && let Ok((open, _)) = open(folder)
            {
                rules.add(&open, true, read())?;
            }
        }
        Ok(())
    }

    fn allow_entry(&self, path: &Path, rules: &mut Rules) -> Result<(), RulesetError> {
        if self.on_the_way.contains(path) || self.dirs.contains(path) {
            return Ok(());
        }
        // Gone, or not ours to see.
        let Ok((open, of)) = open(path) else { return Ok(()) };
        if of.is_symlink() || self.dir_ids.contains(&identity(&of)) {
            // A link is judged by what it leads to.
            return Ok(());
        }
        let is_protected = self.files.contains(path) || self.ids.contains(&identity(&of));
        rules.add(&open, of.is_dir(), if is_protected { read() } else { read() | write() })
    }

    fn inside_protected(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir))
    }
}

/// Opens `path` itself, not what it links to, only to name it.
fn open(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let flags = (OFlag::O_PATH | OFlag::O_NOFOLLOW).bits();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}
