//! A client that started this program and speaks over its standard input and output.

use std::sync::Arc;

use pintle_process::child::Launch;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use super::child::ServerChild;
use super::clearing::ToolSession;
use super::door::ToolDoor;
use super::ends::{ClientEnd, FromClient, Line, Lines, QUEUE, ServerEnd, write_line};
use super::hub::{Hub, ProxyEnd};
use super::message::{MAX_MESSAGE_BYTES, PARSE_ERROR, error_reply};
use super::proxy::ClientBound;
use super::remote::{ClientHead, RemoteServer};

/// What stands behind a door.
#[derive(Clone, Debug)]
pub enum ServerWay {
    /// A child.
    Command(Launch),
    /// An address.
    Url(Url),
}

/// Serves a client that writes to `from` and reads from `to`, until one side is gone or `stop`.
///
/// # Errors
/// The server cannot be reached at all.
pub async fn serve<R, W>(
    door: ToolDoor,
    way: &ServerWay,
    (from, to): (R, W),
    stop: CancellationToken,
) -> Result<ProxyEnd, String>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let tasks = TaskTracker::new();
    let reading = CancellationToken::new();
    let ((to_hub, from_client), (to_client, to_write)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
    let client = ClientEnd { from: from_client, to: to_client.clone() };
    let (link, server) = ServerLink::open(way, ClientHead::default()).await?;
    tasks.spawn(listen(from, (to_hub, to_client), stop, reading.clone()));
    tasks.spawn(write(to, to_write));
    tasks.close();
    let hub = Hub::new(Arc::new(ToolSession::new(door)));
    let end = hub.run(client, server).await;
    reading.cancel();
    let end = link.end(end).await;
    tasks.wait().await;
    Ok(end)
}

/// What keeps a server reachable.
pub(super) enum ServerLink {
    Child(ServerChild),
    Remote(RemoteServer),
}

impl ServerLink {
    pub(super) async fn open(way: &ServerWay, head: ClientHead) -> Result<(Self, ServerEnd), String> {
        match way {
            ServerWay::Command(launch) => {
                let (child, end) = ServerChild::start(launch).await?;
                Ok((Self::Child(child), end))
            }
            ServerWay::Url(url) => {
                let (remote, end) = RemoteServer::start(url, head)?;
                Ok((Self::Remote(remote), end))
            }
        }
    }

    /// Ends it; says how it ended where it did by itself.
    pub(super) async fn end(self, end: ProxyEnd) -> ProxyEnd {
        match self {
            Self::Child(child) => match end {
                ProxyEnd::ClientLeft => {
                    child.end().await;
                    end
                }
                ProxyEnd::ServerGone(why) => ProxyEnd::ServerGone(format!("{why}: {}", child.end().await)),
            },
            Self::Remote(remote) => {
                remote.end().await;
                end
            }
        }
    }
}

async fn listen<R: AsyncRead + Unpin>(
    from: R,
    (to_hub, to_client): (mpsc::Sender<FromClient>, mpsc::Sender<ClientBound>),
    stop: CancellationToken,
    reading: CancellationToken,
) {
    let mut lines = Lines::new(from);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = stop.cancelled() => return,
            () = reading.cancelled() => return,
        };
        let sent = match line {
            Ok(Some(Line::Whole(text))) => to_hub.send(FromClient::Message(text)).await.is_ok(),
            Ok(Some(Line::TooLong)) => {
                let text = error_reply("null", PARSE_ERROR, &format!("it is longer than {MAX_MESSAGE_BYTES} bytes"));
                to_client.send(ClientBound { text, about: None, is_answer: true, wants: None }).await.is_ok()
            }
            Ok(None) | Err(_) => false,
        };
        if !sent {
            return;
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(mut to: W, mut messages: mpsc::Receiver<ClientBound>) {
    while let Some(message) = messages.recv().await {
        if write_line(&mut to, message.text).await.is_err() {
            return;
        }
    }
}
