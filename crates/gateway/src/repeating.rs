//! Requests that come a second time, against what the store knows of the first.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::TurnId;
use pintle_domain::json::json;
use pintle_domain::session::Session;
use pintle_domain::store::{Repeat, SessionKey};

use crate::Shared;
use crate::error::{ApiError, going_away};
use crate::outcome::{KeptOutcome, RunOutcome};
use crate::repeats::{Named, Noted, Standing};
use crate::run::Run;
use crate::session_name::Channel;

/// How long a request is known by its name. Source: the page of the gateway.
const KNOWN: SignedDuration = SignedDuration::from_hours(24);

/// How long a request waits for one by its name of which nobody knows who works it, and how often it looks.
const ELSEWHERE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Shared {
    /// Where the request `named` stands; a new one is noted, as worked by `turn`.
    pub(crate) async fn begin_repeat(self: &Arc<Self>, named: &Named, turn: &TurnId) -> Result<Standing, ApiError> {
        self.stands(named, (turn, false)).await
    }

    /// The same, where `turn` may have begun, and then has other names that stay its own.
    async fn stands(self: &Arc<Self>, named: &Named, (turn, has_begun): (&TurnId, bool)) -> Result<Standing, ApiError> {
        loop {
            let earlier = match self.note_repeat(named, (turn, has_begun)).await? {
                Ok(noted) => return Ok(Standing::New(noted)),
                Err(earlier) => earlier,
            };
            if earlier.digest != named.digest {
                return Err(ApiError::invalid(
                    "this name was already used for a different request; give each request its own",
                )
                .with_details(json!({ "kind": "idempotency_key_reused" })));
            }
            // One that is gone meanwhile never began.
            if let Some(standing) = self.standing(named, earlier).await? {
                return Ok(standing);
            }
        }
    }

    /// Notes the request `named`, unless it came before. What is noted goes along into the work: it is free again,
    /// whenever the client hangs up.
    async fn note_repeat(
        self: &Arc<Self>,
        named: &Named,
        (turn, has_begun): (&TurnId, bool),
    ) -> Result<Result<Noted, Repeat>, ApiError> {
        let now = Timestamp::now();
        let new = Repeat {
            digest: named.digest.clone(),
            turn_id: turn.clone(),
            owner: self.desk.repeats.owner.clone(),
            began_at: now,
            outcome: None,
        };
        let to_free = (!has_begun).then_some(turn);
        let noted = Noted::new((self.store.clone(), self.life.tasks.clone()), named, to_free);
        let name = named.name.clone();
        self.blocking(move |shared| match shared.store.begin_repeat(&name, &new, known_since(now))? {
            None => Ok(Ok(noted)),
            Some(earlier) => {
                noted.begun();
                Ok(Err(earlier))
            }
        })
        .await
    }

    /// Where a request stands that came before; nothing where nobody knows it any more.
    async fn standing(self: &Arc<Self>, named: &Named, mut earlier: Repeat) -> Result<Option<Standing>, ApiError> {
        let mut deadline = tokio::time::Instant::now() + ELSEWHERE;
        loop {
            if let Some(outcome) = earlier.outcome.as_deref().and_then(KeptOutcome::read) {
                return Ok(Some(Standing::Over(Box::new((earlier.turn_id, outcome)))));
            }
            if let Some(run) = self.desk.repeats.run_of(named) {
                return Ok(Some(Standing::Works(run)));
            }
            if self.is_held(&named.name.session).await? {
                // However long its turn takes, it ends, or its node does.
                deadline = tokio::time::Instant::now() + ELSEWHERE;
            } else if self.is_left(&named.name.session, &earlier.turn_id).await? {
                return Ok(Some(Standing::Left(earlier.turn_id)));
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(ApiError::precondition(
                    "the first request of this name was cut off, and its outcome is unknown; its session shows what \
                     was done. To run it again, send it under a new name",
                )
                .with_details(json!({ "kind": "outcome_unknown", "runId": earlier.turn_id })));
            }
            self.look_later().await?;
            match self.repeat(named).await? {
                Some(now) => earlier = now,
                None => return Ok(None),
            }
        }
    }

    /// Waits until it is time to look again what became of a request; not while this node goes away.
    pub(crate) async fn look_later(&self) -> Result<(), ApiError> {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => Ok(()),
            () = self.life.leaving.cancelled() => Err(going_away()),
        }
    }

    /// Whether some node works the session now.
    pub(crate) async fn is_held(self: &Arc<Self>, session: &SessionKey) -> Result<bool, ApiError> {
        if session.session.as_str().is_empty() {
            return Ok(false);
        }
        let session = session.clone();
        self.blocking(move |shared| Ok(shared.sessions.holder(&session)?.is_some())).await
    }

    /// Whether the session has the turn as an open one, and nobody works it.
    pub(crate) async fn is_left(self: &Arc<Self>, session: &SessionKey, turn: &TurnId) -> Result<bool, ApiError> {
        if session.session.as_str().is_empty() || self.lanes.of(session).is_some() {
            return Ok(false);
        }
        let (session, turn) = (session.clone(), turn.clone());
        self.blocking(move |shared| {
            let entries = shared.sessions.journal(&session)?;
            Ok(Session::fold(entries).open().is_some_and(|open| open.turn_id == turn))
        })
        .await
    }

    /// The request `named`, if it came.
    pub(crate) async fn repeat(self: &Arc<Self>, named: &Named) -> Result<Option<Repeat>, ApiError> {
        let name = named.name.clone();
        self.blocking(move |shared| Ok(shared.store.repeat(&name, known_since(Timestamp::now()))?)).await
    }

    /// The request `named` never came.
    pub(crate) async fn forget_repeat(self: &Arc<Self>, named: &Named) {
        let name = named.name.clone();
        let forgotten = self.blocking(move |shared| Ok(shared.store.forget_repeat(&name)?)).await;
        if let Err(error) = forgotten {
            tracing::warn!("the name of a refused request could not be freed: {error}");
        }
    }

    /// Whoever asked for `run` was sent away because it waits for an approval; the same prompt joins it, or gets what came
    /// of it.
    pub(crate) async fn note_pending(self: &Arc<Self>, named: Named, run: &Arc<Run>) {
        let Some(turn) = run.id().cloned() else { return };
        self.desk.repeats.works(&named, run);
        if let Err(error) = self.stands(&named, (&turn, true)).await {
            tracing::warn!("a repeat of a pending request will not be recognised: {error}");
        }
        // It may have ended in the meantime.
        if let Some(outcome) = run.settled() {
            self.end_repeats(run, &[turn], outcome).await;
            if run.ended() {
                self.desk.repeats.over(run);
            }
        }
    }

    /// Keeps what came of `run`, before anybody hears it, if it has a name: its request came with one, or it goes on with a
    /// turn whose request may have had one.
    pub(crate) async fn keep_outcome(
        self: &Arc<Self>,
        run: &Arc<Run>,
        (turns, resumes): (&[TurnId], bool),
        outcome: &RunOutcome,
    ) {
        // Whoever gives it a name from now on finds the outcome, and keeps it.
        run.settle(outcome);
        if resumes || self.desk.repeats.is_named(run) {
            self.end_repeats(run, turns, outcome).await;
        }
    }

    /// Keeps what came of `run` for those who ask the same again. What failed without an effect may be tried again.
    async fn end_repeats(self: &Arc<Self>, run: &Arc<Run>, turns: &[TurnId], outcome: &RunOutcome) {
        let kept = match outcome {
            RunOutcome::Parked(_) => None,
            RunOutcome::Completed(_) => Some(true),
            // Over the socket it went into the turn there; over HTTP nothing was done.
            RunOutcome::Elsewhere(_) => Some(run.name.channel == Channel::Socket),
            RunOutcome::Failed(_) | RunOutcome::Cancelled => Some(run.has_effect()),
        };
        if let Some(keep) = kept {
            let text = keep.then(|| KeptOutcome { heard: run.transcript(), outcome: outcome.clone() }.write());
            let (tenant, turns) = (run.key.tenant.clone(), turns.to_vec());
            let ended = self
                .blocking(move |shared| {
                    for turn in &turns {
                        shared.store.end_repeats(&tenant, turn, text.as_deref())?;
                    }
                    Ok(())
                })
                .await;
            if let Err(error) = ended {
                tracing::warn!("the outcome of a request could not be stored: {error}");
            }
        }
    }
}

fn known_since(now: Timestamp) -> Timestamp {
    now.checked_sub(KNOWN).unwrap_or(Timestamp::MIN)
}
