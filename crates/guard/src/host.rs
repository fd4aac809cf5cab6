//! What is known of a host: one row of a table.

use crate::answer::Answer;
use crate::coverage::ToolCoverage;
use crate::event::{HookInput, HostEvent, Malformed};
use crate::ruling::GuardRuling;
use crate::tools::ToolRow;

/// A coding agent that can be guarded. Adding one touches only its own file and the list in `hosts.rs`.
#[derive(Debug)]
pub struct GuardHost {
    /// The word that `--host` takes.
    pub id: &'static str,
    /// Its name, for people.
    pub name: &'static str,
    /// The versions that this adapter is about.
    pub versions: KnownVersions,
    /// Where it is configured, and how.
    pub config: HostConfig,
    /// How long it waits for a hook.
    pub deadline: HookDeadline,
    /// Its events that mean something here.
    pub events: &'static [EventRow],
    /// Whether it can ask a person.
    pub asks: AskSupport,
    /// Its tools.
    pub tools: &'static [ToolRow],
    /// How far its tools are under guard: one row a class.
    pub coverage: &'static [ToolCoverage],
    /// The variables of its environment that tell something; all others, secrets among them, are not looked at.
    pub environment: &'static [&'static str],
    /// Reads what it says and writes what it takes.
    pub adapter: HostAdapter,
}

/// The two functions of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostAdapter {
    /// What a hook was told.
    pub decode: fn(&HookInput<'_>) -> Result<HostEvent, Malformed>,
    /// What the hook answers.
    pub encode: fn(&HostEvent, &GuardRuling) -> Answer,
}

/// The versions of a host that an adapter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownVersions {
    /// The oldest one that has what the adapter needs.
    pub min: &'static str,
    /// The newest one that was observed.
    pub newest: &'static str,
}

/// Where a host is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The files, one for each scope that hooks can be installed in.
    pub places: &'static [ConfigPlace],
    /// The form of those files.
    pub form: ConfigForm,
    /// Where our entry has to stand among those of others.
    pub position: RowPosition,
}

/// One file of a host's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigPlace {
    /// Whom it is about.
    pub scope: InstallScope,
    /// The file: `~/…` below the person's home, `./…` below the project, else absolute.
    pub path: &'static str,
}

/// Whom an installation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallScope {
    /// One person, everywhere.
    User,
    /// Everybody who works in a project.
    Project,
    /// One person in a project.
    ProjectLocal,
    /// Everybody on the machine.
    System,
}

/// The form of a host's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigForm {
    /// A member `hooks` of a JSON file that is shared with everything else; comments are allowed where it says so.
    Json {
        /// Whether the host reads comments and trailing commas.
        comments: bool,
    },
    /// An array of tables `hooks` of a TOML file.
    Toml,
    /// A file that is ours alone.
    WholeFile,
    /// A folder with one executable for each event.
    Executables,
}

/// Where our entry has to stand among those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPosition {
    /// Before all others: the first rewriting wins.
    First,
    /// Behind all others: the last word wins.
    Last,
    /// It does not matter.
    Any,
}

/// The unit in which a host takes its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// How long a host waits for a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookDeadline {
    /// What is installed, in seconds: the longest that the host takes.
    pub installed_s: u32,
    /// The unit in which the host takes it; none where it cannot be set.
    pub unit: Option<TimeUnit>,
    /// How long the host waits where nothing is set; none where it waits for ever.
    pub default_s: Option<u32>,
}

/// One event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Its native name.
    pub name: &'static str,
    /// Whether our entry is installed for it.
    pub installed: bool,
    /// Whether the client waits for an answer: the host takes one there.
    pub answers: bool,
    /// Whether the host can be stopped there.
    pub stops: bool,
}

/// Whether a host can ask a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskSupport {
    /// It asks, and refuses where nobody is there.
    AsksOrRefuses,
    /// It asks, and does something else than refusing where nobody is there: never sent then.
    AsksOnly,
    /// It cannot, and lets the call run: never sent.
    Never,
}

impl GuardHost {
    /// The row of the event `name`.
    pub fn event(&self, name: &str) -> Option<&EventRow> {
        self.events.iter().find(|row| row.name == name)
    }

    /// The row of the tool that the host calls `native`.
    pub fn tool(&self, native: &str) -> Option<&'static ToolRow> {
        self.tools.iter().find(|row| row.native == native)
    }
}
