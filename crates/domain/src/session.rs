//! The turns of one conversation, as a value: what its journal tells, folded.
//!
//! The journal is the only truth. It is written before what it tells has an effect and read from its beginning: so no
//! message can be lost or stand twice, however often the process that writes it is killed. What is written stays as it
//! is but for one thing: what gates replaced in a call goes, once that call will not be cleared again ([`settle`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::checkpoint::runtime::TurnStatus;
use crate::id::TurnId;
use crate::json::Rendered;
use crate::kept_result::{KeptResult, KeptResults};
use crate::message::Message;
use crate::turn::{Fact, KeptMessage, MessageSender, Turn, WaitingMessage, trim, whole_rounds};

/// The most paths that hooks name in one session and that are remembered: far more than a user is sent.
const MAX_NAMED: usize = 4096;

/// One line of a session's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is of the large kind")]
pub enum JournalEntry {
    /// A process began to work on the session.
    Opened {
        /// Which one, for a person: `pid 4711`.
        by: String,
        /// The configuration under which it works, where the host has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<WorkedUnder>,
    },
    /// It ended, or somebody found that it had; exactly one for each opening.
    Closed {
        /// Why.
        cause: ReleaseReason,
    },
    /// Something happened in a turn, or waits for one.
    Turn(Fact),
    /// A result was too long for the model: here is the whole of it.
    Kept(KeptResult),
}

/// Most bytes of text that are put into words in passing: more than people write, and less than a millisecond of work.
pub const LONG_TEXT_BYTES: usize = 64 << 10;

impl JournalEntry {
    /// Whether it has the texts that a request brought along and they are long: whoever shares a thread with others does
    /// not put it into words there.
    pub fn is_long(&self) -> bool {
        let bytes: usize = match self {
            Self::Turn(Fact::Begun { prompts, .. }) => prompts.iter().map(|it| it.message.content.len()).sum(),
            Self::Turn(Fact::Recalled(recalled)) => {
                recalled.messages.iter().map(|it| it.message.message.content.len()).sum()
            }
            Self::Turn(_) | Self::Opened { .. } | Self::Closed { .. } | Self::Kept(_) => 0,
        };
        bytes > LONG_TEXT_BYTES
    }

    /// Whether it tells how a turn begins, and nothing later changes it.
    pub fn is_of_a_request(&self) -> bool {
        matches!(self, Self::Turn(Fact::Recalled(_) | Fact::Begun { .. } | Fact::Equipped { .. }))
    }
}

/// The configuration under which a session is worked: what somebody who goes on with it elsewhere has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkedUnder {
    /// The files that counted, those first over which the others lie: absolute, or only their names where a session is
    /// worked on several machines.
    pub config: Vec<String>,
    /// The names of the guards in them that were not switched off, sorted.
    pub guards: Vec<String>,
    /// SHA-256 over what stood in the files.
    pub digest: String,
}

/// How the configuration of a session differs from the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigDrift {
    /// Not at all.
    None,
    /// Something else stands in the files; no guard is gone.
    Edited,
    /// Other files count, or a guard is gone: only a person can say that this is meant.
    Another {
        /// Whether other files count.
        files: bool,
        /// The guards that are gone.
        gone: Vec<String>,
    },
}

impl WorkedUnder {
    /// How this differs from `before`.
    pub fn drift(&self, before: &Self) -> ConfigDrift {
        let gone: Vec<String> = before.guards.iter().filter(|guard| !self.guards.contains(guard)).cloned().collect();
        let same = |(now, before): (&String, &String)| now == before || is_named(now, before) || is_named(before, now);
        let files = self.config.len() != before.config.len() || !self.config.iter().zip(&before.config).all(same);
        if files || !gone.is_empty() {
            ConfigDrift::Another { files, gone }
        } else if self.digest != before.digest {
            ConfigDrift::Edited
        } else {
            ConfigDrift::None
        }
    }

    /// The files, as a person reads them.
    pub fn files(&self) -> String {
        if self.config.is_empty() { "no file".to_owned() } else { self.config.join(" and ") }
    }
}

/// Whether `name` is only a name, and that of the file at `path`.
fn is_named(name: &str, path: &str) -> bool {
    !name.contains('/') && path.rsplit('/').next() == Some(name)
}

