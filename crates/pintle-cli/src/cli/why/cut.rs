//! The calls that ran when the process of their turn ended: nobody knows what became of them.

use std::collections::{BTreeMap, BTreeSet};

use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{SessionKey, SessionStore, StoredEvent};
use pintle_domain::turn::{Fact, OUTCOME_UNKNOWN};

use crate::clean::clean;
use crate::error::CliError;

/// Most entries of one turn that are read: a long turn has some hundreds.
const MAX_ENTRIES: usize = 4000;

/// What there is to say of a turn that was cut between its calls and that nobody went on with.
const BETWEEN_CALLS: &str = "cut off: the process ended in the middle of this turn";

/// A turn, its tenant and its session.
pub(super) type TurnPlace<'a> = (&'a str, &'a str, &'a str);

/// The turns whose process ended in the middle.
#[derive(Default)]
pub(super) struct CutOff {
    /// By turn: the tools of the calls that ran then, by the ids of these. None where no call ran.
    turns: BTreeMap<String, BTreeMap<String, String>>,
}

impl CutOff {
    /// Those of `turns` that were cut, as `sessions` tells.
    pub(super) fn of<'a>(
        sessions: &dyn SessionStore,
        turns: impl IntoIterator<Item = TurnPlace<'a>>,
    ) -> Result<Self, CliError> {
        let left = sessions.left_turns().map_err(|error| CliError::failed(error.to_string()))?;
        let died: BTreeSet<TurnId> = left.into_iter().filter(|turn| turn.died).map(|turn| turn.turn_id).collect();
        let places: BTreeSet<TurnPlace<'a>> = turns.into_iter().collect();
        let mut cut = Self::default();
        for (turn, tenant, session) in places {
            let (turn_id, key) =
                (TurnId::new(turn), SessionKey { tenant: TenantId::new(tenant), session: SessionId::new(session) });
            // What cannot be read takes nothing away from the evidence, which is elsewhere.
            let Ok(journal) = sessions.turn_journal(&key, &turn_id, MAX_ENTRIES) else { continue };
            let is_open = died.contains(&turn_id);
            let lost = lost(journal.iter().map(|(_, entry)| entry), is_open);
            if is_open || !lost.is_empty() {
                cut.turns.insert(turn.to_owned(), lost);
            }
        }
        Ok(cut)
    }

    /// What there is to say of `turn`: a line for each tool that ran when it was cut.
    pub(super) fn lines(&self, turn: &str) -> BTreeSet<String> {
        let Some(lost) = self.turns.get(turn) else { return BTreeSet::new() };
        let lines: BTreeSet<String> = lost.values().map(|tool| line(tool)).collect();
        if lines.is_empty() { BTreeSet::from([BETWEEN_CALLS.to_owned()]) } else { lines }
    }

    /// The same of `event`, with which a call began that ran then.
    pub(super) fn line_of(&self, event: &StoredEvent) -> Option<String> {
        let call = event.tool_call_id.as_ref().filter(|_| event.permit.is_some())?;
        self.turns.get(&event.turn_id)?.get(call).map(|tool| line(tool))
    }
}

fn line(tool: &str) -> String {
    format!("cut off: the process ended while `{}` ran; its outcome is unknown", clean(tool))
}

/// The tools of the calls in the journal of a turn that ran when its process ended, by their ids. One that `is_open` was
/// left by a process that died.
fn lost<'a>(journal: impl IntoIterator<Item = &'a JournalEntry>, is_open: bool) -> BTreeMap<String, String> {
    let mut batch: Vec<String> = Vec::new();
    let (mut running, mut lost) = (BTreeMap::<usize, String>::new(), BTreeMap::new());
    let id = |batch: &[String], place: usize| batch.get(place).cloned().unwrap_or_default();
    for entry in journal {
        if let JournalEntry::Turn(Fact::Replied { message, .. }) = entry {
            batch = message.message.tool_calls.iter().map(|call| call.id.clone()).collect();
            running.clear();
        }
        if let JournalEntry::Turn(Fact::Used { place, tool, .. }) = entry {
            running.insert(*place, tool.clone());
        }
        if let JournalEntry::Turn(Fact::Answered { place, answer }) = entry
            && let Some(tool) = running.remove(place)
            && answer.text == OUTCOME_UNKNOWN
        {
            lost.insert(id(&batch, *place), tool);
        }
    }
    if is_open {
        lost.extend(running.into_iter().map(|(place, tool)| (id(&batch, place), tool)));
    }
    lost
}

#[cfg(test)]
mod tests {
    use pintle_domain::turn::ModelAnswer;

    use super::*;

    fn used(place: usize, tool: &str) -> JournalEntry {
        JournalEntry::Turn(Fact::Used {
            place,
            read_only: false,
            tool: tool.to_owned(),
            digest: String::new(),
            rewritten: None,
        })
    }

    fn answered(place: usize, text: &str) -> JournalEntry {
        JournalEntry::Turn(Fact::Answered { place, answer: ModelAnswer::not_run(text) })
    }

    #[test]
    fn only_what_ran_when_the_process_ended_was_cut() {
        let done = [used(0, "exec"), answered(0, "done")];
        let unknown = [used(0, "exec"), answered(0, "done"), used(1, "fetch"), answered(1, OUTCOME_UNKNOWN)];
        let open = [used(0, "exec"), answered(0, "done"), used(1, "fetch")];
        let tools = |entries: &[JournalEntry], is_open| lost(entries, is_open).into_values().collect::<Vec<_>>();
        assert_eq!(tools(&done, true), Vec::<String>::new());
        assert_eq!(tools(&unknown, false), ["fetch"]);
        assert_eq!(tools(&open, true), ["fetch"]);
        // Somebody works it.
        assert_eq!(tools(&open, false), Vec::<String>::new());
    }

    #[test]
    fn a_turn_that_was_cut_says_so_once_for_each_tool() {
        let cut = CutOff {
            turns: BTreeMap::from([
                ("one".to_owned(), ["a", "b"].map(|id| (id.to_owned(), "exec".to_owned())).into()),
                ("two".to_owned(), BTreeMap::new()),
            ]),
        };
        let said = "cut off: the process ended while `exec` ran; its outcome is unknown";
        assert_eq!(cut.lines("one"), BTreeSet::from([said.to_owned()]));
        assert_eq!(cut.lines("two"), BTreeSet::from([BETWEEN_CALLS.to_owned()]));
        assert_eq!(cut.lines("three"), BTreeSet::new());
    }
}
