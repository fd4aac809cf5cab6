//! Reads what a child writes, to the end, whatever it is.

use std::pin::pin;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::lines::Lines;
use super::session::Session;

/// Hands every line to `session` until the child's output ends or `stop` is set; a last line without its newline
/// counts.
pub(super) async fn read_on(mut stdout: pipe::Receiver, session: &Session, stop: &CancellationToken) {
    let mut lines = Lines::new(session.spec.max_frame_bytes);
    let mut stopped = pin!(stop.cancelled());
    loop {
        let read = tokio::select! {
            biased;
            () = &mut stopped => break,
            read = stdout.read_buf(lines.room()) => read,
        };
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(hook = %session.spec.name, %error, "the child's output cannot be read");
                break;
            }
        }
        while let Some(line) = lines.next() {
            session.hear(line);
        }
    }
    if let Some(line) = lines.finish() {
        session.hear(line);
    }
}
