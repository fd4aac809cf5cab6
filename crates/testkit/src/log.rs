//! A log that a test reads.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::callsite::rebuild_interest_cache;
use tracing::subscriber::{DefaultGuard, set_default};

/// How often a test may have to do its work until it is heard: other tests come by a place once.
const ROUNDS: usize = 20;

/// What was logged so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Where this thread's log goes from now on, until the guard is dropped.
    #[must_use]
    pub fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
        let guard = set_default(subscriber.with_target(false).finish());
        // Another test may have come by the place of the code first, while nobody listened there.
        rebuild_interest_cache();
        (log, guard)
    }

    /// What was logged so far, a line each: the level, then the text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        lines_of(&self.bytes())
    }

    /// Takes what was logged since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        lines_of(&std::mem::take(&mut *self.bytes()))
    }

    /// What `work` logs, with `key` in it. Another test may be the first to come by this place of the code, while nobody
    /// listens there: then it is done once more.
    ///
    /// # Panics
    /// Nothing of the kind is logged.
    pub async fn of(&self, key: &str, work: impl AsyncFn()) -> Vec<String> {
        for _ in 0..ROUNDS {
            rebuild_interest_cache();
            work().await;
            let lines = self.take();
            if lines.iter().any(|line| line.contains(key)) {
                return lines;
            }
        }
        panic!("nothing was logged with `{key}`");
    }

    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lines_of(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(|line| line.trim().to_owned()).collect()
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
