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
    let broken = HookState::Broken(Fault::CannotStart { cause: "its config is none".into() });
    assert_eq!(heard_of(vec![hook("a", &[AtPreToolUse]).state(broken)], Duration::ZERO), [None]);
}

#[test]
fn whoever_comes_too_late_did_not_run_and_says_so() {
    let hooks = ["a", "b", "c"].map(|name| hook(name, &[AtPreToolUse]));
    let roster = Arc::new(Roster::new(hooks.into()));
    let mut chain = Chain::new(roster, Agent::with(&[]), pre_tool_use());
    while chain.next().is_some() {
        chain.settle(Ok(PreToolUse::reply(Verdict::Continue)), GATE_BUDGET / 2);
    }
    let concluded = chain.conclude();
    let last = concluded.records.to_vec().pop().unwrap();
    let stored = crate::store::StoredRecord::of(&last);
    assert_eq!((stored.hook.as_str(), stored.ran, stored.fault), ("c", false, None));
    assert_eq!(
        (stored.reason.as_deref(), stored.value.as_deref(), stored.verdict.as_deref()),
        (Some("chain time spent"), Some("10000 ms"), Some("deny"))
    );
    assert_eq!(
        ruled(&concluded.ruling),
        "Hook blocked: pre_tool_use: c: hook \"c\" was not asked: the hooks before it took the 10s that the hooks of \
         one event have together"
    );
}

#[test]
fn which_limit_cut_is_said_with_both() {
    let hooks = ["a", "b", "c"].map(|name| hook(name, &[AtPreToolUse]).failing(OnFailure::Continue));
    let roster = Arc::new(Roster::new(hooks.into()));
    let mut chain = Chain::new(roster, Agent::with(&[]), pre_tool_use());
    let took = [Duration::from_secs(4), Duration::from_secs(5), Duration::from_secs(1)];
    for took in took {
        let after = chain.next().unwrap().timeout;
        chain.settle(Err(Fault::TimedOut { after }), took);
    }
    let records = chain.conclude().records.to_vec();
    let causes: Vec<_> = records.iter().map(|record| crate::store::StoredRecord::of(record).cause).collect();
    let cut = "1s were left of the 10s that the hooks of one event have together; its own limit is 5s";
    assert_eq!(causes, [None, None, Some(cut.to_owned())]);
}

#[test]
fn the_wait_for_a_place_is_of_the_chain_s_time_and_no_part_of_what_the_hook_took() {
    let seconds = Duration::from_secs;
    let roster = Arc::new(Roster::new(["a", "b"].map(|name| hook(name, &[AtPreToolUse])).into()));
    let mut chain = Chain::new(roster, Agent::with(&[]), pre_tool_use());
    assert_eq!(chain.next().unwrap().timeout, seconds(5));
    let account = Some(Box::new(Account { slot_wait: seconds(8), ..Account::default() }));
    chain.settle(HandlerAnswer { heard: Ok(PreToolUse::reply(Verdict::Continue)), account }, seconds(9));
    assert_eq!(chain.next().unwrap().timeout, seconds(1), "nine of the ten seconds are over");
    chain.settle(Ok(PreToolUse::reply(Verdict::Continue)), Duration::ZERO);
    let records = chain.conclude().records.to_vec();
    let stored = crate::store::StoredRecord::of(&records[0]);
    assert_eq!((stored.duration_ms, stored.slot_wait_ms), (Some(1000.0), Some(8000.0)));
    assert_eq!(crate::store::StoredRecord::of(&records[1]).slot_wait_ms, None);
}
