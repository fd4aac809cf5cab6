//! `pintle serve`: agents and rules over WebSocket and HTTP.

use std::path::Path;

use clap::Args;
use domain::health::{Health, Step};
use domain::shown_url::shown_url;
use gateway::{BadSettings, Gateway, GatewaySettings, Listening, News};
use host::changes::Changes;
use host::host::Host;
use host::reload::ConfigSource;
use tokio_util::sync::CancellationToken;

use super::session::{self, GuardHealth, INTERRUPTED};
use super::stops::Stops;
use super::{Global, terminal};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::text::counted;

mod notify;

use notify::ServiceManager;

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
    let host = session::open(global, vec![news.watcher()])?;
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
    listening.iter().map(at).chain(lines).for_each(|line| terminal::note(&line));
    if let Some(line) = cut_before(&gateway.host().await.loaded.config.home) {
        terminal::note(&line);
    }
    gateway.serve(listening);
    let manager = ServiceManager::of_process();
    manager.ready();
    let served = Served { global, gateway, changes };
    tokio::select! {
        ended = served.until(&mut stops, &manager) => ended,
        () = manager.beats() => unreachable!("it beats until nobody waits for it"),
    }
}

/// A gateway that answers.
struct Served<'a> {
    global: &'a Global,
    gateway: Gateway,
    changes: Changes,
}

impl Served<'_> {
    async fn until(mut self, stops: &mut Stops, manager: &ServiceManager) -> Result<u8, CliError> {
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
        let home = self.gateway.host().await.loaded.config.home.clone();
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
        if !cut.is_empty() {
            terminal::note(&format!("{}; what was done so far is in the sessions", were_cut(cut.len())));
            leave_word(&home, &cut);
        }
        Ok(if hurry.is_cancelled() { INTERRUPTED } else { 0 })
    }
}

/// The file of the home folder in which the end of a server tells the next start what it cut.
const CUT: &str = "cut-turns";

fn were_cut(count: usize) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!("{} {were} cut", counted(count, "turn"))
}

/// Tells the next start of the sessions `cut`.
fn leave_word(home: &Path, cut: &[String]) {
    if let Err(error) = std::fs::write(home.join(CUT), cut.join("\n")) {
        tracing::debug!(%error, "the next start does not hear of it");
    }
}

/// What the end before cut, a line; said once.
fn cut_before(home: &Path) -> Option<String> {
    let file = home.join(CUT);
    let text = std::fs::read_to_string(&file).ok()?;
    if let Err(error) = std::fs::remove_file(file) {
        tracing::debug!(%error, "it is said once more");
    }
    let sessions: Vec<String> = text.lines().map(clean).collect();
    Some(format!("{} when the server ended: {}", were_cut(sessions.len()), sessions.join(", ")))
}

async fn reload(global: &Global, gateway: &Gateway, changes: &mut Changes) {
    changes.settle().await;
    let source = ConfigSource { config: global.config.as_deref(), home: global.home.as_deref() };
    match gateway.reload(source).await {
        Ok(lines) => {
            terminal::note("the changed configuration is in force");
            lines.iter().for_each(|line| terminal::note(&prose(line)));
        }
        Err(error) => terminal::complain(&error.into()),
    }
    // It may name other folders.
    if let Err(error) = changes.follow(&*gateway.host().await) {
        terminal::complain(&error.into());
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
    format!("{does} at {}{path}", listening.shown())
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
    lines.push(format!("  hooks    {}", standing(guards)));
    let rules = host.host_rules.rule_cache().rules();
    let acting = rules.hooks.iter().filter(|rule| rule.enabled).count();
    let tripped = rules.hooks.iter().filter(|rule| rule.tripped_at.is_some()).count() + rules.trips.len();
    let tripped = if tripped == 0 { String::new() } else { format!(", {tripped} tripped: see `pintle hooks list`") };
    lines.push(format!("  rules    {acting} in force{tripped}"));
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

fn refused(why: BadSettings) -> CliError {
    CliError::usage(why.message).hint(why.hint)
}
