//! `pintle serve`: agents and rules over WebSocket and HTTP.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use clap::{Args, Subcommand};
use pintle_domain::caller_role::CallerRole;
use pintle_domain::health::{Health, Step};
use pintle_domain::store::StoreError;
use pintle_gateway::{BadSettings, DoctorCommand, ForeignAgents, Gateway, GatewaySettings, Listening, News, link_user};
use pintle_host::changes::Changes;
use pintle_host::host::Host;
use pintle_host::reload::ConfigSource;
use pintle_rules::admin::Caller;
use pintle_store::ServeLock;
use pintle_store::keyring::ENV_KEYS;
use tokio_util::sync::CancellationToken;

use super::doctor::unready;
use super::session::{self, GuardHealth, INTERRUPTED};
use super::stops::Stops;
use super::store::shown_store;
use super::{Global, exposure, identity, terminal};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::guard::hook_door::HookDoor;
use crate::guard::kept_sessions::running_agents;
use crate::operator;
use crate::text::counted;

mod hook_door;
mod link;
mod notify;

use notify::ServiceManager;

/// Flags of `serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Address to listen on, such as 127.0.0.1:18790 or unix:/run/pintle.sock [default: `gateway.listen`, else
    /// 127.0.0.1:18790]
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    listen: Vec<String>,
    /// Print a sign-in link for the console (role admin), valid once and for two minutes
    #[arg(long)]
    open: bool,
    /// Check everything that a start needs, without listening
    #[arg(long)]
    check: bool,
    /// Refuse to start when a guard is broken, down or untrusted
    #[arg(long)]
    strict: bool,
    #[arg(skip)]
    is_demo: bool,
}

impl ServeArgs {
    /// For the demo, which holds nothing that anybody must not reach: its link is printed wherever its output goes.
    pub(super) fn of_demo(listen: &[String]) -> Self {
        Self { command: None, listen: listen.to_vec(), open: true, check: false, strict: false, is_demo: true }
    }
}

/// What else can be done with a server.
#[derive(Debug, Subcommand)]
pub(super) enum ServeCommand {
    /// Print a sign-in link for the console, valid once and for two minutes
    Link(link::LinkArgs),
}

/// The exit code of `--check` where something is not as it should be.
const NOT_WELL: u8 = 5;

pub(super) fn run(global: &Global, args: &ServeArgs) -> Result<u8, CliError> {
    if let Some(ServeCommand::Link(args)) = &args.command {
        return link::run(global, args);
    }
    let runtime = terminal::runtime()?;
    let code = runtime.block_on(serve(global, args));
    runtime.shutdown_background();
    code
}

async fn serve(global: &Global, args: &ServeArgs) -> Result<u8, CliError> {
    let mut stops = Stops::listen(false)?;
    let news = News::default();
    let (mut lock, host) = alone(global, args, &news)?;
    if args.check {
        host.store.check_pages().map_err(served)?;
    }
    let mut settings = GatewaySettings::new(&host.loaded.config.gateway, host.env(), &args.listen, has_keys(&host)?)
        .map_err(refused)?;
    settings.doctor = doctor(global);
    let home = global.home.clone();
    // Read anew each time: the daemon of the guard may be another process.
    settings.agents = ForeignAgents::new(move || {
        running_agents(home.as_deref()).map_err(|unknown| unknown.to_string().replace("\n ", ";"))
    });
    let changes = Changes::of(&host)?;
    session::all_servers(&host).await;
    let guards = session::ready(&host, args.strict).await?;
    let unfit = session::unfit(&host, &guards);
    let unready = if args.check { unready(&host).await } else { Vec::new() };
    for why in host.unusables().into_iter().chain(exposures(&host, args)?) {
        terminal::warn(&prose(&why));
    }
    let lines = head(&host, &guards)?;
    let gateway = Gateway::new(host, news, settings);
    if gateway.settings().is_in_the_clear() {
        terminal::warn(
            "others reach it without encryption: set `gateway.tls`, or name the proxies in front of it in \
             `gateway.trusted_proxies`",
        );
    }
    if args.check {
        gateway.could_listen().map_err(refused)?;
        lines.iter().for_each(|line| terminal::note(line));
        let faults = gateway.door_faults().await;
        faults.iter().chain(&unready).for_each(|why| terminal::warn(&prose(why)));
        let well = faults.is_empty() && unfit.is_empty() && unready.is_empty();
        gateway.drain(&hurried()).await;
        return Ok(if well { 0 } else { NOT_WELL });
    }
    let listening = gateway.listen().await.map_err(refused)?;
    let addresses: Vec<String> = listening.iter().map(|it| it.address.to_string()).collect();
    if let Some(lock) = &mut lock {
        lock.say(&addresses).map_err(|error| CliError::failed(error.to_string()))?;
    }
    let opened = listening.iter().find_map(|it| gateway.settings().origin_of(&it.address));
    let cut = gateway.join(addresses).await.map_err(|error| CliError::failed(error.message))?;
    listening.iter().map(at).chain(lines).for_each(|line| terminal::note(&line));
    if !cut.is_empty() {
        let sessions = cut.iter().map(|session| clean(session)).collect::<Vec<_>>().join(", ");
        terminal::note(&format!("{} when the server ended: {sessions}", were_cut(cut.len())));
    }
    gateway.serve(listening);
    if args.open {
        open(&gateway, opened.as_deref(), args.is_demo).await?;
    }
    let served = Served { global, gateway, changes, hooks: hook_door::open(global) };
    let manager = ServiceManager::of_process();
    manager.ready();
    tokio::select! {
        code = served.until(&mut stops, &manager) => Ok(code),
        () = manager.beats() => unreachable!("it beats until nobody waits for it"),
    }
}

