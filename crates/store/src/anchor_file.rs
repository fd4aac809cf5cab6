//! The file that knows a store from outside of it.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pintle_domain::anchor::{Anchor, AnchorStanding, AnchoredRule};
use pintle_domain::audit::ChainHead;
use pintle_domain::hex::hex;
use pintle_domain::id::TenantId;
use pintle_domain::shown_url::shown_url;
use pintle_domain::store::StoreError;
use sha2::{Digest as _, Sha256};

use crate::file_lock::FileLock;
use crate::lock_order::{HeldRank, LockRank};

/// How the names of these files begin.
pub const ANCHOR_PREFIX: &str = "anchor-";

/// What brings a store back that is a file.
const RESTORE: &str = "`pintle store restore FILE`";

/// What brings a store back that is a database of a server.
const RESTORE_AT_SERVER: &str = "the server's own tools";

/// Most names of guards that a message has.
const MAX_NAMES: usize = 10;

/// Bytes of the digest of a URL that a name has.
const NAME_BYTES: usize = 8;

/// How long other processes are waited for. Each has the lock for the time in which it reads and writes a small file.
const LOCK_TIME: Duration = Duration::from_secs(2);

/// The anchor of one store: a file beside the keys, written whole or not at all, by one process at a time.
#[derive(Debug)]
pub struct AnchorFile {
    path: PathBuf,
    shown: String,
    /// What brings the store back: no file is put in the place of a database of a server.
    restoring: &'static str,
    /// Whether the store is what it was when its rules were read: what is signed before is not taken for its end.
    pub(crate) is_good: AtomicBool,
    /// Whether it is not: nothing is signed over it.
    pub(crate) is_shut: AtomicBool,
    /// Whether it said that rows of those who may ask have seals: that stays so.
    has_row_seals: AtomicBool,
    /// What was found odd, each told once.
    told: Mutex<BTreeSet<String>>,
}

/// What an anchor says at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnchorNow {
    /// Why nothing of the store is relied on.
    pub(crate) shut: Option<String>,
    /// What was known.
    pub(crate) anchor: Option<Anchor>,
    /// Whether somebody who read the rules of the store found it so.
    pub(crate) is_good: bool,
}

