//! `approvals.*`: calls that wait for a person, and what they say.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_domain::approval::{Approval, ApprovalState, PersonAnswer};
use pintle_domain::execution::masked;
use pintle_domain::json::{Value, json, to_value};
use pintle_domain::store::{ApprovalQuery, SessionKey, StoreError, TenantScope};
use pintle_host::config::ApproversConfig;

use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::frame;
use crate::hub::Connection;
use crate::nodes::lock;
use crate::params::Params;
use crate::principal::Principal;
use crate::roles;
use crate::run::Run;
use crate::session_name::{SessionName, user_of};
use crate::webhooks::Happened;

/// Most approvals that are listed: more than a person reads.
const MAX_LISTED: usize = 500;

/// Number of approvals of a tenant that are looked through for somebody who sees their own only: one list takes no more of
/// the server, however many others asked for.
const MAX_READ: usize = 10_000;

/// Longest reason, in bytes: a paragraph; the model reads it.
const MAX_REASON_BYTES: usize = 4096;

impl Shared {
    pub(super) async fn approvals_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["all", "allTenants"])?;
        let tenant = roles::looks_at(who, &params)?;
        let waiting_only = !params.flag("all")?.unwrap_or(false);
        let (who, desk) = (who.clone(), self.approvers().await);
        self.blocking(move |shared| {
            let query = ApprovalQuery { waiting_only, ..ApprovalQuery::newest(tenant, most_read(&who)) };
            let now = jiff::Timestamp::now();
            let mut found = shared.store.approvals(&query)?;
            found.iter_mut().for_each(|approval| approval.state = approval.state_at(now));
            found.retain(|it| desk.may_see(&who, it) && (!waiting_only || it.state == ApprovalState::Waiting));
            // The newest stand at the end.
            found.drain(..found.len().saturating_sub(MAX_LISTED));
            Ok(json!({ "approvals": found.iter().map(|it| desk.shown(it, &who)).collect::<Vec<_>>() }))
        })
        .await
    }

    /// How many approvals wait in the tenants of `scope` that `who` may see.
    pub(super) async fn approvals_waiting(
        self: &Arc<Self>,
        who: &Principal,
        scope: TenantScope,
    ) -> Result<usize, ApiError> {
        let (who, desk) = (who.clone(), self.approvers().await);
        self.blocking(move |shared| {
            let query = ApprovalQuery::waiting(scope, most_read(&who));
            let now = jiff::Timestamp::now();
            let found = shared.store.approvals(&query)?;
            let waits = |it: &&Approval| desk.may_see(&who, it) && it.state_at(now) == ApprovalState::Waiting;
            Ok(found.iter().filter(waits).count())
        })
        .await
    }

    pub(super) async fn approvals_get(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["id"])?;
        let (id, who, desk) = (params.needed("id")?.to_owned(), who.clone(), self.approvers().await);
        self.blocking(move |shared| {
            let approval = shared.approval_of(&roles::finds_in(&who), (&who, &desk), &id)?;
            let mut shown = desk.shown(&approval, &who);
            let agent = (&approval.tenant_id, &approval.agent_id);
            if let Some(facts) = shared.rule_admin.shell_facts(agent, &approval.tool, &approval.arguments) {
                shown["shell"] = json!(*facts);
            }
            Ok(json!({ "approval": shown }))
        })
        .await
    }

    pub(super) async fn approvals_answer(
        self: &Arc<Self>,
        who: &Principal,
        params: &Value,
        approve: bool,
    ) -> Result<Value, ApiError> {
        let params = Params::of(params, &["id", "reason"])?;
        let (id, reason) = (params.needed("id")?.to_owned(), params.text("reason")?.unwrap_or_default().to_owned());
        if reason.len() > MAX_REASON_BYTES {
            return Err(ApiError::invalid(format!("reason exceeds {MAX_REASON_BYTES} bytes (got {})", reason.len())));
        }
        let (who, desk) = (who.clone(), self.approvers().await);
        let answered = self
            .blocking(move |shared| {
                // One name in two tenants is two users: whoever answers goes to the tenant, and is known there.
                let approval = shared.approval_of(&TenantScope::from(&who.tenant), (&who, &desk), &id)?;
                let asker = user_of(approval.session_id.as_str());
                roles::may_answer(&who, asker.as_deref(), desk.of(&approval))?;
                let said = PersonAnswer::of(who.user.clone(), approve, reason);
                match shared.store.answer_shown(&approval, said, jiff::Timestamp::now()) {
                    Ok(answered) => {
                        let shown = desk.shown(&answered, &who);
                        Ok((answered, json!({ "approval": shown })))
                    }
                    Err(StoreError::Conflict(why)) => Err(shared.too_late(&approval, why)),
                    Err(other) => Err(other.into()),
                }
            })
            .await;
        // Nobody may work its turn, so it is told here. Whoever does goes on with it then.
        if let Ok((approval, _)) = &answered {
            self.announce_everywhere(approval).await;
        }
        self.answered_here();
        answered.map(|(_, shown)| shown)
    }

    /// Who answers, by the configuration in force.
    async fn approvers(&self) -> Approvers {
        let host = self.host.read().await;
        let agents = host.loaded.config.agents.iter();
        Approvers(agents.map(|(name, agent)| (name.clone(), agent.approvers.clone())).collect())
    }

    /// The approval `id`, if it is one of a tenant in `scope` that `who` may see.
    fn approval_of(
        &self,
        scope: &TenantScope,
        (who, desk): (&Principal, &Approvers),
        id: &str,
    ) -> Result<Approval, ApiError> {
        let not_found = || ApiError::new(ErrorCode::NotFound, format!("approval not found: {id}"));
        // One of another tenant takes no longer than one that is nowhere.
        let found = self.store.approval(scope, id)?;
        let mut found = found.filter(|it| desk.may_see(who, it)).ok_or_else(not_found)?;
        found.state = found.state_at(jiff::Timestamp::now());
        Ok(found)
    }

    /// The refusal of an answer that came after another one.
    fn too_late(&self, approval: &Approval, why: String) -> ApiError {
        let of = TenantScope::from(&approval.tenant_id);
        let Ok(Some(now)) = self.store.approval(&of, &approval.id) else { return ApiError::precondition(why) };
        let by = now.answered_by.clone().unwrap_or_default();
        match now.state {
            ApprovalState::Approved | ApprovalState::Used => {
                ApiError::precondition(format!("already approved by {by}"))
            }
            ApprovalState::Refused => ApiError::precondition(format!("already refused by {by}")),
            ApprovalState::Waiting | ApprovalState::Void | ApprovalState::Expired => ApiError::precondition(why),
        }
    }

    /// Tells those here who may answer `approval` that it waits, or what became of it; once.
    pub(crate) async fn announce(&self, approval: &Approval) {
        let waits = approval.state == ApprovalState::Waiting;
        let is_news = {
            let mut noticed = lock(&self.desk.noticed);
            if waits { noticed.waits(&approval.tenant_id, &approval.id) } else { noticed.ends(&approval.id) }
        };
        if !is_news {
            return;
        }
        self.desk.webhooks.happened(Happened::Approval(Box::new(approval.clone())));
        let desk = self.approvers().await;
        let may = |it: &Connection| desk.may_see(&it.who, approval) && roles::allow(&it.who, "approvals.get").is_ok();
        for connection in self.hub.of(&approval.tenant_id, may) {
            connection.tell(&frame::event_head(event_of(approval.state), &desk.shown(approval, &connection.who)));
        }
        if !waits {
            self.tell_decided(approval);
        }
    }

    /// Tells those here who watch the turn of `approval`, unless its run says so itself.
    fn tell_decided(&self, approval: &Approval) {
        let key = SessionKey { tenant: approval.tenant_id.clone(), session: approval.session_id.clone() };
        let waits = |run: Arc<Run>| run.waits().as_deref() == Some(approval.id.as_str());
        if self.lanes.of(&key).is_some_and(waits) {
            return;
        }
        let decided = json!({ "approvalId": approval.id, "state": approval.state });
        self.tell_watchers(&key, &approval.turn_id, ("approval.decided", Some(&decided)));
    }
}

