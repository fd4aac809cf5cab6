//! Stores that die or break.

use super::*;

/// A store as one process has it: once that is dead, nothing more is written, and nobody is held up by it.
pub(crate) struct Mortal<S> {
    inner: Arc<S>,
    /// How much more it writes.
    lives: AtomicUsize,
}

impl<S> Mortal<S> {
    pub(crate) fn with_lives(inner: Arc<S>, lives: usize) -> Arc<Self> {
        Arc::new(Self { inner, lives: AtomicUsize::new(lives) })
    }

    pub(crate) fn die(&self) {
        self.lives.store(0, Ordering::SeqCst);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.lives.load(Ordering::SeqCst) == 0
    }
}

struct Free;

impl SessionHold for Free {}

impl<S: SessionStore> SessionStore for Mortal<S> {
    fn append(&self, append: JournalAppend, done: OnKept) {
        let one_less = self.lives.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |lives| lives.checked_sub(1));
        if one_less.is_ok() {
            self.inner.append(append, done);
        }
    }

    fn hold(&self, _key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        Ok(Box::new(Free))
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.journal(key)
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.sessions(tenant)
    }

    fn session_settings(&self, key: &SessionKey) -> Result<Option<SessionSettings>, StoreError> {
        self.inner.session_settings(key)
    }

    fn patch_session(&self, key: &SessionKey, patch: &SessionPatch) -> Result<bool, StoreError> {
        self.inner.patch_session(key, patch)
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        self.inner.delete(key)
    }
}

/// A store that breaks when it is told to.
pub(super) struct Breaking {
    pub(super) inner: Memory,
    pub(super) broken: AtomicBool,
}

impl SessionStore for Breaking {
    fn append(&self, append: JournalAppend, done: OnKept) {
        if self.broken.load(Ordering::SeqCst) {
            return done(Err(StoreError::Unavailable("no space".into())));
        }
        self.inner.append(append, done);
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        self.inner.hold(key)
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.journal(key)
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.sessions(tenant)
    }

    fn session_settings(&self, key: &SessionKey) -> Result<Option<SessionSettings>, StoreError> {
        self.inner.session_settings(key)
    }

    fn patch_session(&self, key: &SessionKey, patch: &SessionPatch) -> Result<bool, StoreError> {
        self.inner.patch_session(key, patch)
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        self.inner.delete(key)
    }
}
