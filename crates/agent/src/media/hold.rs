//! What is in use by running turns, and so must stay.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reference::Id;

/// How many holders each medium has.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<HashMap<Id, usize>>);

impl Holds {
    pub(super) fn has(&self, id: &Id) -> bool {
        self.counts().contains_key(id)
    }

    /// Does `take` with `id` unless it is held; nobody can begin to hold it meanwhile.
    pub(super) fn unless_held<T>(&self, id: &Id, take: impl FnOnce() -> T) -> Option<T> {
        let counts = self.counts();
        (!counts.contains_key(id)).then(take)
    }

    /// The counts are whole after each statement, so a panic elsewhere has not spoilt them.
    fn counts(&self) -> MutexGuard<'_, HashMap<Id, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds media until it is dropped: none of them is swept, however long they are not used.
#[derive(Debug)]
pub(super) struct Hold {
    holds: Arc<Holds>,
    held: Mutex<HashSet<Id>>,
}

impl Hold {
    pub(super) fn new(holds: Arc<Holds>) -> Self {
        Self { holds, held: Mutex::default() }
    }

    /// Holds `id` too.
    pub(super) fn keep(&self, id: Id) {
        if self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
            *self.holds.counts().entry(id).or_default() += 1;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut counts = self.holds.counts();
        for id in self.held.get_mut().unwrap_or_else(PoisonError::into_inner).iter() {
            let left = counts.get_mut(id).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                counts.remove(id);
            }
        }
    }
}
