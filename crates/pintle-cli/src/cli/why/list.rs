//! Lists: the turns that there were, and the events that refused something or that one hook was asked at.

use domain::store::{StoredEvent, StoredTurn};

use super::detail::{BAD, BOLD, DIM};
use super::summary::refusal;
use crate::clean::clean;
use crate::moment::moment_of;
use crate::text::counted;

/// The last digits of an id that stand for a turn: enough to tell it from all others that anybody will look at.
const SHORT_ID: usize = 8;

/// The most characters of a prompt that fit a line of a terminal beside the rest.
const MAX_PROMPT: usize = 30;

/// A line for each turn.
pub(super) fn turns(turns: &[StoredTurn]) -> String {
    if turns.is_empty() {
        return "no turn is recorded; work one: `pintle run \"hello\"`\n".into();
    }
    let agent = turns.iter().map(|turn| clean(&turn.agent_id).chars().count()).max().unwrap_or_default();
    let line = |turn: &StoredTurn| {
        let refused = match turn.refused {
            0 => String::new(),
            refused => format!(", {BAD}{refused} refused{BAD:#}"),
        };
        let prompt = clean(turn.prompt.as_deref().unwrap_or("-"));
        let prompt = match prompt.char_indices().nth(MAX_PROMPT) {
            Some((end, _)) => {
                format!("{}…", &prompt[..end - prompt[..end].chars().next_back().map_or(0, char::len_utf8)])
            }
            None => prompt,
        };
        let calls = counted(usize::try_from(turn.calls).unwrap_or(usize::MAX), "call");
        format!(
            "{}  {BOLD}{}{BOLD:#}  {:<agent$}  {prompt:<MAX_PROMPT$}  {calls}{refused}\n",
            moment_of(&turn.began),
            short(&turn.turn_id),
            clean(&turn.agent_id),
        )
    };
    turns.iter().map(line).collect::<String>() + &format!("\n{DIM}`pintle why ID` explains a turn{DIM:#}\n")
}

/// The end of `id`, by which a turn can be named.
pub(super) fn short(id: &str) -> String {
    let start = id.char_indices().rev().nth(SHORT_ID - 1).map_or(0, |(start, _)| start);
    clean(&id[start..])
}

/// What was refused, newest first, each with its turn.
pub(super) fn refusals(events: &[StoredEvent]) -> String {
    let line = |event: &StoredEvent| {
        format!("{DIM}{}  turn {}{DIM:#}\n{}\n", moment_of(&event.at), short(&event.turn_id), refusal(event, None))
    };
    match events.is_empty() {
        true => "nothing was refused\n".into(),
        false => events.iter().rev().map(line).collect(),
    }
}
