//! Agents behind the two published ways to talk to models.
//!
//! The status of an answer waits for the gates of the prompt: what they refuse is no stream that breaks off.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use pintle_domain::id::TurnId;
use pintle_domain::json::{Value, json};
use pintle_domain::session::LONG_TEXT_BYTES;

use super::body::{Bound, whole};
use super::dialect::Wire;
use super::refused::Refused;
use super::reply::json_body;
use crate::Shared;
use crate::agents::named;
use crate::claim::only_ascii;
use crate::door::{RequestId, Visit};
use crate::errand::{Brought, Errand, Whose};
use crate::error::{ApiError, ErrorCode};
use crate::methods::going_away;
use crate::outcome::KeptOutcome;
use crate::principal::Principal;
use crate::repeats::{Named, Noted, Standing, digest_of};
use crate::roles;
use crate::run::{Asker, Run, RunParts};
use crate::session_name::{Channel, SessionName};
use crate::wire::{Asked, anthropic, openai};

mod answering;
mod streaming;

use answering::{Guard, LeftTalk, Talk, busy};

/// The header that names a conversation which the host keeps.
const SESSION: &str = "x-pintle-session";
/// The header that names a request, so that it may come a second time.
const REPEAT: &str = "idempotency-key";

/// `POST /v1/chat/completions`.
pub(crate) async fn completions(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    talk(Wire::OpenAi, shared, visit, request).await
}

/// `POST /v1/messages`.
pub(crate) async fn messages(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    talk(Wire::Anthropic, shared, visit, request).await
}

async fn talk(wire: Wire, shared: Arc<Shared>, visit: Visit, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let begun = match begin(wire, &shared, visit, (&head, body)).await {
        Ok(begun) => begun,
        Err(refused) => return wire.refusal(&refused),
    };
    // What was taken away while the body came, nobody told this request of.
    if !shared.is_still(&begun.guard.guest.who).await.unwrap_or(false) {
        return wire.refusal(&answering::revoked().into());
    }
    match begun.started().await {
        Err((refused, run)) => {
            let mut response = wire.refusal(&refused);
            answering::mark(&run, &mut response);
            response
        }
        Ok(talk) if talk.stream => talk.stream(),
        Ok(talk) => talk.whole().await,
    }
}

/// What a request is, before anything is done for it.
struct Wanted {
    wire: Wire,
    who: Principal,
    name: SessionName,
    /// Whether the host keeps the conversation.
    kept: bool,
    asked: Asked,
    /// The digest of its prompt.
    prompt: String,
    turn: TurnId,
    /// Its `X-Request-Id`.
    request: String,
}

/// The body of a request, read.
struct ReadBody {
    asked: Asked,
    /// The digest of its prompt, if it names a session.
    prompt: String,
    /// The digest of the whole, if the request names itself.
    body: String,
}

/// Reads the body of a request: a long one on a thread of its own, since other requests wait for this one.
async fn read_aside(wire: Wire, headers: HeaderMap, body: Bytes) -> Result<ReadBody, ApiError> {
    if body.len() <= LONG_TEXT_BYTES {
        return read(wire, &headers, &body);
    }
    let read = tokio::task::spawn_blocking(move || read(wire, &headers, &body)).await;
    read.unwrap_or_else(|error| Err(ApiError::new(ErrorCode::Internal, error.to_string())))
}

fn read(wire: Wire, headers: &HeaderMap, body: &[u8]) -> Result<ReadBody, ApiError> {
    let mut body = json_body(headers, body)?;
    let asked = match wire {
        Wire::OpenAi => openai::read(&body)?,
        Wire::Anthropic => anthropic::read(&body)?,
    };
    // How an answer is told is not part of what is asked for.
    if let Some(body) = body.as_object_mut() {
        body.shift_remove("stream");
        body.shift_remove("stream_options");
    }
    let wanted = |header: &str, what: &dyn Fn() -> String| {
        if headers.contains_key(header) { what() } else { String::new() }
    };
    let prompt = wanted(SESSION, &|| digest_of(&json!(asked.prompt)));
    let body = wanted(REPEAT, &|| digest_of(&body));
    Ok(ReadBody { asked, prompt, body })
}

/// Where a prompt stands that a request was left with, because a call waited for an approval.
enum Pending {
    /// There is none.
    None,
    /// It is worked.
    Works(Arc<Run>),
    /// This turn of it is open, and nobody works it.
    Left(TurnId),
    /// It is over.
    Over(Box<(TurnId, KeptOutcome)>),
}

