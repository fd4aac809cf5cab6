//! Without an outbox: one attempt, and a row for each that had no room.

use domain::agent_hook::Decision;
use domain::id::DEFAULT_TENANT;
use pintle_engine::domain;
use pintle_engine::handlers::agent::PoolLimits;
use tokio::time::sleep;

use super::stage::{Plan, World, secs};

#[tokio::test(start_paused = true)]
async fn nothing_is_tried_again() {
    for source in ["fail", "panic", "sleep 60", "stuck"] {
        let world = World::new();
        world.hook(DEFAULT_TENANT, source);
        let host = world.host(Plan { durable: false, ..Plan::default() });
        host.stop(DEFAULT_TENANT);
        sleep(secs(1000)).await;
        assert_eq!((world.runs().len(), world.rows().len()), (1, 1), "{source}");
        assert_ne!(world.rows()[0].decision, Decision::Allow, "{source}");
        // Whatever happened to the worker, there is another one.
        world.hook(DEFAULT_TENANT, "ok");
        host.rulebook.refresh().unwrap();
        host.stop(DEFAULT_TENANT);
        sleep(secs(1000)).await;
        assert_eq!(world.runs().len(), 3, "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_without_room_leaves_a_row_and_is_counted() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 5");
    let limits = PoolLimits { workers: 2, queue: 4 };
    let host = world.host(Plan { durable: false, limits, ..Plan::default() });
    (0..5).for_each(|_| host.stop(DEFAULT_TENANT));
    assert_eq!(host.pool.dropped(), 3, "half of the queue is one tenant's");
    let full = (Decision::Error, 0, Some("queue full".to_owned()));
    assert_eq!(world.decisions(), vec![full.clone(); 3]);
    sleep(secs(100)).await;
    let rows = world.decisions();
    let ran = rows.iter().filter(|row| **row == (Decision::Allow, 0, None)).count();
    assert_eq!((ran, rows.iter().filter(|row| **row == full).count()), (2, 3));
}
