//! What the hooks of one event may take together.

use super::*;
use crate::breaker::BreakerOutcome;
use crate::chain::GATE_BUDGET;
use crate::record::counted;

/// The timeouts that the hooks of `chain` are given when each takes `took`, and how the chain concludes.
fn given<C: Says>(subject: C, took: Duration) -> (Vec<Duration>, VerdictKind) {
    let hooks = ["a", "b", "c", "d"].map(|name| hook(name, &[C::KIND]));
    let roster = Arc::new(Roster::new(hooks.into()));
    let mut chain = Chain::new(roster, Agent::with(&[]), subject);
    let mut timeouts = Vec::new();
    while let Some(need) = chain.next() {
        timeouts.push(need.timeout);
        chain.settle(Ok(C::reply(Verdict::Continue)), took);
    }
    let concluded = chain.conclude();
    (timeouts, concluded.ruling.word(concluded.changed))
}

#[test]
fn gates_share_their_time_and_whoever_comes_too_late_blocks() {
    let seconds = Duration::from_secs;
    assert_eq!(GATE_BUDGET, seconds(10));
    assert_eq!(given(pre_tool_use(), seconds(1)), (vec![seconds(5); 4], VerdictKind::Continue));
    let last = [seconds(5), seconds(5), seconds(4), seconds(1)];
    assert_eq!(given(pre_tool_use(), seconds(3)), (last.to_vec(), VerdictKind::Continue));
    assert_eq!(given(pre_tool_use(), seconds(5)), (vec![seconds(5); 2], VerdictKind::Deny));
}

#[test]
fn rewriters_have_their_own_time_each() {
    let took = Duration::from_secs(5);
    assert_eq!(given(before_tool(), took), (vec![took; 4], VerdictKind::Continue));
}

/// What the breaker of each of `hooks` hears, where the handler of each that is asked takes `took` and times out.
fn heard_of(hooks: Vec<Hook>, took: Duration) -> Vec<Option<BreakerOutcome>> {
    let roster = Arc::new(Roster::new(hooks.into_iter().map(|hook| hook.failing(OnFailure::Continue)).collect()));
    let mut chain = Chain::new(roster.clone(), Agent::with(&[]), pre_tool_use());
    while let Some(need) = chain.next() {
        let after = took.min(need.timeout);
        chain.settle(Err(Fault::TimedOut { after }), after);
    }
    let records = chain.conclude().records.to_vec();
    let of = |hook: &Arc<Hook>| counted(hook, records.iter().filter(|record| record.hook == hook.name));
    roster.hooks().iter().map(of).collect()
}

#[test]
fn a_breaker_does_not_hear_of_those_for_whom_no_time_was_left() {
    let hooks = ["a", "b", "c"].map(|name| hook(name, &[AtPreToolUse]));
    let late = Some(BreakerOutcome::Timeout);
    assert_eq!(heard_of(hooks.into(), Duration::from_secs(5)), [late, late, None]);
    let broken = HookState::Broken(Fault::CannotStart { detail: "its config is none".into() });
    assert_eq!(heard_of(vec![hook("a", &[AtPreToolUse]).state(broken)], Duration::ZERO), [None]);
}
