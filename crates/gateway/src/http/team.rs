//! `GET /guard/v1/rules`, `POST /guard/v1/records`: the rules of a tenant for the machines of its team, signed, and what
//! those rules did there.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use pintle_domain::id::{TenantId, agent_uuid};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{HookScope, Rule};
use pintle_domain::store::StoredRules;
use pintle_rules::cache::as_asked;
use pintle_rules::team::{
    MAX_RECORDS, MAX_STATEMENT_BYTES, MachineName, SignedStatement, TeamRecord, TeamRule, TeamStatement, TeamTenant,
    digest,
};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::body::{Bound, whole};
use super::refused::Refused;
use super::reply::{answer, json_body};
use crate::Shared;
use crate::claim::Claim;
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::params::Params;
use crate::principal::Principal;
use crate::roles;

/// Longest time that a machine may let other rules be waited for, in seconds: proxies cut what is silent for longer.
const MAX_WAIT_S: u64 = 25;

/// How often it is looked whether rules changed meanwhile: they are in memory.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Longest nonce, in bytes: a UUID and more.
const MAX_NONCE: usize = 64;

/// How long a batch of records may be: 200 records of twenty kilobytes each.
const MOST: Bound = Bound { most: 4 << 20, hint: "tell fewer records at once" };

/// What a machine asks for.
#[derive(Deserialize)]
pub(crate) struct Asked {
    nonce: Option<String>,
    /// The digest of the rules that it has.
    have: Option<String>,
    /// How long others may be waited for, in seconds.
    wait: Option<u64>,
}

/// The rules, or that they are those that the machine has.
pub(crate) async fn rules(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    said(&shared, visit, &asked, &headers).await.unwrap_or_else(|error| refusal(error.into()))
}

