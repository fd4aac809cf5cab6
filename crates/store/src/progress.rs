//! What entries change beside the journal: the session's line in listings, and the turns whose approvals are void.

use pintle_domain::session::{JournalEntry, ReleaseReason};
use pintle_domain::turn::{Fact, KeptMessage};

/// Longest title, in characters: a line of a terminal.
pub const MAX_TITLE_CHARS: usize = 80;

/// The progress that some entries come to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Progress {
    /// The beginning of the first prompt that says anything; empty if none does.
    pub(crate) title: String,
    /// How many turns began.
    pub(crate) turns: u64,
    /// The turn that is open after them.
    pub(crate) open_turn: Option<String>,
    /// Whether a process works on it after them, as far as the journal knows.
    pub(crate) opened: bool,
    /// How the last process that ended did, if one ended.
    pub(crate) last_end: Option<ReleaseReason>,
    /// The turns that ended.
    pub(crate) ended: Vec<String>,
}

impl Progress {
    /// The progress that `entries` come to after a journal that left `open_turn` open, and a process at work if
    /// `opened`: what [`Session`](pintle_domain::session::Session) would say, without the journal before.
    pub(crate) fn of(open_turn: Option<String>, opened: bool, entries: &[JournalEntry]) -> Self {
        let mut progress = Self { open_turn, opened, ..Self::default() };
        for entry in entries {
            match entry {
                JournalEntry::Opened { .. } => {
                    if progress.opened {
                        // Whoever opened it before did not come to say why it left.
                        progress.last_end = Some(ReleaseReason::Killed);
                    }
                    progress.opened = true;
                }
                JournalEntry::Closed { cause } => {
                    progress.opened = false;
                    progress.last_end = Some(*cause);
                }
                JournalEntry::Turn(fact) => progress.take(fact),
                JournalEntry::Kept(_) => {}
            }
        }
        progress
    }

    fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::Begun { turn_id, prompts, .. } => {
                self.turns += 1;
                // A turn that nobody ended is over all the same.
                self.ended.extend(self.open_turn.replace(turn_id.to_string()));
                if self.title.is_empty() {
                    self.title = title(prompts);
                }
            }
            Fact::Ended { .. } => self.ended.extend(self.open_turn.take()),
            Fact::Recalled(_)
            | Fact::Equipped { .. }
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
            | Fact::Trimmed { .. } => {}
        }
    }
}

/// The beginning of `prompts`, on one line.
pub(crate) fn title(prompts: &[KeptMessage]) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let words = prompts.iter().filter(|prompt| prompt.message.origin.is_empty());
    let words = words.flat_map(|prompt| prompt.message.content.split(blank)).filter(|word| !word.is_empty());
    let mut title = String::new();
    let mut chars = 0;
    for word in words {
        let space = (chars > 0).then_some(' ');
        for c in space.into_iter().chain(word.chars()) {
            if chars == MAX_TITLE_CHARS {
                title.pop();
                title.truncate(title.trim_end().len());
                title.push('…');
                return title;
            }
            title.push(c);
            chars += 1;
        }
    }
    title
}

#[cfg(test)]
mod tests {
    use pintle_domain::message::{Message, Role};

    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        let titled = |prompts: &[&str]| {
            let prompts: Vec<KeptMessage> =
                prompts.iter().map(|text| Message::text(Role::User, *text).into()).collect();
            title(&prompts)
        };
        let eighty = "é".repeat(MAX_TITLE_CHARS);
        assert_eq!(titled(&[]), "");
        assert_eq!(titled(&[" \n\t\u{2028}"]), "");
        assert_eq!(
            titled(&["", "Clean\r\n  the\u{1b}\u{0}kitchen\u{2029}now ", "please"]),
            "Clean the kitchen now please"
        );
        assert_eq!(titled(&[&eighty]), eighty);
        assert_eq!(titled(&[&eighty, "x"]), format!("{}…", "é".repeat(79)));
        assert_eq!(titled(&[&"é".repeat(1 << 20)]), format!("{}…", "é".repeat(79)));
        // No space before the dots.
        assert_eq!(titled(&[&"é".repeat(78), "xyz"]), format!("{}…", "é".repeat(78)));
    }
}
