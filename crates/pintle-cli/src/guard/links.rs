//! Where the paths of a call lead to: a link to what is protected may have any name.

use std::cell::Cell;
use std::fmt::Display;
use std::fs::{DirEntry, File, Metadata};
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use pintle_guard::protects::{MAX_LIST_BYTES, MAX_PATH_BYTES};
use pintle_guard::{GuardedFiles, HOSTS, HostEvent, HostWhat, OnDisk, PathKind, path_named, protects_behind};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{block_in_place, spawn_blocking};

use super::folders::InForce;
use super::found_files::{FileQuestion, MAX_LOOKED, any_found, is_nothing};
use super::own_process::own_process;

mod reals;
mod second_names;

use reals::Reals;
use second_names::SecondNames;

/// How many entries of a folder are looked at for settings; one with more may have them.
const MAX_ENTRIES: usize = 10_000;

/// The working directory of whoever asks: that of the agent, not of this process.
const OWN_FOLDERS: [&str; 2] = ["/proc/self/cwd", "/proc/thread-self/cwd"];

/// Where paths begin.
struct Begin<'a> {
    cwd: &'a str,
    home: &'a str,
    real_home: PathBuf,
    /// Where paths lead to, as far as somebody has asked.
    reals: Reals,
    /// The files that are kept and have more than one name.
    second_names: SecondNames,
    /// The settings of agents that lie elsewhere than their names say: where they lie, and the name.
    linked: Vec<(PathBuf, PathBuf)>,
    /// How many entries of folders may still be looked at for patterns.
    left: Cell<usize>,
}

/// What is kept from agents on this machine, and for whom.
#[derive(Clone, Debug)]
pub(super) struct KeptFiles {
    /// The home folder of the person.
    pub(super) home: String,
    /// Our own files that are in use.
    pub(super) used: Vec<String>,
    /// The folders of agents that are elsewhere than the table says.
    pub(super) moved: Vec<String>,
    /// Whether a person lets agents change their own settings.
    pub(super) self_edit: bool,
}

/// What is to be said of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nothing.
    Free,
    /// Why it must not run, whatever rules say.
    Held(String),
    /// Why it must not run but for a person who lets agents change their own settings.
    Lifted(String),
}

impl KeptFiles {
    /// What is kept from the clients of a door, for the person whose home folder is `home`.
    pub(super) fn of_door(home: &str, in_force: &InForce) -> Self {
        Self { home: home.to_owned(), used: in_force.own.clone(), moved: Vec::new(), self_edit: false }
    }

    /// Why the call of `event` must not run, whatever rules say.
    pub(super) async fn held(self, event: &HostEvent) -> Option<String> {
        match self.look_at(event).await {
            Looked::Held(reason) | Looked::Lifted(reason) => Some(reason),
            Looked::Free => None,
        }
    }

    /// What is to be said of the call of `event`, by the names of all paths that it touches, and by what they lead to. Takes
    /// no time of whoever else runs: the file system may be slow.
    pub(super) async fn look_at(self, event: &HostEvent) -> Looked {
        let is_of_call =
            matches!(event.what, HostWhat::Tool(_) | HostWhat::Permission { .. } | HostWhat::ConfigChange { .. });
        if !is_of_call {
            return Looked::Free;
        }
        // The other tasks of the thread go on in another one: that takes less than to hand this work over and back.
        if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
            return fenced(|| block_in_place(|| self.look(event)));
        }
        let event = event.clone();
        match spawn_blocking(move || self.look(&event)).await {
            Ok(looked) => looked,
            Err(error) => unseen(error),
        }
    }

    fn look(&self, event: &HostEvent) -> Looked {
        let begin = Begin::of(&event.cwd, &self.home, [&self.used[..], &self.moved].concat());
        let disk = OnDisk {
            leads: &|path| begin.leads_to(path),
            holds: &|folder, pattern| begin.holds(folder, pattern),
            finds: &|pattern, matters| begin.finds(pattern, matters),
            says: &|path| begin.says(path),
            kind: &|path| begin.kind(path),
        };
        let (used, moved) = (with_real(&self.used, &begin.reals), with_real(&self.moved, &begin.reals));
        let own = [used.as_slice(), &moved].concat();
        let files = GuardedFiles { home: &self.home, own: &own, lifted: false };
        let Some(reason) = protects_behind(event, &files, disk) else { return Looked::Free };
        if !self.self_edit {
            return Looked::Held(reason);
        }
        let lifted = GuardedFiles { own: &used, lifted: true, ..files };
        protects_behind(event, &lifted, disk).map_or(Looked::Lifted(reason), Looked::Held)
    }
}

/// What `look` says. One that panics refuses the call: without the fence nobody would say anything of it.
fn fenced(look: impl FnOnce() -> Looked) -> Looked {
    catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| unseen("the look panicked"))
}

