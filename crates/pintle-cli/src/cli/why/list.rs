//! Lists: the turns that there were, and the events that stopped something.

use domain::store::{StoredEvent, StoredTurn};

use super::detail::{BAD, BOLD, DIM, NOTE};
use super::summary::stopped_call;
use crate::clean::clean;
use crate::moment::moment_of;
use crate::table::{Table, folded};
use crate::text::{counted, short_id};

/// The most characters of a prompt that fit a line of a terminal beside the rest.
const MAX_PROMPT: usize = 30;

/// How far in the rest of a line stands that does not fit.
const HANG: usize = 4;

/// A line for each turn.
pub(super) fn turns(turns: &[StoredTurn], columns: usize) -> String {
    if turns.is_empty() {
        return "no turn is recorded; start one: `pintle run \"hello\"`\n".into();
    }
    let mut table = Table::indented(0);
    for turn in turns {
        let prompt = clean(turn.prompt.as_deref().unwrap_or("-"));
        let prompt = match prompt.char_indices().nth(MAX_PROMPT) {
            Some((end, _)) => {
                format!("{}…", &prompt[..end - prompt[..end].chars().next_back().map_or(0, char::len_utf8)])
            }
            None => prompt,
        };
        table.row([
            moment_of(&turn.began),
            format!("{BOLD}{}{BOLD:#}", short_id(&turn.turn_id)),
            clean(&turn.agent_id),
            format!("{prompt:<MAX_PROMPT$}  {}", came_to(turn)),
        ]);
    }
    table.text(columns) + &format!("\n{DIM}`pintle why ID` explains a turn{DIM:#}\n")
}

/// How many calls there were, and what was stopped.
fn came_to(turn: &StoredTurn) -> String {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let stopped = [(turn.refused, BAD, "blocked"), (turn.waiting, NOTE, "waiting")];
    let stopped = stopped.iter().filter(|(count, ..)| *count > 0);
    let stopped: String = stopped.map(|(count, style, word)| format!(", {style}{count} {word}{style:#}")).collect();
    format!("{}{stopped}", counted(number(turn.calls), "call"))
}

/// What was stopped, newest first, each with its turn.
pub(super) fn refusals(events: &[StoredEvent], columns: usize, ids: bool) -> String {
    let line = |event: &StoredEvent| {
        format!(
            "{DIM}{}  turn {}{DIM:#}\n{}\n",
            moment_of(&event.at),
            short_id(&event.turn_id),
            stopped_call(event, None, ids)
        )
    };
    match events.is_empty() {
        true => "nothing was blocked, and nothing waits for a person\n".into(),
        false => folded(&events.iter().rev().map(line).collect::<String>(), columns, HANG),
    }
}
