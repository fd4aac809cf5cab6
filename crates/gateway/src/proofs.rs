//! Which rules are known to have answered, in which version: one that never did is not proven, however well it reads, and
//! one that failed when it was asked last does not work.
//! Pure but for the lock around it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use pintle_domain::execution::Execution;
use pintle_domain::id::TenantId;
use pintle_domain::json::Value;
use pintle_domain::rule::Decision;
use pintle_rules::team::is_told;

/// Most executions that are looked at for answers at once: some thousand, the newest.
pub(crate) const MAX_LOOKED_AT: usize = 5000;

/// How much earlier than the last look executions are looked for: they are written off the way of what they are about.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// How long no look is taken where every rule answered: whether one of them fails by now.
const REST: SignedDuration = SignedDuration::from_secs(10);

/// The rules that answered.
#[derive(Default)]
pub(crate) struct Proofs(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    /// What came last of each rule in its newest version, by the id.
    last: BTreeMap<String, Last>,
    looked_at: Option<Timestamp>,
}

/// What came of a rule when it was asked last.
struct Last {
    version: u64,
    at: Timestamp,
    fault: Option<LastFault>,
}

/// How a rule failed when it was asked last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastFault {
    /// Whose event it was.
    pub(crate) tenant: TenantId,
    /// The fault, redacted and cut.
    pub(crate) text: String,
}

/// What is known of a rule as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing.
    Nothing,
    /// It answered when it was asked last.
    Answered,
    /// It failed when it was asked last; the text is for those who may read it.
    Faulted(Option<LastFault>),
}

impl Proof {
    /// The same with nothing in it that `may_read` denies.
    pub(crate) fn readable(self, may_read: impl Fn(&LastFault) -> bool) -> Self {
        match self {
            Self::Faulted(fault) => Self::Faulted(fault.filter(|fault| may_read(fault))),
            known @ (Self::Nothing | Self::Answered) => known,
        }
    }
}

impl Proofs {
    /// From which moment on executions are worth a look at `now`: while any of `rules`, as they are published, is on and has
    /// not answered as it is now, and else now and then, since one that answered may fail by now.
    pub(crate) fn to_look(&self, rules: &[Value], now: Timestamp) -> Option<Timestamp> {
        let answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut on = rules.iter().filter(|rule| rule["enabled"] == true).peekable();
        on.peek()?;
        let rests = answered.looked_at.is_some_and(|at| now.duration_since(at) < REST);
        if rests && on.all(|rule| answered.proof(rule) == Proof::Answered) {
            return None;
        }
        Some(answered.looked_at.and_then(|at| at.checked_sub(LATE).ok()).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Takes in what was found at a look at `now`. What machines under guard told says nothing of this server, and whoever
    /// has a key for guards can invent it.
    pub(crate) fn looked(&self, now: Timestamp, executions: &[Execution]) {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answered.looked_at = Some(now);
        for execution in executions.iter().filter(|execution| !is_told(execution)) {
            let Some(id) = &execution.hook_id else { continue };
            let fault = (!is_answer(execution.decision)).then(|| LastFault {
                tenant: execution.tenant_id.clone(),
                text: execution.error.clone().unwrap_or_default(),
            });
            let (version, at) = (u64::from(execution.hook_version), execution.created_at);
            answered.take(id.as_str(), Last { version, at, fault });
        }
    }

    /// The rule `id` answered a test in this version at `now`.
    pub(crate) fn tested(&self, id: &str, version: u64, now: Timestamp) {
        let last = Last { version, at: now, fault: None };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(id, last);
    }

    /// What is known of `rule`, as it is published.
    pub(crate) fn of(&self, rule: &Value) -> Proof {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).proof(rule)
    }
}

impl Answered {
    fn take(&mut self, id: &str, last: Last) {
        let is_newer = |known: &Last| (known.version, known.at) > (last.version, last.at);
        if !self.last.get(id).is_some_and(is_newer) {
            self.last.insert(id.to_owned(), last);
        }
    }

