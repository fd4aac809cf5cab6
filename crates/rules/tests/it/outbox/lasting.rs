//! Jobs outlive processes, and are tried again.

use std::collections::BTreeSet;

use pintle_domain::id::DEFAULT_TENANT;
use pintle_domain::rule::{Decision, Rule};
use pintle_domain::store::{Actor, OutboxJob, OutboxStore as _, RuleChange, RuleStore as _};
use pintle_rules::handler::{ATTEMPTS, LEASE, PAUSES_SECONDS, PoolLimits, SEND_TIME};
use tokio::time::{Instant, sleep};

use super::stage::{Plan, World, process, secs};

/// What a restart waits for at most, in seconds: until the lease is over, and a look or two.
const RESTART: u64 = LEASE.as_secs().cast_unsigned() + 3;

#[test]
fn a_job_outlives_the_end_of_its_process_before_it_ran() {
    let world = World::new();
    let hook = world.hook(DEFAULT_TENANT, "ok");
    process(async {
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
    });
    assert_eq!((world.runs().len(), world.rows().len()), (0, 0));
    process(async {
        let _host = world.host(Plan { after: 1, ..Plan::default() });
        sleep(secs(RESTART)).await;
    });
    let rows = world.rows();
    assert_eq!(world.decisions(), [(Decision::Allow, 0, None)]);
    assert_eq!(rows[0].dedup_key, Some(format!("{}:{}", hook.id, rows[0].event_id)));
    assert_eq!(rows[0].session_id.as_deref(), Some("s"));
    assert_eq!(world.runs().len(), 1);
    assert_eq!(world.runs()[0].event_id, rows[0].event_id);
    assert_eq!(world.left(), []);
}

#[test]
fn a_program_that_is_about_to_end_sends_what_is_due_and_ends_what_it_began() {
    for (source, seconds, more) in [("ok", 0, 0), ("sleep 9", SEND_TIME.as_secs(), 7)] {
        let world = World::new();
        world.hook(DEFAULT_TENANT, source);
        process(async {
            let host = world.host(Plan::default());
            host.stop(DEFAULT_TENANT);
        });
        process(async {
            let host = world.host(Plan { after: RESTART, ..Plan::default() });
            let began = Instant::now();
            host.pool.send_due().await;
            assert_eq!((began.elapsed().as_secs(), host.close().await), (seconds, more), "{source}");
        });
        assert_eq!(world.decisions(), [(Decision::Allow, 0, None)], "{source}");
        assert_eq!((world.runs().len(), world.left().len()), (1, 0), "{source}");
    }
}

#[test]
fn what_a_program_that_is_about_to_end_has_not_begun_is_due_at_once_for_the_next() {
    let one = PoolLimits { workers: 1, queue: 16 };
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 9");
    process(async {
        let host = world.host(Plan::default());
        (0..2).for_each(|_| host.stop(DEFAULT_TENANT));
    });
    process(async {
        let host = world.host(Plan { after: RESTART, limits: one, ..Plan::default() });
        host.pool.send_due().await;
        assert_eq!((host.close().await, world.rows().len(), world.store.jobs_left().unwrap()), (7, 1, 1));
    });
    process(async {
        let _host = world.host(Plan { after: RESTART + 9, ..Plan::default() });
        sleep(secs(12)).await;
    });
    assert_eq!(world.decisions(), vec![(Decision::Allow, 0, None); 2], "no attempt was broken off");
    assert_eq!((world.runs().len(), world.left().len()), (2, 0));
}

#[test]
fn a_job_that_takes_longer_than_its_hook_may_is_over_after_its_attempts_in_short_programs_too() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 60");
    process(async {
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
    });
    for number in 1..=u64::from(ATTEMPTS) {
        process(async {
            let host = world.host(Plan { after: number * 400, ..Plan::default() });
            host.pool.send_due().await;
            host.close().await;
        });
    }
    let mut rows: Vec<_> = world.decisions().into_iter().map(|(decision, retry, _)| (decision, retry)).collect();
    rows.sort();
    assert_eq!(rows, (0..ATTEMPTS).map(|retry| (Decision::Timeout, retry)).collect::<Vec<_>>());
    assert_eq!(world.left(), []);
}

#[test]
fn a_job_outlives_the_end_of_its_process_while_it_ran() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 5");
    process(async {
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
        sleep(secs(2)).await;
    });
    assert_eq!((world.runs().len(), world.rows().len()), (1, 0));
    process(async {
        let _host = world.host(Plan { after: 2, ..Plan::default() });
        sleep(secs(RESTART + 5)).await;
    });
    assert_eq!((world.runs().len(), world.left().len()), (2, 0));
    assert_eq!(world.decisions(), [(Decision::Allow, 0, None)]);
}

