//! `pintle why`: what hooks refused, changed or missed, and exactly why.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;
use pintle_agent::tools::canonical_builtin;
use pintle_domain::nearest::nearest;
use pintle_domain::store::{RecordQuery, SessionStore, StoredEvent, TenantScope};
use pintle_domain::verdict::VerdictKind;
use pintle_store::Store;

use super::command_line::complete;
use super::session::word;
use super::{Global, note_home, terminal};
use crate::clean::clean;
use crate::error::CliError;
use crate::moment::when;
use crate::table::{folded, out_columns};
use crate::text::{clip, counted};
use pintle_host::config::Config;
use pintle_host::conversations::open_sessions;
use pintle_host::host::{load, open_store};

mod chosen;
mod cut;
mod detail;
mod list;
mod newest;
mod observed;
mod questions;
mod stopped;
mod summary;
mod words;

use chosen::Chosen;
use cut::CutOff;
use questions::Questions;
use stopped::Stopped;

/// Most events of one turn that are shown: a long turn has some hundreds.
const MAX_EVENTS: usize = 2000;

/// Most refusals, or events of one hook, that are listed.
const MAX_LISTED: usize = 20;

/// In how many of the newest events the names of hooks are looked for, where one is not known.
const NAMED_EVENTS: usize = 5000;

/// How far in the rest of a line stands that does not fit.
const HANG: usize = 4;

/// The runtime event that every turn leaves.
const TURN_END: &str = "turn_end";

/// Something in a history that did not come in as it was sent.
const HISTORY_WITHHELD: &str = "history_withheld";

/// The event of a call that had a permit and no tool, as records name it.
const TOOL_MISSING: &str = "tool_missing";

/// The event of a call that did not run because its arguments could not be read.
const ARGUMENTS_UNREADABLE: &str = "arguments_unreadable";

/// Flags of `why`.
#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct WhyArgs {
    /// An event, a turn, a session (its newest turn) or a call of the model; the beginning of an id of an event or a
    /// turn, or the end of that of a turn, will do
    #[arg(value_name = "ID", conflicts_with_all = ["last", "list", "denied"])]
    id: Option<String>,
    /// The newest turn with those of its sub-agents (this is what happens without an id, too)
    #[arg(long, conflicts_with_all = ["list", "denied"])]
    last: bool,
    /// The newest turns, a line for each
    #[arg(long, conflicts_with_all = ["denied", "tool", "hook"])]
    list: bool,
    /// What was blocked or waits for a person, newest first
    #[arg(long)]
    denied: bool,
    /// Only what is not older: a moment, a day, or how long ago, such as 2h or 3d
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only events that this hook was asked at or told of
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only events about this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How events are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// A turn in a few lines.
    Summary,
    /// What was stopped, a few lines each.
    Refusals,
    /// Every hook at every event.
    Whole,
}

