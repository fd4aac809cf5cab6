//! `pintle serve`: agents and rules over WebSocket and HTTP.

use clap::Args;
use domain::health::Health;
use domain::shown_url::shown_url;
use domain::store::StoreError;
use gateway::{Address, BadSettings, Gateway, GatewaySettings, Listening, News};
use host::changes::Changes;
use host::host::Host;
use host::reload::ConfigSource;
use store::ServeLock;
use tokio_util::sync::CancellationToken;

use super::session::{self, GuardHealth, INTERRUPTED};
use super::stops::Stops;
use super::{Global, terminal};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::text::counted;

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen, such as 127.0.0.1:18790 or unix:/run/pintle.sock [default: `gateway.listen`, else
    /// 127.0.0.1:18790]
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    listen: Vec<String>,
    /// Do everything that a start does but listen, and say whether all is well
    #[arg(long)]
    check: bool,
    /// Do not start when a guard is bad, down or untrusted
    #[arg(long)]
    strict: bool,
}

/// The exit code of `--check` where something is not as it should be.
const NOT_WELL: u8 = 5;

pub(super) fn run(global: &Global, args: &ServeArgs) -> Result<u8, CliError> {
    let runtime = terminal::runtime()?;
    let code = runtime.block_on(serve(global, args));
    runtime.shutdown_background();
    code
}

async fn serve(global: &Global, args: &ServeArgs) -> Result<u8, CliError> {
    let mut stops = Stops::listen(false)?;
    let news = News::default();
    let (mut lock, host) = open(global, args, &news)?;
    let settings = GatewaySettings::new(&host.loaded.config.gateway, host.env(), &args.listen).map_err(refused)?;
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
    let addresses: Vec<String> = listening.iter().map(|it| it.address.to_string()).collect();
    if let Some(lock) = &mut lock {
        lock.say(&addresses).map_err(|error| CliError::failed(error.to_string()))?;
    }
    let cut = gateway.join(addresses).await.map_err(|error| CliError::failed(error.message))?;
    listening.iter().map(at).chain(lines).for_each(|line| terminal::note(&line));
    if !cut.is_empty() {
        let turns = counted(cut.len(), "turn");
        let were = if cut.len() == 1 { "was" } else { "were" };
        let sessions = cut.iter().map(|session| clean(session)).collect::<Vec<_>>().join(", ");
        terminal::note(&format!("{turns} {were} cut when this host ended last, in {sessions}"));
    }
    gateway.serve(listening);
    Served { global, gateway, changes }.until(&mut stops).await
}

/// Opens the host, and keeps others from serving the same file.
fn open(global: &Global, args: &ServeArgs, news: &News) -> Result<(Option<ServeLock>, Host), CliError> {
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
