//! What is known of a host: one row of a table.

use pintle_domain::json::Value;

use crate::answer::Answer;
use crate::coverage::ToolCoverage;
use crate::event::{HookInput, HostEvent, HostWhat, Malformed};
use crate::ruling::GuardRuling;
use crate::tools::ToolRow;
use crate::trial::HostTrial;

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
    /// How it is run to prove that it is guarded.
    pub trial: HostTrial,
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
    /// How the packages are called that say it; one for a kind of machine has more behind a `-`.
    pub packages: &'static [&'static str],
}

/// Where a host is configured.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// The files, one for each scope that hooks can be installed in.
    pub places: &'static [ConfigPlace],
    /// The form of those files.
    pub form: ConfigForm,
    /// Where our entry has to stand among those of others.
    pub position: RowPosition,
    /// Whether somebody has to accept hooks before they run.
    pub acceptance: HookAcceptance,
    /// What the guarded agent must not change, as patterns of paths: `~` is the home folder, `**` any folders, `*` a part
    /// of a name. A trailing `/**` means the folder and all in it. Names are in small letters. `!` before one: of the
    /// others, what the agent writes as it works, which neither says what it runs nor keeps what it did.
    pub protects: &'static [&'static str],
    /// What turns hooks off.
    pub switches: HostSwitches,
    /// The variable of the environment that moves the files of a person elsewhere.
    pub moved_by: Option<&'static str>,
    /// What it demands of every entry, if one that is wrong drops all of them.
    pub strict: Option<&'static StrictEntries>,
    /// Files whose hooks come behind those of a person, where the last word wins.
    pub behind: &'static [&'static str],
    /// The list of folders outside of which it reads nothing of a project; none where there is no such list.
    pub trusted_in: Option<TrustedFolders>,
    /// Where it keeps the conversation of `{session}` and of its sub-agents, as in [`ConfigPlace::path`]; `*` is any text
    /// in a name. A file that ends in `.db` is a database with the conversations of all sessions. None where that is not
    /// known.
    pub transcripts: &'static [&'static str],
    /// How it writes down there that a call did not run.
    pub refusals: HostRefusals,
}

/// How a host writes down the calls that did not run although no answer of the daemon is known of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRefusals {
    /// What it puts before the reason of a hook that refused, and what begins behind it: nothing more where that is empty.
    pub around: &'static [(&'static str, &'static str)],
    /// Whether it marks the results of refused calls as errors: what is not marked so has run.
    pub marked: bool,
    /// How the error begins by which it rejects a call itself, before any hook; none where that is not known.
    pub rejected: Option<&'static str>,
}

impl HostRefusals {
    /// The reason alone, which is all that most hosts write.
    pub const BARE: Self = Self { around: &[("", "")], marked: false, rejected: None };
}

/// What a host demands of every hook entry, whoever wrote it: a single one that is wrong drops all hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrictEntries {
    /// The events that it knows.
    pub events: &'static [&'static str],
    /// The members that an entry may have; `event` and `command` are texts that it must have.
    pub members: &'static [&'static str],
    /// The longest timeout, in seconds; the shortest is one.
    pub max_timeout_s: u32,
}

/// Where a host keeps which folders its person trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedFolders {
    /// The file, as in [`ConfigPlace::path`]: JSON, with comments.
    pub path: &'static str,
    /// The member with the list; what is below one of its folders is trusted, too.
    pub member: &'static str,
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

/// The form of a host's configuration, and of our entry in it.
#[derive(Clone, Copy, Debug)]
pub enum ConfigForm {
    /// A member `hooks` of a JSON file that is shared with everything else, with a list for each event.
    Json {
        /// Whether the host reads comments and trailing commas.
        comments: bool,
        /// The element of an event's list.
        entry: fn(&ClientEntry<'_>, &EventRow) -> Value,
        /// Whether its command hooks have Claude's wire, so that they can be taken over.
        adopts: bool,
    },
    /// An array of tables `hooks` of a TOML file.
    Toml {
        /// One table, as lines.
        entry: fn(&ClientEntry<'_>, &EventRow) -> String,
    },
    /// A table `hooks` of a TOML file with an array of tables for each event, and beside it what keeps hooks switched on.
    Requirements {
        /// The element of an event's array.
        entry: fn(&ClientEntry<'_>, &EventRow) -> Value,
    },
    /// A file that is ours alone.
    WholeFile {
        /// All of it.
        text: fn(&GuardHost, &ClientEntry<'_>) -> String,
    },
    /// A folder with one executable for each event, by its name.
    Executables {
        /// One of them.
        text: fn(&ClientEntry<'_>, &EventRow) -> String,
        /// The refusal at an event; empty where there is none.
        deny: fn(&str) -> &'static str,
    },
}

/// What hosts start, as an installation writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEntry<'a> {
    /// The host, by its id.
    pub host: &'a str,
    /// The client, absolute.
    pub program: &'a str,
    /// Which daemon it asks.
    pub daemon: EntryDaemon<'a>,
    /// How long the host waits, in seconds.
    pub timeout_s: u32,
    /// Whether it objects to nothing where no daemon can be reached or started.
    pub allows_away: bool,
    /// The events that it is installed for; none: all that mean something.
    pub events: Option<&'a [String]>,
}

/// The daemon that an entry asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDaemon<'a> {
    /// That of the account that installed it.
    Named {
        /// Where it listens, absolute.
        socket: &'a str,
        /// The file with the key that proves its answers, absolute.
        key_file: &'a str,
    },
    /// That of whichever account runs the agent.
    Account,
}

/// How long before its host gives up the client answers: it has to be heard, and processes start late under load.
pub const MARGIN_S: u32 = 2;

impl ClientEntry<'_> {
    /// The events of `host` that it is installed for.
    pub fn rows<'h>(&self, host: &'h GuardHost) -> impl Iterator<Item = &'h EventRow> {
        let events = self.events;
        let is_meant = move |row: &&EventRow| events.is_none_or(|events| events.iter().any(|event| event == row.name));
        host.events.iter().filter(|row| row.installed).filter(is_meant)
    }

