//! A log that a test reads.

use std::io;
use std::sync::{Arc, Mutex};

/// How often a test may have to do its work until it is heard: other tests come by a place once.
const ROUNDS: usize = 20;

/// What was logged so far. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// Where this thread's log goes from now on, until the guard is dropped.
    pub(crate) fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let written = Self::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
        let guard = tracing::subscriber::set_default(subscriber.finish());
        (written, guard)
    }

    /// Takes what was logged since the last time.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }

    /// What `work` logs, with `key` in it. Another test may be the first to come by this place of the code, while nobody
    /// listens there: then it is done once more.
    pub(crate) async fn of(&self, key: &str, work: impl AsyncFn()) -> String {
        for _ in 0..ROUNDS {
            tracing::callsite::rebuild_interest_cache();
            work().await;
            let text = self.take();
            if text.contains(key) {
                return text;
            }
        }
        panic!("nothing was logged with `{key}`");
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