/// The number of approvals of a tenant that are read for `who`: whoever sees their own only may have the oldest.
fn most_read(who: &Principal) -> usize {
    if who.sees_others() { MAX_LISTED } else { MAX_READ }
}

/// The event that tells of an approval in this state.
fn event_of(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Waiting => "approvals.created",
        ApprovalState::Expired => "approvals.expired",
        ApprovalState::Approved | ApprovalState::Refused | ApprovalState::Used | ApprovalState::Void => {
            "approvals.decided"
        }
    }
}

/// Who answers for which agent.
struct Approvers(BTreeMap<String, ApproversConfig>);

/// Of an agent that is not in the configuration any more.
static NOBODY_NAMED: ApproversConfig = ApproversConfig { named: None, other_than_asker: false };

impl Approvers {
    fn of(&self, approval: &Approval) -> &ApproversConfig {
        self.0.get(approval.agent_id.as_str()).unwrap_or(&NOBODY_NAMED)
    }

    /// Whether a question is about `who`'s own session, they see those of others, or they are named for its agent.
    fn may_see(&self, who: &Principal, approval: &Approval) -> bool {
        let own = || user_of(approval.session_id.as_str()).is_some_and(|user| user == who.user);
        let may = || who.sees_others() || own() || roles::is_named(who, self.of(approval));
        (approval.tenant_id == who.tenant || who.is_owner()) && may()
    }

