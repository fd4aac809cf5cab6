//! What a run is asked to do, and for whom.

use std::sync::Arc;

use domain::history::HistoryMessage;
use domain::id::TurnId;
use host::ready_agent::ReadyAgent;

use crate::quotas::Place;

/// What a run is asked to do.
pub(crate) struct Errand {
    pub(crate) agent: Arc<ReadyAgent>,
    pub(crate) skills: Option<Vec<String>>,
    pub(crate) enable_tools: bool,
    pub(crate) history: Option<Vec<HistoryMessage>>,
    /// The files that come with the prompt, as references.
    pub(crate) media: Vec<String>,
    /// The id of its turn.
    pub(crate) turn: TurnId,
    /// Whether it goes on with the turn that was left open in its session.
    pub(crate) resumes: bool,
    /// It counts as a turn in flight to its end; one that was counted before it was left does not count again.
    pub(crate) place: Option<Place>,
    pub(crate) whose: Whose,
}

/// Who asked for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A client of the socket, whose message is one for the turn that is worked there already.
    Socket,
    /// A request over HTTP, which is none.
    Http,
    /// Nobody who waits for it.
    Nobody,
}

impl Errand {
    /// Goes on with the turn that was left open.
    pub(crate) fn resuming(agent: Arc<ReadyAgent>) -> Self {
        Self {
            agent,
            skills: None,
            enable_tools: true,
            history: None,
            media: Vec::new(),
            turn: TurnId::fresh(),
            resumes: true,
            place: None,
            whose: Whose::Nobody,
        }
    }
}
