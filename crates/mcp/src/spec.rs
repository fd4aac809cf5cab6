//! What is known of an MCP server before it runs.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pintle_process::hook::{SpawnCheck, unchecked};

/// How long a server may take from its start to its list of tools, unless it is said otherwise: one that a package
/// runner has to fetch first takes some seconds.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything that is needed to reach a server. Two are equal if they reach the same server in the same way; the
/// check before a start does not count.
#[derive(Clone)]
pub struct ServerSpec {
    /// Its name in the configuration, and in the names of its tools.
    pub name: String,
    /// How to reach it.
    pub transport: Transport,
    /// Deadline of the handshake and the first list of tools.
    pub start_timeout: Duration,
    /// Runs before every start, restarts included; its error is why the server is down.
    pub before_start: SpawnCheck,
}

/// How to reach a server.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A child that speaks over its pipes.
    Stdio {
        /// Program and arguments; no shell.
        command: Vec<String>,
        /// Its working directory, absolute; the host's when absent.
        dir: Option<PathBuf>,
        /// Its whole environment; secrets of the host have no place in it.
        vars: Vec<(OsString, OsString)>,
    },
    /// A server that runs somewhere: streamable HTTP.
    Http {
        /// Its endpoint, such as `https://example.com/mcp`.
        url: String,
    },
}

impl ServerSpec {
    /// A server with the usual deadline that may always be started.
    pub fn new(name: &str, transport: Transport) -> Self {
        Self { name: name.into(), transport, start_timeout: START_TIMEOUT, before_start: unchecked() }
    }
}

impl PartialEq for ServerSpec {
    fn eq(&self, other: &Self) -> bool {
        // Taken apart, so that a new member has to be thought of here.
        let Self { name, transport, start_timeout, before_start: _ } = self;
        *name == other.name && *transport == other.transport && *start_timeout == other.start_timeout
    }
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSpec")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Without the environment: its values may be secret.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, .. } => f.debug_struct("Stdio").field("command", command).finish_non_exhaustive(),
            Self::Http { url } => f.debug_struct("Http").field("url", url).finish(),
        }
    }
}