/// How another process of this program examines what is served here.
fn doctor(global: &Global) -> Option<DoctorCommand> {
    let program = std::env::current_exe().ok()?;
    let mut args: Vec<OsString> = vec!["doctor".into(), "--json".into()];
    for (flag, path) in [("--config", &global.config), ("--home", &global.home)] {
        if let Some(path) = path {
            args.extend([flag.into(), path.into()]);
        }
    }
    Some(DoctorCommand { program, args })
}

/// Opens the host, and keeps others from serving the same file.
fn alone(global: &Global, args: &ServeArgs, news: &News) -> Result<(Option<ServeLock>, Host), CliError> {
    let host = session::open(global, vec![news.watcher()])?;
    let config = &host.loaded.config;
    let lock = if args.check { None } else { ServeLock::take(&config.store_url, &config.home).map_err(served)? };
    Ok((lock, host))
}

fn served(error: StoreError) -> CliError {
    CliError::failed(error.to_string())
}

/// A gateway that answers.
struct Served<'a> {
    global: &'a Global,
    gateway: Gateway,
    changes: Changes,
    /// Where hooks of coding agents come in, if they do here.
    hooks: Option<HookDoor>,
}

impl Served<'_> {
    async fn until(mut self, stops: &mut Stops, manager: &ServiceManager) -> u8 {
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let hooks = hook_door::serve(self.hooks.take(), &stop, &hurry);
        let (code, ()) = tokio::join!(self.drained(stops, manager, (&stop, &hurry)), hooks);
        code
    }

    /// Serves until a signal, and then until everything is done: sets `stop` first, and `hurry` if nobody wants to wait.
    async fn drained(
        &mut self,
        stops: &mut Stops,
        manager: &ServiceManager,
        (stop, hurry): (&CancellationToken, &CancellationToken),
    ) -> u8 {
        // A reload may take as long as new children take to shake hands; a signal does not wait for them.
        let reloads = async {
            loop {
                self.changes.next().await;
                reload(self.global, &self.gateway, &mut self.changes).await;
            }
        };
        tokio::select! {
            _ = stops.next() => {}
            () = reloads => {}
        }
        manager.stopping();
        stop.cancel();
        terminal::note("stopping: running turns may finish first; interrupt again to stop them now");
        let drained = self.gateway.drain(hurry);
        tokio::pin!(drained);
        let cut = tokio::select! {
            cut = &mut drained => cut,
            _ = stops.next() => {
                hurry.cancel();
                drained.await
            }
        };
        if !cut.is_empty() {
            terminal::note(&format!("{}; the sessions have what was done so far", were_cut(cut.len())));
        }
        if hurry.is_cancelled() { INTERRUPTED } else { 0 }
    }
}

fn were_cut(count: usize) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!("{} {were} cut", counted(count, "turn"))
}

async fn reload(global: &Global, gateway: &Gateway, changes: &mut Changes) {
    changes.settle().await;
    let source = ConfigSource { config: global.config.as_deref(), home: global.home.as_deref() };
    match gateway.reload(source).await {
        Ok(lines) => {
            terminal::note("the new configuration is in force");
            lines.iter().for_each(|line| terminal::note(&prose(line)));
        }
        Err(error) => terminal::complain(&error.into()),
    }
    // It may name other folders.
    if let Err(error) = changes.follow(&*gateway.host().await) {
        terminal::complain(&error.into());
    }
}

