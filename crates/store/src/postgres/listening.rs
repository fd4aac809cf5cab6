//! Hears at once what other processes change, on a connection that does nothing else.
//!
//! What is heard is only that something changed: whoever listens reads the rules. A connection that is gone comes back
//! by itself, and then something may have changed unheard. One that hangs is noticed late, so whoever listens goes on
//! looking now and then.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use pintle_domain::store::{OnRulesChanged, RuleSubscription};
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::sync::CancellationToken;

use super::net::CONNECT_TIMEOUT;
use super::pause::{FIRST_PAUSE, LONGEST_PAUSE};

/// Where somebody listens, until it is dropped.
#[derive(Default)]
pub(super) struct ListenerGuard {
    shared: Share,
}

/// What the listener and its task both know.
#[derive(Clone, Default)]
pub(super) struct Share {
    over: CancellationToken,
    /// Whether the server tells of every change now.
    told: Arc<AtomicBool>,
}

impl ListenerGuard {
    pub(super) fn share(&self) -> Share {
        self.shared.clone()
    }
}

impl RuleSubscription for ListenerGuard {
    fn is_told(&self) -> bool {
        self.shared.told.load(Ordering::Acquire)
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.shared.over.cancel();
    }
}

/// Calls `heard` for every change, and whenever one may have been missed, until the ear is dropped.
pub(super) async fn listen(
    ways: (Config, MakeRustlsConnect),
    channels: &'static [&'static str],
    (share, heard): (Share, OnRulesChanged),
) {
    let keep_listening = async {
        let mut pause = FIRST_PAUSE;
        loop {
            listen_once(ways.clone(), channels, (&share.told, &heard)).await;
            if share.told.swap(false, Ordering::AcqRel) {
                pause = FIRST_PAUSE;
                // Whoever waited long because of us looks more often from now on.
                heard();
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    };
    tokio::select! {
        () = keep_listening => {}
        () = share.over.cancelled() => {}
    }
}

/// The same on one connection, until it is lost or was never made.
async fn listen_once(
    (config, tls): (Config, MakeRustlsConnect),
    channels: &[&str],
    (told, heard): (&AtomicBool, &OnRulesChanged),
) {
    let Ok(Ok((client, mut connection))) = timeout(CONNECT_TIMEOUT, config.connect(tls)).await else { return };
    let mut messages = poll_fn(move |context| connection.poll_message(context));
    let listen = channels.iter().map(|channel| format!("LISTEN {channel};")).collect::<String>();
    let mut asked = pin!(timeout(CONNECT_TIMEOUT, client.batch_execute(&listen)));
    loop {
        tokio::select! {
            // Nothing is told before the answer, but the connection has to be driven for it to come.
            message = messages.next() => match message {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
            answer = &mut asked => match answer {
                Ok(Ok(())) => break,
                Ok(Err(_)) | Err(_) => return,
            },
        }
    }
    told.store(true, Ordering::Release);
    // What changed before was told to nobody here.
    heard();
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(said) = message
            && channels.contains(&said.channel())
        {
            heard();
        }
    }
}
