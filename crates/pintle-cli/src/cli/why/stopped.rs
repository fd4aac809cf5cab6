//! What became of calls and texts that hooks stopped: the last word on each, since a person may answer what was asked.

use std::collections::BTreeMap;

use pintle_domain::store::StoredEvent;
use pintle_domain::verdict::VerdictKind;

use super::questions::Questions;

/// The last word on each call or text that did not simply go on, in the order in which they were stopped.
#[derive(Default)]
pub(super) struct Stopped<'a> {
    found: Vec<(LastWord, &'a StoredEvent)>,
    /// Who approved what went on, and what there is to do about what waits, by the event.
    answers: BTreeMap<&'a str, String>,
}

/// What became of something that was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LastWord {
    /// A hook or a person refused it.
    Blocked,
    /// A person is asked about it.
    Waiting,
    /// A person was asked, and the question is over without a use: void, expired, or refused.
    Lapsed,
    /// A person was asked, and it went on.
    Approved,
}

impl<'a> Stopped<'a> {
    /// Of `events`, oldest first, of which a person was asked `questions`.
    pub(super) fn of(events: impl IntoIterator<Item = &'a StoredEvent>, questions: &Questions) -> Self {
        let mut stopped = Self::default();
        for event in events {
            stopped.take(event);
        }
        let waiting = stopped.found.iter_mut().filter(|(word, _)| *word == LastWord::Waiting);
        for (word, event) in waiting.filter(|(_, event)| !questions.waits(event)) {
            // An agent with a loop of its own makes the call again, and that one used the answer.
            *word = if questions.approver(event).is_some() { LastWord::Approved } else { LastWord::Lapsed };
        }
        for (word, event) in &stopped.found {
            let said = match word {
                LastWord::Approved => questions.approver(event),
                LastWord::Waiting => questions.to_do(event),
                LastWord::Blocked | LastWord::Lapsed => None,
            };
            stopped.answers.extend(said.map(|said| (event.event_id.as_str(), said.to_owned())));
        }
        stopped
    }

    fn take(&mut self, event: &'a StoredEvent) {
        let stops = super::stops(event);
        let Some(place) = self.found.iter().rposition(|(_, before)| is_same_call(before, event)) else {
            if stops {
                self.found.push((last_word(event), event));
            }
            return;
        };
        let (word, before) = self.found[place];
        match (stops, word) {
            (false, LastWord::Waiting) if event.permit.is_some() || event.substituted => {
                self.found[place] = (LastWord::Approved, event);
            }
            (false, _) => {}
            // The later checkpoints of a clearing carry its ruling, too.
            (true, _) if is_same_refusal(before, event) => {}
            // A host may give several calls one id: none of them hides what another one was refused.
            (true, LastWord::Blocked) => self.found.push((last_word(event), event)),
            (true, LastWord::Waiting | LastWord::Lapsed | LastWord::Approved) => {
                self.found[place] = (last_word(event), event);
            }
        }
    }

    /// Whether nothing was stopped.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Those on which `word` is the last one.
    pub(super) fn with(&self, word: LastWord) -> Vec<&'a StoredEvent> {
        self.found.iter().filter(|(last, _)| *last == word).map(|(_, event)| *event).collect()
    }

    /// Who approved `event`, or what there is to do about it where it waits, as far as that is known.
    pub(super) fn answer(&self, event: &StoredEvent) -> Option<&str> {
        self.answers.get(event.event_id.as_str()).map(String::as_str)
    }

    /// Those that did not go on.
    pub(super) fn open(&self) -> Vec<(LastWord, &'a StoredEvent)> {
        self.found.iter().filter(|(last, _)| *last != LastWord::Approved).copied().collect()
    }
}

fn is_same_call(one: &StoredEvent, other: &StoredEvent) -> bool {
    one.tool_call_id.is_some() && (&one.turn_id, &one.tool_call_id) == (&other.turn_id, &other.tool_call_id)
}

/// Whether both say the same of the same arguments; not every checkpoint keeps these.
fn is_same_refusal(one: &StoredEvent, other: &StoredEvent) -> bool {
    let is_other_call = one.call.as_ref().zip(other.call.as_ref()).is_some_and(|(one, other)| one != other);
    one.ruling == other.ruling && one.text == other.text && !is_other_call
}

fn last_word(event: &StoredEvent) -> LastWord {
    if event.ruling == VerdictKind::Ask.as_str() { LastWord::Waiting } else { LastWord::Blocked }
}
