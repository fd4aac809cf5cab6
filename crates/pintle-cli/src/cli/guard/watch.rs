//! `pintle guard watch`: what the hooks conclude about coding agents, as it happens.

use std::collections::BTreeSet;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use jiff::Timestamp;
use pintle_domain::store::{RecordQuery, StoredEvent, TenantScope};
use pintle_guard::HOSTS;
use pintle_host::host::{load, open_store};
use pintle_store::Store;

use crate::clean::clean;
use crate::cli::stops::Stops;
use crate::cli::{Global, terminal};
use crate::error::CliError;

const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// How often is looked for more.
const EVERY: Duration = Duration::from_millis(300);

/// How much older than the newest event one may be that comes after it: several daemons write at the same time.
const LATE: Duration = Duration::from_secs(5);

/// Most events that are shown at once.
const MAX_EVENTS: usize = 1000;

/// Longest call that is shown, in characters.
const SHOWN_CHARS: usize = 120;

/// Flags of `guard watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Only this agent
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Print JSON, a line for each
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &WatchArgs) -> Result<u8, CliError> {
    let hosts = crate::guard::installs::hosts(args.host.as_deref())?;
    let hosts: Vec<&str> = hosts.iter().map(|host| host.id).collect();
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let store = open_store(&loaded.config)?;
    terminal::runtime()?.block_on(async {
        let mut stops = Stops::listen(false)?;
        let mut told = Told { since: Timestamp::now(), seen: BTreeSet::new() };
        terminal::note("watching what the hooks conclude; Ctrl-C ends it");
        loop {
            let more = told.more(&*store)?;
            let shown = more.iter().filter_map(|event| shown(event, &hosts, args.json));
            shown.into_iter().try_for_each(|line| terminal::say(&line))?;
            tokio::select! {
                _ = stops.next() => return Ok(0),
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    })
}

/// The line about `event`, if it is about one of `hosts` and says something.
fn shown(event: &StoredEvent, hosts: &[&str], json: bool) -> Option<String> {
    let host = host_of(event).filter(|host| hosts.contains(host))?;
    Some(if json { format!("{}\n", pintle_domain::json::json!(event)) } else { line(host, event) })
}

/// What was told already.
struct Told {
    since: Timestamp,
    seen: BTreeSet<String>,
}

impl Told {
    /// The events that came since, in their order.
    fn more(&mut self, store: &dyn Store) -> Result<Vec<StoredEvent>, CliError> {
        let since = self.since.checked_sub(LATE).unwrap_or(self.since);
        let query = RecordQuery { since: Some(since), limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) };
        let mut found = store.find(&query).map_err(|error| CliError::failed(error.to_string()))?;
        let began = self.since;
        let is_first = self.seen.is_empty();
        let at = |event: &StoredEvent| event.at.parse::<Timestamp>().unwrap_or(began);
        // What was there before the first look is nobody's news.
        let is_new = |event: &StoredEvent| !(self.seen.contains(&event.event_id) || is_first && at(event) < began);
        let ids = found.iter().map(|event| event.event_id.clone()).collect();
        self.since = found.iter().map(at).max().unwrap_or(began).max(began);
        found.retain(is_new);
        found.sort_by_key(at);
        self.seen = ids;
        Ok(found)
    }
}

/// The agent that an event is about, if there is something to be said of it.
fn host_of(event: &StoredEvent) -> Option<&'static str> {
    let (id, _) = event.session_id.split_once(':')?;
    let host = HOSTS.iter().find(|host| host.id == id)?;
    let says = event.text.is_some() || event.permit.is_some() || event.ruling != "continue";
    (event.checkpoint != "runtime" && says).then_some(host.id)
}

/// One event on one line.
fn line(host: &str, event: &StoredEvent) -> String {
    let style = match event.ruling.as_str() {
        "deny" | "abort_turn" | "hard_abort" => BAD,
        "ask" => NOTE,
        _ if event.text.is_some() => NOTE,
        _ => GOOD,
    };
    let time = event.at.parse::<Timestamp>().map_or_else(|_| event.at.clone(), |at| at.strftime("%T").to_string());
    let call: String =
        event.call.as_ref().map(|call| call.shown().chars().take(SHOWN_CHARS).collect()).unwrap_or_default();
    let what = event.tool.as_deref().unwrap_or(&event.event);
    let text =
        event.text.as_deref().map(|text| format!("  {DIM}{}{DIM:#}", clean(&one_line(text)))).unwrap_or_default();
    format!(
        "{DIM}{time}{DIM:#}  {host:<8}  {style}{:<10}{style:#}  {} {}{text}\n",
        event.ruling,
        clean(what),
        clean(&one_line(&call)),
    )
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
