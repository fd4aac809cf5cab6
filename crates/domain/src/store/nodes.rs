//! Ports for several nodes at one database: who is there, what they say to each other, and what the dead left.

use serde::{Deserialize, Serialize};

use super::{NullSubscription, OnRulesChanged, RuleSubscription, SessionKey, StoreError};
use crate::id::{SessionId, TenantId};
use crate::node::{NodeState, SeenNode};

/// What somebody wants of a turn that another node works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The session.
    pub key: SessionKey,
    /// The kind.
    pub kind: LetterKind,
    /// The message, if it is one.
    pub body: String,
    /// Who says it, where the node that left the letter says so.
    pub by: Option<Steerer>,
}

/// Who says something to a turn: it is taken back once they may not talk to agents any more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Steerer {
    /// The user.
    pub user: String,
    /// The id of the API key with which they say it, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The kinds of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterKind {
    /// A message for the turn.
    Steer,
    /// The turn is to stop.
    Abort,
}

impl LetterKind {
    /// The word in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::Abort => "abort",
        }
    }

    /// The kind that is called `word`.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Steer, Self::Abort].into_iter().find(|kind| kind.word() == word)
    }
}

/// Lets nodes know of each other. Alone, unless a store says otherwise. All methods block.
pub trait NodeStore: Send + Sync {
    /// The name of this store among those of the nodes; none where it is always alone.
    fn node_id(&self) -> String {
        String::new()
    }

    /// Whether several nodes may share it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Says that a node begins; the sessions whose turns its last end cut come back, once.
    ///
    /// # Errors
    /// The store cannot do it.
    fn join(&self, _state: &NodeState) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Says that a node is there, and how it stands; those that are there or were lately come back, the oldest first.
    ///
    /// # Errors
    /// The store cannot do it.
    fn beat(&self, _state: &NodeState) -> Result<Vec<SeenNode>, StoreError> {
        Ok(Vec::new())
    }

    /// The nodes that are there or were lately, the oldest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn nodes(&self) -> Result<Vec<SeenNode>, StoreError> {
        Ok(Vec::new())
    }

    /// Says that the node `id` ends, and the sessions whose turns that cut.
    ///
    /// # Errors
    /// The store cannot do it.
    fn leave(&self, _id: &str, _cut: &[String]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Leaves a letter for whoever works its session; says whether anybody does.
    ///
    /// # Errors
    /// The store cannot do it.
    fn post(&self, _letter: &Letter) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The sessions of a tenant that somebody works, where several nodes may share the store.
    ///
    /// # Errors
    /// The store cannot be read.
    fn worked_sessions(&self, _tenant: &TenantId) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }

    /// Takes the letters for sessions that this store works, in their order.
    ///
    /// # Errors
    /// The store cannot do it.
    fn collect(&self) -> Result<Vec<Letter>, StoreError> {
        Ok(Vec::new())
    }

    /// Takes the letters whose session nobody works any more, for the node called `_node`: those of sessions that
    /// another one worked last only where that is gone.
    ///
    /// # Errors
    /// The store cannot do it.
    fn stranded(&self, _node: &str) -> Result<Vec<Letter>, StoreError> {
        Ok(Vec::new())
    }

    /// Tells every other node.
    ///
    /// # Errors
    /// The store cannot do it.
    fn tell_nodes(&self, _news: &[String]) -> Result<(), StoreError> {
        Ok(())
    }

    /// What other nodes told within the last minute, each with its number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn news(&self) -> Result<Vec<(i64, String)>, StoreError> {
        Ok(Vec::new())
    }

    /// Calls `heard` when another node left a letter or told something, as far as the store hears of it.
    fn listen_nodes(&self, _heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        Box::new(NullSubscription)
    }
}