async fn begin(wire: Wire, shared: &Arc<Shared>, visit: Visit, (head, body): (&Parts, Body)) -> Result<Talk, Refused> {
    let headers = &head.headers;
    let who = shared.signed_in(headers, visit).await?;
    roles::allow(&who, "chat.send")?;
    let hint = "`gateway.max_body` sets how many are taken, and files go to /v1/media";
    let body = whole(body, Bound { most: shared.desk.limits.max_body, hint }).await?;
    let ReadBody { asked, prompt, body } = read_aside(wire, headers.clone(), body).await?;
    let agent = named(&shared.host.read().await.loaded.config, Some(&asked.agent))?.name.clone();
    let turn = TurnId::fresh();
    let (name, kept) = session(headers, &who, &agent, &turn)?;
    let request = head.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    let wanted = Wanted { wire, who, name, kept, asked, prompt, turn, request };
    let repeat = wanted.repeat(headers, body)?;
    let reader = wanted.who.clone();
    wanted.begin(shared, repeat).await.map_err(|refused| refused.told_to(&reader))
}

/// The session of a request, and whether the host keeps the conversation.
fn session(headers: &HeaderMap, who: &Principal, agent: &str, turn: &TurnId) -> Result<(SessionName, bool), ApiError> {
    let key = headers.get(SESSION).map(|key| key.to_str().map_err(|_| only_ascii(SESSION))).transpose()?;
    let conversation = match key {
        Some(key) => key.to_owned(),
        None => SessionName::once(turn),
    };
    let name = SessionName { agent: agent.to_owned(), channel: Channel::Http, user: who.user.clone(), conversation };
    match name.is_good() && !(key.is_some() && name.is_once()) {
        true => Ok((name, key.is_some())),
        false => {
            let why = "`X-Pintle-Session` must be a name without `/` and control characters, and without `@` at its \
                       beginning; the key of the session, with the agent and the user in it, has at most 256 bytes";
            Err(ApiError::invalid(why))
        }
    }
}

impl Wanted {
    /// The request under the name that its header gives it.
    fn repeat(&self, headers: &HeaderMap, body: String) -> Result<Option<Named>, ApiError> {
        let Some(key) = headers.get(REPEAT) else { return Ok(None) };
        let key = key.to_str().map_err(|_| only_ascii(REPEAT))?;
        if key.is_empty() {
            return Err(ApiError::invalid("`Idempotency-Key` must not be empty"));
        }
        Named::new(&self.who, self.kept.then_some(&self.name), key, body).map(Some)
    }

    /// Finds the run that works the request already, or begins one.
    async fn begin(mut self, shared: &Arc<Shared>, repeat: Option<Named>) -> Result<Talk, Refused> {
        let mut resumes = false;
        match self.pending(shared).await? {
            Pending::None => {}
            Pending::Works(run) => return Ok(Talk { joined: true, ..self.talk(shared, run) }),
            Pending::Over(over) => return Ok(self.was(shared, *over)),
            Pending::Left(turn) => (self.turn, resumes) = (turn, true),
        }
        let mut noted = None;
        if let Some(named) = repeat.as_ref().filter(|_| !resumes) {
            match shared.begin_repeat(named, &self.turn).await? {
                Standing::New(new) => noted = Some(new),
                Standing::Works(run) => return Ok(self.talk(shared, run)),
                Standing::Over(over) => return Ok(self.was(shared, *over)),
                Standing::Left(turn) => (self.turn, resumes) = (turn, true),
            }
        }
        let begun = self.begins(shared, resumes, repeat.as_ref(), &mut noted).await;
        if let (Err(_), Some(named), false) = (&begun, &repeat, resumes) {
            shared.forget_repeat(named).await;
        }
        begun
    }

