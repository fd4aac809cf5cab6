//! Turns as the console shows them: a line of each, and one as a waterfall. Pure.

use pintle_domain::execution::masked;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{SessionRow, TurnRow};

use crate::principal::Principal;
use crate::session_name::{SessionName, user_of};
use crate::told::ended_with;

mod layout;
mod patched;
mod seen;
mod span;
#[cfg(test)]
mod tests;
mod waterfall;

pub(crate) use seen::seen;
pub(crate) use span::SpanKind;
pub(crate) use waterfall::{Kept, handed_over, handed_to, parent_of, spent, waterfall};

/// How a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnding {
    /// It is worked.
    Running,
    /// A person is waited for.
    Waiting,
    /// It ended with an answer.
    Completed,
    /// It ended in an error.
    Failed,
    /// Somebody stopped it.
    Stopped,
    /// Nobody works it, and nobody saw its end.
    Cut,
}

impl TurnEnding {
    /// Every ending.
    pub(crate) const ALL: [Self; 6] =
        [Self::Running, Self::Waiting, Self::Completed, Self::Failed, Self::Stopped, Self::Cut];

    /// The word on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cut => "cut",
        }
    }

    /// How `row` stands, of whose sessions are those in `sessions` that are known.
    pub(crate) fn of(row: &TurnRow, sessions: &[SessionRow]) -> Self {
        match (&row.ended, row.status.as_deref()) {
            (Some(_), None) => return Self::Completed,
            (Some(_), Some("aborted")) => return Self::Stopped,
            (Some(_), Some(_)) => return Self::Failed,
            (None, _) => {}
        }
        let session = sessions.iter().find(|session| session.session_id == row.turn.session_id);
        let open = session.filter(|session| session.open_turn.as_ref() == Some(&row.turn.turn_id));
        match open {
            Some(session) if session.waiting > 0 => Self::Waiting,
            Some(session) if session.held_by.is_some() => Self::Running,
            Some(_) | None => Self::Cut,
        }
    }
}

/// Whether `who` may see a turn of the session that is kept under `id`.
pub(crate) fn may_see(who: &Principal, id: &str) -> bool {
    who.sees_others() || user_of(id).is_some_and(|user| user == who.user)
}

/// What `who` calls the session that is kept under `id`; a sub-agent's is named after the one above.
pub(crate) fn shown_key(id: &str, who: &Principal) -> String {
    let (above, below) = id.split_once('/').map_or((id, None), |(above, below)| (above, Some(below)));
    let above = SessionName::kept(above).map_or_else(|| above.to_owned(), |name| name.shown_to(who));
    below.map_or_else(|| above.clone(), |below| format!("{above}/{below}"))
}

/// A turn in a listing.
pub(crate) fn line(row: &TurnRow, ending: TurnEnding, who: &Principal) -> Value {
    let turn = &row.turn;
    let mut line = json!({
        "turnId": turn.turn_id,
        "sessionKey": shown_key(&turn.session_id, who),
        "agentId": turn.agent_id,
        "userId": user_of(&turn.session_id),
        "subAgent": turn.session_id.contains('/'),
        "prompt": turn.prompt.as_deref().map(masked),
        "startedAt": turn.began,
        "endedAt": row.ended,
        "ending": ending.word(),
        "calls": turn.calls,
        "blocked": turn.refused,
        "asked": row.asked,
        "waiting": turn.waiting,
        "faults": row.faults,
    });
    if who.is_owner() {
        line["tenantId"] = json!(turn.tenant_id);
    }
    if let Some(error) = &row.error {
        line["error"] = ended_with(error, who);
    }
    if let Some(reason) = &row.reason {
        line["reason"] = json!(masked(reason));
    }
    line
}
