//! The bond between a child and the thread that starts it.
//!
//! The signal that ends a child with its host is sent when the thread ends that started it, though the host goes on.
//! So a thread that has started children waits for them before it ends. The first thread does not: its end is the
//! host's.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::unistd::{getpid, gettid};

/// Longest that a thread waits at its end, twice as long as the command of any rule may run. What is still there
/// then was forgotten by its owner, and is killed.
const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    static CHILDREN: Children = Children::default();
}

/// The children of one thread.
#[derive(Default)]
struct Children(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct State {
    children: usize,
    /// Whether the thread is at its end, and waits.
    ends: bool,
}

impl Count {
    fn state(&self) -> MutexGuard<'_, State> {
        // Both are whole whatever panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the children of a thread at its end. Says how many are left.
    fn last(&self, patience: Duration) -> usize {
        let mut state = self.state();
        state.ends = true;
        let waited = self.fewer.wait_timeout_while(state, patience, |state| state.children > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.children
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        if getpid() == gettid() {
            return;
        }
        let left = self.0.last(PATIENCE);
        if left > 0 {
            tracing::warn!(children = left, "a thread ended before the children that it has started");
        }
    }
}

/// Keeps the thread that made it from ending. Dropped when its child has ended.
#[derive(Debug)]
pub(crate) struct ThreadHold(Arc<Count>);

impl ThreadHold {
    /// To the calling thread; none if that is ending already.
    pub(crate) fn here() -> Option<Self> {
        let count = CHILDREN.try_with(|children| children.0.clone()).ok()?;
        count.state().children += 1;
        Some(Self(count))
    }
}

impl Drop for ThreadHold {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.children -= 1;
        if state.ends {
            self.0.fewer.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_thread_ends_after_its_children() {
        let (tell, told) = channel();
        let (begin, begun) = channel();
        let thread =
            thread::spawn(move || begin.send((ThreadHold::here().unwrap(), ThreadHold::here().unwrap())).unwrap());
        let (one, other) = begun.recv().unwrap();
        let count = one.0.clone();
        let joined = thread::spawn(move || {
            thread.join().unwrap();
            tell.send(()).unwrap();
        });
        // Either comes: the thread waits, or it does not.
        while !count.state().ends {
            assert!(told.try_recv().is_err(), "the thread has ended and did not wait");
            thread::yield_now();
        }
        drop(one);
        assert_eq!((count.state().children, told.try_recv().is_err()), (1, true));
        drop(other);
        told.recv().unwrap();
        joined.join().unwrap();
        // One without children just ends.
        thread::spawn(|| drop(ThreadHold::here())).join().unwrap();
    }

    #[test]
    fn whoever_waits_hears_of_the_last_child_or_gives_up() {
        let count = Arc::new(Count::default());
        count.state().children = 1;
        assert_eq!(count.last(Duration::ZERO), 1, "nobody waits for ever");
        let bond = ThreadHold(count.clone());
        let ends = thread::spawn(move || drop(bond));
        // Far longer than it takes to be told: who is not told sees at the end that nobody is left, but late.
        let began = Instant::now();
        assert_eq!(count.last(PATIENCE), 0);
        assert!(began.elapsed() < PATIENCE, "nobody told of the last child");
        ends.join().unwrap();
    }
}
