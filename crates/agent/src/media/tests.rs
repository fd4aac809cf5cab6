//! The store on a real disk, with a clock that stands still.

mod importing;
mod keeping;
mod requesting;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// The smallest thing that passes for an image.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\x01\xfe";
const MINUTE: Duration = Duration::from_secs(60);

/// A store, a folder of a hook beside it, and a clock.
struct Bench {
    root: tempfile::TempDir,
    store: Arc<MediaStore>,
    seconds: Arc<AtomicU64>,
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds)
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("hook")).unwrap();
        let seconds = Arc::new(AtomicU64::new(0));
        let store = Self::opened(root.path(), seconds.clone());
        Self { root, store, seconds }
    }

    fn opened(root: &Path, seconds: Arc<AtomicU64>) -> Arc<MediaStore> {
        let clock = move || at(seconds.load(Ordering::SeqCst));
        Arc::new(MediaStore::with_clock(root.join("media"), clock).unwrap())
    }

    fn now(&self) -> SystemTime {
        at(self.seconds.load(Ordering::SeqCst))
    }

    fn pass(&self, time: Duration) {
        self.seconds.fetch_add(time.as_secs(), Ordering::SeqCst);
    }

    fn sweep(&self) -> usize {
        self.store.sweep(self.now()).unwrap()
    }

    /// A file in the hook's folder.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.hook().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn hook(&self) -> PathBuf {
        self.root.path().join("hook")
    }

    fn turn(&self, tenant: &str, session: &str) -> TurnMedia {
        self.store.turn(scope(tenant, session))
    }

    /// The names in the store's folder.
    fn stored(&self) -> usize {
        fs::read_dir(self.root.path().join("media")).unwrap().count()
    }
}

fn scope(tenant: &str, session: &str) -> MediaScope {
    MediaScope { tenant: tenant.into(), session: session.into(), ancestors: Vec::new() }
}

fn plain(bytes: &[u8]) -> NewMedia<'_> {
    NewMedia { bytes, file_name: "a.txt", content_type: None, source: "test" }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What is said of an entry that nobody knows.
const UNKNOWN: &str = "no file of this session has this reference, or it was not used for 30 minutes";
