//! Turns that were left open because a person had to say, and about which somebody said by now: they go on by themselves,
//! whichever process parked them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::approval::ApprovalState;
use domain::store::{ApprovalQuery, SessionKey};
use tokio::time::Instant;

use crate::Shared;
use crate::error::ApiError;
use crate::run::{Run, RunParts};
use crate::session_name::SessionName;
use crate::working::Errand;

/// How often answers are looked for. Source: a decided turn goes on within 5 s.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How often questions are looked for whose time ran out: nobody waits for that minute.
const LOOK_FOR_EXPIRED: u32 = 30;

/// Most turns that are taken up at one look; the others wait for the next.
const MAX_TAKEN: usize = 32;

/// How long a turn is left alone that could not be taken up: somebody else works its session, or its agent is missing.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Looks for them until the host goes away.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    let mut tried: HashMap<SessionKey, Instant> = HashMap::new();
    for look in 0_u32.. {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = shared.life.draining.cancelled() => return,
        }
        tried.retain(|_, at| at.elapsed() < AGAIN_AFTER);
        let expired_too = look % LOOK_FOR_EXPIRED == 0;
        let found = shared.blocking(move |shared| shared.can_go_on(expired_too)).await;
        let found = found.unwrap_or_else(|error| {
            tracing::debug!("turns that can go on could not be looked for: {error}");
            Vec::new()
        });
        for key in found {
            if tried.contains_key(&key) || shared.lanes.of(&key).is_some() {
                continue;
            }
            tried.insert(key.clone(), Instant::now());
            if let Err(error) = shared.take_up(&key).await {
                tracing::warn!(session = %key.session, "a turn that was decided cannot go on: {error}");
            }
        }
    }
}

impl Shared {
    /// The sessions of this gateway whose open turns wait for nobody any more. Blocks.
    fn can_go_on(&self, expired_too: bool) -> Result<Vec<SessionKey>, ApiError> {
        let mut found: Vec<SessionKey> =
            self.store.decided_turns(MAX_TAKEN)?.into_iter().map(|(session, _)| session).collect();
        if expired_too {
            let now = jiff::Timestamp::now();
            let waiting = self.store.approvals(&ApprovalQuery::waiting(usize::MAX))?;
            let expired = waiting.into_iter().filter(|it| it.state_at(now) == ApprovalState::Expired);
            found.extend(expired.map(|it| SessionKey { tenant: it.tenant_id, session: it.session_id }));
        }
        // Whoever asked without a session is gone.
        found.retain(|key| SessionName::kept(key.session.as_str()).is_some_and(|name| !name.is_once()));
        found.truncate(MAX_TAKEN);
        Ok(found)
    }

    /// Goes on with the open turn of a session.
    async fn take_up(self: &Arc<Self>, key: &SessionKey) -> Result<(), ApiError> {
        let Some(name) = SessionName::kept(key.session.as_str()) else { return Ok(()) };
        let agent = {
            let host = self.host.read().await;
            self.agents.ready(&host, &name.agent, None)?
        };
        let run = Run::new(RunParts {
            name,
            tenant: key.tenant.clone(),
            prompt: String::new(),
            stream: false,
            origin: Weak::new(),
            is_heard: true,
            hub: self.hub.clone(),
        });
        let place = self.turn_of(&key.tenant).await?;
        if self.lanes.take(&run).is_ok() {
            self.start(run, Errand::resuming(agent, place));
        }
        Ok(())
    }
}
