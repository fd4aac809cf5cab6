//! Lists: the turns that there were, and the events that stopped something.

use std::collections::BTreeSet;

use pintle_domain::store::{RecordQuery, SessionStore, StoredEvent, StoredTurn, TenantScope};
use pintle_store::Store;
use serde::Serialize;

use super::cut::CutOff;
use super::detail::{BAD, BOLD, DIM, NOTE, fault_text, is_failure};
use super::find;
use super::questions::Questions;
use super::stopped::{LastWord, Stopped};
use super::summary::stopped_call;
use crate::clean::clean;
use crate::cli::command_line::complete;
use crate::error::CliError;
use crate::moment::moment_of;
use crate::table::{Table, folded};
use crate::text::{clip, counted, short_id, whole};

/// The most characters of a prompt that fit a line of a terminal beside the rest.
const MAX_PROMPT: usize = 30;

/// How far in the rest of a line stands that does not fit.
const HANG: usize = 4;

/// Among how many of the newest events of a turn the error is looked for that it ended with: it is told right before the
/// end.
const LAST_EVENTS: usize = 8;

/// A turn, how it failed and how it was cut off.
#[derive(Serialize)]
pub(super) struct ListedTurn {
    #[serde(flatten)]
    turn: StoredTurn,
    /// The error that it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What there is to say where its process ended in the middle.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    cut: BTreeSet<String>,
    /// A call of it, for one without a prompt.
    #[serde(skip)]
    call: Option<String>,
    /// The agent under guard whose turn it is, or the door that it came by.
    #[serde(skip)]
    by: Option<String>,
}

/// Each of `turns` with the error that it ended with, and with what cut it off.
pub(super) fn listed(
    store: &dyn Store,
    sessions: &dyn SessionStore,
    turns: Vec<StoredTurn>,
) -> Result<Vec<ListedTurn>, CliError> {
    let places = turns.iter().map(|turn| (&*turn.turn_id, &*turn.tenant_id, &*turn.session_id));
    let cut = CutOff::of(sessions, places)?;
    let one = |turn: StoredTurn| {
        let query =
            RecordQuery { turn: Some(turn.turn_id.clone()), limit: LAST_EVENTS, ..RecordQuery::of(TenantScope::All) };
        let last = find(store, &query)?;
        let call = last
            .iter()
            .find_map(|event| Some(format!("{} {}", event.tool.as_deref()?, clip(&event.call.as_ref()?.shown()))));
        let by = came_by(&turn, &last);
        let error = last.into_iter().rev().find(is_failure).and_then(|event| event.text);
        let cut = cut.lines(&turn.turn_id);
        Ok(ListedTurn { turn, error, cut, call, by })
    };
    turns.into_iter().map(one).collect()
}

/// The agent under guard whose turn it is, or the door that it came by.
fn came_by(turn: &StoredTurn, events: &[StoredEvent]) -> Option<String> {
    let named = turn.session_id.split_once(':').map(|(host, _)| host);
    if let Some(host) = pintle_guard::HOSTS.iter().find(|host| named == Some(host.id)) {
        return Some(host.id.to_owned());
    }
    let text = events.iter().find_map(|event| event.text.as_deref()?.strip_prefix("door: "))?;
    Some(format!("{} door", text.split([',', ';']).next()?))
}

/// A line for each turn.
pub(super) fn turns(turns: &[ListedTurn], columns: usize) -> String {
    if turns.is_empty() {
        return complete("no turn is recorded; start one: `pintle run \"hello\"`\n");
    }
    let mut table = Table::indented(0);
    for ListedTurn { turn, error, cut, call, by } in turns {
        let prompt = clean(turn.prompt.as_deref().or(call.as_deref()).unwrap_or("-"));
        let by = by.as_ref().map(|by| format!(" ({})", clean(by))).unwrap_or_default();
        let prompt = match prompt.char_indices().nth(MAX_PROMPT) {
            Some((end, _)) => {
                format!("{}…", &prompt[..end - prompt[..end].chars().next_back().map_or(0, char::len_utf8)])
            }
            None => prompt,
        };
        table.row([
            moment_of(&turn.began),
            format!("{BOLD}{}{BOLD:#}", short_id(&turn.turn_id)),
            format!("{}{by}", clean(&turn.agent_id)),
            format!("{prompt:<MAX_PROMPT$}  {}", came_to(turn, (error.is_some(), !cut.is_empty()))),
        ]);
    }
    table.text(columns) + &format!("\n{DIM}{}{DIM:#}\n", complete("`pintle why ID` explains a turn"))
}

/// How many calls there were, what was stopped, and whether it failed or was cut off.
fn came_to(turn: &StoredTurn, (failed, cut): (bool, bool)) -> String {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let stopped = [(turn.refused, BAD, "blocked"), (turn.waiting, NOTE, "waiting")];
    let stopped = stopped.iter().filter(|(count, ..)| *count > 0);
    let stopped: String = stopped.map(|(count, style, word)| format!(", {style}{count} {word}{style:#}")).collect();
    let failed = if failed { format!(", {BAD}ended with an error{BAD:#}") } else { String::new() };
    let cut = if cut { format!(", {BAD}cut off{BAD:#}") } else { String::new() };
    format!("{}{stopped}{cut}{failed}", counted(number(turn.calls), "call"))
}

/// A line for each hook that failed at `event`, with the cause, which the reason leaves out: models read that.
fn faults(event: &StoredEvent) -> String {
    let failed = event.hooks.iter().filter(|hook| hook.fault.is_some());
    let lines = failed.filter_map(|hook| Some((hook, fault_text(hook)?)));
    lines.map(|(hook, text)| format!("  {BAD}!{BAD:#} {} {}\n", clean(&hook.hook), whole(&clean(&text)))).collect()
}

/// What was stopped, newest first, each with its turn.
pub(super) fn refusals(events: &[StoredEvent], questions: &Questions, (columns, ids): (usize, bool)) -> String {
    let stopped = Stopped::of(events, questions);
    let line = |(word, event): &(LastWord, &StoredEvent)| {
        format!(
            "{DIM}{}  turn {}{DIM:#}\n{}\n{}",
            moment_of(&event.at),
            short_id(&event.turn_id),
            stopped_call(event, (*word, None), stopped.answer(event), ids),
            faults(event)
        )
    };
    match events.is_empty() {
        true => "nothing was blocked, and nothing waits for a person\n".into(),
        false => folded(&stopped.open().iter().rev().map(line).collect::<String>(), columns, HANG),
    }
}
