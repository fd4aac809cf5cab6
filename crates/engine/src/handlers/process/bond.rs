//! The bond between a child and the thread that starts it.
//!
//! The signal that ends a child with its host is sent when the thread ends that started it, though the host goes on.
//! So a thread that has started children waits for them before it ends. The first thread does not: its end is the
//! host's.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::unistd::{getpid, gettid};

/// Longest that a thread waits at its end, twice as long as the command of any stored hook may run. What is still there
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
    number: Mutex<usize>,
    fewer: Condvar,
}

impl Count {
    fn number(&self) -> MutexGuard<'_, usize> {
        // A number is whole whatever panics.
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        if getpid() == gettid() {
            return;
        }
        let waited = self.0.fewer.wait_timeout_while(self.0.number(), PATIENCE, |number| *number > 0);
        let (left, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *left > 0 {
            tracing::warn!(children = *left, "a thread ended before the children that it has started");
        }
    }
}

/// Keeps the thread that made it from ending. Dropped when its child has ended.
#[derive(Debug)]
pub(crate) struct Bond(Arc<Count>);

impl Bond {
    /// To the calling thread; none if that is ending already.
    pub(crate) fn here() -> Option<Self> {
        let count = CHILDREN.try_with(|children| children.0.clone()).ok()?;
        *count.number() += 1;
        Some(Self(count))
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        *self.0.number() -= 1;
        self.0.fewer.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_ends_after_its_children() {
        let (tell, told) = channel();
        let (begin, begun) = channel();
        let thread = thread::spawn(move || begin.send((Bond::here().unwrap(), Bond::here().unwrap())).unwrap());
        let (one, other) = begun.recv().unwrap();
        let count = one.0.clone();
        let joined = thread::spawn(move || {
            thread.join().unwrap();
            tell.send(()).unwrap();
        });
        drop(one);
        assert_eq!((*count.number(), told.try_recv().is_err()), (1, true));
        drop(other);
        told.recv().unwrap();
        joined.join().unwrap();
        // One without children just ends.
        thread::spawn(|| drop(Bond::here())).join().unwrap();
    }
}
