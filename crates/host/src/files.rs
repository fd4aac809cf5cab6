//! Files that tools and hooks hand over: where they are kept, and where the user finds those that were for them.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use pintle_agent::media::{MediaStore, SWEEP_EVERY};
use pintle_domain::store::UploadStore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The folder of media, in the home folder.
pub const MEDIA: &str = "media";

/// The folder of delivered files, in the home folder.
pub const DELIVERED: &str = "delivered";

/// The media of one host. They are swept for as long as it runs.
pub struct HostMedia {
    folder: PathBuf,
    uploads: Arc<dyn UploadStore>,
    store: OnceLock<Option<Arc<MediaStore>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl HostMedia {
    /// Those below `home`, and the `uploads` that sessions took. Nothing is made before it is needed.
    pub fn new(home: &Path, uploads: Arc<dyn UploadStore>) -> Self {
        Self {
            folder: home.join(MEDIA),
            uploads,
            store: OnceLock::new(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The store, if it can be opened; otherwise the log says why. Needs a runtime.
    pub fn store(&self) -> Option<Arc<MediaStore>> {
        self.store.get_or_init(|| self.open()).clone()
    }

    fn open(&self) -> Option<Arc<MediaStore>> {
        match MediaStore::open(self.folder.clone()) {
            Ok(store) => {
                let store = Arc::new(store.with_uploads(self.uploads.clone()));
                self.tasks.spawn(sweep(store.clone(), self.stop.clone()));
                Some(store)
            }
            Err(error) => {
                tracing::warn!("files of tools and hooks cannot be kept in {}: {error}", self.folder.display());
                None
            }
        }
    }

    /// Ends the sweeping.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Takes away what nobody has used for a while, at once and from then on.
async fn sweep(store: Arc<MediaStore>, stop: CancellationToken) {
    let mut due = tokio::time::interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = due.tick() => {}
        }
        let store = store.clone();
        match tokio::task::spawn_blocking(move || store.sweep(SystemTime::now())).await {
            Ok(Ok(gone)) => tracing::debug!(gone, "media were swept"),
            Ok(Err(error)) => tracing::warn!("media cannot be swept: {error}"),
            // The runtime ends before the sweeping began.
            Err(error) if error.is_cancelled() => return,
            Err(error) => tracing::error!("sweeping media failed: {error}"),
        }
    }
}

/// The folder below `home` that files for the user are copied into; only its owner can look into it.
pub fn delivered(home: &Path) -> PathBuf {
    let folder = home.join(DELIVERED);
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
        // The copy fails for the same reason, and says so to the model.
        tracing::warn!("files cannot be delivered to {}: {error}", folder.display());
    }
    folder
}
