//! What is meant for turns that are not worked on this node.

use std::sync::Arc;

use pintle_domain::id::TurnId;
use pintle_domain::store::{Letter, LetterKind, SessionKey};

use crate::Shared;
use crate::among_nodes::Alone;
use crate::error::ApiError;
use crate::principal::Principal;
use crate::session_name::SessionName;

/// The turns that somebody wants to stop.
pub(crate) struct Meant {
    pub(crate) who: Principal,
    pub(crate) name: Option<SessionName>,
    pub(crate) run: Option<TurnId>,
}

impl Meant {
    fn is(&self, name: &SessionName) -> bool {
        (name.user == self.who.user || self.who.sees_others()) && self.name.as_ref().is_none_or(|meant| meant == name)
    }
}

impl Shared {
    /// Leaves a letter for whoever works its session; whether anybody does.
    pub(crate) async fn post(self: &Arc<Self>, letter: Letter) -> Result<bool, ApiError> {
        self.blocking(move |shared| Ok(shared.store.post(&letter)?)).await
    }

    /// Stops turns that are worked on other nodes, and those that wait for a person and are worked nowhere: their ids.
    pub(crate) async fn abort_elsewhere(self: &Arc<Self>, meant: Meant) -> Result<Vec<TurnId>, ApiError> {
        let (stopped, parked) = self
            .blocking(move |shared| {
                let (mut stopped, mut parked) = (Vec::new(), Vec::new());
                let stop = |key| Letter { key, kind: LetterKind::Abort, body: String::new(), by: None };
                for row in shared.sessions.sessions(&meant.who.tenant)? {
                    let (Some(turn), Some(name)) = (&row.open_turn, SessionName::kept(&row.session_id)) else {
                        continue;
                    };
                    let turn = TurnId::from(turn.as_str());
                    if !meant.is(&name) || meant.run.as_ref().is_some_and(|run| *run != turn) {
                        continue;
                    }
                    let key = SessionKey { tenant: meant.who.tenant.clone(), session: name.id() };
                    if row.held_by.is_none() {
                        parked.push((key, turn.clone()));
                    } else if !shared.store.post(&stop(key))? {
                        continue;
                    }
                    stopped.push(turn);
                }
                Ok((stopped, parked))
            })
            .await?;
        // Nobody works these now: whoever waits for them hears that they ended.
        for (key, turn) in parked {
            self.work_alone(&key, Alone::Stopped(turn)).await;
        }
        Ok(stopped)
    }
}
