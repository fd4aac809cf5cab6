//! Requests that name themselves, so that they may come a second time: one joins the run of the first, or gets what came of
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::id::{SessionId, TurnId};
use domain::json::{Value, canonical, json};
use domain::session::Session;
use domain::store::{Repeat, RepeatName, SessionKey};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::Shared;
use crate::error::ApiError;
use crate::outcome::{KeptOutcome, RunOutcome};
use crate::principal::Principal;
use crate::run::Run;
use crate::session_name::{Channel, SessionName};

/// How long a request is known by its name. Source: the page of the gateway.
const KNOWN: SignedDuration = SignedDuration::from_hours(24);

/// Longest name of a request, in bytes: four times an UUID, and short enough for a line of a log.
const MAX_NAME_BYTES: usize = 255;

/// How long a request waits for one by its name that another process works, and how often it looks.
const ELSEWHERE: Duration = Duration::from_secs(10);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The beginning of the names of requests that were left because an approval was not answered in time; no client gives one
/// that begins so.
const PENDING: &str = "\u{0}pending:";

/// The requests whose runs are worked here, by the digests of their names.
pub(crate) struct Repeats {
    at_work: Mutex<HashMap<String, Arc<Run>>>,
    /// This process.
    owner: String,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { at_work: Mutex::default(), owner: uuid::Uuid::now_v7().to_string() }
    }
}

/// A request that names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: RepeatName,
    /// Of what it asks for.
    digest: String,
}

/// Where a request stands.
pub(crate) enum Standing {
    /// It came for the first time.
    New,
    /// It is worked.
    Works(Arc<Run>),
    /// Its turn was left open, and nobody here works it: it waits for a person, or its process died.
    Left,
    /// It is over.
    Over(Box<(TurnId, KeptOutcome)>),
}

impl Named {
    /// The request `key` of `who`, about `session` if the host keeps the conversation, that asks for `what`.
    pub(crate) fn new(
        who: &Principal,
        session: Option<&SessionName>,
        key: &str,
        what: &Value,
    ) -> Result<Self, ApiError> {
        if key.len() > MAX_NAME_BYTES || key.chars().any(char::is_control) {
            return Err(ApiError::invalid(format!(
                "the name of a request must have at most {MAX_NAME_BYTES} bytes and no control characters"
            )));
        }
        Ok(Self::of(who, session, key.to_owned(), what))
    }

    /// The request of `who` in `session` that says `prompt`, as long as its run waits for an approval.
    pub(crate) fn pending(who: &Principal, session: &SessionName, prompt: &str) -> Self {
        let digest = hash(&json!(prompt));
        Self::of(who, Some(session), format!("{PENDING}{digest}"), &json!(prompt))
    }

    fn of(who: &Principal, session: Option<&SessionName>, key: String, what: &Value) -> Self {
        let session = session.map_or_else(|| SessionId::from(""), SessionName::id);
        let session = SessionKey { tenant: who.tenant.clone(), session };
        Self { name: RepeatName { session, user: who.user.clone(), key }, digest: hash(what) }
    }
}

fn hash(what: &Value) -> String {
    Sha256::digest(canonical(what).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Repeats {
    fn at_work(&self) -> MutexGuard<'_, HashMap<String, Arc<Run>>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `run` works the request.
    pub(crate) fn works(&self, named: &Named, run: &Arc<Run>) {
        self.at_work().insert(named.name.digest(), run.clone());
    }

    /// The run that works the request here.
    pub(crate) fn run_of(&self, named: &Named) -> Option<Arc<Run>> {
        self.at_work().get(&named.name.digest()).cloned()
    }

    /// `run` is over.
    fn over(&self, run: &Arc<Run>) {
        self.at_work().retain(|_, other| !Arc::ptr_eq(other, run));
    }
}

impl Shared {
    /// Where the request `named` stands; a new one is noted, as worked by `turn`.
    pub(crate) async fn begin_repeat(self: &Arc<Self>, named: &Named, turn: &TurnId) -> Result<Standing, ApiError> {
        let now = Timestamp::now();
        let new = Repeat {
            digest: named.digest.clone(),
            turn_id: turn.clone(),
            owner: self.desk.repeats.owner.clone(),
            began_at: now,
            outcome: None,
        };
        let name = named.name.clone();
        let found = self.blocking(move |shared| Ok(shared.store.begin_repeat(&name, &new, known_since(now))?)).await?;
        let Some(earlier) = found else { return Ok(Standing::New) };
        if earlier.digest != named.digest {
            return Err(ApiError::invalid("another request was sent under this name; give each its own")
                .with_details(json!({ "kind": "idempotency_key_reused" })));
        }
        self.standing(named, earlier).await
    }

    /// Where a request stands that came before.
    async fn standing(self: &Arc<Self>, named: &Named, mut earlier: Repeat) -> Result<Standing, ApiError> {
        let deadline = tokio::time::Instant::now() + ELSEWHERE;
        loop {
            if let Some(outcome) = earlier.outcome.as_deref().and_then(KeptOutcome::read) {
                return Ok(Standing::Over(Box::new((earlier.turn_id, outcome))));
            }
            if let Some(run) = self.desk.repeats.run_of(named) {
                return Ok(Standing::Works(run));
            }
            if self.is_left(&named.name.session, &earlier.turn_id).await? {
                return Ok(Standing::Left);
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(ApiError::precondition(
                    "the first request of this name did not come to its end, and what it did is not known; its session \
                     has what was done. Send it under another name to have it done again",
                )
                .with_details(json!({ "kind": "outcome_unknown", "runId": earlier.turn_id })));
            }
            tokio::time::sleep(LOOK_EVERY).await;
            match self.repeat(named).await? {
                Some(now) => earlier = now,
                None => return Ok(Standing::New),
            }
        }
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
            tracing::warn!("a request that was refused is still known: {error}");
        }
    }

    /// Whoever asked for `run` was sent away because it waits for an approval; the same prompt joins it, or gets what came
    /// of it.
    pub(crate) async fn note_pending(self: &Arc<Self>, named: Named, run: &Arc<Run>) {
        let Some(turn) = run.id().cloned() else { return };
        self.desk.repeats.works(&named, run);
        if let Err(error) = self.begin_repeat(&named, &turn).await {
            tracing::warn!("a request that was left will not be known again: {error}");
        }
        // It may have ended meanwhile.
        if let Some(outcome) = run.ended() {
            self.end_repeats(run, &[turn], &outcome).await;
        }
    }

    /// Keeps what came of `run` for those who ask the same again. What failed without an effect may be tried again.
    pub(crate) async fn end_repeats(self: &Arc<Self>, run: &Arc<Run>, turns: &[TurnId], outcome: &RunOutcome) {
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
                tracing::warn!("what came of a request is not kept: {error}");
            }
        }
        self.desk.repeats.over(run);
    }
}

fn known_since(now: Timestamp) -> Timestamp {
    now.checked_sub(KNOWN).unwrap_or(Timestamp::MIN)
}
