//! The process that guards, as it says so in the lock that only one has.

use std::fs::File;
use std::io::{self, Write as _};

use pintle_process::ProcessStat;

/// The command that a daemon is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaemonOf {
    /// A process of its own.
    GuardServe,
    /// A gateway, which does more than guard.
    Serve,
}

/// What a gateway writes into the lock behind its process. Who does not know the word does not know the process, and ends
/// none.
const SERVE: &str = "serve";

impl DaemonOf {
    /// The command, as people give it.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::GuardServe => "pintle guard serve",
            Self::Serve => "pintle serve",
        }
    }
}

/// A daemon that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DaemonProcess {
    /// The id of its process.
    pub(crate) pid: u32,
    /// Since when that runs.
    pub(crate) since: u64,
    /// What it is part of.
    pub(crate) of: DaemonOf,
}

impl DaemonProcess {
    /// The one that `said` in the lock that it guards; none that only has its number.
    pub(super) fn of_lock(said: &str) -> Option<Self> {
        let mut words = said.split_whitespace();
        let (pid, since): (u32, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let of = match words.next() {
            None => DaemonOf::GuardServe,
            Some(SERVE) => DaemonOf::Serve,
            Some(_) => return None,
        };
        let runs = ProcessStat::of(pid).is_some_and(|stat| stat.since == since && !stat.has_ended);
        runs.then_some(Self { pid, since, of })
    }
}

/// What whoever wants to guard, or to end the daemon, is told where the gateway `pid` guards.
pub(crate) fn gateway_guards(pid: u32) -> String {
    format!("the hook door of this home belongs to `{}` (pid {pid}), and ends with it", DaemonOf::Serve.command())
}

/// Writes into the lock `alone` that this process guards as part of `of`, and since when it runs.
///
/// # Errors
/// It cannot be written.
pub(super) fn sign(mut alone: &File, of: DaemonOf) -> io::Result<()> {
    let own = std::process::id();
    let stat = ProcessStat::of(own).ok_or_else(|| io::Error::other("this process cannot be seen in /proc"))?;
    let behind = match of {
        DaemonOf::GuardServe => String::new(),
        DaemonOf::Serve => format!(" {SERVE}"),
    };
    alone.set_len(0)?;
    alone.write_all(format!("{own} {}{behind}\n", stat.since).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_got_the_number_of_a_daemon_is_none() {
        let (own, since) = (std::process::id(), ProcessStat::of(std::process::id()).unwrap().since);
        let daemon = |of| Some(DaemonProcess { pid: own, since, of });
        for (said, expected) in [
            (format!("{own} {since}\n"), daemon(DaemonOf::GuardServe)),
            (format!("{own} {since} serve\n"), daemon(DaemonOf::Serve)),
            (format!("{own} {since} more\n"), None),
            (format!("{own} {}\n", since + 1), None),
            (format!("{own}\n"), None),
            (String::new(), None),
        ] {
            assert_eq!(DaemonProcess::of_lock(&said), expected, "{said}");
        }
    }

    #[test]
    fn what_was_signed_is_read_again() {
        let lock = tempfile::NamedTempFile::new().unwrap();
        for of in [DaemonOf::Serve, DaemonOf::GuardServe] {
            let alone = File::options().write(true).open(lock.path()).unwrap();
            sign(&alone, of).unwrap();
            let said = std::fs::read_to_string(lock.path()).unwrap();
            assert_eq!(DaemonProcess::of_lock(&said).map(|it| it.of), Some(of), "{said}");
        }
    }
}
