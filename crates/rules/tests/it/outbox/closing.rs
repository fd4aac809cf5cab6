//! The end of a host.

use pintle_domain::id::DEFAULT_TENANT;
use pintle_domain::rule::Decision;
use pintle_rules::handler::PoolLimits;
use tokio::time::sleep;

use super::stage::{Plan, Rows, World, process, secs};

/// One at a time.
const ONE: PoolLimits = PoolLimits { workers: 1, queue: 16 };

#[tokio::test(start_paused = true)]
async fn what_waits_at_the_end_is_still_told() {
    for durable in [true, false] {
        let world = World::new();
        world.hook(DEFAULT_TENANT, "sleep 3");
        let host = world.host(Plan { durable, limits: ONE, ..Plan::default() });
        (0..3).for_each(|_| host.stop(DEFAULT_TENANT));
        assert_eq!(host.close().await, 9, "durable: {durable}");
        assert_eq!(world.decisions(), vec![(Decision::Allow, 0, None); 3]);
        assert_eq!((host.pool.dropped(), world.left()), (0, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn in_memory_what_has_no_time_any_more_leaves_a_row() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 8");
    let host = world.host(Plan { durable: false, limits: ONE, ..Plan::default() });
    (0..3).for_each(|_| host.stop(DEFAULT_TENANT));
    assert_eq!(host.close().await, 10);
    let mut rows = world.decisions();
    rows.sort();
    let error = |text: &str| (Decision::Error, 0, Some(text.to_owned()));
    let ended =
        [(Decision::Allow, 0, None), error("the host closed before the hook ran"), error("the turn was cancelled")];
    assert_eq!(rows, ended);
    assert_eq!(host.pool.dropped(), 1);
    host.stop(DEFAULT_TENANT);
    assert_eq!((host.pool.dropped(), world.rows().len()), (2, 4), "nothing is taken any more");
}

#[test]
fn in_an_outbox_what_has_no_time_any_more_is_done_by_the_next_process() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 8");
    process(async {
        let host = world.host(Plan { limits: ONE, ..Plan::default() });
        (0..3).for_each(|_| host.stop(DEFAULT_TENANT));
        assert_eq!(host.close().await, 10);
        assert_eq!((host.pool.dropped(), world.rows().len()), (0, 1));
    });
    process(async {
        let host = world.host(Plan { after: 10, ..Plan::default() });
        sleep(secs(60)).await;
        assert_eq!(host.close().await, 0);
    });
    assert_eq!(world.decisions(), vec![(Decision::Allow, 0, None); 3]);
    assert_eq!((world.runs().len(), world.left()), (4, vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_store_that_waits() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "ok");
    let host = world.host(Plan { rows: Rows::Never, ..Plan::default() });
    host.stop(DEFAULT_TENANT);
    assert_eq!(host.close().await, 10);
    assert_eq!((world.runs().len(), world.rows().len()), (1, 0));
    assert_eq!(world.left().len(), 1, "the next process does it once more, and its row is kept once");
}