/// Takes out of `entries`, oldest first, what gates replaced in the calls that the entries from `new` on settle: each
/// answer of a model gets the arguments that stand. What is left over is for the last answer before `entries`.
pub fn settle(entries: &mut [JournalEntry], new: usize) -> Vec<(usize, String)> {
    let mut before = Vec::new();
    for at in new..entries.len() {
        let (earlier, rest) = entries.split_at_mut(at);
        let Some(JournalEntry::Turn(fact)) = rest.first() else { continue };
        let Some((place, arguments)) = fact.settles() else { continue };
        let settled = earlier.iter_mut().rev().any(|entry| match entry {
            JournalEntry::Turn(fact) => fact.settle(place, arguments),
            JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => false,
        });
        if !settled {
            before.push((place, arguments.to_owned()));
        }
    }
    before
}

/// Why a process no longer works on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// Its work was done.
    Done,
    /// Its last turn ended in an error.
    Failed,
    /// Somebody stopped it.
    Interrupted,
    /// A call waits for a person.
    Waiting,
    /// It was killed or crashed; whoever opened the session next found out.
    Killed,
}

impl ReleaseReason {
    /// The word in listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
            Self::Killed => "killed",
        }
    }
}

/// A turn that has begun and not ended.
#[derive(Clone, Debug)]
pub struct OpenTurn {
    /// Which.
    pub turn_id: TurnId,
    /// The prompt of the turn.
    pub prompt: String,
    /// The turn, as far as it is.
    pub turn: Turn,
}

/// One conversation.
#[derive(Clone, Debug, Default)]
pub struct Session {
    messages: Vec<Rendered<Message>>,
    queue: Vec<WaitingMessage>,
    open: Option<OpenTurn>,
    /// Whether a process works on it, as far as the journal knows.
    held: bool,
    begun: bool,
    /// Results that were too long for the model.
    results: KeptResults,
    /// The paths of files that hooks named.
    named: BTreeSet<String>,
    under: Option<WorkedUnder>,
    /// The id of the API key with which somebody asked for the turn that began last.
    asked_with: Option<String>,
    last_cause: Option<ReleaseReason>,
    /// What stood in it before the turn that ended last, if that was stopped.
    before_stopped: Option<Vec<Rendered<Message>>>,
}

impl Session {
    /// The session that `entries` tell of, oldest first.
    pub fn fold(entries: impl IntoIterator<Item = JournalEntry>) -> Self {
        let mut session = Self::default();
        entries.into_iter().for_each(|entry| session.apply(entry));
        session
    }

