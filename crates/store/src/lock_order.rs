//! The order in which a thread takes the locks of a store, checked in every build with debug assertions.
//!
//! Two threads that take the same two locks in opposite order wait for each other for ever. So each lock has a rank, and
//! whoever holds one may take only those of a higher rank. The anchor's file comes last: nothing of the store is asked for
//! while it is held.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The locks of a store, in the order in which they may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockRank {
    /// The writer.
    Writer,
    /// The connection of those who wait for what they write.
    Desk,
    /// The turn to write, which one connection of the process has at a time.
    Turn,
    /// The connection that reads.
    Reader,
    /// The file that knows the store from outside of it.
    Anchor,
}

/// A lock that a thread holds, for as long as this value lives.
#[derive(Debug)]
pub(crate) struct HeldRank {
    #[cfg(debug_assertions)]
    rank: LockRank,
}

#[cfg(debug_assertions)]
std::thread_local! {
    static HELD: std::cell::RefCell<Vec<LockRank>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl HeldRank {
    /// The thread is about to take a lock of `rank`.
    ///
    /// # Panics
    /// With debug assertions, if it holds one of the same or a higher rank.
    #[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "ranks are checked in debug builds only"))]
    pub(crate) fn enter(rank: LockRank) -> Self {
        #[cfg(debug_assertions)]
        HELD.with_borrow_mut(|held| {
            let above = held.iter().find(|&&other| other >= rank);
            assert!(above.is_none(), "a thread that holds {held:?} must not take {rank:?}: it could wait for itself");
            held.push(rank);
        });
        Self {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for HeldRank {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| {
            let place = held.iter().rposition(|rank| *rank == self.rank).expect("it was pushed when it was taken");
            held.remove(place);
        });
    }
}

/// A mutex with a rank.
#[derive(Debug)]
pub(crate) struct RankedMutex<T> {
    rank: LockRank,
    inner: Mutex<T>,
}

impl<T> RankedMutex<T> {
    /// A lock of `rank` around `value`.
    pub(crate) const fn new(rank: LockRank, value: T) -> Self {
        Self { rank, inner: Mutex::new(value) }
    }

    /// Waits for the lock. A holder that panicked is forgiven after `mend` has put its value right.
    pub(crate) fn lock_or(&self, mend: impl FnOnce(&mut T)) -> RankedGuard<'_, T> {
        let held = HeldRank::enter(self.rank);
        let guard = self.inner.lock().unwrap_or_else(|poisoned| {
            let mut guard = poisoned.into_inner();
            mend(&mut guard);
            self.inner.clear_poison();
            guard
        });
        RankedGuard { guard, _held: held }
    }

    /// Waits for the lock. What a holder that panicked leaves is taken as it is.
    pub(crate) fn lock(&self) -> RankedGuard<'_, T> {
        self.lock_or(|_| {})
    }

    /// Takes the lock if nobody holds it and no holder panicked.
    pub(crate) fn try_lock(&self) -> Option<RankedGuard<'_, T>> {
        let guard = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return None,
        };
        // Whoever does not wait cannot wait for ever, but what it takes next counts.
        Some(RankedGuard { guard, _held: HeldRank::enter(self.rank) })
    }

    /// Whether a holder panicked and nobody has taken the lock since.
    #[cfg(test)]
    pub(crate) fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }
}

/// What a lock protects, while it is held.
#[derive(Debug)]
pub(crate) struct RankedGuard<'a, T> {
    // Released before its rank is.
    guard: MutexGuard<'a, T>,
    _held: HeldRank,
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_upwards_only() {
        let ranks = [LockRank::Writer, LockRank::Desk, LockRank::Turn, LockRank::Reader, LockRank::Anchor];
        for first in ranks {
            for then in ranks {
                let taken = std::thread::spawn(move || {
                    let _first = HeldRank::enter(first);
                    HeldRank::enter(then);
                });
                assert_eq!(taken.join().is_ok(), first < then, "{first:?}, then {then:?}");
            }
        }
    }

    #[test]
    fn what_was_given_back_may_be_taken_again() {
        let (writer, reader) = (RankedMutex::new(LockRank::Writer, 1), RankedMutex::new(LockRank::Reader, 2));
        let held = reader.lock();
        drop(held);
        let (first, then) = (writer.lock(), reader.lock());
        assert!(writer.try_lock().is_none() && reader.try_lock().is_none());
        // In any order.
        drop(first);
        drop(then);
        assert_eq!((*writer.lock(), *reader.lock()), (1, 2));
    }
}
