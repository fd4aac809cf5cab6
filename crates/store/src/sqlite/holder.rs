//! Who took a session, as it is noted for others to read.

use std::{fs, process};

/// A process, which its number alone does not name: numbers come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    /// Clock ticks after boot; absent where the system does not say.
    pub(super) started: Option<i64>,
}

impl Holder {
    /// This process.
    pub(super) fn me() -> Self {
        let pid = process::id();
        Self { pid, started: started(pid) }
    }

    /// For a person: its number, if it is still the process that was noted.
    pub(super) fn name(self) -> String {
        // A process in another container has another number there, or none.
        if self.started.is_some() && started(self.pid) == self.started {
            format!("process {}", self.pid)
        } else {
            "another process".into()
        }
    }
}

fn started(pid: u32) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses and may hold anything; the start is the 22nd.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_was_noted_is_named() {
        let me = Holder::me();
        assert_eq!(me.name(), format!("process {}", process::id()));
        let later = Holder { started: me.started.map(|ticks| ticks - 1), ..me };
        assert_eq!(later.name(), "another process");
        assert_eq!(Holder { started: None, ..me }.name(), "another process");
    }
}
