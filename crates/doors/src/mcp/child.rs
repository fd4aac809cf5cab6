//! A server that is a child, spoken to over its pipes.

use std::io::Write as _;
use std::time::Duration;

use pintle_process::child::{Child, Launch, Pipes};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ends::{FromServer, Line, Lines, QUEUE, ServerEnd, write_line};
use super::proxy::ServerBound;

/// How long a child whose input was closed may take to leave by itself.
const LEAVE: Duration = Duration::from_secs(2);

/// How long the last words of a child are waited for that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Longest piece of standard error that is handed on at once: what a pipe holds by default.
const PIECE_BYTES: usize = 64 << 10;

/// A server's child, until it is ended.
pub(super) struct ServerChild {
    leave: CancellationToken,
    ended: JoinHandle<String>,
    tasks: TaskTracker,
}

impl ServerChild {
    /// Starts what `launch` says.
    pub(super) async fn start(launch: &Launch) -> Result<(Self, ServerEnd), String> {
        let (child, Pipes { stdin, stdout, stderr }) = Child::start(launch).await?;
        let (tasks, leave) = (TaskTracker::new(), CancellationToken::new());
        let ((to, to_write), (read, from)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        tasks.spawn(write(stdin, to_write));
        tasks.spawn(listen(stdout, read));
        tasks.spawn(hand_on(stderr));
        let ended = tasks.spawn(watch(child, leave.clone()));
        tasks.close();
        Ok((Self { leave, ended, tasks }, ServerEnd { from, to }))
    }

    /// Ends it and everything that it started, once it had time to leave by itself. Says how it ended.
    pub(super) async fn end(self) -> String {
        self.leave.cancel();
        let how = self.ended.await.unwrap_or_else(|_| "how it ended is not known".into());
        // Nothing holds the pipes open any more.
        if tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await.is_err() {
            tracing::debug!("somebody else holds the pipes of the server open");
        }
        how
    }
}

/// Waits for the end of a child, and ends what it started: that would hold its output open, so that nobody heard of it.
async fn watch(mut child: Child, leave: CancellationToken) -> String {
    tokio::select! {
        () = child.ended() => {}
        () = leave.cancelled() => {
            if tokio::time::timeout(LEAVE, child.ended()).await.is_err() {
                tracing::debug!("the server does not leave by itself");
            }
        }
    }
    child.end_all().await
}

async fn write(mut stdin: pipe::Sender, mut messages: mpsc::Receiver<ServerBound>) {
    while let Some(message) = messages.recv().await {
        if write_line(&mut stdin, message.text).await.is_err() {
            return;
        }
    }
}

async fn listen(stdout: pipe::Receiver, heard: mpsc::Sender<FromServer>) {
    let mut lines = Lines::new(stdout);
    loop {
        let said = match lines.next().await {
            Ok(Some(Line::Whole(text))) => FromServer::Message(text, None),
            Ok(Some(Line::TooLong)) => FromServer::Gone("the server wrote a line that is too long".into()),
            Ok(None) => FromServer::Gone("the server closed its output".into()),
            Err(error) => FromServer::Gone(format!("the server cannot be read: {error}")),
        };
        let is_over = matches!(said, FromServer::Gone(_));
        if heard.send(said).await.is_err() || is_over {
            return;
        }
    }
}

/// What a server complains is for whoever started this program.
async fn hand_on(mut stderr: pipe::Receiver) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let bytes = piece[..read].to_vec();
        // Standard error may be a pipe that nobody empties.
        let written = tokio::task::spawn_blocking(move || std::io::stderr().write_all(&bytes)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::debug!("what the server complains cannot be handed on");
        }
    }
}
