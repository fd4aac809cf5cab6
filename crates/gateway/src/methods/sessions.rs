//! `sessions.*`, `chat.history` and `chat.session.status`: what was said, and what is being done.

use std::sync::Arc;

use pintle_agent::Conversation;
use pintle_domain::id::{AgentId, TenantId, TurnId};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::session::{JournalEntry, Session};
use pintle_domain::store::{SessionKey, SessionPatch, SessionRow, TenantScope};

use crate::Shared;
use crate::error::{ApiError, not_taken};
use crate::params::{Params, wrong};
use crate::principal::Principal;
use crate::ready::check_model;
use crate::roles;
use crate::session_name::{Channel, SessionName};
use crate::transcript;

/// Sessions in a page unless it is said. Source: the published protocol.
const PAGE: usize = 20;

/// Messages that stay when a conversation is compacted, unless it is said. Source: the published protocol.
const KEEP_LAST: usize = 4;

/// Longest label, in characters: a line of a listing.
const MAX_LABEL: usize = 255;

/// Longest metadata, in bytes of JSON: a page of a listing has those of 200 sessions.
const MAX_METADATA_BYTES: usize = 4 << 10;

/// Most sessions in a page.
const MAX_PAGE: usize = 200;

impl Shared {
    pub(super) async fn sessions_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["agentId", "channel", "allTenants", "limit", "offset"])?;
        let scope = roles::looks_at(who, &params)?;
        let agent = params.text("agentId")?.map(str::to_owned);
        let channel = params.text("channel")?.map(str::to_owned);
        let limit = params.count("limit", MAX_PAGE)?.filter(|limit| *limit > 0).unwrap_or(PAGE);
        let offset = params.count("offset", usize::MAX)?.unwrap_or(0);
        let who = who.clone();
        self.blocking(move |shared| {
            let is_of_all = scope == TenantScope::All;
            let mut rows: Vec<(TenantId, SessionRow)> = Vec::new();
            for tenant in shared.tenants_in(scope)? {
                rows.extend(shared.sessions.sessions(&tenant)?.into_iter().map(|row| (tenant.clone(), row)));
            }
            if is_of_all {
                rows.sort_by(|(_, one), (_, other)| other.updated_at.cmp(&one.updated_at));
            }
            let wanted = |row: &SessionRow| {
                let name = SessionName::kept(&row.session_id)?;
                let mine = name.user == who.user || who.sees_others();
                let fits = agent.as_ref().is_none_or(|agent| name.agent == *agent)
                    && channel.as_ref().is_none_or(|channel| name.channel.word() == channel);
                (mine && fits).then_some(name)
            };
            let found: Vec<(SessionName, TenantId, SessionRow)> =
                rows.into_iter().filter_map(|(tenant, row)| Some((wanted(&row)?, tenant, row))).collect();
            let total = found.len();
            let page = found.into_iter().skip(offset).take(limit).map(|(name, tenant, row)| {
                let mut shown = shown(&name, &row, &who);
                if is_of_all {
                    shown["tenantId"] = json!(tenant);
                }
                shown
            });
            let page: Vec<Value> = page.collect();
            Ok(json!({ "sessions": page, "total": total, "limit": limit, "offset": offset }))
        })
        .await
    }

    pub(super) async fn sessions_preview(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["key"])?;
        let name = session(params.needed("key")?, who)?;
        let messages = self.said(who, &name).await?;
        Ok(json!({ "key": name.shown_to(who), "messages": messages, "summary": "" }))
    }

    /// Changes what is said of a session: an empty text clears, and what is absent stays.
    pub(super) async fn sessions_patch(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["key", "label", "model", "metadata"])?;
        let name = session(params.needed("key")?, who)?;
        let patch = SessionPatch {
            label: params.said("label")?.map(label).transpose()?,
            model: params.said("model")?.map(str::to_owned),
            metadata: params.object("metadata")?.map(metadata).transpose()?,
        };
        if patch == SessionPatch::default() {
            return Err(ApiError::invalid("nothing to change: expected label, model or metadata"));
        }
        self.is_there(who, &name).await?;
        if let Some(model) = patch.model.as_deref().filter(|model| !model.is_empty()) {
            let host = self.host.read().await;
            check_model(&host.loaded.config, "model", model)?;
            let ready = self.agents.ready(&host, &name.agent, Some(model));
            ready.map_err(|error| {
                ApiError::invalid(format!("invalid request: model: {}", error.told_to(who).message))
            })?;
        }
        let (key, shown) = (SessionKey { tenant: who.tenant.clone(), session: name.id() }, name.shown_to(who));
        self.blocking(move |shared| match shared.sessions.patch_session(&key, &patch)? {
            true => Ok(json!({ "ok": true })),
            false => Err(ApiError::session_not_found(&shown)),
        })
        .await
    }

    pub(super) async fn sessions_delete(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["key"])?;
        let name = session(params.needed("key")?, who)?;
        let (key, shown) = (SessionKey { tenant: who.tenant.clone(), session: name.id() }, name.shown_to(who));
        if self.lanes.of(&key).is_some() {
            let why = "the session is busy: stop its turn with chat.abort, then delete it";
            return Err(ApiError { retry_after_ms: Some(1000), ..ApiError::precondition(why) });
        }
        self.blocking(move |shared| match shared.sessions.delete(&key).map_err(not_taken)? {
            true => {
                shared.store.forget_session(&key)?;
                Ok(json!({ "ok": true }))
            }
            false => Err(ApiError::session_not_found(&shown)),
        })
        .await
    }

    /// Lets a conversation begin anew (`sessions.reset`), or go on from its last messages (`sessions.compact`).
    pub(super) async fn sessions_forget(
        self: &Arc<Self>,
        who: &Principal,
        params: &Value,
        compact: bool,
    ) -> Result<Value, ApiError> {
        let params = Params::of(params, if compact { &["key", "keepLast"] } else { &["key"] })?;
        let name = session(params.needed("key")?, who)?;
        let few = || wrong("keepLast", "a whole number, at least 1; to keep nothing, use sessions.reset");
        let keep = match (compact, params.count("keepLast", usize::MAX).map_err(|_| few())?) {
            (false, _) => 0,
            (true, None) => KEEP_LAST,
            (true, Some(0)) => return Err(few()),
            (true, Some(keep)) => keep,
        };
        self.is_there(who, &name).await?;
        let key = SessionKey { tenant: who.tenant.clone(), session: name.id() };
        if self.lanes.of(&key).is_some() {
            return Err(ApiError { retry_after_ms: Some(1000), ..ApiError::precondition("the session is busy") });
        }
        let sessions = self.sessions.clone();
        let mut conversation = self.blocking(move |_| Conversation::open_of(sessions, key).map_err(not_taken)).await?;
        conversation.forget(&AgentId::from(name.agent.as_str()), keep).await?;
        Ok(json!({ "ok": true }))
    }

    pub(super) async fn chat_history(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["agentId", "sessionKey"])?;
        let name = self.meant(who, &params).await?;
        Ok(json!({ "messages": self.said(who, &name).await? }))
    }

    pub(super) async fn chat_status(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["agentId", "sessionKey"])?;
        let name = self.meant(who, &params).await?;
        let run = self.lanes.of(&SessionKey { tenant: who.tenant.clone(), session: name.id() });
        if let Some(run) = run {
            let mut status = json!({ "isRunning": true, "runId": run.id(), "activity": run.activity() });
            if run.is_resumed() {
                status["resumed"] = json!(true);
            }
            return Ok(status);
        }
        // Another process may work it. Nobody learns of a session that is not theirs or not there.
        let open = self.of_journal(who, &name, open_turn).await?;
        let key = SessionKey { tenant: who.tenant.clone(), session: name.id() };
        let holder = self.blocking(move |shared| Ok(shared.sessions.holder(&key)?)).await?;
        let works = open.filter(|_| holder.is_some());
        Ok(json!({ "isRunning": works.is_some(), "runId": works, "activity": null }))
    }

    /// The session that params mean: the one that they name, or the first conversation with an agent.
    pub(super) async fn meant(&self, who: &Principal, params: &Params<'_>) -> Result<SessionName, ApiError> {
        let agent = params.text("agentId")?;
        match params.text("sessionKey")? {
            Some(key) => match session(key, who)? {
                name if name.channel == Channel::Door => {
                    Err(ApiError::invalid("a session of the model door goes on with its own agent only"))
                }
                name => Ok(name),
            },
            None => {
                let host = self.host.read().await;
                let agent = crate::agents::named(&host.loaded.config, agent)?.name.clone();
                let (user, conversation) = (who.user.clone(), "main".to_owned());
                Ok(SessionName { agent, channel: Channel::Socket, user, conversation })
            }
        }
    }

    /// The messages of a session, as clients are shown them.
    async fn said(self: &Arc<Self>, who: &Principal, name: &SessionName) -> Result<Vec<Value>, ApiError> {
        self.of_journal(who, name, transcript::messages).await
    }

    /// Whether there is such a session.
    pub(super) async fn is_there(self: &Arc<Self>, who: &Principal, name: &SessionName) -> Result<(), ApiError> {
        self.of_journal(who, name, drop).await
    }

    /// What `read` makes of the journal of a session.
    async fn of_journal<T: Send + 'static>(
        self: &Arc<Self>,
        who: &Principal,
        name: &SessionName,
        read: fn(Vec<JournalEntry>) -> T,
    ) -> Result<T, ApiError> {
        let (key, shown) = (SessionKey { tenant: who.tenant.clone(), session: name.id() }, name.shown_to(who));
        self.blocking(move |shared| match shared.sessions.journal(&key)? {
            entries if entries.is_empty() => Err(ApiError::session_not_found(&shown)),
            entries => Ok(read(entries)),
        })
        .await
    }
}

