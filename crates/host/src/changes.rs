//! Changes of configuration files, of files with rules or scripted replies, and of skills, while a program goes on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::Watcher as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::config::adopted;
use crate::config::places::FILE_NAMES;
use crate::error::HostError;
use crate::host::Host;
use crate::rule_files::is_rules;

/// How long a burst of changes to a file may go on before it is read: editors write twice and rename.
const SETTLE: Duration = Duration::from_millis(300);

/// Says when the configuration is to be read again.
pub struct Changes {
    hang_ups: Signal,
    changes: mpsc::Receiver<()>,
    changed: mpsc::Sender<()>,
    _watch: notify::RecommendedWatcher,
}

/// What has to appear before `folder`, which stands in a folder of the home, is there: it, or the one that it stands in.
fn coming(folder: &Path) -> Option<PathBuf> {
    let is_next = |path: &&Path| !path.is_dir() && path.parent().is_some_and(Path::is_dir);
    folder.ancestors().take(2).find(is_next).map(Path::to_path_buf)
}

/// What says that the person's own configuration in `folder` is new: its file, or a folder on the way there.
fn own_files(folder: &Path) -> Vec<PathBuf> {
    match folder.is_dir() {
        true => FILE_NAMES.map(|name| folder.join(name)).to_vec(),
        false => coming(folder).into_iter().collect(),
    }
}

impl Changes {
    /// Looks at the files of `host`. Folders are watched, since editors rename.
    ///
    /// # Errors
    /// The system lets nobody watch, or no signal be handled.
    pub fn of(host: &Host) -> Result<Self, HostError> {
        let (changed, changes) = mpsc::channel(1);
        // The watch reports absolute paths, and one that was given with -c may be relative.
        let absolute = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().filter_map(|path| std::path::absolute(path).ok()).collect()
        };
        let scripts = host.loaded.config.providers.values().filter_map(|provider| provider.script().cloned());
        let scripts = absolute(&scripts.collect::<Vec<_>>());
        let rules = host.loaded.config.agent_hooks.dirs.iter().map(|folder| folder.dir.clone());
        let rules = absolute(&rules.collect::<Vec<_>>());
        let adopted = adopted::folder(&host.loaded.config.home);
        // A folder with rules, or with adopted hooks, that is not there yet is seen when it comes.
        let others = adopted::files(&host.loaded.config.home).into_iter().chain(coming(&adopted));
        let own = host.env().config_folder().map(|folder| own_files(&folder)).unwrap_or_default();
        let others: Vec<PathBuf> = others.chain(own).collect();
        let files = absolute(&host.loaded.files).into_iter().chain(scripts).chain(rules.clone());
        let files: Vec<PathBuf> = files.chain(absolute(&others)).collect();
        // What appears in one of these counts.
        let skills: Vec<PathBuf> =
            host.skills.folders().into_iter().chain(Some(adopted).filter(|folder| folder.is_dir())).collect();
        let skills = absolute(&skills);
        let parents = files.iter().filter_map(|file| file.parent().map(PathBuf::from));
        let folders: BTreeSet<PathBuf> =
            parents.chain(rules.clone()).filter(|folder| folder.is_dir() || !rules.contains(folder)).collect();
        let folders: BTreeSet<PathBuf> = folders.into_iter().chain(skills.clone()).collect();
        let bell = changed.clone();
        let mut watch = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            let reading = matches!(event.kind, notify::EventKind::Access(_));
            let is_rule = |path: &Path| is_rules(path) && rules.iter().any(|dir| path.parent() == Some(dir.as_path()));
            let is_of_skill = |path: &Path| path.parent().is_some_and(|folder| skills.iter().any(|dir| dir == folder));
            if !reading && event.paths.iter().any(|path| files.contains(path) || is_rule(path) || is_of_skill(path)) {
                // A full queue holds a change already.
                bell.try_send(()).ok();
            }
        })
        .map_err(|error| HostError::failed(format!("configuration files cannot be watched: {error}")))?;
        for folder in folders {
            if let Err(error) = watch.watch(&folder, notify::RecursiveMode::NonRecursive) {
                tracing::warn!("changes in {} are not seen: {error}", folder.display());
            }
        }
        let hang_ups = signal(SignalKind::hangup())
            .map_err(|error| HostError::failed(format!("SIGHUP cannot be handled: {error}")))?;
        Ok(Self { hang_ups, changes, changed, _watch: watch })
    }

    /// Looks at what `host` names now.
    ///
    /// # Errors
    /// As [`Self::of`]; what was looked at before still is.
    pub fn follow(&mut self, host: &Host) -> Result<(), HostError> {
        let new = Self::of(host)?;
        if self.changes.try_recv().is_ok() {
            // What changed meanwhile was seen by the old watch; a full queue holds a change already.
            new.changed.try_send(()).ok();
        }
        *self = new;
        Ok(())
    }

    /// Waits for the next change.
    pub async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.hang_ups.recv() => {}
            Some(()) = self.changes.recv() => {}
            else => std::future::pending().await,
        }
    }

    /// Waits until a burst of changes is over.
    pub async fn settle(&mut self) {
        tokio::time::sleep(SETTLE).await;
        while self.changes.try_recv().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_after_the_one_that_it_stands_in() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("guard/adopted");
        assert_eq!(coming(&folder), Some(home.path().join("guard")));
        std::fs::create_dir(home.path().join("guard")).unwrap();
        assert_eq!(coming(&folder), Some(folder.clone()));
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(coming(&folder), None);
        assert_eq!(coming(Path::new("/nowhere/guard/adopted")), None);
    }

    #[test]
    fn a_configuration_that_is_new_is_seen_when_it_comes() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".config/pintle");
        assert_eq!(own_files(&folder), [home.path().join(".config")]);
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(own_files(&folder), [folder.join("pintle.toml"), folder.join("pintle.json")]);
    }
}