pub(super) fn run(global: &Global, args: &WhyArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    note_home(global, (&env, &loaded.config));
    let store = open_store(&loaded.config)?;
    let since = args.since.as_deref().map(|since| when("--since", since, Timestamp::now())).transpose()?;
    let conversations = open_sessions(&loaded.config, &store)?;
    if args.list {
        let mut turns = store.turns(None, since, MAX_LISTED).map_err(|error| CliError::failed(error.to_string()))?;
        let questions = Questions::of(&*store)?;
        turns.iter_mut().for_each(|turn| turn.waiting = turn.waiting.min(questions.waiting(turn)));
        let listed = list::listed(&*store, &*conversations, turns)?;
        terminal::say(&if args.json { json_of(&listed)? } else { list::turns(&listed, out_columns()) })?;
        return Ok(0);
    }
    let questions = Questions::of(&*store)?;
    let (mut events, mut shown, left_out) = events(&*store, &*conversations, (args, &questions), since)?;
    if let Some(hook) = args.hook.as_deref().filter(|_| events.is_empty()) {
        return Err(no_records(&*store, &loaded.config, hook, since.is_some()));
    }
    observed::fill(&*store, &mut events)?;
    if shown == Shown::Summary && (global.verbose > 0 || args.tool.is_some()) {
        shown = Shown::Whole;
    }
    let cut = if shown == Shown::Refusals { CutOff::default() } else { cut_off(&*conversations, &events)? };
    let everything = global.verbose > 1;
    // Events that are only told are many and say little.
    let explains = |event: &&StoredEvent| {
        args.id.is_some() && shown == Shown::Whole && global.verbose == 0
            || everything
            || event.checkpoint != "runtime"
            || detail::says_something(event)
    };
    let text = match (args.json, shown) {
        (true, _) => {
            // The end of a turn is there in any case, so that a turn that asked no hook can be told from another.
            let all = events.iter().filter(|event| explains(event) || event.event == TURN_END);
            json_of(&all.map(|event| detail::json(event, &cut)).collect::<Vec<_>>())?
        }
        (false, Shown::Summary) => summary::turns(&events, (&questions, &cut), out_columns()) + &summary::more(),
        (false, Shown::Refusals) => list::refusals(&events, &questions, (out_columns(), global.verbose > 0)),
        (false, Shown::Whole) => folded(&detail::turns(&events, explains, (&cut, everything)), out_columns(), HANG),
    };
    let adopted = if args.json { String::new() } else { adopted(&loaded.config, &text) };
    terminal::say(&(text + &adopted))?;
    match left_out {
        // JSON is whole by itself.
        Some(left_out) if args.json => terminal::note(&left_out),
        Some(left_out) => terminal::say(&complete(&format!("\n{left_out}\n")))?,
        None => {}
    }
    Ok(0)
}

/// What the adopted hooks run that `text` names: their names say nothing of it.
fn adopted(config: &Config, text: &str) -> String {
    let named = config.hooks.iter().filter(|loaded| text.contains(loaded.hook.name.as_str()));
    let commands = named.filter_map(|loaded| Some((loaded.hook.name.as_str(), loaded.adopted_command()?)));
    commands.map(|(name, command)| format!("{} runs: {}\n", clean(name), clip(&clean(&command)))).collect()
}

/// The newest turn in a few lines, for somebody whose store is gone before anything could be asked of it.
pub(super) fn newest(global: &Global) -> Result<String, CliError> {
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let store = open_store(&loaded.config)?;
    let conversations = open_sessions(&loaded.config, &store)?;
    let questions = Questions::of(&*store)?;
    let (mut events, ..) = events(&*store, &*conversations, (&WhyArgs::default(), &questions), None)?;
    observed::fill(&*store, &mut events)?;
    let cut = cut_off(&*conversations, &events)?;
    Ok(summary::turns(&events, (&questions, &cut), out_columns()))
}

/// What a kill cut off of the turns that `events` belong to.
fn cut_off(conversations: &dyn SessionStore, events: &[StoredEvent]) -> Result<CutOff, CliError> {
    CutOff::of(conversations, events.iter().map(|event| (&*event.turn_id, &*event.tenant_id, &*event.session_id)))
}

/// The events that are asked for, how they are shown, and what is said of others that were found.
fn events(
    store: &dyn Store,
    conversations: &dyn SessionStore,
    (args, questions): (&WhyArgs, &Questions),
    since: Option<Timestamp>,
) -> Result<(Vec<StoredEvent>, Shown, Option<String>), CliError> {
    let tool = args.tool.as_deref();
    if args.denied || args.hook.is_some() || since.is_some() && args.id.is_none() {
        let query = RecordQuery {
            refused: args.denied,
            hook: args.hook.clone(),
            since,
            tool: tool.map(|tool| canonical_builtin(tool).unwrap_or(tool).to_owned()),
            turn: args.id.clone(),
            limit: MAX_EVENTS,
            ..RecordQuery::of(TenantScope::All)
        };
        let mut found = find(store, &query)?;
        let is_all_of_a_time = args.denied && since.is_some();
        let left_out = left_out(&mut found, (args.denied, is_all_of_a_time));
        return Ok(match args.denied {
            // JSON is the evidence: all that was ruled.
            true if args.json => (found, Shown::Refusals, left_out),
            true => (last_words(store, found, questions)?, Shown::Refusals, left_out),
            false => (found, Shown::Whole, left_out),
        });
    }
    let Some(id) = &args.id else { return Ok((newest::events(store, conversations, tool)?, Shown::Summary, None)) };
    Ok(match chosen::by_id(store, id, tool)? {
        Chosen::Event(event) => (vec![*event], Shown::Whole, None),
        Chosen::Call(events) => (events, Shown::Whole, None),
        Chosen::Turn(events) => (events, Shown::Summary, None),
    })
}

