//! What a service manager is told: that it serves, that it is alive, that it ends. By the protocol of `sd_notify`.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The variables of the protocol: where to, how long silence may last in microseconds, and whose that is.
const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG: &str = "WATCHDOG_USEC";
const WATCHED: &str = "WATCHDOG_PID";

/// Tells the service manager, if there is one.
#[derive(Debug, Default)]
pub(super) struct ServiceManager {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that this process is alive.
    every: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(super) fn of_process() -> Self {
        let to = std::env::var_os(SOCKET).and_then(|path| {
            let connected = address(&path).and_then(|address| {
                let socket = UnixDatagram::unbound()?;
                // A manager that does not listen holds nothing up.
                socket.set_nonblocking(true)?;
                Ok((socket, address))
            });
            connected.map_err(|error| tracing::warn!(%error, "the service manager cannot be notified")).ok()
        });
        let text = |name: &str| std::env::var(name).ok();
        let every = to.is_some().then(|| beat(text(WATCHDOG).as_deref(), text(WATCHED).as_deref(), std::process::id()));
        Self { to, every: every.flatten() }
    }

    /// It serves.
    pub(super) fn ready(&self) {
        self.tell(&format!("READY=1\nMAINPID={}", std::process::id()));
    }

    /// It ends.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Tells it again and again that this process is alive: whoever waits for something else meanwhile is alive too.
    pub(super) async fn beats(&self) {
        let Some(every) = self.every else { return std::future::pending().await };
        loop {
            self.tell("WATCHDOG=1");
            tokio::time::sleep(every).await;
        }
    }

    fn tell(&self, what: &str) {
        let Some((socket, address)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(what.as_bytes(), address) {
            tracing::debug!(%error, "the service manager does not listen");
        }
    }
}

/// Where `path` leads: a file, or with `@` a name of its own.
fn address(path: &OsString) -> std::io::Result<SocketAddr> {
    match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(path),
    }
}

/// How often to say that the process `own` is alive: twice in the time that the manager waits, if it waits for this one.
fn beat(usec: Option<&str>, pid: Option<&str>, own: u32) -> Option<Duration> {
    let is_own = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let usec: u64 = usec?.parse().ok().filter(|usec| *usec > 0)?;
    is_own.then(|| Duration::from_micros(usec / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_twice_in_time_that_it_is_alive() {
        let second = Some(Duration::from_millis(500));
        for (usec, pid, expected) in [
            (Some("1000000"), None, second),
            (Some("1000000"), Some("7"), second),
            (Some("1000000"), Some("8"), None),
            (Some("1000000"), Some("x"), None),
            (Some("0"), None, None),
            (Some("soon"), None, None),
            (None, Some("7"), None),
        ] {
            assert_eq!(beat(usec, pid, 7), expected, "{usec:?} {pid:?}");
        }
    }
}
