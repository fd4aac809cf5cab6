//! Turns by what is asked of them, page by page, and the journal of one.

use jiff::Timestamp;

use super::{StoredTurn, TenantScope};

/// Which turns are wanted. Empty members ask for everything; tests are in no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnQuery {
    /// Whose turns they are.
    pub tenant: TenantScope,
    /// Turns of this agent.
    pub agent: Option<String>,
    /// Whose, by their sessions or themselves.
    pub which: Option<WhichTurns>,
    /// Turns with an event about this tool.
    pub tool: Option<String>,
    /// Turns with an event at which a hook of this name is registered.
    pub hook: Option<String>,
    /// Turns that came to this.
    pub came_to: Option<TurnOutcome>,
    /// Turns in which a reason has these words, in whichever case.
    pub words: Option<String>,
    /// Turns that did not begin before.
    pub since: Option<Timestamp>,
    /// Turns that began before.
    pub until: Option<Timestamp>,
    /// Only what comes after the turn at this place in the order of the listing.
    pub after: Option<i64>,
    /// At most this many.
    pub limit: usize,
}

impl TurnQuery {
    /// Every turn of `tenant`; how many of them, whoever asks says.
    pub fn of(tenant: TenantScope) -> Self {
        Self {
            tenant,
            agent: None,
            which: None,
            tool: None,
            hook: None,
            came_to: None,
            words: None,
            since: None,
            until: None,
            after: None,
            limit: 0,
        }
    }
}

/// Which turns are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichTurns {
    /// The turn with this id.
    Turn(String),
    /// Those of the session with this key.
    Session(String),
    /// Those of sessions in whose keys this text stands.
    Part(String),
    /// Those of the sub-agents of a session that began after the turn at a place. They come oldest first.
    Below {
        /// The key of the session.
        session: String,
        /// The place of the turn.
        from: i64,
    },
}

/// What a turn came to, as far as hooks are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// Nothing was stopped, and no hook failed.
    Allowed,
    /// Something was refused.
    Blocked,
    /// A person was asked.
    Asked,
    /// A hook failed.
    Faulted,
}

impl TurnOutcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Allowed, Self::Blocked, Self::Asked, Self::Faulted];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Blocked => "blocked",
            Self::Asked => "asked",
            Self::Faulted => "faulted",
        }
    }

    /// The outcome with this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// One page of turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnPage {
    /// Newest first.
    pub turns: Vec<TurnRow>,
    /// The place after which the next page begins; none at the end. A page may have fewer turns than were asked for, and
    /// still another one after it: only so many turns are looked at for each.
    pub next: Option<i64>,
}

/// A turn with what its records say of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    /// Its place in listings.
    pub place: i64,
    /// The turn.
    pub turn: StoredTurn,
    /// When it ended; none while it is worked, or where nobody saw its end. RFC 3339, UTC.
    pub ended: Option<String>,
    /// The status in which it ended, where that is not its answer: `error` or `aborted`.
    pub status: Option<String>,
    /// The error that it ended with.
    pub error: Option<String>,
    /// The text of the newest event that stopped something: who, and why.
    pub reason: Option<String>,
    /// The number of calls that a person was asked about.
    pub asked: u64,
    /// The number of events at which a hook failed.
    pub faults: u64,
}
