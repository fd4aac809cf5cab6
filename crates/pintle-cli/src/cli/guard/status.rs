//! `pintle guard status`: which coding agents are under guard, how far, and when they were last heard.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::Args;
use futures_util::future::join_all;
use jiff::Timestamp;
use pintle_guard::GuardHost;
use pintle_guard::measured::{ClassCoverage, coverage, lacks, unproven};
use pintle_host::config::adopted::AdoptedHooks;
use pintle_host::config::{self, Env};
use serde_json::{Value, json};

use super::classes::{self, ModelDoorAt, OpenDoors};
use super::config_here::ConfigHere;
use super::team::TeamStatus;
use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::daemon_process::{DaemonOf, DaemonProcess};
use crate::guard::folders::required;
use crate::guard::host_files::{KeptOf, kept_of};
use crate::guard::installs::{Installed, found, named};
use crate::guard::kept_sessions::kept;
use crate::guard::places::GuardPlaces;
use crate::guard::proofs::{GuardProof, GuardTry, KnownHere, proofs, tries};
use crate::guard::reconciling::{Unheard, unheard};
use crate::guard::sessions::HostSession;
use crate::guard::versions::{self, HostVersion};
use crate::moment::moment;
use crate::table::{folded, out_columns};
use crate::text::counted;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Flags of `guard status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only these agents, with commas between them [default: all]
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    host: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One host, as it stands.
struct Standing {
    host: &'static GuardHost,
    installed: Vec<Installed>,
    /// What is kept of its installations: the files that its entries were taken from, where none are left.
    kept: KeptOf,
    sessions: Vec<HostSession>,
    /// Which version is there; nobody asks where nothing is installed.
    version: Option<HostVersion>,
    proof: Option<GuardProof>,
    /// When the daemon wanted to prove it.
    tried: Option<GuardTry>,
    /// How far each class of its tools is under guard here.
    coverage: Vec<ClassCoverage>,
    /// What it wrote down and no hook said anything of.
    unheard: Vec<Unheard>,
    /// Why its sessions here may do nothing.
    lacks: Option<String>,
    /// The hooks that were taken over from its settings, or why that cannot be said.
    adopted: Vec<Result<AdoptedHooks, String>>,
}

impl Standing {
    /// Whether everything that it claims is so.
    fn is_well(&self) -> bool {
        let is_armed = self.installed.is_empty() || self.lacks.is_none();
        let is_whole = live(self).all(|session| session.past.is_empty());
        let is_kept = self.adopted.iter().all(Result::is_ok);
        let is_heard = self.unheard.is_empty() && self.installed.iter().all(|it| it.flaw.is_none());
        is_armed && is_whole && is_kept && is_heard && self.kept.taken.is_empty() && self.kept.unread.is_empty()
    }

    /// Why none of its installations runs.
    fn off(&self) -> Option<&str> {
        let runs = self.installed.iter().any(|it| it.flaw.is_none());
        self.installed.iter().find_map(|it| it.flaw.as_deref()).filter(|_| !runs)
    }
}

pub(super) fn run(global: &Global, args: &StatusArgs) -> Result<u8, CliError> {
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    let hosts = named(&args.host)?;
    let sessions = kept(&places.folder).inspect_err(terminal::complain);
    let is_known = sessions.is_ok();
    let sessions = sessions.unwrap_or_default();
    let here = ConfigHere::load(global, &env);
    let runs = places.is_guarded();
    let required = here.config().map(required).unwrap_or_default();
    let team = here.config().and_then(TeamStatus::of);
    let (mut proofs, mut tries, mut standings) = (proofs(&places), tries(&places), Vec::new());
    for host in hosts {
        let installed = found(host, &env, &places);
        let mut kept = kept_of(&places, host);
        if !installed.is_empty() {
            kept.taken.clear();
        }
        standings.push(Standing {
            host,
            unheard: if installed.is_empty() { Vec::new() } else { unheard(host, &sessions, (&env, &places)) },
            kept,
            installed,
            sessions: sessions.iter().filter(|it| it.host == host.id).cloned().collect(),
            version: None,
            proof: proofs.remove(host.id),
            tried: tries.remove(host.id),
            coverage: Vec::new(),
            lacks: None,
            adopted: adopted_of(host, &places),
        });
    }
    let there = || standings.iter().filter(|it| !it.installed.is_empty()).map(|it| it.host);
    let looks = there().map(|host| versions::look(Path::new(host.id), host.versions));
    let found = terminal::runtime()?.block_on(join_all(looks));
    for (version, standing) in found.into_iter().zip(standings.iter_mut().filter(|it| !it.installed.is_empty())) {
        standing.version = Some(version);
    }
    for standing in &mut standings {
        let known = KnownHere::of(standing.host, standing.version.clone(), &places);
        let facts = known.facts(standing.off());
        let levels = coverage(standing.host, &facts);
        let refused = here.refuses(standing.host).map(|why| if runs { format!("{why} ({KEPT_TOO})") } else { why });
        let lacks = refused.or_else(|| lacks(standing.host, &facts, &required));
        (standing.coverage, standing.lacks) = (levels, lacks);
    }
    let daemon = Daemon { places: &places, runs, here: &here };
    let doors = here.config().map(OpenDoors::of).unwrap_or_default().with_models_at(daemon.models_at());
    let text = match args.json {
        true => {
            let (hosts, doors) = (json_of(&standings), doors.json());
            let mut all = json!({"daemon": daemon.json(), "hosts": hosts, "doors": doors});
            if let Some(team) = &team {
                all["team"] = team.json();
            }
            format!("{all:#}\n")
        }
        false => folded(&(shown(&daemon, team.as_ref(), &standings) + &doors.shown()), out_columns(), 4),
    };
    terminal::say(&text)?;
    // Where nothing is installed, nobody is refused.
    let is_loaded = here.is_well() || standings.iter().all(|it| it.installed.is_empty());
    let is_well =
        is_known && is_loaded && standings.iter().all(Standing::is_well) && team.is_none_or(|team| team.is_well());
    Ok(if is_well { 0 } else { UNGUARDED })
}

/// The daemon, and what it would find.
struct Daemon<'a> {
    places: &'a GuardPlaces,
    runs: bool,
    /// The configuration of this folder.
    here: &'a ConfigHere,
}

impl Daemon<'_> {
    /// Its process, where it runs and said so.
    fn process(&self) -> Option<DaemonProcess> {
        self.places.daemon().filter(|_| self.runs)
    }

    /// Where its model door is.
    fn models_at(&self) -> ModelDoorAt {
        match self.process().map(|it| it.of) {
            Some(DaemonOf::GuardServe) => self.places.model_door().map_or(ModelDoorAt::Nowhere, ModelDoorAt::Address),
            Some(DaemonOf::Serve) => ModelDoorAt::Gateway,
            None => ModelDoorAt::Nowhere,
        }
    }

    /// Where daemons that hooks started wrote what they had to say, where one did.
    fn log(&self) -> Option<PathBuf> {
        Some(self.places.log_file()).filter(|file| file.exists())
    }

    fn json(&self) -> Value {
        let Self { places, runs, here } = self;
        let process = self.process();
        json!({
            "runs": runs,
            "pid": process.map(|it| it.pid),
            "command": process.map(|it| it.of.command()),
            "socket": places.socket,
            "log": self.log(),
            "unloadable": here.unloadable(),
            "mistakes": here.mistakes(),
            "open": OPEN_TO_ACCOUNT,
        })
    }

    fn shown(&self) -> String {
        let pid = match self.process() {
            Some(DaemonProcess { pid, of: DaemonOf::GuardServe, .. }) => format!(" (pid {pid})"),
            Some(DaemonProcess { pid, of: DaemonOf::Serve, .. }) => {
                format!(" as part of `{}` (pid {pid})", DaemonOf::Serve.command())
            }
            None => String::new(),
        };
        let state = match (self.runs, self.places.allows_self_edit()) {
            (true, true) => format!("runs{pid}, and lets agents change their own settings: --allow-self-edit"),
            (true, false) => format!("runs{pid}"),
            (false, _) => "does not run; the next hook starts it".to_owned(),
        };
        let socket = clean(&self.places.socket.display().to_string());
        let mut text = format!("daemon  {state}\n  {DIM}{socket}{DIM:#}\n");
        if let Some(log) = self.log() {
            text += &format!("  log        {}, of daemons that hooks start\n", clean(&log.display().to_string()));
        }
        if let Some(why) = self.here.unloadable() {
            // Those that run go on with what they have.
            let unless = if self.runs { KEPT } else { "" };
            let why = clean(why);
            text += &format!(
                "  {BAD}refused{BAD:#}    each prompt and call here{unless}: the configuration does not load: {why}\n"
            );
        }
        if let Some((count, first)) = self.here.mistakes_said() {
            let first = clean(&first);
            text += &format!(
                "  {BAD}mistakes{BAD:#}   {count} in the configuration: `pintle doctor` shows them, such as {first}\n"
            );
        }
        text + &format!("  open       {OPEN_TO_ACCOUNT}\n")
    }
}

/// What a running daemon does with a configuration that broke.
const KEPT: &str = ", unless the daemon that runs still has the last good configuration of this folder, which it keeps \
                    while an agent works here";

/// The same of what is refused for one agent.
const KEPT_TOO: &str = "a daemon that runs goes on with the last good configuration of this folder, if it has one";

/// What was taken over from the settings of `host`. A file that cannot be read is known by its name.
fn adopted_of(host: &GuardHost, places: &GuardPlaces) -> Vec<Result<AdoptedHooks, String>> {
    let is_of =
        |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{}-", host.id)));
    let all = config::adopted::all(places.home()).into_iter().filter(|(file, _)| is_of(file));
    all.map(|(file, read)| read.map_err(|why| format!("{}: {why}", file.display()))).collect()
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
        let unheard =
            |it: &Unheard| json!({"file": it.file, "session": it.session, "calls": it.calls, "unread": it.unread});
        json!({
            "host": standing.host.id,
            "name": standing.host.name,
            "newest_known": standing.host.versions.newest,
            "version": standing.version.as_ref().map(version_json),
            "proven": standing.proof.as_ref().map(|it| json!({"version": it.version, "at": it.at})),
            "tried": standing.tried.as_ref().map(|it| json!({"version": it.version, "at": it.at, "said": it.said})),
            "unheard": standing.unheard.iter().map(unheard).collect::<Vec<_>>(),
            "taken": standing.kept.taken,
            "unreadable": standing.kept.unread,
            "installed": standing.installed.iter().map(installed).collect::<Vec<_>>(),
            "live": live(standing).map(session).collect::<Vec<_>>(),
            "last": standing.sessions.iter().map(|it| it.last).max(),
            "lacks": standing.lacks,
            "adopted": standing.adopted.iter().map(adopted_json).collect::<Vec<_>>(),
            "coverage": classes::json_of(&standing.coverage),
        })
    };
    standings.iter().map(row).collect()
}

fn adopted_json(read: &Result<AdoptedHooks, String>) -> Value {
    match read {
        Ok(adopted) => json!({"file": adopted.file, "folder": adopted.folder, "hooks": adopted.count(), "flaw": null}),
        Err(why) => json!({"file": null, "folder": null, "hooks": null, "flaw": why}),
    }
}

fn version_json(version: &HostVersion) -> Value {
    match version {
        HostVersion::Known(version) => json!({"is": version, "known": true}),
        HostVersion::Unproven(version) => json!({"is": version, "known": false}),
        HostVersion::Unsaid(why) => json!({"is": null, "known": false, "why": why}),
    }
}

fn shown(daemon: &Daemon<'_>, team: Option<&TeamStatus>, standings: &[Standing]) -> String {
    let mut text = daemon.shown();
    if let Some(team) = team {
        team.write(&mut text).expect("a text takes everything that is written to it");
    }
    for standing in standings {
        host(&mut text, standing).expect("a text takes everything that is written to it");
    }
    text
}

fn host(text: &mut String, standing: &Standing) -> std::fmt::Result {
    let host = standing.host;
    if standing.installed.is_empty() {
        writeln!(text, "{BOLD}{}{BOLD:#}  not installed: `pintle guard install --host {}`", host.id, host.id)?;
        for file in &standing.kept.taken {
            let file = clean(&file.display().to_string());
            writeln!(text, "  {BAD}taken away{BAD:#} {file}: it was installed there, and nobody uninstalled it")?;
        }
        return unreadable(text, standing);
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
    unreadable(text, standing)?;
    adopted(text, standing)?;
    if let Some(why) = &standing.lacks {
        writeln!(text, "  {BAD}refused{BAD:#}    each of its prompts and calls here: {why}")?;
    }
    match &standing.version {
        Some(HostVersion::Known(version)) => writeln!(text, "  version    {version}")?,
        Some(HostVersion::Unproven(version)) => {
            writeln!(
                text,
                "  version    {version}: newer or older than those that were tried, up to {}",
                host.versions.newest
            )?;
        }
        Some(HostVersion::Unsaid(why)) => writeln!(text, "  version    unknown: {}", clean(why))?,
        None => {}
    }
    proven(text, standing)?;
    let newest = standing.sessions.iter().map(|it| it.last).max();
    let heard = newest.map_or_else(|| "never heard".to_owned(), |at: Timestamp| format!("last heard {}", moment(at)));
    writeln!(text, "  sessions   {} live, {heard}", live(standing).count())?;
    for past in live(standing).flat_map(|session| &session.past) {
        writeln!(text, "  {BAD}past it{BAD:#}    {}: {}", moment(past.at), clean(&past.text))?;
    }
    for unheard in &standing.unheard {
        writeln!(text, "  {BAD}unheard{BAD:#}    {}", clean(&unheard.said()))?;
    }
    classes::write(text, &standing.coverage.iter().collect::<Vec<_>>())
}

/// What is kept of its installations and cannot be read.
fn unreadable(text: &mut String, standing: &Standing) -> std::fmt::Result {
    for why in &standing.kept.unread {
        let why = clean(why);
        writeln!(
            text,
            "  {BAD}unreadable{BAD:#} what was kept of an installation, which may have been taken away: {why}"
        )?;
    }
    Ok(())
}

/// When it was proven, and since which version it is not.
fn proven(text: &mut String, standing: &Standing) -> std::fmt::Result {
    let host = standing.host;
    let version = match &standing.version {
        Some(HostVersion::Known(version) | HostVersion::Unproven(version)) => Some(version.as_str()),
        Some(HostVersion::Unsaid(_)) | None => None,
    };
    let is_other = |proof: &GuardProof| version.is_some_and(|version| version != proof.version);
    match &standing.proof {
        Some(proof) => writeln!(text, "  proven     {} with {}", moment(proof.at), clean(&proof.version))?,
        None => writeln!(text, "  proven     never: `pintle guard doctor --host {} --live`", host.id)?,
    }
    let is_new = matches!(standing.version, Some(HostVersion::Unproven(_)));
    let is_unproven = standing.proof.as_ref().map_or(is_new, is_other);
    if let Some(version) = version.filter(|_| is_unproven) {
        let tried = standing.tried.as_ref().filter(|tried| tried.version == version);
        let tried = tried.map_or_else(
            || "it is tried at the next session".to_owned(),
            |tried| format!("tried {}: {}", moment(tried.at), clean(&tried.said)),
        );
        writeln!(text, "  {BAD}{}{BAD:#}; {tried}", unproven(version))?;
    }
    Ok(())
}

/// What every program of the account can do, whatever agent it belongs to.
const OPEN_TO_ACCOUNT: &str = "any program of this account can ask the daemon about calls, read its key, open the store \
                               and end the daemon: `guard reconcile` counts a call as asked about if anyone asked \
                               about one like it";

/// What was taken over from the settings of a host.
fn adopted(text: &mut String, standing: &Standing) -> std::fmt::Result {
    for adopted in &standing.adopted {
        match adopted {
            Ok(adopted) => {
                let (file, count) = (clean(&adopted.file.display().to_string()), counted(adopted.count(), "hook"));
                let place = match &adopted.folder {
                    Some(folder) => format!("in {}", clean(&folder.display().to_string())),
                    None => "everywhere".to_owned(),
                };
                writeln!(text, "  adopted    {count} of {file}, {place}: `pintle hooks list`")?;
            }
            Err(why) => {
                writeln!(text, "  {BAD}adopted{BAD:#}    cannot be read, and every call is refused: {}", clean(why))?
            }
        }
    }
    Ok(())
}
