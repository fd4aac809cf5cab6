//! `chat.send`, `chat.inject`, `chat.abort`.

use std::sync::Arc;

use pintle_domain::history::HistoryMessage;
use pintle_domain::id::TurnId;
use pintle_domain::json::{Value, from_value, json};
use pintle_domain::store::{Letter, LetterKind, SessionKey, Steerer};

use super::sessions::session;
use crate::Shared;
use crate::errand::{Brought, EditedMessage, Errand, Whose};
use crate::error::{ApiError, going_away};
use crate::hub::Connection;
use crate::outcome::{KeptOutcome, RunAnswer, RunOutcome};
use crate::params::{Params, wrong};
use crate::principal::Principal;
use crate::repeats::{Named, Noted, Standing, digest_of};
use crate::routing::Meant;
use crate::run::{Asker, Run, RunParts};
use crate::session_name::SessionName;
use crate::wire::content::{Placed, attached};

/// Longest message, in characters. Source: the published protocol.
const MAX_MESSAGE: usize = 32_000;

/// The members of `chat.send`.
const SEND: [&str; 11] = [
    "agentId",
    "sessionKey",
    "message",
    "messageId",
    "stream",
    "media",
    "modelOverride",
    "history",
    "edits",
    "skills",
    "enableTools",
];

/// Who sends a message, by which request.
struct Sender<'a> {
    connection: &'a Arc<Connection>,
    request: &'a str,
}

/// A message that names itself.
struct NamedMessage<'a> {
    named: &'a Named,
    /// The id of its turn.
    turn: TurnId,
    /// Whether its turn was left open.
    resumes: bool,
    /// Its name, which is free again if nothing begins; taken once something did.
    noted: &'a mut Option<Noted>,
}

impl Shared {
    pub(super) async fn chat_send(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        (request, params): (&str, &Value),
    ) -> Result<Value, ApiError> {
        let known = Params::of(params, &SEND)?;
        let who = &connection.who;
        message(&known)?;
        history(&known)?;
        edited(&known)?;
        let name = self.meant(who, &known).await?;
        if name.user != who.user {
            return Err(ApiError::unauthorized("permission denied: the conversation belongs to another user"));
        }
        let Some(id) = known.text("messageId")? else {
            return self.send(Sender { connection, request }, &known, (name, None)).await;
        };
        let mut asked = params.clone();
        if let Some(asked) = asked.as_object_mut() {
            asked.shift_remove("stream");
        }
        let named = Named::new(who, Some(&name), id, digest_of(&asked))?;
        let (mut turn, mut resumes, mut noted) = (TurnId::fresh(), false, None);
        match self.begin_repeat(&named, &turn).await? {
            Standing::New(new) => noted = Some(new),
            Standing::Left(left) => (turn, resumes) = (left, true),
            Standing::Works(run) => return answer(&run.outcome().await),
            Standing::Over(over) => {
                let (_, kept) = *over;
                return match kept.injected_into() {
                    Some(run) => Ok(json!({ "injected": true, "runId": run })),
                    None => answer(&kept.outcome),
                };
            }
        }
        let message = NamedMessage { named: &named, turn, resumes, noted: &mut noted };
        let sent = self.send(Sender { connection, request }, &known, (name, Some(message))).await;
        // Of what began, whoever worked it knows whether it may be sent again: it may have had an effect.
        if sent.is_err() && noted.is_some() {
            self.forget_repeat(&named).await;
        }
        sent
    }

