//! What an id stands for: an event, a turn, a session or a call of a model, whole or in part.

use std::collections::BTreeSet;

use pintle_domain::store::{RecordQuery, StoredEvent, TenantScope};
use pintle_store::Store;

use super::{MAX_EVENTS, find, is_about};
use crate::clean::clean;
use crate::error::CliError;
use crate::moment::moment_of;
use crate::text::counted;

/// Most events that an ambiguous id is compared with.
const MAX_AMBIGUOUS: usize = 100;

/// The events that somebody named.
pub(super) enum Chosen {
    /// One event, to be shown whole.
    Event(Box<StoredEvent>),
    /// The events about one call, to be shown whole.
    Call(Vec<StoredEvent>),
    /// The events of a turn.
    Turn(Vec<StoredEvent>),
}

/// What `id` stands for. A whole id comes before the beginning of another one.
///
/// # Errors
/// Nothing has this id, or several things begin with it.
pub(super) fn by_id(store: &dyn Store, id: &str, tool: Option<&str>) -> Result<Chosen, CliError> {
    if id.is_empty() {
        return Err(
            CliError::usage("ID is empty").hint("`pintle why --list` shows the turns, `pintle why` the newest one")
        );
    }
    let none = || RecordQuery { limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) };
    let begin = find(store, &RecordQuery { event_id: Some(id.to_owned()), limit: MAX_AMBIGUOUS, ..none() })?;
    if let Some(exact) = begin.iter().find(|event| event.event_id == id) {
        return one(exact.clone(), tool).map(|event| Chosen::Event(Box::new(event)));
    }
    let turn = find(store, &RecordQuery { turn: Some(id.to_owned()), ..none() })?;
    let turns: BTreeSet<&str> = turn.iter().map(|event| event.turn_id.as_str()).collect();
    if turn.iter().any(|event| event.turn_id == id) || (turns.len() == 1 && begin.is_empty()) {
        return of_tool(turn, tool).map(Chosen::Turn);
    }
    let session = find(store, &RecordQuery { session: Some(id.to_owned()), ..none() })?;
    if !session.is_empty() {
        return of_tool(session, tool).map(Chosen::Turn);
    }
    let call = find(store, &RecordQuery { call: Some(id.to_owned()), ..none() })?;
    if let Some(newest) = call.last().map(|event| event.turn_id.clone()) {
        return Ok(Chosen::Call(call.into_iter().filter(|event| event.turn_id == newest).collect()));
    }
    let mut begin: Vec<StoredEvent> =
        begin.into_iter().filter(|event| tool.is_none_or(|tool| is_about(event, tool))).collect();
    match (begin.pop(), turns.len()) {
        (None, 0) => {
            Err(CliError::usage(format!("there is no record of an event, a turn, a session or a call `{id}`"))
                .hint("`pintle why --list` shows the turns, `pintle why -v` the newest one with its events' ids"))
        }
        // Who names a tool means an event.
        (Some(only), turns) if begin.is_empty() && (turns == 0 || tool.is_some()) => Ok(Chosen::Event(Box::new(only))),
        (newest, turns) => Err(ambiguous(id, newest.as_ref(), &begin, turns)),
    }
}

/// Says what may be meant: the first and the last of how many.
fn ambiguous(id: &str, newest: Option<&StoredEvent>, rest: &[StoredEvent], turns: usize) -> CliError {
    let events = rest.len() + usize::from(newest.is_some());
    let least = if events >= MAX_AMBIGUOUS { "at least " } else { "" };
    let turns = if turns > 0 { format!(" and {}", counted(turns, "turn")) } else { String::new() };
    let error =
        CliError::usage(format!("`{id}` is ambiguous: {least}{}{turns} begin with it", counted(events, "event")));
    // Of very many only the newest ones were looked at.
    let other = if least.is_empty() { "oldest" } else { "also" };
    let named = newest.map(|event| ("newest", event)).into_iter().chain(rest.first().map(|event| (other, event)));
    named.fold(error, |error, (which, event)| error.hint(format!("{which}: {}", candidate(event))))
}

/// An event as one of several that may be meant.
fn candidate(event: &StoredEvent) -> String {
    let tool = event.tool.as_ref().map(|tool| format!(" {}", clean(tool))).unwrap_or_default();
    format!("{}  {}{tool}, {}", event.event_id, event.event, moment_of(&event.at))
}

fn one(event: StoredEvent, tool: Option<&str>) -> Result<StoredEvent, CliError> {
    match tool {
        Some(tool) if !is_about(&event, tool) => {
            let about = event.tool.as_ref().map_or_else(|| "no tool".to_owned(), |about| format!("the tool `{about}`"));
            Err(CliError::usage(format!("the event `{}` is about {about}, not about `{tool}`", event.event_id)))
        }
        Some(_) | None => Ok(event),
    }
}

/// Those of `events`, all of one turn, that are about `tool`, if one is named.
///
/// # Errors
/// None is; which tools there are.
pub(super) fn of_tool(events: Vec<StoredEvent>, tool: Option<&str>) -> Result<Vec<StoredEvent>, CliError> {
    let Some(tool) = tool else { return Ok(events) };
    let tools: BTreeSet<String> = events.iter().filter_map(|event| event.tool.clone()).collect();
    let about: Vec<StoredEvent> = events.into_iter().filter(|event| is_about(event, tool)).collect();
    if !about.is_empty() {
        return Ok(about);
    }
    let about = match tools.is_empty() {
        true => "its record names no tool".to_owned(),
        false => format!("its tools are {}", tools.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Err(CliError::usage(format!("the turn has no event about a tool `{tool}`; {about}")))
}
