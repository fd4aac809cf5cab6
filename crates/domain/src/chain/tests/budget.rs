//! What the hooks of one event may take together.

use super::*;
use crate::chain::GATE_BUDGET;

/// The timeouts that the hooks of `chain` are given when each takes `took`, and how the chain concludes.
fn given<C: Says>(subject: C, took: Duration) -> (Vec<Duration>, Word) {
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
    assert_eq!(given(pre_tool_use(), seconds(1)), (vec![seconds(5); 4], Word::Continue));
    let last = [seconds(5), seconds(5), seconds(4), seconds(1)];
    assert_eq!(given(pre_tool_use(), seconds(3)), (last.to_vec(), Word::Continue));
    assert_eq!(given(pre_tool_use(), seconds(5)), (vec![seconds(5); 2], Word::Deny));
}

#[test]
fn rewriters_have_their_own_time_each() {
    let took = Duration::from_secs(5);
    assert_eq!(given(before_tool(), took), (vec![took; 4], Word::Continue));
}
