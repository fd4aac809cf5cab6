//! What is counted by rows, so that all nodes count together: turns in flight, open connections.

use crate::id::TenantId;

/// The kinds of what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseKind {
    /// A turn in flight.
    Turn,
    /// An open connection.
    Connection,
}

impl UseKind {
    /// As it is kept.
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Connection => "connection",
        }
    }
}

/// One of what is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayUse {
    /// A UUID.
    pub id: String,
    /// What.
    pub kind: UseKind,
    /// Whose.
    pub tenant: TenantId,
    /// Who of them it counts for; empty where all count together.
    pub who: String,
    /// Which process has it.
    pub node: String,
}

/// The room that there is for one more of what is counted.
#[derive(Clone, Copy, Debug)]
pub struct UseRoom<'a> {
    /// So many of its kind for the same tenant and the same `who`.
    pub limit: u32,
    /// The ids of those that are over: they count no more.
    pub ended: &'a [String],
}