    /// Takes one more entry in.
    pub fn apply(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Opened { under, .. } => {
                if self.held {
                    // Whoever held it did not come to say why it left.
                    self.last_cause = Some(ReleaseReason::Killed);
                }
                self.held = true;
                self.begun = true;
                self.under = under.or(self.under.take());
            }
            JournalEntry::Closed { cause } => {
                self.held = false;
                self.last_cause = Some(cause);
            }
            JournalEntry::Turn(Fact::Recalled(recalled)) => {
                self.end_killed();
                self.messages = recalled.over(std::mem::take(&mut self.messages));
            }
            JournalEntry::Turn(Fact::TakenBack) => self.take_back(),
            JournalEntry::Turn(Fact::Begun { turn_id, prompts, max_iterations, key }) => {
                self.asked_with = key;
                self.begin(turn_id, prompts, max_iterations);
            }
            JournalEntry::Turn(Fact::Queued(waiting)) if self.open.is_none() => self.queue.push(waiting),
            JournalEntry::Turn(fact) => {
                if let Fact::Answered { answer, .. } = &fact {
                    self.name(answer.named.to_vec());
                }
                self.apply_to_turn(fact);
            }
            JournalEntry::Kept(kept) => self.results.keep(kept),
        }
    }

    fn begin(&mut self, turn_id: TurnId, prompts: Vec<KeptMessage>, max_iterations: u32) {
        self.end_killed();
        // What came in while the turn was being prepared is not among its prompts, and waits on.
        for prompt in &prompts {
            if let Some(at) = self.queue.iter().position(|waiting| waiting.message == *prompt) {
                self.queue.remove(at);
            }
        }
        self.before_stopped = None;
        let history = std::mem::take(&mut self.messages);
        let prompts: Vec<Message> = prompts.into_iter().map(Message::from).collect();
        let prompt = prompt_text(&prompts);
        self.open = Some(OpenTurn { turn_id, prompt, turn: Turn::begin(history, prompts, max_iterations) });
    }

    /// Whether the turn that ended last was stopped, so that it can be [taken back](Fact::TakenBack).
    pub fn can_take_back(&self) -> bool {
        self.open.is_none() && self.before_stopped.is_some()
    }

    fn take_back(&mut self) {
        if self.open.is_none()
            && let Some(before) = self.before_stopped.take()
        {
            self.messages = before;
            self.queue.retain(|waiting| waiting.from != MessageSender::Person);
        }
    }

    /// A turn that nobody ended was killed: what it did stays.
    fn end_killed(&mut self) {
        if self.open.is_some() {
            let (status, error, reply) = (TurnStatus::Aborted, None, String::new());
            self.apply_to_turn(Fact::Ended { status, roll_back: false, error, reply });
        }
    }

    fn apply_to_turn(&mut self, fact: Fact) {
        let Some(open) = &mut self.open else {
            self.before_stopped = None;
            if let Fact::Compacted { upto, summary } = fact {
                let upto = whole_rounds(&self.messages, upto);
                let summary = summary.filter(|_| upto > 0).map(|kept| Message::from(kept).into());
                self.messages.splice(..upto, summary);
            } else if let Fact::Trimmed { at, text } = fact {
                trim(&mut self.messages, at, text);
            }
            return;
        };
        let rolled_back = matches!(fact, Fact::Ended { roll_back: true, .. });
        let ended = matches!(fact, Fact::Ended { .. });
        let stopped = matches!(fact, Fact::Ended { status: TurnStatus::Aborted, roll_back: false, .. });
        self.before_stopped = stopped.then(|| open.turn.before());
        open.turn.apply(fact);
        if ended && let Some(mut open) = self.open.take() {
            let waiting = open.turn.take_waiting();
            if !rolled_back {
                self.queue.extend(waiting);
            }
            self.messages = open.turn.take_messages();
        }
    }

    /// The messages of the session, with what the turn that is under way has added.
    pub fn messages(&self) -> &[Rendered<Message>] {
        match &self.open {
            Some(open) => open.turn.messages(),
            None => &self.messages,
        }
    }

    /// The messages that were said in the session: all without the texts of skills and of the host that stand there
    /// for a while only.
    pub fn said(&self) -> impl Iterator<Item = &Message> {
        let turn = self.open.as_ref().map(|open| &open.turn);
        let passing = move |message: &Message| turn.is_some_and(|turn| turn.is_passing_text(message));
        self.messages().iter().map(Rendered::get).filter(move |message| !passing(message))
    }

    /// Remembers the paths of files that a hook named, as many as a session may have.
    pub fn name(&mut self, paths: Vec<String>) {
        let room = MAX_NAMED.saturating_sub(self.named.len());
        self.named.extend(paths.into_iter().take(room));
    }

    /// Whether a hook named exactly `path` in this session.
    pub fn has_named(&self, path: &str) -> bool {
        self.named.contains(path)
    }

    /// The results that were too long for the model.
    pub fn results(&self) -> &KeptResults {
        &self.results
    }

    /// Messages that wait for the next turn.
    pub fn queue(&self) -> &[WaitingMessage] {
        &self.queue
    }

    /// The turn that has begun and not ended.
    pub fn open(&self) -> Option<&OpenTurn> {
        self.open.as_ref()
    }

    /// The turn that is under way, to go on with.
    pub fn open_mut(&mut self) -> Option<&mut OpenTurn> {
        self.open.as_mut()
    }

    /// Takes the open turn out, to work it.
    pub fn take_open(&mut self) -> Option<OpenTurn> {
        self.open.take()
    }

    /// Puts a turn back that was worked on.
    pub fn put_open(&mut self, open: OpenTurn) {
        self.open = Some(open);
    }

    /// Whether a process opened it and did not say that it ended.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether it was ever opened.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The configuration under which it was worked last, if anybody said.
    pub fn worked_under(&self) -> Option<&WorkedUnder> {
        self.under.as_ref()
    }

    /// The id of the API key with which somebody asked for the turn that began last, where they had one.
    pub fn asked_with(&self) -> Option<&str> {
        self.asked_with.as_deref()
    }

    /// The reason for which the last process that worked on the session ended.
    pub fn last_cause(&self) -> Option<ReleaseReason> {
        self.last_cause
    }
}

/// The prompt of a turn, as one text.
pub fn prompt_text(prompts: &[Message]) -> String {
    let written = prompts.iter().filter(|message| message.origin.is_empty());
    written.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests;