    /// Sends a message for the first time: to the run that is under way, or as one of its own.
    async fn send(
        self: &Arc<Self>,
        Sender { connection, request }: Sender<'_>,
        params: &Params<'_>,
        (name, named): (SessionName, Option<NamedMessage<'_>>),
    ) -> Result<Value, ApiError> {
        let who = &connection.who;
        let (message, mut history, edits) = (message(params)?, history(params)?, edited(params)?);
        let key = SessionKey { tenant: who.tenant.clone(), session: name.id() };
        let (skills, enable_tools) = (params.texts("skills")?, params.flag("enableTools")?.unwrap_or(true));
        let files: Vec<Placed> =
            params.texts("media")?.unwrap_or_default().iter().map(|entry| (None, attached(entry))).collect();
        let is_left = named.as_ref().is_some_and(|named| named.resumes);
        if let Some(at_work) = self.lanes.of(&key).filter(|_| !is_left) {
            takes(&at_work, &files, edits.as_ref())?;
        }
        let agent = self.ready(&key, &name.agent, params.text("modelOverride")?).await?;
        // What is refused before is no message that counts.
        self.guests.rates.check(who)?;
        let run = Run::new(RunParts {
            name,
            tenant: who.tenant.clone(),
            prompt: message.to_owned(),
            stream: params.flag("stream")?.unwrap_or(false),
            asker: Asker::Socket { connection: Arc::downgrade(connection), request: request.to_owned() },
            key: who.credential.key().map(str::to_owned),
            is_heard: false,
            hub: self.hub.clone(),
        });
        if self.life.draining.is_cancelled() {
            return Err(ApiError { retry_after_ms: Some(1000), ..going_away() });
        }
        if let Err(at_work) = self.lanes.take(&run) {
            if let Some(NamedMessage { turn, resumes: true, .. }) = &named
                && at_work.id() == Some(turn)
            {
                // Somebody went on with the turn that it began: what comes of it is the answer.
                return answer(&at_work.outcome().await);
            }
            takes(&at_work, &files, edits.as_ref())?;
            inject(&at_work, who, message)?;
            if let Some(NamedMessage { turn, noted, .. }) = named {
                noted.take().into_iter().for_each(Noted::begun);
                let (tenant, kept) = (who.tenant.clone(), KeptOutcome::injected(at_work.id()).write());
                let ended = self.blocking(move |shared| Ok(shared.store.end_repeats(&tenant, &turn, Some(&kept))?));
                // It is in the turn all the same: whoever is told that it failed sends it again.
                if let Err(error) = ended.await {
                    tracing::warn!("the outcome of a request could not be stored: {error}");
                }
            }
            return Ok(json!({ "injected": true, "runId": at_work.id() }));
        }
        let known = history.as_deref_mut().unwrap_or_default();
        let turn = named.as_ref().map_or_else(TurnId::fresh, |named| named.turn.clone());
        let (place, media) = self.prepared(&run, &turn, Brought { kept: true, files, history: known }).await?;
        let (resumes, noted) = match named {
            Some(NamedMessage { named, resumes, noted, turn: _ }) => {
                self.desk.repeats.works(named, &run);
                (resumes, noted.take())
            }
            None => (false, None),
        };
        self.start(
            run.clone(),
            Errand { agent, skills, enable_tools, history, edits, media, turn, resumes, place, whose: Whose::Socket },
        );
        noted.into_iter().for_each(Noted::begun);
        answer(&run.outcome().await)
    }

    pub(super) async fn chat_inject(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["sessionKey", "message", "label"])?;
        let name = session(params.needed("sessionKey")?, who)?;
        let message = message(&params)?;
        let run = self.lanes.of(&SessionKey { tenant: who.tenant.clone(), session: name.id() });
        let key = SessionKey { tenant: who.tenant.clone(), session: name.id() };
        match run {
            Some(run) => inject(&run, who, message)?,
            None => {
                let body = message.to_owned();
                let taken = self.post(Letter { key, kind: LetterKind::Steer, body, by: Some(steerer(who)) }).await?;
                if !taken {
                    self.is_there(who, &name).await?;
                    return Err(ApiError::precondition("the session is idle: send the message with chat.send"));
                }
            }
        }
        Ok(json!({ "ok": true, "messageId": TurnId::fresh() }))
    }

    pub(super) async fn chat_abort(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["sessionKey", "runId"])?;
        let (key, id) = (params.text("sessionKey")?, params.text("runId")?);
        let name = key.map(|key| session(key, who)).transpose()?;
        if name.is_none() && id.is_none() {
            return Err(ApiError::invalid("sessionKey or runId is required"));
        }
        let meant = |run: &Arc<Run>| {
            run.key.tenant == who.tenant
                && (run.name.user == who.user || who.sees_others())
                && name.as_ref().is_none_or(|name| run.name == *name)
                && id.is_none_or(|id| run.id().is_some_and(|run| run.as_str() == id))
        };
        let stopped: Vec<Arc<Run>> = self.lanes.all().into_iter().filter(meant).collect();
        stopped.iter().for_each(|run| run.handle.cancel());
        let mut ids: Vec<_> = stopped.iter().filter_map(|run| run.id().cloned()).collect();
        if stopped.is_empty() {
            let meant = Meant { who: who.clone(), name: name.clone(), run: id.map(TurnId::from) };
            ids.extend(self.abort_elsewhere(meant).await?);
        }
        // What is nowhere, or another's, is not taken for what has ended.
        match (ids.is_empty() && stopped.is_empty(), id, &name) {
            (true, Some(id), _) => {
                let (who, id) = (who.clone(), id.to_owned());
                self.blocking(move |shared| shared.turn_row(&who, &id).map(drop)).await?;
            }
            (true, None, Some(name)) => self.is_there(who, name).await?,
            (true, None, None) | (false, ..) => {}
        }
        Ok(json!({ "ok": true, "aborted": !(stopped.is_empty() && ids.is_empty()), "runIds": ids }))
    }
}