async fn said(shared: &Arc<Shared>, visit: Visit, asked: &Asked, headers: &HeaderMap) -> Result<Response, ApiError> {
    let mut who = shared.signed_in(headers, visit).await?;
    roles::allow_over_http(&who, "guard.rules")?;
    let is_good = |nonce: &&String| nonce.len() <= MAX_NONCE && nonce.bytes().all(|byte| byte.is_ascii_graphic());
    let nonce = asked.nonce.as_ref().filter(is_good);
    let nonce = nonce.ok_or_else(|| ApiError::invalid("`nonce` is required: at most 64 letters, digits and signs"))?;
    let wait = Duration::from_secs(asked.wait.unwrap_or_default().min(MAX_WAIT_S));
    let mut team = shared.team(&who).await?;
    if asked.have.as_ref() == Some(&team.digest) && !wait.is_zero() {
        team = shared.other_team(&who, team, wait).await?;
        // Whoever was told no meanwhile learns nothing new.
        who = shared.known(Claim::of_headers(headers)?, visit).await?;
        roles::allow_over_http(&who, "guard.rules")?;
    }
    let has = asked.have.as_ref() == Some(&team.digest);
    let statement = TeamStatement {
        gateway: shared.desk.team_name.clone(),
        tenant: TeamTenant { id: who.tenant.to_string(), slug: who.slug.clone() },
        version: team.epoch,
        issued_at: Timestamp::now(),
        nonce: nonce.clone(),
        digest: team.digest,
        rules: (!has).then_some(team.rules),
    };
    let signed = shared.signed(statement).await?;
    let mut response =
        (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], Body::from(signed)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The rules of a team at one moment.
struct TeamNow {
    epoch: u64,
    digest: String,
    rules: Vec<Value>,
}

impl Shared {
    /// The rules of the tenant of `who` as they are in force.
    async fn team(self: &Arc<Self>, who: &Principal) -> Result<TeamNow, ApiError> {
        let host = self.host.read().await;
        let stored = host.host_rules.rule_cache().rules();
        let agents: Vec<String> = host.loaded.config.agents.keys().cloned().collect();
        drop(host);
        let tenant = who.tenant.clone();
        // When rules change, every machine is told at once.
        self.blocking(move |_| {
            let rules = rules_of(&stored, &tenant, &agents)?;
            Ok(TeamNow { epoch: stored.epoch, digest: digest(&rules), rules })
        })
        .await
    }

    /// The rules of that tenant once they are others than `team`; the same where that takes longer than `wait`.
    async fn other_team(
        self: &Arc<Self>,
        who: &Principal,
        mut team: TeamNow,
        wait: Duration,
    ) -> Result<TeamNow, ApiError> {
        let end = Instant::now() + wait;
        // They are not sent again to a machine that has them, and many machines wait.
        team.rules = Vec::new();
        while Instant::now() < end {
            tokio::select! {
                // A proxy or a balancer sends the next question elsewhere.
                () = self.life.not_ready.cancelled() => return Ok(team),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let epoch = self.host.read().await.host_rules.rule_cache().rules().epoch;
            if epoch != team.epoch {
                let now = self.team(who).await?;
                if now.digest != team.digest {
                    return Ok(now);
                }
                team.epoch = now.epoch;
            }
        }
        Ok(team)
    }

    /// A statement with the signature of this gateway.
    async fn signed(self: &Arc<Self>, statement: TeamStatement) -> Result<String, ApiError> {
        let signing = self.host.read().await.host_rules.signing().clone();
        self.blocking(move |_| {
            let key = signing.key().map_err(|error| {
                tracing::error!("rules for a team cannot be signed: {error}");
                ApiError::new(ErrorCode::Internal, "rules cannot be signed; the server's log says why")
            })?;
            let text = SignedStatement::of(statement.text(), key.public_line(), |message| key.sign(message)).to_text();
            match text.len() {
                bytes if bytes > MAX_STATEMENT_BYTES => Err(ApiError::precondition(format!(
                    "the rules take {bytes} bytes, and machines read at most {MAX_STATEMENT_BYTES}: make them shorter"
                ))),
                _ => Ok(text),
            }
        })
        .await
    }
}

/// The rules that hold for `tenant` and act, as a statement has them. `agents` are those of this gateway.
fn rules_of(stored: &StoredRules, tenant: &TenantId, agents: &[String]) -> Result<Vec<Value>, ApiError> {
    if stored.shut.is_some() || stored.doubts.iter().any(|doubt| is_of(doubt.rule.scope, &doubt.rule.tenant_id, tenant))
    {
        let why =
            "rules of this tenant are not as they were left, so none are handed out; `pintle doctor` here says more";
        return Err(ApiError::new(ErrorCode::Unavailable, why));
    }
    let own = stored.hooks.iter().filter(|row| is_of(row.scope, &row.tenant_id, tenant) && row.is_candidate());
    let mut rows: Vec<&Rule> = own.collect();
    rows.sort_by(|one, other| one.id.cmp(&other.id));
    let name = |row: &Rule, id: &str| agents.iter().find(|name| agent_uuid(&row.tenant_id, name) == id).cloned();
    Ok(rows.into_iter().map(|row| TeamRule::of(&as_asked(row, stored), |id| name(row, id)).value()).collect())
}

/// Whether what has this scope and owner is about `tenant`.
fn is_of(scope: HookScope, owner: &TenantId, tenant: &TenantId) -> bool {
    scope == HookScope::Global || owner == tenant
}

/// Takes records in, each once however often it is told.
pub(crate) async fn records(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    taken(&shared, visit, &head.headers, body).await.unwrap_or_else(refusal)
}

async fn taken(shared: &Arc<Shared>, visit: Visit, headers: &HeaderMap, body: Body) -> Result<Response, Refused> {
    let who = shared.signed_in(headers, visit).await?;
    roles::allow_over_http(&who, "guard.records")?;
    let body = json_body(headers, &whole(body, MOST).await?)?;
    let params = Params::of(&body, &["machine", "records"])?;
    let machine = params.get("machine").ok_or_else(|| ApiError::invalid("machine is required"))?;
    let machine = MachineName::read(machine).map_err(|why| ApiError::invalid(format!("machine: {why}")))?;
    let told = params.get("records").and_then(Value::as_array);
    let told = told.ok_or_else(|| ApiError::invalid("records is required: a list"))?;
    if told.len() > MAX_RECORDS {
        return Err(ApiError::invalid(format!("records: at most {MAX_RECORDS} at once, got {}", told.len())).into());
    }
    let stored = shared.host.read().await.host_rules.rule_cache().rules();
    let now = Timestamp::now();
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for value in told {
        match TeamRecord::read(value) {
            Ok(record) => {
                let known = |id: &_| {
                    stored.hooks.iter().any(|row| row.id == *id && is_of(row.scope, &row.tenant_id, &who.tenant))
                };
                kept.push(record.execution(&who.tenant, &machine, (now, known)));
            }
            Err(why) => refused.push(json!({ "id": value.get("id"), "why": why })),
        }
    }
    let count = kept.len();
    if count > 0 {
        let (said, heard) = oneshot::channel();
        // Whoever asked may be gone: it is kept all the same.
        shared.store.keep_executions(kept, Box::new(move |how| drop(said.send(how))));
        let lost = || ApiError::new(ErrorCode::Unavailable, "the records could not be kept");
        heard.await.map_err(|_| lost())?.map_err(ApiError::from)?;
    }
    Ok(answer(StatusCode::OK, &json!({ "taken": count, "refused": refused })))
}

fn refusal(refused: Refused) -> Response {
    refused.response(&json!({ "error": { "code": refused.code, "message": refused.error.message } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::breaker::BreakerPolicy;
    use pintle_domain::checkpoint::CheckpointKind;
    use pintle_domain::id::HookId;
    use pintle_domain::json::Object;
    use pintle_domain::rule::{Fallback, HandlerType, Source};

    fn row(name: &str, tenant: &TenantId, scope: HookScope) -> Rule {
        Rule {
            id: HookId::of_name(name),
            tenant_id: tenant.clone(),
            agent_ids: Vec::new(),
            event: CheckpointKind::PreToolUse,
            handler_type: HandlerType::Script,
            scope,
            name: name.into(),
            config: Object::new(),
            matcher: String::new(),
            if_expr: String::new(),
            timeout_ms: 1000,
            on_timeout: Fallback::Block,
            priority: 0,
            enabled: true,
            version: 1,
            source: Source::User,
            may_rewrite: false,
            breaker: BreakerPolicy::Off,
            on_trip: Fallback::Block,
            tripped_at: None,
            disabled_reason: String::new(),
            metadata: Object::new(),
            created_by: None,
            created_at: String::new(),
            updated_at: String::new(),
        }
    }

    #[test]
    fn a_team_gets_what_is_about_its_tenant_and_acts() {
        let (own, other) = (TenantId::default_tenant(), TenantId::from("0193a5b0-7000-7000-8000-00000000000a"));
        let off = Rule { enabled: false, ..row("off", &own, HookScope::Tenant) };
        let tripped = Rule {
            enabled: false,
            tripped_at: Some("2026-01-01T00:00:00Z".into()),
            ..row("tripped", &own, HookScope::Tenant)
        };
        let of_agent =
            Rule { agent_ids: vec![agent_uuid(&own, "main"), "gone".into()], ..row("agent", &own, HookScope::Agent) };
        let hooks = vec![
            row("own", &own, HookScope::Tenant),
            row("other", &other, HookScope::Tenant),
            row("all", &TenantId::sentinel(), HookScope::Global),
            off,
            tripped,
            of_agent,
        ];
        let stored = StoredRules { hooks, ..StoredRules::default() };
        let named = |tenant: &TenantId| {
            let rules = rules_of(&stored, tenant, &["main".to_owned()]).unwrap();
            let mut names: Vec<String> = rules.iter().map(|rule| rule["name"].as_str().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(named(&own), ["agent", "all", "own", "tripped"]);
        assert_eq!(named(&other), ["all", "other"]);
        let rules = rules_of(&stored, &own, &["main".to_owned()]).unwrap();
        let agent = rules.iter().find(|rule| rule["name"] == "agent").unwrap();
        assert_eq!(agent["agents"], json!(["main"]));
    }

    #[test]
    fn rules_that_nobody_relies_on_are_handed_out_to_nobody() {
        let shut = StoredRules { shut: Some("it is another store".into()), ..StoredRules::default() };
        let refused = rules_of(&shut, &TenantId::default_tenant(), &[]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unavailable);
    }
}
