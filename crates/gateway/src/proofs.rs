//! Which rules are known to have answered, in which version: one that never did is not proven, however well it reads.
//! Pure but for the lock around it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use domain::execution::Execution;
use domain::json::Value;
use domain::rule::Decision;
use jiff::{SignedDuration, Timestamp};
use rules::team::is_told;

/// Most executions that are looked at for answers at once: some thousand, the newest.
pub(crate) const MAX_LOOKED_AT: usize = 5000;

/// How much earlier than the last look executions are looked for: they are written off the way of what they are about.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// The rules that answered.
#[derive(Default)]
pub(crate) struct Proofs(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    /// The newest version that answered, by the id.
    versions: BTreeMap<String, u64>,
    looked_at: Option<Timestamp>,
}

impl Proofs {
    /// Whether any of `rules`, as they are published, is on and has not answered as it is now; then executions are worth
    /// a look, from the moment on that this gives.
    pub(crate) fn to_look(&self, rules: &[Value]) -> Option<Timestamp> {
        let answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |rule: &Value| rule["enabled"] == true && !answered.has(rule);
        let earliest = Timestamp::UNIX_EPOCH;
        rules
            .iter()
            .any(is_open)
            .then(|| answered.looked_at.and_then(|at| at.checked_sub(LATE).ok()).unwrap_or(earliest))
    }

    /// Takes in what was found at a look at `now`. What machines under guard told says nothing of this server, and whoever
    /// has a key for guards can invent it.
    pub(crate) fn looked(&self, now: Timestamp, executions: &[Execution]) {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answered.looked_at = Some(now);
        for execution in executions {
            let Some(id) = &execution.hook_id else { continue };
            if is_answer(execution.decision) && !is_told(execution) {
                answered.take(id.as_str(), u64::from(execution.hook_version));
            }
        }
    }

    /// The rule `id` answered a test in this version.
    pub(crate) fn tested(&self, id: &str, version: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(id, version);
    }

    /// Whether `rule`, as it is published, answered as it is now.
    pub(crate) fn has(&self, rule: &Value) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).has(rule)
    }
}

impl Answered {
    fn take(&mut self, id: &str, version: u64) {
        let known = self.versions.entry(id.to_owned()).or_default();
        *known = version.max(*known);
    }

    fn has(&self, rule: &Value) -> bool {
        let known = rule["id"].as_str().and_then(|id| self.versions.get(id)).copied();
        known.is_some_and(|known| rule["version"].as_u64().is_some_and(|version| known >= version))
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
    use domain::id::{HookId, TenantId};
    use domain::json::json;
    use rules::team::{MachineName, TeamRecord};

    fn rule(version: u64, enabled: bool) -> Value {
        json!({"id": "1", "version": version, "enabled": enabled})
    }

    #[test]
    fn a_rule_is_proven_once_it_answered_as_it_is() {
        let proofs = Proofs::default();
        assert!(!proofs.has(&rule(1, true)));
        assert_eq!(proofs.to_look(&[rule(1, true)]), Some(Timestamp::UNIX_EPOCH));
        proofs.tested("1", 2);
        assert!(proofs.has(&rule(2, true)) && !proofs.has(&rule(3, true)));
        assert_eq!(proofs.to_look(&[rule(2, true), rule(3, false)]), None);
        let now: Timestamp = "2026-11-26T10:00:00Z".parse().unwrap();
        proofs.looked(now, &[]);
        assert_eq!(proofs.to_look(&[rule(3, true)]), Some("2026-11-26T09:59:00Z".parse().unwrap()));
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
        assert!(!proofs.has(&rule));
        proofs.looked(now, &[own]);
        assert!(proofs.has(&rule));
    }
}