/// Whether a message can be said to a run that is under way.
fn takes(run: &Run, files: &[Placed], edits: Option<&EditedMessage>) -> Result<(), ApiError> {
    if !files.is_empty() {
        return Err(ApiError::precondition("the session is busy, and files cannot be added to a running turn"));
    }
    if edits.is_some() {
        return Err(ApiError::precondition("the session is busy: stop its turn with chat.abort, then edit"));
    }
    match run.waits() {
        Some(approval) => {
            let why = format!(
                "a call in the session waits for a person: decide approval {approval}, or stop the turn with chat.abort"
            );
            let details = json!({ "kind": "approval_pending", "approvalIds": [approval], "runId": run.id() });
            Err(ApiError::precondition(why).with_details(details))
        }
        None => Ok(()),
    }
}

/// Says something to a run that is under way.
fn inject(run: &Run, who: &Principal, message: &str) -> Result<(), ApiError> {
    takes(run, &[], None)?;
    let busy = || ApiError { retry_after_ms: Some(250), ..ApiError::precondition("the session is busy") };
    run.handle.steer_by(message, steerer(who)).map_err(|_| busy())
}

fn steerer(who: &Principal) -> Steerer {
    Steerer { user: who.user.clone(), key: who.credential.key().map(str::to_owned) }
}

/// What `chat.send` answers when the run is over.
fn answer(outcome: &RunOutcome) -> Result<Value, ApiError> {
    match outcome {
        RunOutcome::Completed(RunAnswer { run_id, content, usage, thinking, media, end: _ }) => {
            let mut payload = json!({ "runId": run_id, "content": content, "usage": usage });
            if let Some(thinking) = thinking {
                payload["thinking"] = json!(thinking);
            }
            if !media.is_empty() {
                payload["media"] = json!(media);
            }
            Ok(payload)
        }
        RunOutcome::Failed(error) => Err(error.clone()),
        RunOutcome::Cancelled => Ok(json!({ "cancelled": true })),
        RunOutcome::Parked(ids) => Ok(json!({ "parked": true, "approvalIds": ids })),
        RunOutcome::Elsewhere(run) => Ok(json!({ "injected": true, "runId": run })),
    }
}

fn message<'a>(params: &Params<'a>) -> Result<&'a str, ApiError> {
    let message = params.needed("message")?;
    // With a file it need say nothing.
    let has_files = params.get("media").and_then(Value::as_array).is_some_and(|media| !media.is_empty());
    if message.trim().is_empty() && !has_files {
        return Err(ApiError::invalid("message must not be empty"));
    }
    let length = message.chars().count();
    if length > MAX_MESSAGE {
        return Err(ApiError::invalid(format!("message exceeds {MAX_MESSAGE} characters (got {length})")));
    }
    Ok(message)
}

/// The message that is said anew.
fn edited(params: &Params<'_>) -> Result<Option<EditedMessage>, ApiError> {
    let Some(members) = params.object("edits")? else { return Ok(None) };
    if params.get("history").is_some() {
        return Err(ApiError::invalid("edits goes with the conversation that is kept here: leave history out"));
    }
    let value = Value::Object(members.clone());
    let inner = Params::of(&value, &["place", "of", "at"])?;
    let needed = |name: &str| {
        let count = inner.count(name, usize::MAX)?;
        count.ok_or_else(|| ApiError::invalid(format!("edits.{name} is required")))
    };
    let at = inner.text("at")?.map(str::to_owned);
    Ok(Some(EditedMessage { place: needed("place")?, of: needed("of")?, at }))
}

fn history(params: &Params<'_>) -> Result<Option<Vec<HistoryMessage>>, ApiError> {
    let read = |value: &Value| {
        let history: Result<Vec<HistoryMessage>, _> = from_value(value.clone());
        history.map_err(|error| wrong("history", &format!("a list of messages: {error}")))
    };
    params.get("history").map(read).transpose()
}
