//! Who took a session, as it is noted for others to read.

use std::{fs, process};

use uuid::Uuid;

use crate::db::{Columns, Failure};

/// A store of a process on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    /// The machine's name, for persons.
    pub(super) host: String,
    /// Which run of the machine, which its name alone does not say.
    pub(super) boot: String,
    /// Which store of the process: a UUID.
    pub(super) token: String,
}

impl Holder {
    /// This process, with a token of its own.
    pub(super) fn me() -> Self {
        let kernel = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
            text.trim().to_owned()
        };
        let (host, boot) = (kernel("hostname"), kernel("random/boot_id"));
        Self { pid: process::id(), host, boot, token: Uuid::new_v4().to_string() }
    }

    /// The holder that a row of `leases` notes.
    pub(super) fn of(row: &dyn Columns) -> Result<Self, Failure> {
        Ok(Self {
            pid: u32::try_from(row.int("pid")?).unwrap_or(0),
            host: row.string("host")?,
            boot: row.string("boot")?,
            token: row.string("owner")?,
        })
    }

    /// For a person who sits at the machine of `me`.
    pub(super) fn name_for(&self, me: &Self) -> String {
        if self.boot == me.boot && self.host == me.host {
            format!("process {}", self.pid)
        } else if self.host.is_empty() {
            "another process".into()
        } else {
            format!("process {} on `{}`", self.pid, self.host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_named() {
        let me = Holder::me();
        assert_eq!(me.name_for(&me), format!("process {}", process::id()));
        let there = Holder { pid: 7, host: "db-2".into(), boot: "another run".into(), ..me.clone() };
        assert_eq!(there.name_for(&me), "process 7 on `db-2`");
        assert_eq!(Holder { host: String::new(), ..there }.name_for(&me), "another process");
        assert_ne!(Holder::me().token, me.token, "two stores of a process are two holders");
    }
}
