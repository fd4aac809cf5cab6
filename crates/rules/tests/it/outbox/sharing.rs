//! Processes share a store, tenants share a process.

use pintle_domain::id::DEFAULT_TENANT;
use pintle_domain::rule::Decision;
use pintle_rules::handler::PoolLimits;
use tokio::time::sleep;

use super::stage::{ACME, Plan, World, process, secs};

#[test]
fn two_processes_never_do_one_job_at_the_same_time() {
    const JOBS: usize = 40;
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 3");
    world.hook(DEFAULT_TENANT, "fail 2");
    // Somebody leaves everything behind.
    process(async {
        let host = world.host(Plan::default());
        (0..JOBS).for_each(|_| host.stop(DEFAULT_TENANT));
    });
    process(async {
        let limits = PoolLimits { workers: 4, queue: 50 };
        let hosts = [(); 2].map(|()| world.host(Plan { limits, ..Plan::default() }));
        // More of it comes while they work.
        sleep(secs(31)).await;
        hosts.iter().for_each(|host| (0..JOBS / 2).for_each(|_| host.stop(DEFAULT_TENANT)));
        sleep(secs(3000)).await;
    });
    let log = world.log.lock().unwrap();
    let jobs: Vec<(&String, &usize)> = log.most.iter().filter(|(key, _)| key.contains('/')).collect();
    assert_eq!(jobs.len(), 4 * JOBS);
    assert!(jobs.iter().all(|(_, most)| **most == 1), "{jobs:?}");
    let runs = |source: &str| log.runs.iter().filter(|run| run.source == source).count();
    assert_eq!((runs("sleep 3"), runs("fail 2")), (2 * JOBS, 6 * JOBS));
    drop(log);
    let rows = world.decisions();
    let with = |retry: u32| rows.iter().filter(|row| **row == (Decision::Allow, retry, None)).count();
    // Of the one that fails twice, each attempt has a row.
    assert_eq!((with(0), with(2), rows.len()), (2 * JOBS, 2 * JOBS, 8 * JOBS));
    assert_eq!(world.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_loud_tenant_leaves_half_of_the_workers_to_others() {
    for durable in [true, false] {
        let world = World::new();
        world.hook(DEFAULT_TENANT, "sleep 8");
        world.hook(ACME, "ok");
        let limits = PoolLimits { workers: 4, queue: 64 };
        let host = world.host(Plan { durable, limits, ..Plan::default() });
        (0..20).for_each(|_| host.stop(DEFAULT_TENANT));
        host.stop(ACME);
        sleep(secs(1)).await;
        let quiet = world.runs().iter().filter(|run| run.tenant == ACME).count();
        assert_eq!((quiet, world.most_of(DEFAULT_TENANT)), (1, 2), "durable: {durable}");
        sleep(secs(200)).await;
        assert_eq!((world.rows().len(), world.most_of(DEFAULT_TENANT)), (21, 2), "durable: {durable}");
        assert_eq!(world.left(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_waits_in_the_store_and_nothing_of_it_is_lost() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 1");
    world.hook(ACME, "ok");
    let limits = PoolLimits { workers: 4, queue: 8 };
    let host = world.host(Plan { limits, ..Plan::default() });
    for _ in 0..100 {
        host.stop(DEFAULT_TENANT);
        // What is on its way to the store has a bound of its own.
        tokio::task::yield_now().await;
    }
    host.stop(ACME);
    sleep(secs(1)).await;
    assert!(world.runs().iter().any(|run| run.tenant == ACME), "it does not stand behind the flood");
    sleep(secs(3600)).await;
    assert_eq!((host.pool.dropped(), world.rows().len(), world.runs().len()), (0, 101, 101));
    assert_eq!(world.left(), []);
}