impl AnchorFile {
    /// The anchor in `home` of the store at `url`; nothing is read yet.
    pub fn beside(home: &Path, url: &str) -> Self {
        // Two schemas of one database are two stores.
        let options = url.split_once('?').map_or("", |(_, options)| options);
        let schema = options.split('&').find(|option| option.starts_with("schema=")).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest([shown_url(url).as_str(), schema].concat()).into();
        let name = hex(digest.first_chunk::<NAME_BYTES>().expect("8 of 32 bytes"));
        Self {
            path: home.join(format!("{ANCHOR_PREFIX}{name}.json")),
            shown: shown_url(url),
            restoring: if url.starts_with("sqlite:") { RESTORE } else { RESTORE_AT_SERVER },
            is_good: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
            has_row_seals: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    /// Whether rows of those who may ask have seals, so that those without have no say.
    pub(crate) fn knows_row_seals(&self) -> bool {
        if !self.has_row_seals.load(Ordering::Relaxed) {
            // Where nobody can say what was known, nothing is taken.
            let said = self.read().map(|anchor| anchor.is_some_and(|anchor| anchor.are_rows_sealed));
            let Ok(true) = said else { return said.is_err() };
            self.has_row_seals.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Whether `why` is told for the first time.
    pub(crate) fn is_news(&self, why: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(why.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says; nothing if there is none.
    ///
    /// # Errors
    /// It cannot be read, or says nothing that can be understood.
    pub fn read(&self) -> Result<Option<Anchor>, StoreError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(StoreError::Unavailable(format!("`{}` cannot be read: {error}", self.path.display())));
            }
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            StoreError::Corrupt(format!("`{}`, which knows the store, is damaged: {error}", self.path.display()))
        })
    }

    /// What it says now.
    pub(crate) fn now(&self) -> AnchorNow {
        let is_good = self.is_good.load(Ordering::Relaxed);
        if self.is_shut.load(Ordering::Relaxed) {
            let shut = Some(format!("the store at {} is not what it was", self.shown));
            return AnchorNow { shut, anchor: None, is_good };
        }
        match self.read() {
            Ok(anchor) => AnchorNow { shut: None, anchor, is_good },
            Err(why) => AnchorNow { shut: Some(why.to_string()), anchor: None, is_good },
        }
    }

    /// Forgets the store: the next one that stands there is taken as it is.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget(&self) -> Result<(), StoreError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::Unavailable(format!("`{}` cannot be removed: {error}", self.path.display())))
            }
            Ok(()) | Err(_) => {
                self.is_shut.store(false, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// The store is what it was, or not, as somebody who read its rules found.
    pub(crate) fn stands(&self, is_good: bool) {
        self.is_good.store(is_good, Ordering::Relaxed);
        self.is_shut.store(!is_good, Ordering::Relaxed);
    }

    /// What is lost with a store that cannot be opened, and what to do; nothing if no guard is.
    pub fn lost(&self) -> Option<String> {
        let anchor = self.read().ok()??;
        let guards: Vec<&AnchoredRule> = anchor.guards().collect();
        (!guards.is_empty()).then(|| lost(&guards, self.restoring))
    }

    /// Lets `change` make something else of what it says, while no other process writes it. `change` is not given a store, so
    /// that nobody who has this lock waits for another one. Says whether it was written.
    ///
    /// # Errors
    /// Another process keeps the lock for long, the file cannot be read or written.
    fn update(&self, change: impl FnOnce(Option<Anchor>) -> Option<Anchor>) -> Result<bool, StoreError> {
        let path = self.path.with_extension("lock");
        let cannot = |why: String| StoreError::Unavailable(format!("`{}` cannot be locked: {why}", path.display()));
        let _held = HeldRank::enter(LockRank::Anchor);
        if let Some(home) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(|error| cannot(error.to_string()))?;
        }
        let _lock = FileLock::take(&path, LOCK_TIME).map_err(|error| cannot(error.to_string()))?;
        match change(self.read()?) {
            Some(next) => self.write(&next).map(|()| true).map_err(|error| self.unwritten(&error)),
            None => Ok(false),
        }
    }

    /// Writes `next` if it says `before` still; whether it did. If not, somebody else knew more meanwhile.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub(crate) fn replace(&self, before: Option<&Anchor>, next: &Anchor) -> Result<bool, StoreError> {
        self.update(|now| (now.as_ref() == before).then(|| next.clone()))
    }

    /// Writes `next`, whatever it says.
    ///
    /// # Errors
    /// As [`Self::update`], but for a file that cannot be read.
    pub(crate) fn overwrite(&self, next: &Anchor) -> Result<(), StoreError> {
        if self.read().is_err() {
            self.forget()?;
        }
        self.update(|_| Some(next.clone())).map(drop)
    }

    /// Writes it, by whoever has the lock.
    fn write(&self, anchor: &Anchor) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(anchor).expect("maps with text keys always serialise");
        // Whoever writes holds the lock, so nobody else has the same draft.
        let draft = self.path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)?;
        self.path.parent().map_or(Ok(()), |home| File::open(home)?.sync_all())
    }

    /// How the store is called, without passwords.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Writes what `change` makes of it, if it makes something else. What cannot be written is told: the anchor is old
    /// then, and says less.
    fn follow(&self, change: impl FnOnce(&mut Anchor)) {
        if !self.is_good.load(Ordering::Relaxed) {
            return;
        }
        let followed = self.update(|before| {
            let before = before?;
            let mut after = before.clone();
            change(&mut after);
            (after != before).then_some(after)
        });
        if let Err(why) = followed {
            tracing::warn!("store.anchor_not_written: {why}");
        }
    }

    /// It could not be written.
    fn unwritten(&self, error: &std::io::Error) -> StoreError {
        StoreError::Unavailable(format!("`{}` cannot be written: {error}", self.path.display()))
    }

    /// The ends of chains that were signed, and are on the disk.
    pub(crate) fn signed(&self, ends: &[(TenantId, ChainHead)]) {
        self.reached(ends, true);
    }

    /// The ends of chains that are on the disk, and are signed later.
    pub(crate) fn grown(&self, ends: &[(TenantId, ChainHead)]) {
        self.reached(ends, false);
    }

    fn reached(&self, ends: &[(TenantId, ChainHead)], are_signed: bool) {
        if ends.is_empty() {
            return;
        }
        self.follow(|anchor| {
            for (tenant, end) in ends {
                let chain = anchor.chains.entry(tenant.clone()).or_default();
                // Another process may have been faster.
                if end.seq > chain.seq {
                    (chain.seq, chain.hash) = (end.seq, end.hash.to_hex());
                }
                if are_signed {
                    chain.signed = chain.signed.max(Some(end.seq));
                }
            }
        });
    }

    /// Retention has cut the chain of `tenant` up to row `cut`.
    pub(crate) fn cut(&self, tenant: &TenantId, cut: u64) {
        self.follow(|anchor| {
            if let Some(chain) = anchor.chains.get_mut(tenant) {
                chain.cut = chain.cut.max(cut);
            }
        });
    }

    /// Why every gate stays shut; nothing if the store is what it was.
    pub(crate) fn shut(&self, anchor: Option<&Anchor>, standing: &AnchorStanding) -> Option<String> {
        let Self { shown, restoring, .. } = self;
        let guards: Vec<&AnchoredRule> = anchor.into_iter().flat_map(Anchor::guards).collect();
        match standing {
            AnchorStanding::Fresh | AnchorStanding::Same | AnchorStanding::Ahead => None,
            AnchorStanding::Older(why) => Some(format!(
                "the store at {shown} is an older copy of itself: {why}; every gate stays shut: put the newer one back \
                 with {restoring}, or take this one with `pintle store accept`"
            )),
            AnchorStanding::Rewritten(why) => Some(format!(
                "the end of the audit chain of the store at {shown} was rewritten by something other than Pintle: \
                 {why}; every gate stays shut: put the store back as it was with {restoring}, or take it \
                 so with `pintle store accept`"
            )),
            AnchorStanding::Renamed(why) => Some(format!(
                "a tenant of the store at {shown} was renamed by something other than Pintle: {why}; every gate stays \
                 shut until somebody takes it so with `pintle store accept`"
            )),
            AnchorStanding::Lost { .. } => Some(format!(
                "the store at {shown} is new, and not the one that was here: {}",
                lost(&guards, restoring)
            )),
            AnchorStanding::Foreign { .. } => {
                Some(format!("the store at {shown} is another one: {}", lost(&guards, restoring)))
            }
        }
    }
}

/// What is lost, and what to do.
fn lost(guards: &[&AnchoredRule], restoring: &str) -> String {
    let mut names: Vec<String> = guards.iter().map(|rule| format!("`{}`", rule.name.escape_debug())).collect();
    names.sort();
    let (count, more) = (names.len(), names.len().saturating_sub(MAX_NAMES));
    names.truncate(MAX_NAMES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let what = if count == 1 { "guard is" } else { "guards are" };
    format!(
        "{count} {what} lost ({}{more}), so every gate stays shut; bring the store back with {restoring}, \
         or go on without with `pintle store forget --yes-i-lose-{count}-guards`",
        names.join(", ")
    )
}