/// Leaves the newest events of `found`, as many as are listed, and says how many others there are.
fn left_out(found: &mut Vec<StoredEvent>, (denied, is_all_of_a_time): (bool, bool)) -> Option<String> {
    let is_cut = found.len() >= MAX_EVENTS;
    let most = if is_all_of_a_time { MAX_EVENTS } else { MAX_LISTED };
    let older = found.len().saturating_sub(most);
    found.drain(..older);
    let at_least = if is_cut { "at least " } else { "" };
    match (older, is_all_of_a_time) {
        (0, true) if is_cut => {
            Some(format!("only the newest {MAX_EVENTS} events are looked at; there may be older ones"))
        }
        (0, _) => None,
        (older, _) => {
            let how = if denied {
                "`pintle why --denied --since 7d` shows those of 7 days"
            } else {
                "`--since`, `--tool` and `--hook` choose among them"
            };
            Some(format!("{at_least}{}: {how}", counted(older, "older event")))
        }
    }
}

/// Of `found`, which stopped something, the last word on each call: what a person was asked about may have gone on since,
/// or have been refused.
fn last_words(store: &dyn Store, found: Vec<StoredEvent>, questions: &Questions) -> Result<Vec<StoredEvent>, CliError> {
    let (mut all, mut seen) = (Vec::<StoredEvent>::new(), BTreeSet::new());
    for event in found {
        let asks = event.ruling == VerdictKind::Ask.as_str();
        let call = event.tool_call_id.clone().filter(|_| asks);
        let turn = event.turn_id.clone();
        let of_call = match call {
            Some(call) => {
                let (call, turn) = (Some(call), Some(turn));
                find(store, &RecordQuery { call, turn, limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) })?
            }
            None => Vec::new(),
        };
        all.extend(std::iter::once(event).chain(of_call).filter(|event| seen.insert(event.event_id.clone())));
    }
    Ok(Stopped::of(&all, questions).open().into_iter().map(|(_, event)| event.clone()).collect())
}

/// Says that nothing is recorded of the hook `name`, and which one was probably meant.
fn no_records(store: &dyn Store, config: &Config, name: &str, since: bool) -> CliError {
    let ran = store.hook_timings(NAMED_EVENTS).unwrap_or_default();
    let configured = config.hooks.iter().map(|loaded| loaded.hook.name.as_str());
    let known: BTreeSet<&str> = configured.chain(ran.iter().map(|timing| timing.hook.as_str())).collect();
    let error = CliError::usage(match since {
        true => format!("no hook \"{}\" has records since then", clean(name)),
        false => format!("no hook \"{}\" has records", clean(name)),
    });
    match nearest(name, known.iter().copied().filter(|known| *known != name)) {
        Some(near) => error.hint(format!("did you mean `pintle why --hook {}`?", word(near))),
        None => error.hint("`pintle hooks list` shows the hooks"),
    }
}

fn json_of(what: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(what).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn find(store: &dyn Store, query: &RecordQuery) -> Result<Vec<StoredEvent>, CliError> {
    store.find(query).map_err(|error| CliError::failed(error.to_string()))
}

fn is_about(event: &StoredEvent, tool: &str) -> bool {
    event.tool.as_deref().is_some_and(|about| about == tool || canonical_builtin(tool) == Some(about))
}

/// Whether the event refused something, or left it to a person.
fn stops(event: &StoredEvent) -> bool {
    ["deny", "ask", "abort_turn", "hard_abort"].contains(&event.ruling.as_str())
}