    /// Whether a request that said the same was left because a call waited for an approval.
    async fn pending(&self, shared: &Arc<Shared>) -> Result<Pending, ApiError> {
        if !self.kept {
            return Ok(Pending::None);
        }
        let named = Named::pending(&self.who, &self.name, &self.prompt);
        if let Some(run) = shared.desk.repeats.run_of(&named) {
            return Ok(Pending::Works(run));
        }
        let Some(mut earlier) = shared.repeat(&named).await? else { return Ok(Pending::None) };
        while earlier.outcome.is_none() && shared.lanes.of(&self.key()).is_none() {
            // What came of it may be on its way into the store, or another node still works it.
            let is_held = shared.is_held(&self.key()).await?;
            shared.look_later().await?;
            earlier = shared.repeat(&named).await?.unwrap_or(earlier);
            if !is_held {
                break;
            }
        }
        if let Some(outcome) = &earlier.outcome {
            // It was waited for, and is told once.
            shared.forget_repeat(&named).await;
            let outcome = KeptOutcome::read(outcome);
            return Ok(outcome.map_or(Pending::None, |outcome| Pending::Over(Box::new((earlier.turn_id, outcome)))));
        }
        let at_work = shared.lanes.of(&self.key()).filter(|run| run.id() == Some(&earlier.turn_id));
        match at_work {
            Some(run) => Ok(Pending::Works(run)),
            None if shared.is_left(&self.key(), &earlier.turn_id).await? => Ok(Pending::Left(earlier.turn_id)),
            None => Ok(Pending::None),
        }
    }

    /// Begins a run, or joins one that waits for an approval and is about the same.
    async fn begins(
        self,
        shared: &Arc<Shared>,
        resumes: bool,
        repeat: Option<&Named>,
        noted: &mut Option<Noted>,
    ) -> Result<Talk, Refused> {
        if let Some(at_work) = shared.lanes.of(&self.key()) {
            return match at_work.waits().is_some() && at_work.says(&self.asked.prompt) {
                true => Ok(self.talk(shared, at_work)),
                false => Err(busy(&at_work).into()),
            };
        }
        if shared.life.draining.is_cancelled() {
            return Err(ApiError { retry_after_ms: Some(1000), ..going_away() }.into());
        }
        let agent = shared.ready(&self.key(), &self.name.agent, None).await?;
        // What is refused before is no message that counts.
        shared.guests.rates.check(&self.who)?;
        let (mut history, mut files) = (self.asked.history.clone(), self.asked.files.clone());
        // Where the host keeps the conversation, only the last message counts.
        files.retain(|(place, _)| !self.kept || place.is_none());
        let run = Run::new(self.parts(shared));
        if let Err(at_work) = shared.lanes.take(&run) {
            return Err(busy(&at_work).into());
        }
        let brought = Brought { kept: self.kept, files, history: &mut history };
        let (place, media) = shared.prepared(&run, &self.turn, brought).await?;
        if let Some(named) = repeat {
            shared.desk.repeats.works(named, &run);
        }
        let history = (!self.kept).then_some(history);
        let (skills, turn) = (self.asked.skills.clone(), self.turn.clone());
        shared.start(
            run.clone(),
            Errand {
                agent,
                skills,
                enable_tools: true,
                history,
                edits: None,
                media,
                turn,
                resumes,
                place,
                whose: Whose::Http,
            },
        );
        noted.take().into_iter().for_each(Noted::begun);
        Ok(self.talk(shared, run))
    }

    fn key(&self) -> pintle_domain::store::SessionKey {
        pintle_domain::store::SessionKey { tenant: self.who.tenant.clone(), session: self.name.id() }
    }

    fn parts(&self, shared: &Shared) -> RunParts {
        RunParts {
            name: self.name.clone(),
            tenant: self.who.tenant.clone(),
            prompt: self.asked.prompt.clone(),
            stream: self.asked.stream,
            asker: Asker::Http(self.request.clone()),
            key: self.who.credential.key().map(str::to_owned),
            is_heard: true,
            hub: shared.hub.clone(),
        }
    }

    /// Hears what came of a run that is over.
    fn was(self, shared: &Arc<Shared>, (turn, KeptOutcome { heard, outcome }): (TurnId, KeptOutcome)) -> Talk {
        let run = Run::finished(self.parts(shared), turn, heard, outcome);
        self.talk(shared, run)
    }

    fn talk(self, shared: &Arc<Shared>, run: Arc<Run>) -> Talk {
        let pending = self.kept.then(|| Named::pending(&self.who, &self.name, &self.prompt));
        let left = pending.clone().map(|named| LeftTalk { shared: shared.clone(), named, run: run.clone() });
        Talk {
            wire: self.wire,
            heard: run.listen(),
            guard: Guard {
                run: (!self.kept).then(|| Arc::downgrade(&run)),
                guest: shared.hub.ask(self.who),
                left,
                noting: None,
            },
            run,
            shared: shared.clone(),
            agent: self.name.agent,
            stream: self.asked.stream,
            usage_in_stream: self.asked.usage_in_stream,
            user: Value::Null,
            pending,
            joined: false,
            deadline: None,
        }
    }
}
