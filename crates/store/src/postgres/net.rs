//! The thread that moves bytes between this process and the server.
//!
//! It makes connections and drives them; whoever uses one waits on a thread of their own, which may be any: no
//! runtime is entered there.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use pintle_domain::store::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long making a connection may take, with all that is said before the first statement. A server that is there
/// answers in milliseconds, from another continent in one second.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs connections until it is dropped.
#[derive(Debug)]
pub(super) struct Net {
    handle: Handle,
    tasks: TaskTracker,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Unconnected {
    /// The server, or the way to it.
    Postgres(Error),
    /// Nothing came within [`CONNECT_TIMEOUT`].
    Silence,
}

impl Net {
    /// Starts the thread.
    pub(super) fn start() -> Result<Self, StoreError> {
        let failed = |e: std::io::Error| StoreError::Unavailable(format!("the store's network did not start: {e}"));
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let (handle, tasks, stop) = (runtime.handle().clone(), TaskTracker::new(), CancellationToken::new());
        let (all, stopped) = (tasks.clone(), stop.clone());
        let thread = thread::Builder::new()
            .name("pintle-store-net".into())
            .spawn(move || {
                runtime.block_on(async {
                    stopped.cancelled().await;
                    all.close();
                    all.wait().await;
                });
            })
            .map_err(failed)?;
        Ok(Self { handle, tasks, stop, thread: Some(thread) })
    }

    /// Makes a connection. Blocks, for [`CONNECT_TIMEOUT`] at most.
    pub(super) fn connect(&self, config: Config, tls: MakeRustlsConnect) -> Result<Client, Unconnected> {
        let (say, hear) = sync_channel(1);
        let connect = async move {
            let connection = match timeout(CONNECT_TIMEOUT, config.connect(tls)).await {
                Ok(Ok((client, connection))) => {
                    // Whoever asked may have gone.
                    drop(say.send(Ok(client)));
                    connection
                }
                Ok(Err(error)) => return drop(say.send(Err(Unconnected::Postgres(error)))),
                Err(_) => return drop(say.send(Err(Unconnected::Silence))),
            };
            // It ends with its client, and what went wrong is told to whoever waits for an answer.
            drop(connection.await);
        };
        self.run(connect);
        hear.recv().unwrap_or(Err(Unconnected::Silence))
    }

    /// Runs `task` until it ends, or this does.
    pub(super) fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopped = self.stop.clone();
        let unless_stopped = async move {
            tokio::select! {
                () = task => {}
                () = stopped.cancelled() => {}
            }
        };
        drop(self.tasks.spawn_on(unless_stopped, &self.handle));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic in there ended every connection, which their users have heard.
            drop(thread.join());
        }
    }
}

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread for what `future` comes to; `None` if it takes longer than `patience`. The future must need
/// no runtime: those of a client only wait for the connection, which runs elsewhere.
pub(super) fn wait<F: Future>(future: F, patience: Duration) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let end = Instant::now() + patience;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};

    use super::*;

    #[test]
    fn waiting_ends_with_the_answer_or_the_patience() {
        assert_eq!(wait(async { 7 }, Duration::ZERO), Some(7));
        assert_eq!(wait(pending::<u8>(), Duration::ZERO), None);
        let mut polled = 0;
        let third = poll_fn(|context| {
            polled += 1;
            let waker = context.waker().clone();
            drop(thread::spawn(move || waker.wake()));
            if polled == 3 { Poll::Ready("third") } else { Poll::Pending }
        });
        assert_eq!(wait(third, Duration::from_secs(60)), Some("third"));
    }
}
