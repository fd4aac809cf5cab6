//! What becomes of a call between its clearing and its end: who is asked about it, and what the host's own question is
//! answered with.

use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::approval::{ApprovalState, PersonAnswer};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::TenantId;
use pintle_domain::store::TenantScope;
use pintle_engine::{Clearance, Dispatcher};
use pintle_guard::{AskWay, AskWishes, GuardRuling, HostCall, HostEvent, HostWhat, ask_way};
use pintle_host::config::GuardedAsk;
use pintle_store::Store;

use super::WorkedEvent;
use crate::guard::folders::InForce;
use crate::guard::links::{KeptFiles, Looked};
use crate::guard::open_matters::{CallStanding, ClearedCall};
use crate::guard::rulings::of_clearance;

impl WorkedEvent<'_> {
    /// Why `event` may not go on, whatever rules say: this one, or it with the call that hooks made of it. What is let pass
    /// only because a person lifted it is noted.
    pub(super) async fn protects(&self, event: &HostEvent, in_force: &InForce, hooks: &Dispatcher) -> Option<String> {
        let kept = KeptFiles {
            home: self.desk.home.clone(),
            used: in_force.own.iter().chain(&self.desk.programs).cloned().collect(),
            moved: self.desk.moved.clone(),
            self_edit: self.desk.self_edit,
        };
        match kept.look_at(event).await {
            Looked::Free => None,
            Looked::Held(reason) => Some(reason),
            Looked::Lifted(reason) => {
                hooks.noted(CheckpointKind::PreToolUse, &format!("allowed by --allow-self-edit: {reason}"));
                None
            }
        }
    }

    /// What is told of `tool`, which hooks let run with other arguments: with those, too, it may not take the guard away.
    async fn looked_at_again(
        &self,
        in_force: &InForce,
        hooks: &Dispatcher,
        (tool, ruling): (&HostCall, GuardRuling),
    ) -> GuardRuling {
        let GuardRuling::ModifyInput { arguments, .. } = &ruling else { return ruling };
        let changed = HostCall { arguments: arguments.clone(), ..tool.clone() };
        let event = HostEvent { what: HostWhat::Tool(changed.clone()), ..self.event.clone() };
        match self.protects(&event, in_force, hooks).await {
            Some(reason) => {
                hooks.refused_call(CheckpointKind::PreToolUse, &self.call(&changed), &reason);
                GuardRuling::Deny { reason }
            }
            None => ruling,
        }
    }

    /// Who is asked about a call of the host that needs a person.
    pub(super) fn way(&self, in_force: &InForce) -> AskWay {
        let way = |ask: GuardedAsk| match ask {
            GuardedAsk::Host => AskWay::Host,
            GuardedAsk::Hold => AskWay::Hold,
            GuardedAsk::Deny => AskWay::Deny,
        };
        let wishes = in_force.hosts.get(self.host.id);
        let wishes = AskWishes {
            attended: wishes.and_then(|it| it.ask).map(way),
            headless: wishes.and_then(|it| it.headless_ask).map(way),
        };
        ask_way(self.host.asks, self.event.attended, wishes)
    }

    /// What the host is told of a call that was cleared, which is open from now on.
    pub(super) async fn told(
        &self,
        in_force: &InForce,
        hooks: &Dispatcher,
        (clearance, tool): (Clearance, &HostCall),
    ) -> GuardRuling {
        let is_approved = matches!(&clearance, Clearance::Run(permit, _) if permit.approval().is_some());
        let ruling = of_clearance(clearance, tool, self.way == AskWay::Host);
        let ruling = self.looked_at_again(in_force, hooks, (tool, ruling)).await;
        if let GuardRuling::Ask { approval, attended: true, .. } = &ruling {
            let text = format!("asked: approval {approval} is put to the person before {}", self.host.name);
            hooks.noted(CheckpointKind::PreToolUse, &text);
        }
        let (standing, changed) = match &ruling {
            GuardRuling::Ask { approval, attended: true, .. } => (CallStanding::Asked(approval.clone()), None),
            GuardRuling::ModifyInput { arguments, .. } if is_approved => {
                (CallStanding::Approved, Some(arguments.clone()))
            }
            GuardRuling::ModifyInput { arguments, .. } => (CallStanding::Cleared, Some(arguments.clone())),
            GuardRuling::NoObjection | GuardRuling::Allow | GuardRuling::Inject { .. } if is_approved => {
                (CallStanding::Approved, None)
            }
            GuardRuling::NoObjection | GuardRuling::Allow | GuardRuling::Inject { .. } => (CallStanding::Cleared, None),
            GuardRuling::Deny { reason } | GuardRuling::AbortTurn { reason } | GuardRuling::AbortRun { reason } => {
                (CallStanding::Refused(reason.clone()), None)
            }
            GuardRuling::Ask { .. }
            | GuardRuling::Respond { .. }
            | GuardRuling::ModifyResult { .. }
            | GuardRuling::ModifyPrompt { .. }
            | GuardRuling::ModifyRequest { .. } => (CallStanding::Refused(String::new()), None),
        };
        let id = self.place.call.clone().unwrap_or_default();
        let call = ClearedCall { id, tool: tool.clone(), changed, standing };
        self.desk.open.cleared(self.event.session_id().as_str(), call);
        ruling
    }

    /// What the host hears where it is about to ask its person. A yes that a person gave spares the question; a no stays
    /// one; else its own permissions decide. A call that nobody has asked about before is cleared here.
    pub(super) async fn permission(&self, in_force: &InForce, hooks: &Dispatcher, tool: &HostCall) -> GuardRuling {
        match self.desk.open.standing(self.event.session_id().as_str(), self.host, tool) {
            Some(CallStanding::Approved) => GuardRuling::Allow,
            Some(CallStanding::Cleared | CallStanding::Asked(_)) => GuardRuling::NoObjection,
            Some(CallStanding::Refused(reason)) => GuardRuling::Deny { reason },
            None => self.clear(in_force, hooks, tool).await,
        }
    }

    /// Takes notice that the call of this event has run. Where its host had to ask its person, they have said yes.
    pub(super) async fn has_run(&self, in_force: &InForce, failed: bool) {
        let Some(call) = self.place.call.as_deref() else { return };
        let standing = self.desk.open.done(self.event.session_id().as_str(), call);
        let Some(CallStanding::Asked(approval)) = standing.filter(|_| !failed) else { return };
        let (store, by) = (in_force.store.clone(), format!("{} (its own question)", self.host.id));
        let settled = tokio::task::spawn_blocking(move || settle(&store, &approval, by)).await;
        match settled {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("what a person said to the host cannot be kept: {error}"),
            Err(error) => tracing::warn!("what a person said to the host cannot be kept: {error}"),
        }
    }
}

/// Answers and uses up the question `id`, which a host asked, unless somebody else has answered it.
fn settle(store: &Arc<dyn Store>, id: &str, by: String) -> Result<(), pintle_domain::store::StoreError> {
    let now = Timestamp::now();
    let found = store.approval(&TenantScope::One(TenantId::default_tenant()), id)?;
    let Some(asked) = found.filter(|it| it.state_at(now) == ApprovalState::Waiting) else { return Ok(()) };
    store.answer_shown(&asked, PersonAnswer { approve: true, by, note: String::new() }, now)?;
    store.use_up(&asked.tenant_id, id, now)
}