    /// An approval as `who` is shown it: everything that a person has to know before they answer.
    fn shown(&self, approval: &Approval, who: &Principal) -> Value {
        let approvers = self.of(approval);
        let asker = user_of(approval.session_id.as_str());
        let mut shown = shown(approval, who);
        shown["approvers"] = json!({
            "named": approvers.named,
            "otherThanAsker": approvers.other_than_asker,
            "asker": asker,
            "you": approval.tenant_id == who.tenant && roles::may_answer(who, asker.as_deref(), approvers).is_ok(),
        });
        shown
    }
}

/// An approval as `who` is shown it, but for who may answer.
fn shown(approval: &Approval, who: &Principal) -> Value {
    let mut shown = to_value(approval).unwrap_or_else(|_| json!({ "id": approval.id }));
    let name = SessionName::kept(approval.session_id.as_str().split('/').next().unwrap_or_default());
    shown["reason"] = json!(masked(&approval.reason));
    shown["subAgent"] = json!(approval.session_id.as_str().contains('/'));
    if let Some(name) = name {
        shown["sessionKey"] = json!(name.shown_to(who));
    }
    if let Value::Object(members) = &mut shown {
        members.shift_remove("tenant_id");
    }
    if who.is_owner() {
        shown["tenantId"] = json!(approval.tenant_id);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::somebody;
    use pintle_rules::admin::CallerRole;

    /// One that anna's agent asked for.
    fn asked() -> Approval {
        let tenant = somebody("anna", CallerRole::Operator).tenant;
        pintle_domain::json::from_value(json!({
            "id": "1", "tenant_id": tenant, "agent_id": "main", "session_id": "agent:main:ws:anna:x/helper",
            "turn_id": "t", "tool_call_id": "c", "tool": "exec", "arguments": {}, "digest": "", "by": "gate",
            "reason": "", "asked_at": "2026-11-25T00:00:00Z", "expires_at": "2026-11-26T00:00:00Z", "state": "waiting",
        }))
        .unwrap()
    }

    #[test]
    fn owners_see_an_approval_of_another_tenant_and_answer_it_there() {
        let (approval, desk) = (asked(), Approvers(BTreeMap::new()));
        for (role, sees) in [(CallerRole::Admin, false), (CallerRole::Owner, true)] {
            let here = somebody("system", role);
            assert_eq!(desk.shown(&approval, &here)["approvers"]["you"], true);
            let elsewhere = here.looking_at("somewhere-else");
            assert_eq!(desk.may_see(&elsewhere, &approval), sees, "{role:?}");
            let shown = desk.shown(&approval, &elsewhere);
            assert_eq!((&shown["approvers"]["you"], &shown["tenant_id"]), (&json!(false), &Value::Null));
            assert_eq!(shown.get("tenantId").is_some(), sees, "{role:?}");
        }
    }

    #[test]
    fn the_reason_of_a_question_is_masked_for_whoever_reads_it() {
        let approval = Approval { reason: "it has sk-abcdEFGH1234".into(), ..asked() };
        let shown = Approvers(BTreeMap::new()).shown(&approval, &somebody("anna", CallerRole::Operator));
        assert_eq!(shown["reason"], "it has [REDACTED]");
    }

    #[test]
    fn a_list_reads_a_bounded_number_whoever_asks() {
        let read = |role| most_read(&somebody("anna", role));
        assert_eq!([CallerRole::Operator, CallerRole::Admin, CallerRole::Owner].map(read), [10_000, 500, 500]);
    }

    #[test]
    fn an_approval_says_who_may_answer_it() {
        let (anna, ben) = (somebody("anna", CallerRole::Operator), somebody("ben", CallerRole::Admin));
        let approval = asked();
        let named = |named: &[&str]| Some(named.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
        for (named, other_than_asker, who, you) in [
            (None, false, &anna, true),
            (None, true, &anna, false),
            (None, true, &ben, true),
            (named(&["admin"]), false, &anna, false),
            (named(&["admin"]), false, &ben, true),
        ] {
            let config = ApproversConfig { named: named.clone(), other_than_asker };
            let desk = Approvers([(approval.agent_id.to_string(), config)].into());
            let shown = desk.shown(&approval, who);
            let expected = json!({ "named": named, "otherThanAsker": other_than_asker, "asker": "anna", "you": you });
            assert_eq!(shown["approvers"], expected);
            assert_eq!(shown["subAgent"], true);
        }
    }
}
