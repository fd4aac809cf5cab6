//! What the store says of runs, and what stands here.

use pintle_domain::breaker::BreakerOutcome;

use super::*;

#[test]
fn what_a_store_says_of_a_run_is_old_while_a_newer_one_is_on_its_way() {
    let key = |hook: &str| (HookId::from(hook), TenantId::from("t"));
    let run = |outcomes: i64| {
        let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
        let mut run = BreakerRun::default();
        for second in 0..outcomes {
            run.take(pintle_domain::breaker::BreakerPolicy::All, BreakerOutcome::Block, at(second));
        }
        run
    };
    let stored = [("longer", run(1)), ("over", run(1)), ("settled", run(1))];
    let rules = StoredRules {
        runs: stored.map(|(hook, run)| (HookId::from(hook), TenantId::from("t"), run)).into(),
        ..StoredRules::default()
    };
    let runs = BTreeMap::from([(key("longer"), run(3)), (key("settled"), run(2)), (key("gone"), run(2))]);
    let mut cache_state = CacheState { runs, ..CacheState::default() };
    for hook in ["longer", "over"] {
        assert!(cache_state.is_to_write(&key(hook)));
    }
    cache_state.take(rules.clone());
    assert_eq!(cache_state.runs, BTreeMap::from([(key("longer"), run(3)), (key("settled"), run(1))]));
    for hook in ["longer", "over"] {
        cache_state.written(&key(hook));
    }
    cache_state.take(rules);
    assert_eq!(cache_state.runs.len(), 3);
    assert_eq!(cache_state.runs[&key("longer")], run(1));
}
