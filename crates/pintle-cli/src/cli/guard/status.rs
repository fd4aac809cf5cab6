//! `pintle guard status`: which coding agents are under guard, how far, and when they were last heard.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use clap::Args;
use futures_util::future::join_all;
use guard::GuardHost;
use guard::coverage::ToolCoverage;
use host::config::{self, Env, LoadOptions};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};

use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::folders::required;
use crate::guard::installs::{Installed, found, hosts};
use crate::guard::places::GuardPlaces;
use crate::guard::proofs::{GuardProof, proofs};
use crate::guard::sessions::{HostSession, kept};
use crate::guard::versions::{self, HostVersion};
use crate::moment::moment;
use crate::table::{folded, out_columns};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Flags of `guard status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only this agent
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One host, as it stands.
struct Standing {
    host: &'static GuardHost,
    installed: Vec<Installed>,
    sessions: Vec<HostSession>,
    /// Which version is there; nobody asks where nothing is installed.
    version: Option<HostVersion>,
    proof: Option<GuardProof>,
    /// Why its sessions here may do nothing.
    lacks: Option<String>,
}

impl Standing {
    /// Whether everything that it claims is so.
    fn is_well(&self) -> bool {
        let is_armed = self.installed.is_empty() || self.lacks.is_none();
        let is_whole = live(self).all(|session| session.past.is_empty());
        is_armed && is_whole && self.installed.iter().all(|it| it.flaw.is_none())
    }
}

pub(super) fn run(global: &Global, args: &StatusArgs) -> Result<u8, CliError> {
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    let hosts = hosts(args.host.as_deref())?;
    let sessions = kept(&places);
    let options =
        LoadOptions { config: global.config.as_deref(), home: global.home.as_deref(), builtins: &[], probe: None };
    let loaded = config::load(&env, &options);
    let required = loaded.as_ref().map(|loaded| required(&loaded.config)).unwrap_or_default();
    let unloadable = loaded.err().map(|error| error.to_string());
    let (mut proofs, mut standings) = (proofs(&places), Vec::new());
    for host in hosts {
        standings.push(Standing {
            host,
            installed: found(host, &env, &places),
            sessions: sessions.iter().filter(|it| it.host == host.id).cloned().collect(),
            version: None,
            proof: proofs.remove(host.id),
            lacks: host.lacks(&required),
        });
    }
    let there = || standings.iter().filter(|it| !it.installed.is_empty()).map(|it| it.host);
    let looks = there().map(|host| versions::look(Path::new(host.id), host.versions));
    let found = terminal::runtime()?.block_on(join_all(looks));
    for (version, standing) in found.into_iter().zip(standings.iter_mut().filter(|it| !it.installed.is_empty())) {
        standing.version = Some(version);
    }
    let runs = runs(&places);
    let daemon = Daemon { places: &places, runs, unloadable };
    let text = match args.json {
        true => format!("{:#}\n", json!({"daemon": daemon.json(), "hosts": json_of(&standings)})),
        false => folded(&shown(&daemon, &standings), out_columns(), 4),
    };
    terminal::say(&text)?;
    // Where nothing is installed, nobody is refused.
    let is_loaded = daemon.unloadable.is_none() || standings.iter().all(|it| it.installed.is_empty());
    Ok(if is_loaded && standings.iter().all(Standing::is_well) { 0 } else { UNGUARDED })
}

/// The daemon, and what it would find.
struct Daemon<'a> {
    places: &'a GuardPlaces,
    runs: bool,
    /// Why the configuration of this folder does not load.
    unloadable: Option<String>,
}

impl Daemon<'_> {
    fn json(&self) -> Value {
        json!({"runs": self.runs, "socket": self.places.socket, "unloadable": self.unloadable})
    }
}

/// Whether a daemon holds the lock of this home.
fn runs(places: &GuardPlaces) -> bool {
    let Ok(lock) = File::options().write(true).open(places.lock_file()) else { return false };
    Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_err()
}

/// The sessions that go on.
fn live(standing: &Standing) -> impl Iterator<Item = &HostSession> {
    standing.sessions.iter().filter(|session| !session.ended && session.runs())
}

fn json_of(standings: &[Standing]) -> Vec<Value> {
    let row = |standing: &Standing| {
        let installed =
            |it: &Installed| json!({"scope": it.scope, "file": it.file, "flaw": it.flaw, "limit": it.limit});
        let session = |it: &HostSession| json!({"session": it.session, "folder": it.folder, "first": it.first, "last": it.last, "events": it.events, "past": it.past});
        let coverage =
            |row: &ToolCoverage| json!({"tools": row.class.word(), "level": row.level.word(), "around": row.around});
        json!({
            "host": standing.host.id,
            "name": standing.host.name,
            "newest_known": standing.host.versions.newest,
            "version": standing.version.as_ref().map(version_json),
            "proven": standing.proof.as_ref().map(|it| json!({"version": it.version, "at": it.at})),
            "installed": standing.installed.iter().map(installed).collect::<Vec<_>>(),
            "live": live(standing).map(session).collect::<Vec<_>>(),
            "last": standing.sessions.iter().map(|it| it.last).max(),
            "lacks": standing.lacks,
            "coverage": standing.host.coverage.iter().map(coverage).collect::<Vec<_>>(),
        })
    };
    standings.iter().map(row).collect()
}

fn version_json(version: &HostVersion) -> Value {
    match version {
        HostVersion::Known(version) => json!({"is": version, "known": true}),
        HostVersion::Unproven(version) => json!({"is": version, "known": false}),
        HostVersion::Unsaid(why) => json!({"is": null, "known": false, "why": why}),
    }
}

fn shown(daemon: &Daemon<'_>, standings: &[Standing]) -> String {
    let state = match (daemon.runs, daemon.places.allows_self_edit()) {
        (true, true) => "runs, and lets agents change their own settings: --allow-self-edit",
        (true, false) => "runs",
        (false, _) => "does not run; the next hook starts it",
    };
    let mut text = format!("daemon  {state}\n  {DIM}{}{DIM:#}\n", clean(&daemon.places.socket.display().to_string()));
    if let Some(why) = &daemon.unloadable {
        let why = clean(why);
        text +=
            &format!("  {BAD}refused{BAD:#}    each prompt and call here: the configuration does not load: {why}\n");
    }
    for standing in standings {
        host(&mut text, standing).expect("a text takes everything that is written to it");
    }
    text
}

fn host(text: &mut String, standing: &Standing) -> std::fmt::Result {
    let host = standing.host;
    if standing.installed.is_empty() {
        return writeln!(text, "{BOLD}{}{BOLD:#}  not installed: `pintle guard install --host {}`", host.id, host.id);
    }
    writeln!(text, "{BOLD}{}{BOLD:#}  {}", host.id, host.name)?;
    for installed in &standing.installed {
        let file = clean(&installed.file.display().to_string());
        match &installed.flaw {
            None => writeln!(text, "  {GOOD}installed{GOOD:#}  {}: {file}", installed.scope)?,
            Some(flaw) => writeln!(text, "  {BAD}broken{BAD:#}     {}: {file}: {}", installed.scope, clean(flaw))?,
        }
        if let Some(limit) = &installed.limit {
            writeln!(text, "  open       {}: {limit}", installed.scope)?;
        }
    }
    if let Some(why) = &standing.lacks {
        writeln!(text, "  {BAD}refused{BAD:#}    each of its prompts and calls here: {why}")?;
    }
    match &standing.version {
        Some(HostVersion::Known(version)) => writeln!(text, "  version    {version}")?,
        Some(HostVersion::Unproven(version)) => writeln!(
            text,
            "  version    {version}: {BAD}unproven{BAD:#}, since the newest that is known is {}",
            host.versions.newest
        )?,
        Some(HostVersion::Unsaid(why)) => writeln!(text, "  version    unknown: {}", clean(why))?,
        None => {}
    }
    match &standing.proof {
        Some(proof) => writeln!(text, "  proven     {} with {}", moment(proof.at), clean(&proof.version))?,
        None => writeln!(text, "  proven     never: `pintle guard doctor --host {} --live`", host.id)?,
    }
    let newest = standing.sessions.iter().map(|it| it.last).max();
    let heard = newest.map_or_else(|| "never heard".to_owned(), |at: Timestamp| format!("last heard {}", moment(at)));
    writeln!(text, "  sessions   {} live, {heard}", live(standing).count())?;
    for past in live(standing).flat_map(|session| &session.past) {
        writeln!(text, "  {BAD}past it{BAD:#}    {}: {}", moment(past.at), clean(&past.text))?;
    }
    for row in host.coverage {
        let around = match row.around {
            [] => String::new(),
            around => format!("; open: {}", around.join(", ")),
        };
        writeln!(text, "  {:<10} {}{around}", row.class.word(), row.level.word())?;
    }
    Ok(())
}