#[test]
fn five_attempts_with_longer_and_longer_pauses_across_restarts() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "fail");
    process(async {
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
        sleep(secs(20)).await;
        host.close().await;
    });
    assert_eq!((world.runs().len(), world.rows().len()), (3, 3), "each attempt that failed has a row");
    process(async {
        let _host = world.host(Plan { after: 20, ..Plan::default() });
        sleep(secs(1000)).await;
    });
    let gaps = world.gaps();
    let fits = gaps.iter().zip(PAUSES_SECONDS).all(|(gap, pause)| (pause..pause + 2).contains(gap));
    assert!(fits && gaps.len() + 1 == ATTEMPTS as usize, "{gaps:?}");
    let mut rows = world.decisions();
    rows.sort();
    assert_eq!(rows, (0..ATTEMPTS).map(|retry| (Decision::Error, retry, Some("Error: no".into()))).collect::<Vec<_>>());
    let keys: BTreeSet<_> = world.rows().into_iter().map(|row| row.dedup_key).collect();
    assert_eq!((keys.len(), world.left()), (ATTEMPTS as usize, vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_succeeds_at_the_third_attempt_is_over() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "fail 2");
    let host = world.host(Plan::default());
    host.stop(DEFAULT_TENANT);
    sleep(secs(1000)).await;
    assert_eq!(world.runs().len(), 3);
    let mut rows: Vec<_> = world.decisions().into_iter().map(|(decision, retry, _)| (retry, decision)).collect();
    rows.sort();
    assert_eq!(rows, [(0, Decision::Error), (1, Decision::Error), (2, Decision::Allow)]);
    assert_eq!(world.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_and_a_panic_are_tried_again() {
    for (source, decision) in
        [("sleep 60", Decision::Timeout), ("panic", Decision::Error), ("stuck", Decision::Timeout)]
    {
        let world = World::new();
        world.hook(DEFAULT_TENANT, source);
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
        sleep(secs(1000)).await;
        let mut rows: Vec<_> = world.decisions().into_iter().map(|(decision, retry, _)| (decision, retry)).collect();
        rows.sort();
        assert_eq!((rows, world.runs().len()), ((0..5).map(|retry| (decision, retry)).collect(), 5), "{source}");
    }
}

/// Something that is done to a hook.
type Blow = fn(&World, Rule);

#[tokio::test(start_paused = true)]
async fn the_jobs_of_a_hook_that_is_gone_are_over() {
    let blows: [Blow; 4] = [
        |world, hook| world.change(RuleChange::delete(hook.id)),
        |world, hook| {
            let off = Rule { enabled: false, ..hook };
            world.change(RuleChange::Update { hook: Box::new(off), if_version: None, action: "toggled" });
        },
        |world, hook| {
            let by = Actor {
                name: "system:breaker".into(),
                at: "2026-11-22T09:00:00Z".parse().unwrap(),
                reason: String::new(),
            };
            world.store.trip(&hook.id, &hook.tenant_id, &by).unwrap();
        },
        |world, hook| {
            let event = pintle_domain::checkpoint::CheckpointKind::SessionStart;
            let other = Rule { event, ..hook };
            world.change(RuleChange::Update { hook: Box::new(other), if_version: None, action: "updated" });
        },
    ];
    for (number, blow) in blows.into_iter().enumerate() {
        let world = World::new();
        let hook = world.hook(DEFAULT_TENANT, "fail");
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
        sleep(secs(0)).await;
        tokio::task::yield_now().await;
        blow(&world, hook);
        host.rule_cache.refresh().unwrap();
        sleep(secs(1000)).await;
        assert_eq!((world.runs().len(), world.rows().len(), world.left()), (1, 1, vec![]), "{number}");
    }
}

#[test]
fn rules_that_could_not_be_read_end_no_job() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "ok");
    process(async {
        let host = world.host(Plan::default());
        host.stop(DEFAULT_TENANT);
    });
    process(async {
        world.store.break_down("the disk is gone");
        let host = world.host(Plan { after: 1000, ..Plan::default() });
        world.store.mend();
        sleep(secs(60)).await;
        assert_eq!(world.runs(), [], "no hook is known yet");
        host.rule_cache.refresh().unwrap();
        sleep(secs(60)).await;
    });
    assert_eq!((world.runs().len(), world.rows().len(), world.left()), (1, 1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_for_a_while_loses_no_job() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "fail 1");
    let host = world.host(Plan::default());
    host.stop(DEFAULT_TENANT);
    sleep(secs(0)).await;
    world.store.break_down("the disk is gone");
    host.rule_cache.refresh().unwrap_err();
    sleep(secs(500)).await;
    world.store.mend();
    sleep(secs(1000)).await;
    assert_eq!(world.runs().len(), 2);
    // The row of the attempt that failed came while the store was down.
    assert_eq!((world.rows().len(), world.left()), (1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_runs_all_the_same() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "ok");
    let host = world.host(Plan::default());
    world.store.break_down("the disk is gone");
    host.stop(DEFAULT_TENANT);
    world.store.mend();
    sleep(secs(60)).await;
    assert_eq!((world.runs().len(), world.left()), (1, vec![]));
    assert_eq!(world.decisions(), [(Decision::Allow, 0, None)]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_read_is_over() {
    let world = World::new();
    let hook = world.hook(DEFAULT_TENANT, "ok");
    let host = world.host(Plan::default());
    use pintle_engine::Clock as _;
    let job = OutboxJob {
        id: "0193a5b0-7000-7000-8000-0000000000b1".into(),
        tenant_id: hook.tenant_id,
        hook_id: hook.id,
        event_id: "0193a5b0-7000-7000-8000-0000000000b2".into(),
        payload: b"{\"event_id\":1}".to_vec(),
        attempts: 0,
        next_at: host.clock.now(),
    };
    world.store.enqueue(vec![job], Box::new(|kept| kept.unwrap()));
    sleep(secs(60)).await;
    assert_eq!((world.runs(), world.rows(), world.left()), (vec![], vec![], vec![]));
}
