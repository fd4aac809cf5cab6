//! Which sessions have begun, for whoever looks at their agents.

use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

/// Most sessions that wait to be looked at; of what is more, the next session tells.
const MAX_WAITING: usize = 64;

/// The names of sessions that have begun.
pub(crate) struct Begun {
    names: mpsc::Sender<String>,
    taken: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Default for Begun {
    fn default() -> Self {
        let (names, taken) = mpsc::channel(MAX_WAITING);
        Self { names, taken: Mutex::new(Some(taken)) }
    }
}

impl Begun {
    /// A session has begun.
    pub(super) fn add(&self, name: String) {
        self.names.try_send(name).ok();
    }

    /// Who looks at them, once.
    pub(super) fn take(&self) -> Option<mpsc::Receiver<String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
