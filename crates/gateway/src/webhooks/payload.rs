//! What others are told of an event: ids and words, never a result. Pure.

use jiff::Timestamp;
use pintle_domain::approval::{Approval, ApprovalState};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::redacted;
use pintle_domain::id::TenantId;
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, canonical, json};
use pintle_domain::store::{Budget, FailedTurn, LoggedChange};
use pintle_domain::webhook::WebhookEvent;
use pintle_rules::cache::ChangedBreaker;
use url::Url;

/// Something that others may be told of.
#[derive(Clone, Debug)]
pub(crate) enum Happened {
    /// A hook refused something.
    Blocked(Box<Blocked>),
    /// A call waits for a person, or no longer does.
    Approval(Box<Approval>),
    /// A circuit breaker opened, then.
    BreakerTripped(ChangedBreaker, String),
    /// A tenant has less than a fifth of its budget.
    BudgetLow(TenantId, Budget),
    /// Somebody changed a rule; the count of the changes by then.
    HookChanged(LoggedChange, u64),
    /// A turn ended in an error.
    TurnFailed(Box<FailedTurn>),
}

/// What a hook refused.
#[derive(Clone, Debug)]
pub(crate) struct Blocked {
    pub(crate) event_id: String,
    pub(crate) who: Identity,
    pub(crate) at: Timestamp,
    pub(crate) checkpoint: CheckpointKind,
    pub(crate) tool: Option<String>,
    /// The beginning of the call.
    pub(crate) head: Option<String>,
    pub(crate) hook_id: Option<String>,
    pub(crate) hook: String,
    pub(crate) reason: String,
}

/// An event in words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) event: WebhookEvent,
    pub(crate) tenant: TenantId,
    /// What it is known by, whoever notices it.
    pub(crate) key: String,
    pub(crate) data: Value,
    /// When it was, if it says so.
    pub(crate) at: Option<Timestamp>,
}

/// The beginning of a call, without what looks like a secret.
pub(crate) fn head(arguments: &Object) -> String {
    redacted(&canonical(&Value::Object(arguments.clone())))
}

impl Happened {
    pub(crate) fn event(&self) -> WebhookEvent {
        match self {
            Self::Blocked(_) => WebhookEvent::ExecutionBlocked,
            Self::Approval(approval) if approval.state == ApprovalState::Waiting => WebhookEvent::ApprovalCreated,
            Self::Approval(_) => WebhookEvent::ApprovalDecided,
            Self::BreakerTripped(..) => WebhookEvent::BreakerTripped,
            Self::BudgetLow(..) => WebhookEvent::BudgetLow,
            Self::HookChanged(..) => WebhookEvent::HookChanged,
            Self::TurnFailed(_) => WebhookEvent::TurnFailed,
        }
    }

    /// The event in words; links lead to `public`, where that is known.
    pub(crate) fn told(&self, public: Option<&Url>) -> Told {
        let (tenant, key, mut data, at) = match self {
            Self::Blocked(blocked) => blocked.told(),
            Self::Approval(approval) => approval_told(approval),
            Self::BreakerTripped(breaker, since) => {
                let data = json!({ "hookId": breaker.hook, "reason": breaker.reason() });
                let key = format!("{}/{}/{since}", breaker.hook, breaker.tenant);
                (breaker.tenant.clone(), key, data, since.parse().ok())
            }
            Self::BudgetLow(tenant, budget) => {
                (tenant.clone(), format!("{tenant}/{}", budget.month_start), json!(budget), None)
            }
            Self::HookChanged(line, epoch) => {
                let data = json!({
                    "hookId": line.hook_id, "action": line.action, "version": line.version, "actor": line.actor,
                    "epoch": epoch,
                });
                (line.tenant_id.clone(), line.id.clone(), data, line.at.parse().ok())
            }
            Self::TurnFailed(failed) => {
                let FailedTurn { tenant, agent, session, turn, stage: _, error, at } = &**failed;
                let data = json!({
                    "agentId": agent, "sessionKey": session, "turnId": turn, "error": redacted(error),
                });
                (tenant.clone(), turn.to_string(), data, Some(*at))
            }
        };
        data["tenantId"] = json!(tenant);
        if let Some(link) = public.and_then(|public| public.join(&self.page()?).ok()) {
            data["link"] = json!(link.as_str());
        }
        Told { event: self.event(), tenant, key, data, at }
    }

