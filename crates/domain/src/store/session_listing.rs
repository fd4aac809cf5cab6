//! Which sessions are listed, and which turns were left in them.

use super::session_key::SessionKey;
use crate::id::{AgentId, SessionId, TurnId};

/// Which sessions of a listing are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionQuery {
    /// Those that come after this one, so those that were used before it; none come after one that is not there.
    pub after: Option<SessionId>,
    /// Those of sub-agents, too.
    pub children: bool,
    /// At most this many.
    pub limit: usize,
}

/// A turn that has begun and not ended, of a session that nobody works now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftTurn {
    /// Which session.
    pub key: SessionKey,
    /// The agent that worked it last.
    pub agent: AgentId,
    /// Which turn.
    pub turn_id: TurnId,
    /// Whether whoever worked it did not say that they left.
    pub died: bool,
    /// The node that worked it last, if one ever did.
    pub node: Option<String>,
}
