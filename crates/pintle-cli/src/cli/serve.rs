//! `pintle serve`: agents and rules over WebSocket and HTTP.

use std::io::IsTerminal as _;

use clap::{Args, Subcommand};
use domain::caller_role::CallerRole;
use domain::health::Health;
use domain::shown_url::shown_url;
use gateway::{Address, BadSettings, Gateway, GatewaySettings, Listening, News, link_user};
use host::changes::Changes;
use host::host::Host;
use host::reload::ConfigSource;
use rules::admin::Caller;
use tokio_util::sync::CancellationToken;

use super::session::{self, GuardHealth, INTERRUPTED};
use super::stops::Stops;
use super::{Global, identity, terminal};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::operator;
use crate::text::counted;

mod link;

/// Flags of `serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Where to listen, such as 127.0.0.1:18790 or unix:/run/pintle.sock [default: `gateway.listen`, else
    /// 127.0.0.1:18790]
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    listen: Vec<String>,
    /// Print a link that signs a browser in to the console as admin, once and within two minutes
    #[arg(long)]
    open: bool,
    /// Do everything that a start does but listen, and say whether all is well
    #[arg(long)]
    check: bool,
    /// Do not start when a guard is bad, down or untrusted
    #[arg(long)]
    strict: bool,
}

/// What else can be done with a server.
#[derive(Debug, Subcommand)]
pub(super) enum ServeCommand {
    /// Print a link that signs a browser in to the console, once and within two minutes
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
    let host = session::open(global, vec![news.watcher()])?;
    let settings = GatewaySettings::new(&host.loaded.config.gateway, host.env(), &args.listen, has_keys(&host)?)
        .map_err(refused)?;
    let changes = Changes::of(&host)?;
    session::all_servers(&host).await;
    let guards = session::ready(&host, args.strict).await?;
    for why in host.unusables() {
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
        lines.iter().for_each(|line| terminal::note(line));
        let well = guards.iter().all(|(_, health)| !health.stops_a_strict_start());
        gateway.drain(&hurried()).await;
        return Ok(if well { 0 } else { NOT_WELL });
    }
    let listening = gateway.listen().await.map_err(refused)?;
    listening.iter().map(at).chain(lines).for_each(|line| terminal::note(&line));
    let opened = listening.iter().filter(|it| !it.is_metrics).find_map(|it| gateway.settings().origin_of(&it.address));
    gateway.serve(listening);
    if args.open {
        open(&gateway, opened.as_deref()).await?;
    }
    Served { global, gateway, changes }.until(&mut stops).await
}

/// A gateway that answers.
struct Served<'a> {
    global: &'a Global,
    gateway: Gateway,
    changes: Changes,
}

impl Served<'_> {
    async fn until(mut self, stops: &mut Stops) -> Result<u8, CliError> {
        loop {
            tokio::select! {
                _ = stops.next() => break,
                () = self.changes.next() => self.reload().await,
            }
        }
        terminal::note("ending: turns that are under way may go on for a while; the same again stops them");
        let hurry = CancellationToken::new();
        let drained = self.gateway.drain(&hurry);
        tokio::pin!(drained);
        let cut = tokio::select! {
            cut = &mut drained => cut,
            _ = stops.next() => {
                hurry.cancel();
                drained.await
            }
        };
        if cut > 0 {
            let were = if cut == 1 { "was" } else { "were" };
            let turns = counted(cut, "turn");
            terminal::note(&format!("{turns} {were} cut; what was done so far is in the sessions"));
        }
        Ok(if hurry.is_cancelled() { INTERRUPTED } else { 0 })
    }

    async fn reload(&mut self) {
        self.changes.settle().await;
        let source = ConfigSource { config: self.global.config.as_deref(), home: self.global.home.as_deref() };
        match self.gateway.reload(source).await {
            Ok(lines) => {
                terminal::note("the changed configuration is in force");
                lines.iter().for_each(|line| terminal::note(&prose(line)));
            }
            Err(error) => terminal::complain(&error.into()),
        }
        // It may name other folders.
        if let Err(error) = self.changes.follow(&*self.gateway.host().await) {
            terminal::complain(&error.into());
        }
    }
}

/// Whether there is an API key that somebody can be known by.
fn has_keys(host: &Host) -> Result<bool, CliError> {
    host.store.has_keys(jiff::Timestamp::now()).map_err(|error| CliError::failed(error.to_string()))
}

/// Prints a link to the console, where only a person sees it.
async fn open(gateway: &Gateway, origin: Option<&str>) -> Result<(), CliError> {
    if !std::io::stderr().is_terminal() || operator::require().is_err() {
        terminal::warn("--open prints its link on a terminal only; `pintle serve link` in one makes another");
        return Ok(());
    }
    let Some(origin) = origin else {
        terminal::warn("--open needs an address of the network, or `gateway.public_url`");
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
    match &listening.address {
        Address::Network(address) => format!("{does} at http://{address}{path}"),
        Address::Unix(path) => format!("{does} at unix:{}", path.display()),
    }
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
        format!("  store    {}", clean(&shown_url(&config.store_url))),
    ];
    let armed = guards.iter().filter(|(_, health)| health.is_armed()).count();
    let others = guards.iter().filter(|(_, health)| !health.is_armed() && *health != Health::Disabled).count();
    let others = if others == 0 { String::new() } else { format!(", {others} not: see `pintle doctor`") };
    lines.push(format!("  guards   {armed} armed{others}"));
    Ok(lines)
}

fn refused(why: BadSettings) -> CliError {
    CliError::usage(why.message).hint(why.hint)
}
