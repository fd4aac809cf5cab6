//! Changes of configuration files while a conversation goes on.

use std::path::PathBuf;
use std::time::Duration;

use notify::Watcher as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::cli::terminal;
use crate::error::CliError;
use crate::host::Host;

/// How long a burst of changes to a file may go on before it is read: editors write twice and rename.
const SETTLE: Duration = Duration::from_millis(300);

/// Says when the configuration is to be read again.
pub(super) struct Changes {
    hang_ups: Signal,
    changes: mpsc::Receiver<()>,
    _watch: notify::RecommendedWatcher,
}

impl Changes {
    /// Looks at the files of `host`. Folders are watched, since editors rename.
    ///
    /// # Errors
    /// The system lets nobody watch, or no signal be handled.
    pub(super) fn of(host: &Host) -> Result<Self, CliError> {
        let (changed, changes) = mpsc::channel(1);
        // The watch reports absolute paths, and one that was given with -c may be relative.
        let files: Vec<PathBuf> = host.loaded.files.iter().filter_map(|file| std::path::absolute(file).ok()).collect();
        let folders: Vec<PathBuf> = files.iter().filter_map(|file| file.parent().map(PathBuf::from)).collect();
        let mut watch = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            let reading = matches!(event.kind, notify::EventKind::Access(_));
            if !reading && event.paths.iter().any(|path| files.contains(path)) {
                // A full queue holds a change already.
                changed.try_send(()).ok();
            }
        })
        .map_err(|error| CliError::failed(format!("configuration files cannot be watched: {error}")))?;
        for folder in folders {
            if let Err(error) = watch.watch(&folder, notify::RecursiveMode::NonRecursive) {
                terminal::note(&format!("warning: changes in {} are not seen: {error}", folder.display()));
            }
        }
        let hang_ups = signal(SignalKind::hangup())
            .map_err(|error| CliError::failed(format!("SIGHUP cannot be handled: {error}")))?;
        Ok(Self { hang_ups, changes, _watch: watch })
    }

    /// Waits for the next change.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.hang_ups.recv() => {}
            Some(()) = self.changes.recv() => {}
            else => std::future::pending().await,
        }
    }

    /// Waits until a burst of changes is over.
    pub(super) async fn settle(&mut self) {
        tokio::time::sleep(SETTLE).await;
        while self.changes.try_recv().is_ok() {}
    }
}
