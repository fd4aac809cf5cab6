//! Files that tools, hooks and users hand over: kept under a random reference, for one session, for a while.
//!
//! [`MediaStore`] is all of them; a turn works with [`TurnMedia`], which knows whose turn it is and holds what it uses.
//!
//! A `media://` reference resolves only in the tenant and session that it was made in and in the turns that these
//! delegate. Each medium is a folder of its own: its file, under a safe form of its own name so that tools can take
//! the path, and a description whose time of change is its last use. Everything is on disk, so it survives a restart,
//! and a folder appears under its final name only when it is complete.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::fcntl::OFlag;
use pintle_domain::id::{SessionId, TenantId};
use pintle_domain::identity::Identity;
use pintle_domain::store::UploadStore;
use sha2::{Digest as _, Sha256};

mod about;
mod confined;
mod content_type;
mod hold;
mod import;
mod mention;
mod name;
mod reference;
mod request;
mod sweep;
mod turn;
mod upload;
mod why;
#[cfg(test)]
mod tests;

use about::MediaInfo;
use hold::{Hold, Holds};
use why::MediaError;

pub use content_type::seen as type_of;
pub use import::MediaOrigin;
pub use mention::mention;
pub use request::first_of_turn;
pub use turn::TurnMedia;
pub use upload::reference_of;

/// Says of an opened file whether it is hidden from whoever hands files over.
pub type Hides<'a> = &'a dyn Fn(&File) -> bool;

/// The largest medium, wherever it comes from. Source: the page of the gateway.
pub const MAX_MEDIUM_BYTES: u64 = 25 * 1024 * 1024;
/// How long a medium stays after its last use: as the seed has it, long enough for a conversation to come back to it.
pub const TTL: Duration = Duration::from_secs(30 * 60);
/// How often a host should sweep: a sixth of the life of a medium, so that none stays much longer than it should.
pub const SWEEP_EVERY: Duration = Duration::from_secs(5 * 60);

/// The flags that a file of the store is opened with besides reading: never through a link, and without waiting for a
/// writer.
const PLAIN: i32 = OFlag::O_NOFOLLOW.bits() | OFlag::O_NONBLOCK.bits() | OFlag::O_NOCTTY.bits();

/// Who a reference is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaScope {
    /// Owner of the data.
    pub tenant: TenantId,
    /// The session in which new references are made.
    pub session: SessionId,
    /// The sessions on whose behalf this one works: their references resolve here too.
    pub ancestors: Vec<SessionId>,
}

impl MediaScope {
    /// The scope of a top turn of `who`.
    pub fn of(who: &Identity) -> Self {
        Self { tenant: who.tenant_id.clone(), session: who.session_id.clone(), ancestors: Vec::new() }
    }

    /// The scope of a turn that this one delegates to the session `child`.
    #[must_use]
    pub fn child(&self, child: SessionId) -> Self {
        let ancestors = std::iter::once(&self.session).chain(&self.ancestors).cloned().collect();
        Self { tenant: self.tenant.clone(), session: child, ancestors }
    }

    fn sees(&self, about: &MediaInfo) -> bool {
        self.sees_session(&about.tenant, &about.session)
    }

    fn sees_session(&self, tenant: &TenantId, session: &SessionId) -> bool {
        self.tenant == *tenant && (self.session == *session || self.ancestors.contains(session))
    }
}

/// A file that is to be kept.
#[derive(Clone, Copy, Debug)]
pub struct NewMedia<'a> {
    /// Its content.
    pub bytes: &'a [u8],
    /// Its name, as whoever made it calls it; may be hostile or empty.
    pub file_name: &'a str,
    /// Such as `image/png`, where somebody said so.
    pub content_type: Option<&'a str>,
    /// The hook, tool or channel that it comes from.
    pub source: &'a str,
}

/// A file that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaFile {
    /// `media://ID`.
    pub reference: String,
    /// Where it stands. Its name is safe to show and to pass on.
    pub path: PathBuf,
    /// That name.
    pub file_name: String,
    /// Such as `image/png`; never empty.
    pub content_type: String,
    /// How long it is.
    pub size_bytes: u64,
    /// Of its content, in hexadecimal digits.
    pub sha256: String,
}

impl MediaFile {
    /// How the text of a message names it: `[image:PATH]`, or `audio`, `video`, `file`.
    pub fn tag(&self) -> String {
        format!("[{}:{}]", content_type::family(&self.content_type), self.path.display())
    }

    /// Its content, if that still is what was kept.
    fn read(&self) -> Result<Vec<u8>, MediaError> {
        let file = File::options().read(true).custom_flags(PLAIN).open(&self.path).map_err(MediaError::Read)?;
        if !file.metadata().map_err(MediaError::Read)?.is_file() {
            return Err(MediaError::Changed);
        }
        let bytes = bounded(file)?;
        if sha256(&bytes) == self.sha256 { Ok(bytes) } else { Err(MediaError::Changed) }
    }
}

/// Tells the time.
type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// The media of all sessions, in one folder.
pub struct MediaStore {
    folder: PathBuf,
    holds: Arc<Holds>,
    clock: Clock,
    /// What clients handed over, wherever they did.
    uploads: Option<Arc<dyn UploadStore>>,
}

impl MediaStore {
    /// The store in `folder`, which is made if it is not there. Only its owner can look into it.
    ///
    /// # Errors
    /// It cannot be made, or is not a folder of ours.
    pub fn open(folder: PathBuf) -> io::Result<Self> {
        Self::with_clock(folder, SystemTime::now)
    }

    /// A store with another notion of now, with which last uses are noted.
    ///
    /// # Errors
    /// It cannot be made, or is not a folder of ours.
    pub fn with_clock(folder: PathBuf, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        Ok(Self { folder: folder.canonicalize()?, holds: Arc::default(), clock: Box::new(clock), uploads: None })
    }

    /// This store; a reference that it does not know may be that of an upload which a session took.
    #[must_use]
    pub fn with_uploads(self, uploads: Arc<dyn UploadStore>) -> Self {
        Self { uploads: Some(uploads), ..self }
    }

    /// The media of one turn in `scope`, or of anything else that works there for a while.
    pub fn turn(self: &Arc<Self>, scope: MediaScope) -> TurnMedia {
        TurnMedia::new(self.clone(), scope, Hold::new(self.holds.clone()))
    }
}

/// Whether what was last used at `last_use` has outlived its time. A clock that was set back expires nothing.
fn expired(last_use: SystemTime, now: SystemTime) -> bool {
    now.duration_since(last_use).is_ok_and(|idle| idle > TTL)
}

/// A new folder that only its owner can look into.
fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// A new file that only its owner can read.
fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// All of `file`, unless it is larger than a medium may be.
fn bounded(file: impl io::Read) -> Result<Vec<u8>, MediaError> {
    let mut bytes = Vec::new();
    file.take(MAX_MEDIUM_BYTES + 1).read_to_end(&mut bytes).map_err(MediaError::Read)?;
    if bytes.len() as u64 > MAX_MEDIUM_BYTES { Err(MediaError::TooLarge) } else { Ok(bytes) }
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
