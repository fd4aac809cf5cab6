//! Hears what other processes write: the system tells of writes to the log of SQLite, so an idle program need not look.
//!
//! What is heard is only that something was written, by this process or another one. Where the system tells nothing, as
//! where too many programs listen, whoever listens goes on looking.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use pintle_domain::store::{OnRulesChanged, RuleSubscription};

/// The pauses after a write, at the end of each of which is looked. A write is seen only when its commit ends, and a
/// disk may take long to sync; and whoever writes all the time rings once a second.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(2)];

/// Where somebody listens, until it is dropped.
pub(super) struct LogListener {
    shared: Arc<Share>,
    thread: Option<JoinHandle<()>>,
}

/// What the listener and its thread both know.
#[derive(Default)]
struct Share {
    told: AtomicBool,
    ending: Mutex<Ending>,
    bell: Condvar,
}

/// How the thread comes to its end: it may be in a pause, or wait for the system.
#[derive(Default)]
struct Ending {
    over: bool,
    watch: Option<(Arc<Inotify>, WatchDescriptor)>,
}

impl LogListener {
    /// Listens to the log of the file at `path`, from a pause later on: many programs are over by then.
    pub(super) fn of(path: PathBuf, heard: OnRulesChanged) -> Self {
        Self::with(PAUSES, path, heard)
    }

    fn with(pauses: [Duration; 3], path: PathBuf, heard: OnRulesChanged) -> Self {
        let shared = Arc::new(Share::default());
        let own = shared.clone();
        let listening = move || {
            listen((&path, pauses), &own, &heard);
            own.told.store(false, Ordering::Release);
            // Whoever waited long because of us looks more often from now on.
            heard();
        };
        // Without a thread nobody is told.
        let thread = thread::Builder::new().name("pintle-listen".into()).spawn(listening).ok();
        Self { shared, thread }
    }
}

impl RuleSubscription for LogListener {
    fn is_told(&self) -> bool {
        self.shared.told.load(Ordering::Acquire)
    }

    fn may_hang(&self) -> bool {
        false
    }
}

impl Drop for LogListener {
    fn drop(&mut self) {
        let mut ending = self.shared.ending();
        ending.over = true;
        if let Some((inotify, watch)) = ending.watch.take() {
            // The end of a watch is an event, too, and wakes whoever waits for one;
            // one that is gone already has woken it.
            inotify.rm_watch(watch).ok();
        }
        drop(ending);
        self.shared.bell.notify_all();
        if let Some(thread) = self.thread.take() {
            // If it panicked, nobody was told from then on.
            drop(thread.join());
        }
    }
}

impl Share {
    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `pause`. Says whether it is over.
    fn pause(&self, pause: Duration) -> bool {
        let waited = self.bell.wait_timeout_while(self.ending(), pause, |ending| !ending.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }
}

/// Rings after writes, until it is over or the system tells of none.
fn listen((path, pauses): (&Path, [Duration; 3]), shared: &Share, heard: &OnRulesChanged) {
    if shared.pause(pauses[0]) {
        return;
    }
    let Some(inotify) = watch(path, shared) else { return };
    shared.told.store(true, Ordering::Release);
    loop {
        for pause in pauses {
            heard();
            if shared.pause(pause) {
                return;
            }
        }
        heard();
        // What was written in the pauses waits as one event, so whoever writes much does not wake this thread.
        match inotify.read_events() {
            Ok(events) if events.iter().any(|event| event.mask.contains(AddWatchFlags::IN_IGNORED)) => return,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
        if shared.pause(pauses[0]) {
            return;
        }
    }
}

/// Has the system tell of writes to the log of the file at `path`.
fn watch(path: &Path, shared: &Share) -> Option<Arc<Inotify>> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let inotify = Arc::new(Inotify::init(InitFlags::IN_CLOEXEC).ok()?);
    let watch = inotify.add_watch(Path::new(&log), AddWatchFlags::IN_MODIFY).ok()?;
    // A file that was deleted is to be missed.
    inotify.add_watch(path, AddWatchFlags::IN_ATTRIB | AddWatchFlags::IN_MOVE_SELF).ok()?;
    let mut ending = shared.ending();
    if ending.over {
        return None;
    }
    ending.watch = Some((inotify.clone(), watch));
    Some(inotify)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::sync::mpsc::{self, Receiver};

    use pintle_domain::id::TenantId;
    use pintle_domain::store::{RuleStore as _, Tenant};
    use tempfile::TempDir;

    use super::*;
    use crate::Durability;
    use crate::sqlite::Sqlite;

    /// How often it rings for one write.
    const RINGS: usize = PAUSES.len() + 1;
    /// How long somebody waits for what comes at once, before the test has failed.
    const SOON: Duration = Duration::from_secs(60);

    /// A listener without pauses that has rung for what was before.
    fn begun(folder: &TempDir) -> (LogListener, Receiver<()>) {
        let (say, heard) = mpsc::channel();
        let ring = Box::new(move || say.send(()).unwrap_or_default());
        let listener = LogListener::with([Duration::ZERO; 3], folder.path().join("it.db"), ring);
        rings(&heard);
        assert!(listener.is_told() && !listener.may_hang());
        (listener, heard)
    }

    fn rings(heard: &Receiver<()>) {
        for number in 0..RINGS {
            heard.recv_timeout(SOON).unwrap_or_else(|error| panic!("ring {number}: {error}"));
        }
    }

    #[test]
    fn it_rings_for_a_write_and_never_without_one() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["it.db", "it.db-wal"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let (listener, heard) = begun(&folder);
        for _ in 0..3 {
            let mut log = OpenOptions::new().append(true).open(folder.path().join("it.db-wal")).unwrap();
            log.write_all(b"a frame").unwrap();
            rings(&heard);
        }
        drop(listener);
        assert_eq!(heard.iter().count(), 1, "the end is told, and nothing else was");
    }

    #[test]
    fn what_another_connection_commits_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Sqlite::open(&folder.path().join("it.db"), Durability::Commit).unwrap();
        let (_own, other) = (open(), open());
        let (listener, heard) = begun(&folder);
        let id = TenantId::from("0199aaaa-0000-7000-8000-000000000001");
        let created_at = "2026-01-01T00:00:00Z".into();
        other.add_tenant(&Tenant { id, slug: "new".into(), name: "New".into(), created_at }).unwrap();
        rings(&heard);
        drop(listener);
    }

    #[test]
    fn where_the_system_tells_nothing_nobody_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (say, heard) = mpsc::channel();
        let ring = Box::new(move || say.send(()).unwrap_or_default());
        let listener = LogListener::with([Duration::ZERO; 3], folder.path().join("missing.db"), ring);
        assert_eq!(heard.iter().count(), 1);
        assert!(!listener.is_told());
    }
}