fn unseen(why: impl Display) -> Looked {
    Looked::Held(format!("what it touches cannot be looked at: {why}"))
}

impl<'a> Begin<'a> {
    fn of(cwd: &'a str, home: &'a str, own: Vec<String>) -> Self {
        let reals = Reals::default();
        let elsewhere = |named: PathBuf| {
            let lies = reals.real(&named);
            (lies != named).then_some((lies, named))
        };
        let settings = settings(cwd, home);
        let linked = settings.iter().cloned().filter_map(elsewhere).collect();
        let real_home = reals.real(Path::new(home));
        let second_names = SecondNames::of_kept(settings, own);
        Self { cwd, home, real_home, reals, second_names, linked, left: Cell::new(MAX_LOOKED) }
    }

    /// `path` as it is meant here, absolute.
    fn whole(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Path::new(self.home).join(rest.trim_start_matches('/'))
            }
            Some(_) | None => Path::new(self.cwd).join(path),
        }
    }

    /// Whether `folder` has something that `pattern` means, a path below it. A folder that cannot be read may have it.
    fn holds(&self, folder: &str, pattern: &str) -> bool {
        folder.len() <= MAX_PATH_BYTES && has_below(&self.whole(folder), pattern)
    }

    /// By which name `found` is known as a folder in which settings lie that are linked there. Of a folder in which the
    /// agent works, or the home folder lies, that is told by the names in it.
    fn held_below(&self, found: &Path, (lies, named): &(PathBuf, PathBuf)) -> Option<PathBuf> {
        let is_around = |path: &str| self.reals.real(Path::new(path)).starts_with(found);
        if lies == found || !lies.starts_with(found) || is_around(self.cwd) || is_around(self.home) {
            return None;
        }
        if lies.is_dir() { Some(named.clone()) } else { named.parent().map(Path::to_owned) }
    }

    /// Whether something that `pattern` stands for now matters; none where that cannot be said.
    fn finds(&self, pattern: &str, matters: &dyn Fn(&str) -> bool) -> Option<bool> {
        // Settings have a hidden name or are the system's, and whoever takes a folder above the home takes that along.
        let may_matter = |path: &Path| {
            path.to_string_lossy().contains("/.")
                || ["/etc", "/run"].iter().any(|folder| path.starts_with(folder))
                || Path::new(self.home).starts_with(path)
                || self.linked.iter().any(|(lies, _)| path.starts_with(lies) || lies.starts_with(path))
        };
        let asked = FileQuestion { may_matter: &may_matter, matters, left: &self.left };
        (pattern.len() <= MAX_PATH_BYTES).then(|| any_found(&self.whole(pattern), &asked)).flatten()
    }

    /// What the file `path` says, or the first part of it.
    fn says(&self, path: &str) -> Option<String> {
        let path = self.whole(path);
        // A pipe would wait for its other end.
        let file = path.metadata().ok().filter(Metadata::is_file).and_then(|_| File::open(path).ok())?;
        let mut said = Vec::new();
        file.take(MAX_LIST_BYTES as u64).read_to_end(&mut said).ok()?;
        Some(String::from_utf8_lossy(&said).into_owned())
    }

    /// What lies at `path`.
    fn kind(&self, path: &str) -> PathKind {
        match self.whole(path).metadata() {
            _ if path.len() > MAX_PATH_BYTES => PathKind::Unknown,
            Ok(found) if found.is_file() || found.is_dir() => PathKind::Lasting,
            Ok(_) => PathKind::Stream,
            Err(error) if is_nothing(&error) => PathKind::Nothing,
            Err(_) => PathKind::Unknown,
        }
    }

    /// Where `text` leads to, absolute, if that is elsewhere, and by which names of settings that is known besides; what
    /// lies in the home folder is told by the name that this has. Some programs take the steps up out of a path before
    /// they ask for it, and the system walks each of them: both are meant.
    fn leads_to(&self, text: &str) -> Vec<String> {
        let asked = self.whole(path_named(text));
        let without_steps = without_steps(&asked);
        let both = [(without_steps != asked).then_some(without_steps), Some(asked)];
        let told = both.into_iter().flatten().flat_map(|asked| self.leads(&asked));
        told.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    fn leads(&self, asked: &Path) -> Vec<PathBuf> {
        if asked.as_os_str().len() > MAX_PATH_BYTES {
            return Vec::new();
        }
        let own = OWN_FOLDERS.iter().find_map(|folder| asked.strip_prefix(folder).ok());
        let found = match own {
            Some(rest) => self.reals.real(&Path::new(self.cwd).join(rest)),
            None => self.reals.real(asked),
        };
        let known = |(lies, named): &(PathBuf, PathBuf)| Some(named.join(found.strip_prefix(lies).ok()?));
        let mut told: Vec<PathBuf> = self.linked.iter().filter_map(known).collect();
        told.extend(self.linked.iter().filter_map(|linked| self.held_below(&found, linked)));
        told.extend(self.second_names.of(&found));
        if found != asked {
            let rest = found.strip_prefix(&self.real_home).map(|rest| Path::new(self.home).join(rest));
            told.push(rest.unwrap_or(found));
        }
        told.extend(own_process(asked));
        told
    }
}

