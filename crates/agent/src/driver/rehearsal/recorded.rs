//! A turn that a journal tells of, gone through once more.

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::TurnId;
use pintle_domain::session::{JournalEntry, Session};
use pintle_domain::turn::{Fact, ToolUse, Turn, TurnEnd, TurnSetup};

use super::{Rehearsal, RehearsedTurn, aim};

/// A turn as the journal of its session has it.
#[derive(Clone, Debug)]
pub struct RecordedTurn {
    /// Which.
    pub turn_id: TurnId,
    /// The prompt of the turn.
    pub prompt: String,
    /// The turn right after it began, behind everything that was said before.
    begun: Turn,
    /// The facts of the turn from then on, in order.
    facts: Vec<Fact>,
}

impl RecordedTurn {
    /// The turn `turn_id` of the session whose journal holds `entries`, oldest first; nothing if it has none of that id.
    pub fn find(entries: Vec<JournalEntry>, turn_id: &TurnId) -> Option<Self> {
        let mut session = Session::default();
        let mut entries = entries.into_iter();
        loop {
            let entry = entries.next()?;
            let begins = matches!(&entry, JournalEntry::Turn(Fact::Begun { turn_id: id, .. }) if id == turn_id);
            session.apply(entry);
            if begins {
                break;
            }
        }
        let open = session.take_open()?;
        let mut facts = Vec::new();
        for entry in entries {
            match entry {
                JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {}
                JournalEntry::Turn(Fact::Begun { .. }) => break,
                JournalEntry::Turn(fact) => {
                    let ended = matches!(fact, Fact::Ended { .. });
                    facts.push(fact);
                    if ended {
                        break;
                    }
                }
            }
        }
        Some(Self { turn_id: open.turn_id, prompt: open.prompt, begun: open.turn, facts })
    }

    /// The texts that were in force, how the turn went and which tools it had; nothing if it was a plain one.
    pub fn equipment(&self) -> Option<&TurnSetup> {
        self.facts.iter().find_map(|fact| match fact {
            Fact::Equipped { with } => Some(&**with),
            Fact::Begun { .. }
            | Fact::Recalled(_)
            | Fact::Planned { .. }
            | Fact::Announced { .. }
            | Fact::Queued(_)
            | Fact::Injected { .. }
            | Fact::Interrupted
            | Fact::Replied { .. }
            | Fact::Stopped { .. }
            | Fact::TakenBack
            | Fact::Used { .. }
            | Fact::Rewritten { .. }
            | Fact::Answered { .. }
            | Fact::Compacted { .. }
            | Fact::Trimmed { .. }
            | Fact::Ended { .. } => None,
        })
    }
}

/// The text for a call whose answer the journal does not tell.
const UNANSWERED: &str = "no answer is recorded, and whether this was sent is not known";

impl Rehearsal<'_> {
    /// Goes through a turn as its journal tells it. The conversation of each call is the one that was sent, before
    /// `before_llm` hooks; the system text and the tools that are offered are in no journal: they are those of now.
    pub fn replay(&self, recorded: &RecordedTurn) -> RehearsedTurn {
        let plain = if self.offered.is_empty() { ToolUse::None } else { ToolUse::Own };
        let mut seen = RehearsedTurn::new(recorded.equipment(), plain);
        let mut turn = recorded.begun.clone();
        let mut notes = Vec::new();
        for fact in recorded.facts.iter().cloned() {
            match &fact {
                Fact::Planned { .. } | Fact::Replied { .. } | Fact::Stopped { .. } => {
                    if !self.reach(&mut turn, &mut seen, &mut notes) {
                        seen.unknown += 1;
                    }
                }
                Fact::Compacted { upto, .. } => {
                    notes.push(format!("before this, the oldest messages gave way, up to {upto} of them"))
                }
                Fact::Trimmed { .. } => notes.push("before this, a long result gave way to its beginning".to_owned()),
                Fact::Ended { status, error, reply, roll_back } => {
                    let end = TurnEnd {
                        status: *status,
                        reply: reply.clone(),
                        error: error.clone(),
                        roll_back: *roll_back,
                        stopped_by: None,
                        at_limit: false,
                    };
                    notes.extend(unanswered(&end));
                    self.reach_unanswered(&turn, &mut seen, &mut notes);
                    seen.end = Some(end);
                }
                Fact::Begun { .. }
                | Fact::Recalled(_)
                | Fact::Equipped { .. }
                | Fact::Announced { .. }
                | Fact::Queued(_)
                | Fact::Injected { .. }
                | Fact::Interrupted
                | Fact::TakenBack
                | Fact::Used { .. }
                | Fact::Rewritten { .. }
                | Fact::Answered { .. } => {}
            }
            turn.apply(fact);
        }
        if seen.end.is_none() {
            notes.push(UNANSWERED.to_owned());
            self.reach_unanswered(&turn, &mut seen, &mut notes);
        }
        seen.after = turn.take_events();
        seen
    }

    /// Brings `turn` to the call that the coming fact answers, as its driver did.
    fn reach(&self, turn: &mut Turn, seen: &mut RehearsedTurn, notes: &mut Vec<String>) -> bool {
        let Some(aim) = aim(&turn.next()) else { return false };
        self.see(turn, aim, seen);
        if let Some(call) = seen.calls.last_mut() {
            call.notes.append(notes);
        }
        true
    }

    /// The call that `turn` was at when it ended or when its journal ends, if it was at one.
    fn reach_unanswered(&self, turn: &Turn, seen: &mut RehearsedTurn, notes: &mut Vec<String>) {
        if !notes.is_empty() {
            self.reach(&mut turn.clone(), seen, notes);
        }
    }
}

/// The text about a call that had no answer when its turn ended so.
fn unanswered(end: &TurnEnd) -> Option<String> {
    match (&end.error, end.status) {
        (Some((stage, text)), _) if stage == "llm" || stage == "hook.after_llm" => Some(format!("failed: {text}")),
        (Some((stage, text)), _) if stage == "hook.before_llm" => Some(format!("was not sent: {text}")),
        (Some(_), _) => None,
        (None, TurnStatus::Completed) => None,
        (None, TurnStatus::Aborted | TurnStatus::Error) => Some(UNANSWERED.to_owned()),
    }
}