    fn proof(&self, rule: &Value) -> Proof {
        let last = rule["id"].as_str().and_then(|id| self.last.get(id));
        match last.filter(|last| rule["version"].as_u64().is_some_and(|version| last.version >= version)) {
            None => Proof::Nothing,
            Some(Last { fault: None, .. }) => Proof::Answered,
            Some(Last { fault: Some(fault), .. }) => Proof::Faulted(Some(fault.clone())),
        }
    }
}

/// Whether a handler said this itself: a fault and a timeout prove nothing.
pub(crate) fn is_answer(decision: Decision) -> bool {
    match decision {
        Decision::Allow | Decision::Block | Decision::Ask => true,
        Decision::Error | Decision::Timeout => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::id::HookId;
    use pintle_domain::json::json;
    use pintle_rules::team::{MachineName, TeamRecord};

    fn rule(version: u64, enabled: bool) -> Value {
        json!({"id": "1", "version": version, "enabled": enabled})
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_rule_is_proven_once_it_answered_as_it_is() {
        let (proofs, now) = (Proofs::default(), at("2026-11-26T10:00:00Z"));
        assert_eq!(proofs.of(&rule(1, true)), Proof::Nothing);
        assert_eq!(proofs.to_look(&[rule(1, true)], now), Some(Timestamp::UNIX_EPOCH));
        assert_eq!(proofs.to_look(&[rule(1, false)], now), None);
        proofs.tested("1", 2, now);
        assert_eq!((proofs.of(&rule(2, true)), proofs.of(&rule(3, true))), (Proof::Answered, Proof::Nothing));
        proofs.looked(now, &[]);
        assert_eq!(proofs.to_look(&[rule(2, true), rule(3, false)], now), None);
        assert_eq!(proofs.to_look(&[rule(3, true)], now), Some(at("2026-11-26T09:59:00Z")));
        // One that answered may fail by now.
        assert_eq!(proofs.to_look(&[rule(2, true)], at("2026-11-26T10:00:10Z")), Some(at("2026-11-26T09:59:00Z")));
    }

    #[test]
    fn a_rule_that_failed_when_it_was_asked_last_is_known_to_fail() {
        let (proofs, now) = (Proofs::default(), at("2026-11-26T10:00:00Z"));
        let fault = LastFault { tenant: TenantId::new("a"), text: "server error 502".into() };
        let failed = |version, moment: &str| Last { version, at: at(moment), fault: Some(fault.clone()) };
        let take = |last| proofs.0.lock().unwrap().take("1", last);
        take(failed(2, "2026-11-26T09:00:00Z"));
        assert_eq!(proofs.of(&rule(2, true)), Proof::Faulted(Some(fault.clone())));
        assert_eq!(proofs.of(&rule(3, true)), Proof::Nothing);
        proofs.tested("1", 2, now);
        // Whatever is read later: what happened last counts.
        take(failed(2, "2026-11-26T09:59:59Z"));
        assert_eq!(proofs.of(&rule(2, true)), Proof::Answered);
        take(failed(2, "2026-11-26T10:00:01Z"));
        let known = proofs.of(&rule(2, true));
        assert_eq!(known.clone().readable(|fault| fault.tenant == TenantId::new("b")), Proof::Faulted(None));
        assert_eq!(known.clone().readable(|fault| fault.tenant == TenantId::new("a")), known);
    }

    #[test]
    fn faults_and_timeouts_prove_nothing() {
        let proves: Vec<Decision> = Decision::ALL.iter().copied().filter(|it| is_answer(*it)).collect();
        assert_eq!(proves, [Decision::Allow, Decision::Block, Decision::Ask]);
    }

    #[test]
    fn what_machines_under_guard_tell_proves_nothing() {
        let id = "0193a5b0-7000-7000-8000-0000000000bb";
        let told = json!({
            "id": "0193a5b0-7000-7000-8000-0000000000aa",
            "at": "2026-11-26T10:00:00Z",
            "rule": {"id": id, "name": "guard", "version": 2, "handler": "script"},
            "place": {
                "event": "pre_tool_use", "event_id": "0193a5b0-7000-7000-8000-0000000000cc", "session": null,
                "turn": null, "tool": null, "call": null, "input_hash": null,
            },
            "end": {
                "decision": "allow", "reason": null, "error": null, "duration_ms": 1, "retry": 0, "metadata": {},
            },
        });
        let now: Timestamp = "2026-11-26T10:00:00Z".parse().unwrap();
        let machine = MachineName::new("0193a5b0-7000-7000-8000-0000000000dd", "laptop");
        let record = TeamRecord::read(&told).unwrap();
        let told = record.execution(&TenantId::default_tenant(), &machine, (now, |_: &HookId| true));
        let own = Execution { dedup_key: Some(format!("{id}:e")), ..told.clone() };
        let (proofs, rule) = (Proofs::default(), json!({"id": id, "version": 2, "enabled": true}));
        proofs.looked(now, &[told]);
        assert_eq!(proofs.of(&rule), Proof::Nothing);
        proofs.looked(now, &[own]);
        assert_eq!(proofs.of(&rule), Proof::Answered);
    }
}
