//! What is started, in the form of the kernel.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What to start, as [`crate::child::Launch`] describes it.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) argv: &'a [OsString],
    pub(crate) dir: Option<&'a Path>,
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) lead: Lead,
}

/// What a child leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// A group of its own, in the host's session.
    Group,
    /// A session of its own, without a terminal.
    Session,
}

/// A program and everything that it is given, in the form of the kernel.
#[derive(Debug)]
pub(crate) struct Image {
    pub(super) program: CString,
    pub(super) argv: Vec<CString>,
    pub(super) vars: Vec<CString>,
    pub(super) dir: Option<CString>,
    pub(super) lead: Lead,
}

impl Image {
    /// `program` with what `start` gives it. Of two variables of one name, the last one counts.
    pub(crate) fn new(program: &Path, start: &Start<'_>) -> io::Result<Self> {
        let word = |bytes: &[u8]| {
            let why = |_| io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data");
            CString::new(bytes).map_err(why)
        };
        let vars: BTreeMap<&OsStr, &OsStr> =
            start.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        let var = |(name, value): (&OsStr, &OsStr)| word(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(Self {
            program: word(program.as_os_str().as_bytes())?,
            argv: start.argv.iter().map(|argument| word(argument.as_bytes())).collect::<io::Result<_>>()?,
            vars: vars.into_iter().map(var).collect::<io::Result<_>>()?,
            dir: start.dir.map(|dir| word(dir.as_os_str().as_bytes())).transpose()?,
            lead: start.lead,
        })
    }
}