    /// The page about exactly this.
    fn page(&self) -> Option<String> {
        match self {
            Self::Blocked(blocked) => Some(format!("turns/{}", blocked.who.turn_id)),
            Self::Approval(approval) => Some(format!("approvals/{}", approval.id)),
            Self::BreakerTripped(breaker, _) => Some(format!("hooks/{}", breaker.hook)),
            Self::BudgetLow(..) => None,
            Self::HookChanged(line, _) => Some(format!("hooks/{}", line.hook_id)),
            Self::TurnFailed(failed) => Some(format!("turns/{}", failed.turn)),
        }
    }
}

type Parts = (TenantId, String, Value, Option<Timestamp>);

impl Blocked {
    fn told(&self) -> Parts {
        let who = &self.who;
        let data = json!({
            "eventId": self.event_id, "agentId": who.agent_id, "sessionKey": who.session_id, "turnId": who.turn_id,
            "toolCallId": who.tool_call_id, "event": self.checkpoint.name(), "tool": self.tool, "call": self.head,
            "hookId": self.hook_id, "hook": self.hook, "reason": redacted(&self.reason),
        });
        (who.tenant_id.clone(), self.event_id.clone(), data, Some(self.at))
    }
}

fn approval_told(approval: &Approval) -> Parts {
    let mut data = json!({
        "approvalId": approval.id, "agentId": approval.agent_id, "sessionKey": approval.session_id,
        "turnId": approval.turn_id, "toolCallId": approval.tool_call_id, "tool": approval.tool,
        "call": head(&approval.arguments), "hook": approval.by, "reason": redacted(&approval.reason),
        "state": approval.state.word(), "expiresAt": approval.expires_at,
    });
    if let Some(by) = &approval.answered_by {
        data["decidedBy"] = json!(by);
    }
    // An approval that was used was approved; nobody is told twice.
    let state = match approval.state {
        ApprovalState::Waiting => "waiting",
        ApprovalState::Approved
        | ApprovalState::Refused
        | ApprovalState::Used
        | ApprovalState::Void
        | ApprovalState::Expired => "decided",
    };
    let at = (approval.state == ApprovalState::Waiting).then_some(approval.asked_at);
    (approval.tenant_id.clone(), format!("{}/{state}", approval.id), data, at)
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::parse;

    use super::*;

    #[test]
    fn a_call_is_told_by_its_beginning_without_secrets() {
        let of = |text: &str| head(parse(text).unwrap().as_object().unwrap());
        assert_eq!(of(r#"{"cmd":"ls"}"#), r#"{"cmd":"ls"}"#);
        assert_eq!(of(r#"{"cmd":"curl -H 'Bearer abcdefghijk' x"}"#), r#"{"cmd":"curl -H '[REDACTED] x"}"#);
        assert!(of(&format!(r#"{{"cmd":"{}"}}"#, "x".repeat(1000))).chars().count() <= 256);
    }

    #[test]
    fn an_event_leads_to_its_own_page() {
        let line = LoggedChange {
            id: "l".into(),
            tenant_id: TenantId::default_tenant(),
            hook_id: "h".into(),
            at: "2026-01-02T03:04:05Z".into(),
            actor: "anna".into(),
            action: "updated".into(),
            version: 2,
            diff: json!([{ "op": "replace", "path": "/config", "value": "secret" }]),
        };
        let public = Url::parse("https://pintle.example.org").unwrap();
        let told = Happened::HookChanged(line, 7).told(Some(&public));
        let expected = json!({
            "hookId": "h", "action": "updated", "version": 2, "actor": "anna", "epoch": 7,
            "tenantId": TenantId::default_tenant(), "link": "https://pintle.example.org/hooks/h",
        });
        assert_eq!((told.event, told.key.as_str(), told.data), (WebhookEvent::HookChanged, "l", expected));
        assert_eq!(told.at, Some("2026-01-02T03:04:05Z".parse().unwrap()));
    }
}
