//! What keeps a session for one process.

use crate::lease::Fence;

/// Called once a session is no longer held, from a thread that must not be kept.
pub type OnLost = Box<dyn FnOnce() + Send>;

/// Keeps others from working on a session while it lives.
pub trait SessionHold: Send + Sync {
    /// What appends carry that are made under it; none where a lock of the machine keeps others away.
    fn fence(&self) -> Option<Fence> {
        None
    }

    /// Whether nobody else can have the session now. Asks no store, and never waits.
    fn stands(&self) -> bool {
        true
    }

    /// Calls `lost` once it stands no more, at once if that is so already. Never where it is dropped before.
    fn on_lost(&self, _lost: OnLost) {}
}