    /// The words behind the program's name, for `event`.
    pub fn arguments(&self, event: &str) -> Vec<String> {
        let deadline_ms = u64::from(self.timeout_s.saturating_sub(MARGIN_S).max(1)) * 1000;
        let mut words = vec![("--host", self.host.to_owned()), ("--event", event.to_owned())];
        match self.daemon {
            EntryDaemon::Named { socket, key_file } => {
                words.extend([("--socket", socket.to_owned()), ("--key-file", key_file.to_owned())]);
            }
            EntryDaemon::Account => words.push(("--daemon", "account".to_owned())),
        }
        words.push(("--deadline", deadline_ms.to_string()));
        if self.allows_away {
            words.push(("--away", "allow".to_owned()));
        }
        words.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }
}

/// What turns the hooks of a host off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSwitches {
    /// Each place that does.
    pub all: &'static [HostSwitch],
    /// Whether hooks of the machine run whatever a person or a project says: only a switch of the machine turns them off.
    pub machine_holds: bool,
    /// Whether a switch that the settings of the machine set the other way round counts nowhere else.
    pub machine_pins: bool,
}

impl HostSwitches {
    /// Nothing does.
    pub const NONE: Self = Self { all: &[], machine_holds: false, machine_pins: false };

    /// What turns the hooks of `scope` off.
    pub fn of(self, scope: InstallScope) -> impl Iterator<Item = &'static HostSwitch> {
        let is_apart = scope == InstallScope::System && self.machine_holds;
        self.all.iter().filter(move |switch| !is_apart || switch.path.starts_with('/'))
    }

    /// What, thrown in the settings of the machine, keeps `switch` from turning anything off, if something does.
    pub fn pin_of(self, switch: &HostSwitch) -> Option<HostSwitch> {
        let SwitchValue::Is(off) = switch.off else { return None };
        let is_pin = |other: &&HostSwitch| other.path.starts_with('/') && other.names == switch.names;
        let pin = self.all.iter().find(is_pin).filter(|_| self.machine_pins)?;
        Some(HostSwitch { off: SwitchValue::Is(!off), ..*pin })
    }
}

/// A place in a file of a host that turns hooks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSwitch {
    /// The file, as in [`ConfigPlace::path`]; `*` in the name of the file is any text.
    pub path: &'static str,
    /// Where it stands there: the names of members, from the outside in.
    pub names: &'static [&'static str],
    /// What stands there then.
    pub off: SwitchValue,
}

/// What turns hooks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchValue {
    /// This truth.
    Is(bool),
    /// A list that names a hook of ours.
    NamesOurs,
}

/// Whether somebody has to accept hooks before they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookAcceptance {
    /// What stands in the settings runs.
    NotNeeded,
    /// What a person or a project wrote is passed over, without a word, until it was accepted; that is asked and told
    /// over the host's own server on standard streams. What the machine's settings say runs at once.
    AppServer {
        /// The file in which the host keeps what was accepted, as in [`ConfigPlace::path`].
        state: &'static str,
    },
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
    /// Reads what the host says to a hook. What the host started the hook for is what counts: whoever says otherwise
    /// would choose which rules apply, and what nobody knows would be let pass.
    ///
    /// # Errors
    /// No event can be read from it, it is another one, or one that can be stopped and is not known.
    pub fn read(&self, input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
        let event = (self.adapter.decode)(input)?;
        if input.event.is_some_and(|wanted| self.event(wanted).is_some() && wanted != event.event) {
            return Err(Malformed::OtherEvent(event.event));
        }
        if event.what == HostWhat::Other && self.event(&event.event).is_some_and(|row| row.stops) {
            return Err(Malformed::Unknown(event.event));
        }
        Ok(event)
    }

    /// The row of the event `name`.
    pub fn event(&self, name: &str) -> Option<&EventRow> {
        self.events.iter().find(|row| row.name == name)
    }

    /// The row of the tool that the host calls `native`.
    pub fn tool(&self, native: &str) -> Option<&'static ToolRow> {
        self.tools.iter().find(|row| row.native == native)
    }
}