/// The turn that has begun and not ended.
fn open_turn(entries: Vec<JournalEntry>) -> Option<TurnId> {
    Session::fold(entries).open().map(|open| open.turn_id.clone())
}

/// The session that a client calls `key`.
pub(super) fn session(key: &str, who: &Principal) -> Result<SessionName, ApiError> {
    SessionName::read(key, who).map_err(|bad| ApiError::invalid(format!("invalid session key: {}", bad.0)))
}

/// What a session is to be called.
fn label(text: &str) -> Result<String, ApiError> {
    let length = text.chars().count();
    if length > MAX_LABEL {
        return Err(ApiError::invalid(format!("label exceeds {MAX_LABEL} characters (got {length})")));
    }
    if text.chars().any(char::is_control) {
        return Err(ApiError::invalid("label has control characters"));
    }
    Ok(text.to_owned())
}

/// What a client keeps with a session.
fn metadata(members: &Object) -> Result<Object, ApiError> {
    let length = json!(members).to_string().len();
    if length > MAX_METADATA_BYTES {
        return Err(ApiError::invalid(format!("metadata exceeds {MAX_METADATA_BYTES} bytes of JSON (got {length})")));
    }
    Ok(members.clone())
}

/// A session in a listing.
fn shown(name: &SessionName, row: &SessionRow, who: &Principal) -> Value {
    let mut session = json!({
        "key": name.shown_to(who),
        "messageCount": row.turns,
        "created": row.created_at,
        "updated": row.updated_at,
        "label": if row.settings.label.is_empty() { &row.title } else { &row.settings.label },
        "agentId": row.agent_id,
        "channel": name.channel.word(),
        "waiting": row.waiting,
    });
    if let Some(model) = row.settings.model() {
        session["model"] = json!(model);
    }
    if !row.settings.metadata.is_empty() {
        session["metadata"] = json!(row.settings.metadata);
    }
    if name.user != who.user {
        session["userId"] = json!(name.user);
    }
    session
}