/// `path` as a program has it that takes each step up, and the name before it, out of a path without asking the system.
fn without_steps(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// `paths`, each once, and after them where they lie, as far as none of them says that already.
fn with_real(paths: &[String], reals: &Reals) -> Vec<String> {
    // What is there is told with a slash at its end.
    let bare = |path: &str| path.trim_end_matches('/').len();
    let mut all: Vec<String> = Vec::with_capacity(paths.len());
    let mut add = |path: &str| {
        if !all.iter().any(|known| known[..bare(known)] == path[..bare(path)]) {
            all.push(path.to_owned());
        }
    };
    paths.iter().for_each(|path| add(path));
    paths.iter().for_each(|path| add(&reals.real(Path::new(path)).to_string_lossy()));
    all
}

/// The names of files and folders of agents' settings, below a home folder or a project: each once, in the order of the
/// agents; beside each, where among them the folder stands that it lies in, if it does.
static NAMES: LazyLock<Vec<(&str, Option<usize>)>> = LazyLock::new(|| {
    let mut seen: Vec<(&str, Option<usize>)> = Vec::new();
    for name in names() {
        if seen.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let above = name.rsplit_once('/').and_then(|(above, _)| seen.iter().position(|(known, _)| *known == above));
        seen.push((name, above));
    }
    seen
});

fn names() -> impl Iterator<Item = &'static str> {
    let hosts = HOSTS.iter().map(|host| &host.config);
    hosts.flat_map(|config| {
        let folders = config.protects.iter().filter_map(|pattern| {
            let below = pattern.strip_prefix("~/").or_else(|| pattern.strip_prefix("**/"))?;
            let whole = below.split('*').next().unwrap_or(below);
            // Of a name that is known in part, the folder is meant: `.claude/settings*.json`.
            Some(whole.rsplit_once('/').map_or(whole, |(folder, _)| folder))
        });
        let files = config.switches.all.iter().filter_map(|switch| {
            switch.path.strip_prefix("~/").or_else(|| switch.path.strip_prefix("./")).filter(|path| !path.contains('*'))
        });
        folders.chain(files)
    })
}

/// The files and folders of agents' settings whose names are known, in the home folder and in the project `cwd`, as far as
/// they are there: each may be a link itself, as those are who keep their settings in a repository.
fn settings(cwd: &str, home: &str) -> Vec<PathBuf> {
    let folders = std::iter::once(home).chain((cwd != home).then_some(cwd));
    // Beside each, of which names it is known that nothing is there.
    let mut folders: Vec<(&Path, Vec<bool>)> =
        folders.map(|folder| (Path::new(folder), vec![false; NAMES.len()])).collect();
    let mut found = Vec::new();
    for (at, &(name, above)) in NAMES.iter().enumerate() {
        for (folder, missing) in &mut folders {
            // Nothing lies in a folder that is not there.
            if above.is_some_and(|above| missing[above]) {
                missing[at] = true;
                continue;
            }
            let named = folder.join(name);
            match named.symlink_metadata() {
                Ok(_) => found.push(named),
                // What nobody can look at leads nowhere, but says nothing of what lies in it.
                Err(error) => missing[at] = is_nothing(&error),
            }
        }
    }
    found
}

/// Whether something lies in `folder` that `pattern` means: `.x/settings*.json`, or `.x/**`, which is `.x` itself, too. What
/// cannot be looked at, or is more than is looked at, may have it.
fn has_below(folder: &Path, pattern: &str) -> bool {
    let (name, rest) = pattern.split_once('/').map_or((pattern, None), |(name, rest)| (name, Some(rest)));
    let goes_on = |path: &Path| rest.is_none_or(|rest| has_below(path, rest));
    if name == "**" {
        return may_be(folder);
    }
    let Some((begin, end)) = name.split_once('*') else {
        let path = folder.join(name);
        return may_be(&path) && goes_on(&path);
    };
    let mut entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => return !is_nothing(&error),
    };
    let fits = |name: &str| name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end);
    let has = |entry: io::Result<DirEntry>| match entry {
        Ok(entry) => entry.file_name().to_str().is_some_and(fits) && goes_on(&entry.path()),
        Err(_) => true,
    };
    entries.by_ref().take(MAX_ENTRIES).any(has) || entries.next().is_some()
}

/// Whether something may be at `path`.
fn may_be(path: &Path) -> bool {
    path.symlink_metadata().err().is_none_or(|error| !is_nothing(&error))
}

#[cfg(test)]
mod tests;