/// Whether there is an API key that somebody can be known by.
fn has_keys(host: &Host) -> Result<bool, CliError> {
    host.store.has_keys(jiff::Timestamp::now()).map_err(|error| CliError::failed(error.to_string()))
}

/// Prints a link to the console, where only a person sees it.
async fn open(gateway: &Gateway, origin: Option<&str>, anywhere: bool) -> Result<(), CliError> {
    if !anywhere && (!std::io::stderr().is_terminal() || operator::require().is_err()) {
        terminal::warn("--open prints its link only on a terminal; run `pintle serve link` in one");
        return Ok(());
    }
    let Some(origin) = origin else {
        terminal::warn("--open needs a network address, or `gateway.public_url`");
        return Ok(());
    };
    let (role, now) = (CallerRole::Admin, jiff::Timestamp::now());
    let user = link_user(&gateway.host().await.loaded.config.gateway, role);
    let code = gateway.identity_admin().link(&Caller::cli(), &user, role, now).map_err(identity::refused)?;
    terminal::note(&format!("open {origin}/#code={code}"));
    Ok(())
}

/// A token that is set: nothing is waited for.
fn hurried() -> CancellationToken {
    let hurried = CancellationToken::new();
    hurried.cancel();
    hurried
}

fn at(listening: &Listening) -> String {
    let (does, path) = if listening.is_metrics { ("numbers", "/metrics") } else { ("listening", "") };
    format!("{does} at {}{path}", listening.shown())
}

/// What agents' programs reach here although it is kept from them elsewhere.
fn exposures(host: &Host, args: &ServeArgs) -> Result<Vec<String>, CliError> {
    if args.is_demo {
        return Ok(Vec::new());
    }
    let config = &host.loaded.config;
    let tenants = host.store.tenants().map_err(|error| CliError::failed(error.to_string()))?;
    let of_root = exposure::of_root(config, nix::unistd::geteuid().is_root());
    Ok(of_root.into_iter().chain(exposure::of_workspaces(config, &tenants)).collect())
}

/// What is served, a line each.
fn head(host: &Host, guards: &[GuardHealth]) -> Result<Vec<String>, CliError> {
    let config = &host.loaded.config;
    let tenants = host.store.tenants().map_err(|error| CliError::failed(error.to_string()))?;
    // The owner of global rules is nobody's tenant.
    let tenants: Vec<String> = tenants.iter().skip(1).map(|tenant| clean(&tenant.slug)).collect();
    let agents: Vec<String> = config.agents.keys().map(|name| clean(name)).collect();
    let mut lines = vec![
        format!("  edition  {}; tenants: {}", host.host_rules.edition().word(), tenants.join(", ")),
        format!("  agents   {}", agents.join(", ")),
        format!("  store    {}", clean(&shown_store(config))),
    ];
    lines.push(format!("  hooks    {}", standing(guards)));
    let rules = host.host_rules.rule_cache().rules();
    let acting = rules.hooks.iter().filter(|rule| rule.enabled).count();
    let tripped = rules.hooks.iter().filter(|rule| rule.tripped_at.is_some()).count() + rules.trips.len();
    let tripped = if tripped == 0 { String::new() } else { format!(", {tripped} tripped: see `pintle hooks list`") };
    lines.push(format!("  rules    {acting} in force{tripped}"));
    if host.history_key.is_none() {
        lines.push(format!(
            "  key      none: signatures of histories are empty, and no secret can be kept; set {}",
            ENV_KEYS[0]
        ));
    }
    Ok(lines)
}

/// How many guards stand how, those that somebody should look at behind the others.
fn standing(guards: &[GuardHealth]) -> String {
    let count = |is: &dyn Fn(&Health) -> bool| guards.iter().filter(|(_, health)| is(health)).count();
    let untrusted = count(&|health| matches!(health, Health::Unproven { step: Step::Trust, .. }));
    let unproven = count(&|health| matches!(health, Health::Unproven { step: Step::Answer, .. }));
    let broken = count(&|health| matches!(health, Health::Unproven { .. })) - untrusted - unproven;
    let mut line = format!("{} armed", count(&Health::is_armed));
    for (number, what) in [(unproven, "not proven yet"), (broken, "broken"), (untrusted, "untrusted")] {
        if number > 0 {
            line.push_str(&format!(", {number} {what}"));
        }
    }
    if broken + untrusted > 0 {
        line.push_str(": see `pintle doctor`");
    }
    line
}

pub(super) fn refused(why: BadSettings) -> CliError {
    CliError::usage(why.message).hint(why.hint)
}
